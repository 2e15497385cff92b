/* Event sets. An event of the scenario comes to every set on which its card was registered
 * before the event's instant; a set gets each event once, in the order of time.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <time.h>

#include "answers.h"
#include "scenario.h"

enum { POLL_NS = 20000000 };

typedef struct {
    int is_used;
    u64 types[MAX_HANDLES];            /* registered types of each card */
    double given_until_s[MAX_HANDLES]; /* events up to this instant were given, or missed */
} event_set_t;

static event_set_t event_sets[64];

int nvmlEventSetCreate(event_set_t **set) {
    int code = enter_system("nvmlEventSetCreate");
    event_set_t *free_set = NULL;
    for (int i = 0; i < 64 && free_set == NULL; i++)
        if (!event_sets[i].is_used) free_set = &event_sets[i];
    if (code == SUCCESS && free_set == NULL) code = UNKNOWN;
    if (code == SUCCESS) {
        *free_set = (event_set_t){.is_used = 1};
        *set = free_set;
    }
    return leave(code);
}

int nvmlEventSetFree(event_set_t *set) {
    int code = enter_system("nvmlEventSetFree");
    if (code == SUCCESS && !set->is_used) code = INVALID_ARGUMENT;
    if (code == SUCCESS) set->is_used = 0;
    return leave(code);
}

int nvmlDeviceRegisterEvents(card_t *card, u64 types, event_set_t *set) {
    u64 supported = 0;
    int code = enter(card, "nvmlDeviceRegisterEvents");
    if (code == SUCCESS) code = number_of(card, "nvmlDeviceGetSupportedEventTypes", &supported);
    if (code == SUCCESS && (types & ~supported) != 0) code = NOT_SUPPORTED;
    if (code == SUCCESS) {
        set->types[card->id] |= types;
        set->given_until_s[card->id] = scenario_now_s();
    }
    return leave(code);
}

/* The earliest event that a set has not been given, SUCCESS; or why there is none now. */
static int next_event(event_set_t *set, event_data_t *data) {
    const line_t *earliest = NULL;
    int earliest_id = NO_CARD;
    double now_s = scenario_now_s();
    for (int id = 0; id < MAX_HANDLES; id++) {
        if (set->types[id] == 0) continue;
        int code = scenario_permit(id, "nvmlEventSetWait_v2", "nvmlEventSetWait_v2");
        if (code != SUCCESS) return code;
        const line_t *line;
        for (int position = 0; (line = scenario_next(EVENT, id, &position)) != NULL;)
            if ((line->numbers[0] & set->types[id]) != 0 &&
                set->given_until_s[id] < line->from_s && line->from_s <= now_s &&
                (earliest == NULL || line->from_s < earliest->from_s)) {
                earliest = line;
                earliest_id = id;
            }
    }
    if (earliest == NULL) return TIMEOUT;
    set->given_until_s[earliest_id] = earliest->from_s;
    *data = (event_data_t){.device = &nvml_cards[earliest_id],
                           .eventType = earliest->numbers[0],
                           .eventData = earliest->numbers[1],
                           .gpuInstanceId = 0xffffffffu,
                           .computeInstanceId = 0xffffffffu};
    return SUCCESS;
}

int nvmlEventSetWait_v2(event_set_t *set, event_data_t *data, u32 timeout_ms) {
    struct timespec begin, now, poll = {0, POLL_NS};
    clock_gettime(CLOCK_MONOTONIC, &begin);
    for (;;) {
        int code = enter_system("nvmlEventSetWait_v2");
        if (code == SUCCESS) code = next_event(set, data);
        leave(code);
        clock_gettime(CLOCK_MONOTONIC, &now);
        double waited_ms = 1e3 * (double)(now.tv_sec - begin.tv_sec) +
                           1e-6 * (double)(now.tv_nsec - begin.tv_nsec);
        if (code != TIMEOUT || waited_ms >= timeout_ms) return code;
        nanosleep(&poll, NULL);
    }
}

int nvmlEventSetWait(event_set_t *set, event_data_t *data, u32 timeout_ms) {
    return nvmlEventSetWait_v2(set, data, timeout_ms);
}
