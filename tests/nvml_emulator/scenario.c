/* The statements of the scenario file, its time, and which statement is in force. */
#define _GNU_SOURCE
#include "scenario.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "parser.h"

enum { MAX_LINES = 4096 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static line_t lines[MAX_LINES];
static int line_count;
static int counts[SETTING + 1]; /* statements by verb: most scenarios have no fault at all */
static struct stat seen;
static double first_init_s;
static int has_begun;
static pace_t pace;

void scenario_lock(void) { pthread_mutex_lock(&lock); }
void scenario_unlock(void) { pthread_mutex_unlock(&lock); }

/* --- time ---------------------------------------------------------------------------------- */

static double monotonic_s(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

void scenario_begin(void) {
    if (!has_begun) first_init_s = monotonic_s();
    has_begun = 1;
}

double scenario_now_s(void) {
    if (pace.stands_still) return pace.still_s;
    if (!has_begun) return 0.0;
    return pace.speed * (monotonic_s() - (pace.has_epoch ? pace.epoch_s : first_init_s));
}

pace_t *scenario_pace(void) { return &pace; }

line_t *scenario_add(void) { return line_count == MAX_LINES ? NULL : &lines[line_count++]; }

void scenario_refresh(void) {
    const char *path = getenv("NVML_EMULATOR_SCENARIO");
    struct stat now;
    if (path == NULL || stat(path, &now) != 0) return;
    if (now.st_ino == seen.st_ino && now.st_size == seen.st_size &&
        now.st_mtim.tv_sec == seen.st_mtim.tv_sec && now.st_mtim.tv_nsec == seen.st_mtim.tv_nsec)
        return;
    if (has_begun) integrals_advance(scenario_now_s());
    line_count = 0;
    pace = (pace_t){.speed = 1.0};
    if (parse_scenario(path) == 0) seen = now;
    memset(counts, 0, sizeof counts);
    for (int i = 0; i < line_count; i++) counts[lines[i].verb]++;
}

u32 scenario_hash(const char *key) {
    u32 hash = 2166136261u;
    while (*key != '\0') hash = (hash ^ (unsigned char)*key++) * 16777619u;
    return hash;
}

/* --- looking statements up ----------------------------------------------------------------- */

static int is_about(const line_t *line, int card) {
    if (line->card == card) return 1;
    return line->card == ANY && (line->verb != CARD || (card >= 0 && !is_mig(card)));
}

/* A statement whose answer is `-` takes back those before it. */
static const line_t *unless_taken_back(const line_t *line) {
    return strcmp(line->text, "-") == 0 ? NULL : line;
}

const line_t *scenario_find(verb_t verb, int card, const char *key) {
    u32 hash = scenario_hash(key);
    for (const line_t *line = lines + line_count; line-- > lines;)
        if (line->hash == hash && line->verb == verb && is_about(line, card) &&
            strcmp(line->key, key) == 0)
            return unless_taken_back(line);
    return NULL;
}

static int is_about_pair(const line_t *line, int card, int other) {
    return is_about(line, card) && (line->other == other || line->other == ANY);
}

const line_t *scenario_find_pair(int card, int other, const char *key) {
    for (const line_t *line = lines + line_count; line-- > lines;)
        if (line->verb == PAIR && strcmp(line->key, key) == 0 &&
            (is_about_pair(line, card, other) || is_about_pair(line, other, card)))
            return unless_taken_back(line);
    return NULL;
}

const line_t *scenario_next(verb_t verb, int card, int *position) {
    while (*position < line_count) {
        const line_t *line = &lines[(*position)++];
        if (line->verb == verb && is_about(line, card)) return line;
    }
    return NULL;
}

double scenario_number(int card, const char *key, double t_s) {
    const line_t *line = scenario_find(CARD, card, key);
    return line == NULL || !line->has_value ? 0.0 : value_at(&line->value, card, t_s);
}

int scenario_count_cards(void) {
    int count = 0;
    while (count < MAX_CARDS && scenario_find(CARD, count, "name") != NULL) count++;
    return count;
}

int scenario_has_mig(int id) { return scenario_find(CARD, id, "name") != NULL; }

/* The last statement of a kind that is in force for a function now, or NULL. */
static const line_t *in_force(verb_t verb, int card, const char *function, const char *key) {
    if (counts[verb] == 0) return NULL;
    double now_s = scenario_now_s();
    for (const line_t *line = lines + line_count; line-- > lines;)
        if (line->verb == verb && is_about(line, card) &&
            (strcmp(line->key, "*") == 0 || strcmp(line->key, function) == 0 ||
             strcmp(line->key, key) == 0) &&
            (verb == SLOW || (line->from_s <= now_s && now_s < line->until_s)))
            return line;
    return NULL;
}

/* Note down a call in the file NVML_EMULATOR_JOURNAL, if there is to be one. */
static void note(int card, const char *key) {
    static FILE *journal;
    const char *path = getenv("NVML_EMULATOR_JOURNAL");
    if (path == NULL || *path == '\0') return;
    if (journal == NULL && (journal = fopen(path, "ae")) == NULL) return;
    fprintf(journal, "%d %s\n", card, key);
    fflush(journal);
}

int scenario_permit(int card, const char *function, const char *key) {
    note(card, key);
    if (in_force(HANG, card, function, key) != NULL) {
        scenario_unlock();
        for (;;) pause();
    }
    const line_t *slow = in_force(SLOW, card, function, key);
    if (slow != NULL) {
        struct timespec pause_for = {(time_t)slow->from_s,
                                     (long)(1e9 * (slow->from_s - (double)(time_t)slow->from_s))};
        scenario_unlock();
        nanosleep(&pause_for, NULL);
        scenario_lock();
    }
    const line_t *failure = in_force(FAIL, card, function, key);
    return failure == NULL ? SUCCESS : failure->code;
}
