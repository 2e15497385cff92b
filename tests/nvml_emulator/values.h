/* A number that moves over time, as a scenario writes it. */
#ifndef VALUES_H
#define VALUES_H

#include "nvml.h"

enum { MAX_TERMS = 6, MAX_FILTERS = 4, MAX_ARGUMENTS = 3 };

/* One word of a value with its numbers: a term that is added, or a filter that changes the sum. */
typedef struct {
    int kind;
    double argument[MAX_ARGUMENTS];
    const char *text;
} part_t;

typedef struct {
    int is_exact; /* a whole number alone, which need not pass through a double */
    u64 exact;
    int term_count, filter_count;
    part_t terms[MAX_TERMS], filters[MAX_FILTERS];
} value_t;

/* Read a value from words, which it changes and keeps. Returns 0, or -1 when it is none. */
int value_parse(value_t *value, char *words);

/* A number such as `12`, `-2`, `0xff`, `1.5` or `32607MiB`. Returns 0, or -1 when it is none. */
int number_parse(const char *word, double *number, u64 *exact, int *is_exact);

/* The value of a card at an instant. */
double value_at(const value_t *value, int card, double t_s);

/* Add up all integrals to an instant: before the values they follow are replaced. */
void integrals_advance(double t_s);

#endif
