/* What a card answers to a function: its statement, or a failure. */
#ifndef ANSWERS_H
#define ANSWERS_H

#include "nvml.h"

extern card_t nvml_cards[]; /* every handle that callers may hold */

/* Begin and end an entry point that is about one card: takes the lock, and tells whether the
 * function may answer. leave() lets go of the lock and returns the code. */
int enter(const card_t *card, const char *function);
int enter_system(const char *function);
int leave(int code);

/* Between enter and leave: the answer to `key`, or NOT_SUPPORTED when the card has none. */
int number_of(const card_t *card, const char *key, u64 *value);
int text_of(const card_t *card, const char *key, char *out, u32 size);

/* All of it in one: the answer to FUNCTION[:ARGUMENT...], with `count` arguments as u32. */
int ask(const card_t *card, const char *function, u64 *value, int count, ...);
int ask_u32(const card_t *card, const char *function, u32 *value, int count, ...);

/* `FUNCTION:0` to `FUNCTION:count-1` into an array; those behind the first may be absent: 0. */
int ask_array(const card_t *card, const char *function, u32 *values, int count);

#endif
