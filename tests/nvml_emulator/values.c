/* Values: terms that are added (`approach 30 70 60 + noise 0.5`) and filters behind a bar, the
 * last one outermost (`| every 0.1 | average 1`). Times are seconds of the scenario.
 */
#define _GNU_SOURCE
#include "values.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "scenario.h"

enum { CONSTANT, RAMP, APPROACH, SINE, NOISE, STEPS, INTEGRAL };
enum { EVERY, AVERAGE, FREEZE, RESTART, BACK, ROUND, CLAMP };

typedef struct {
    const char *word;
    int kind, argument_count;
    int takes_text; /* the rest of the words are its own, not numbers */
} form_t;

static const form_t term_forms[] = {
    {"ramp", RAMP, 3, 0},   {"approach", APPROACH, 3, 0}, {"sine", SINE, 3, 0},
    {"noise", NOISE, 1, 0}, {"steps", STEPS, 0, 1},       {"integral", INTEGRAL, 0, 1},
};
static const form_t filter_forms[] = {
    {"every", EVERY, 1, 0}, {"average", AVERAGE, 1, 0}, {"freeze", FREEZE, 1, 0},
    {"back", BACK, 2, 0},   {"restart", RESTART, 1, 0}, {"round", ROUND, 1, 0},
    {"clamp", CLAMP, 2, 0},
};
#define COUNT(array) (sizeof(array) / sizeof(array)[0])

int number_parse(const char *word, double *number, u64 *exact, int *is_exact) {
    static const struct {
        const char *unit;
        double factor;
    } units[] = {{"", 1.0}, {"KiB", 1024.0}, {"MiB", 1048576.0}, {"GiB", 1073741824.0}};
    char *end = NULL;
    errno = 0;
    *exact = strtoull(word, &end, 0); /* also of negative numbers: their two's complement */
    *is_exact = end != word && *end == '\0' && errno == 0;
    *number = strtod(word, &end);
    if (end == word) return -1;
    for (size_t i = 0; i < COUNT(units); i++)
        if (strcmp(end, units[i].unit) == 0) {
            *number *= units[i].factor;
            return 0;
        }
    return -1;
}

static int form_parse(part_t *part, const form_t *forms, size_t count, char *words) {
    char *rest = NULL;
    const char *word = strtok_r(words, " \t", &rest);
    for (size_t i = 0; word != NULL && i < count; i++) {
        if (strcmp(forms[i].word, word) != 0) continue;
        part->kind = forms[i].kind;
        if (forms[i].takes_text) {
            part->text = rest + strspn(rest, " \t");
            return *part->text == '\0' ? -1 : 0;
        }
        for (int k = 0; k < forms[i].argument_count; k++) {
            u64 exact;
            int is_exact;
            const char *argument = strtok_r(NULL, " \t", &rest);
            if (argument == NULL ||
                number_parse(argument, &part->argument[k], &exact, &is_exact) != 0)
                return -1;
        }
        return strtok_r(NULL, " \t", &rest) == NULL ? 0 : -1;
    }
    return -1;
}

static char *trim(char *text) {
    text += strspn(text, " \t");
    size_t length = strlen(text);
    while (length > 0 && strchr(" \t", text[length - 1]) != NULL) text[--length] = '\0';
    return text;
}

int value_parse(value_t *value, char *words) {
    memset(value, 0, sizeof *value);
    char *filters = strchr(words, '|');
    if (filters != NULL) *filters++ = '\0';
    char *rest = NULL;
    for (char *word = strtok_r(words, "+", &rest); word; word = strtok_r(NULL, "+", &rest)) {
        if (value->term_count == MAX_TERMS) return -1;
        part_t *term = &value->terms[value->term_count++];
        u64 exact;
        int is_exact;
        word = trim(word);
        if (number_parse(word, &term->argument[0], &exact, &is_exact) == 0) {
            value->is_exact = is_exact && value->term_count == 1;
            value->exact = exact;
        } else if (form_parse(term, term_forms, COUNT(term_forms), word) != 0) {
            return -1;
        }
    }
    rest = NULL;
    for (char *word = filters ? strtok_r(filters, "|", &rest) : NULL; word;
         word = strtok_r(NULL, "|", &rest)) {
        if (value->filter_count == MAX_FILTERS) return -1;
        part_t *filter = &value->filters[value->filter_count++];
        if (form_parse(filter, filter_forms, COUNT(filter_forms), trim(word)) != 0) return -1;
    }
    value->is_exact = value->is_exact && value->term_count == 1 && value->filter_count == 0;
    return value->term_count > 0 ? 0 : -1;
}

/* --- integrals: sums over a fixed grid, so that a counter never goes back by rounding ------ */

#define GRID_S 0.05

typedef struct {
    int card;
    char key[64];
    i64 cells; /* whole cells added up so far */
    double sum;
} integral_t;

static integral_t integrals[256];
static size_t integral_count;

static double cells_sum(int card, const char *key, i64 from, i64 to) {
    double sum = 0.0;
    for (i64 cell = from; cell < to; cell++)
        sum += GRID_S * scenario_number(card, key, GRID_S * ((double)cell + 0.5));
    return sum;
}

static void advance(integral_t *integral, double t_s) {
    i64 cells = (i64)floor(t_s / GRID_S);
    if (cells <= integral->cells) return;
    integral->sum += cells_sum(integral->card, integral->key, integral->cells, cells);
    integral->cells = cells;
}

void integrals_advance(double t_s) {
    for (size_t i = 0; i < integral_count; i++) advance(&integrals[i], t_s);
}

static double integral_at(int card, const char *key, double t_s) {
    integral_t *integral = NULL;
    for (size_t i = 0; i < integral_count && integral == NULL; i++)
        if (integrals[i].card == card && strcmp(integrals[i].key, key) == 0)
            integral = &integrals[i];
    if (integral == NULL) {
        if (integral_count == COUNT(integrals)) abort();
        integral = &integrals[integral_count++];
        integral->card = card;
        strncpy(integral->key, key, sizeof integral->key - 1);
    }
    i64 cells = (i64)floor(t_s / GRID_S);
    if (cells < integral->cells) return cells_sum(card, key, 0, cells); /* an earlier instant */
    advance(integral, t_s);
    double part_s = t_s - GRID_S * (double)cells;
    return integral->sum + part_s * scenario_number(card, key, GRID_S * ((double)cells + 0.5));
}

/* --- values -------------------------------------------------------------------------------- */

/* A normal deviate that depends on card and instant (to the millisecond) alone. */
static double noise(int card, double t_s) {
    double uniform[2];
    u64 state = (u64)(i64)floor(t_s * 1000.0) * 0x9e3779b97f4a7c15u + (u64)card;
    for (int i = 0; i < 2; i++) {
        state += 0x9e3779b97f4a7c15u;
        u64 z = (state ^ state >> 30) * 0xbf58476d1ce4e5b9u;
        z = (z ^ z >> 27) * 0x94d049bb133111ebu;
        uniform[i] = ((double)((z ^ z >> 31) >> 11) + 0.5) / 9007199254740992.0;
    }
    return sqrt(-2.0 * log(uniform[0])) * cos(2.0 * M_PI * uniform[1]);
}

/* `TIME:VALUE` pairs in the order of time; the first holds before its time too. */
static double step_at(const char *pairs, double t_s) {
    double number = 0.0;
    int is_first = 1;
    while (*pairs != '\0') {
        char *end = NULL;
        double at_s = strtod(pairs, &end);
        if (*end != ':') break;
        if (at_s > t_s && !is_first) break;
        number = strtod(end + 1, &end);
        is_first = 0;
        pairs = end + strspn(end, " \t");
    }
    return number;
}

static double term_at(const part_t *term, int card, double t_s) {
    const double *a = term->argument;
    switch (term->kind) {
        case RAMP:
            return a[0] + (a[1] - a[0]) * fmin(t_s / a[2], 1.0);
        case APPROACH:
            return a[1] + (a[0] - a[1]) * exp(-t_s / a[2]);
        case SINE:
            return a[0] + a[1] * sin(2.0 * M_PI * t_s / a[2]);
        case NOISE:
            return a[0] * noise(card, t_s);
        case STEPS:
            return step_at(term->text, t_s);
        case INTEGRAL:
            return integral_at(card, term->text, t_s);
        default:
            return a[0];
    }
}

/* The sum of the terms behind the first `filter_count` filters. */
static double filtered_at(const value_t *value, int filter_count, int card, double t_s) {
    if (filter_count == 0) {
        double sum = 0.0;
        for (int i = 0; i < value->term_count; i++)
            sum += term_at(&value->terms[i], card, t_s);
        return sum;
    }
    const part_t *filter = &value->filters[filter_count - 1];
    const double *a = filter->argument;
    int inner = filter_count - 1;
    double sum = 0.0;
    switch (filter->kind) {
        case EVERY:
            return filtered_at(value, inner, card, a[0] * floor(t_s / a[0]));
        case AVERAGE:
            for (int i = 0; i < 20; i++)
                sum += filtered_at(value, inner, card, fmax(0.0, t_s - a[0] * (i + 0.5) / 20));
            return sum / 20;
        case FREEZE:
            return filtered_at(value, inner, card, fmin(t_s, a[0]));
        case RESTART:
            sum = filtered_at(value, inner, card, t_s);
            return t_s < a[0] ? sum : sum - filtered_at(value, inner, card, a[0]);
        case BACK:
            return filtered_at(value, inner, card, t_s) - (t_s < a[0] ? 0.0 : a[1]);
        case ROUND:
            return a[0] * round(filtered_at(value, inner, card, t_s) / a[0]);
        default:
            return fmin(fmax(filtered_at(value, inner, card, t_s), a[0]), a[1]);
    }
}

double value_at(const value_t *value, int card, double t_s) {
    return filtered_at(value, value->filter_count, card, t_s);
}
