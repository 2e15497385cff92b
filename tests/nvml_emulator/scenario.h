/* The scenario file: which cards there are, what they answer, and what goes wrong with them. */
#ifndef SCENARIO_H
#define SCENARIO_H

#include "nvml.h"
#include "values.h"

enum { MAX_CARDS = 32, MAX_MIG = 8, MAX_HANDLES = MAX_CARDS * (1 + MAX_MIG) };
enum { SYSTEM = -1, ANY = -2, NO_CARD = -3 };

/* What a statement is; README.md says how each is written. */
typedef enum { CARD, PAIR, FAIL, HANG, SLOW, EVENT, PROCESS, SETTING } verb_t;

/* One statement about one card. */
typedef struct {
    verb_t verb;
    int card, other;
    u32 hash; /* of the key, to look for it fast */
    char key[64];
    char text[192];
    char words[192]; /* what `value` points into */
    value_t value;
    int has_value;
    int code;
    double from_s, until_s;
    u64 numbers[3];
} line_t;

/* How time runs. */
typedef struct {
    double speed, epoch_s, still_s;
    int has_epoch, stands_still;
} pace_t;

/* For the parser: room for one more statement (NULL: none left), the pace, a key's hash. */
line_t *scenario_add(void);
pace_t *scenario_pace(void);
u32 scenario_hash(const char *key);

/* All of it is guarded by one lock, which every entry point takes. */
void scenario_lock(void);
void scenario_unlock(void);

/* Read the file again if it changed. */
void scenario_refresh(void);
/* Seconds of the scenario: since the first nvmlInit of the process, or since its `epoch`. */
double scenario_now_s(void);
void scenario_begin(void);

/* The last statement that fits, or NULL. */
const line_t *scenario_find(verb_t verb, int card, const char *key);
const line_t *scenario_find_pair(int card, int other, const char *key);
/* The statements of a kind about a card one after another, from `*position` on. */
const line_t *scenario_next(verb_t verb, int card, int *position);
/* A number that a card answers, 0 when it does not. */
double scenario_number(int card, const char *key, double t_s);
int scenario_count_cards(void);
int scenario_has_mig(int id);

/* Whether a function of a card may answer now: SUCCESS, or the code to return. Called with the
 * lock held, which it lets go of for good when the function hangs, and for a while when slow. */
int scenario_permit(int card, const char *function, const char *key);

/* MIG devices are numbered behind the cards. */
static inline int mig_id(int card, int index) { return MAX_CARDS + card * MAX_MIG + index; }
static inline int is_mig(int id) { return id >= MAX_CARDS; }
static inline int mig_parent(int id) { return (id - MAX_CARDS) / MAX_MIG; }
static inline int mig_index(int id) { return (id - MAX_CARDS) % MAX_MIG; }

#endif
