#include "answers.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "library.h"
#include "scenario.h"

card_t nvml_cards[MAX_HANDLES];

/* Functions that ask the same sensor: what the first does not answer itself, the second does. */
static const struct {
    const char *function, *other;
} same[] = {
    {"nvmlDeviceGetCurrentClocksThrottleReasons", "nvmlDeviceGetCurrentClocksEventReasons"},
    {"nvmlDeviceGetSupportedClocksThrottleReasons", "nvmlDeviceGetSupportedClocksEventReasons"},
    {"nvmlDeviceGetPowerManagementLimit", "nvmlDeviceGetEnforcedPowerLimit"},
    {"nvmlDeviceGetTemperatureV:0", "nvmlDeviceGetTemperature:0"},
};

int enter_system(const char *function) {
    scenario_lock();
    if (library_uses() == 0) return UNINITIALIZED;
    scenario_refresh();
    return scenario_permit(SYSTEM, function, function);
}

static int permit(const card_t *card, const char *function, const char *key) {
    if (library_uses() == 0) return UNINITIALIZED;
    scenario_refresh();
    if (card < nvml_cards || card >= nvml_cards + MAX_HANDLES) return INVALID_ARGUMENT;
    int code = scenario_permit(card->id, function, key);
    if (code == SUCCESS && scenario_find(CARD, card->id, "name") == NULL) code = GPU_IS_LOST;
    return code;
}

int enter(const card_t *card, const char *function) {
    scenario_lock();
    return permit(card, function, function);
}

int leave(int code) {
    scenario_unlock();
    return code;
}

static const line_t *find_answer(int id, const char *key) {
    const line_t *line = scenario_find(CARD, id, key);
    for (size_t i = 0; line == NULL && i < sizeof same / sizeof same[0]; i++)
        if (strcmp(key, same[i].function) == 0) line = scenario_find(CARD, id, same[i].other);
    return line;
}

int number_of(const card_t *card, const char *key, u64 *value) {
    const line_t *line = find_answer(card->id, key);
    if (line == NULL || !line->has_value) return NOT_SUPPORTED;
    *value = line->value.is_exact
                 ? line->value.exact
                 : (u64)llround(value_at(&line->value, card->id, scenario_now_s()));
    return SUCCESS;
}

int text_of(const card_t *card, const char *key, char *out, u32 size) {
    const line_t *line = scenario_find(CARD, card->id, key);
    if (line == NULL) return NOT_SUPPORTED;
    if (strlen(line->text) >= size) return INSUFFICIENT_SIZE;
    strcpy(out, line->text);
    return SUCCESS;
}

static int ask_list(const card_t *card, const char *function, u64 *value, int count, va_list list) {
    char key[96];
    int length = snprintf(key, sizeof key, "%s", function);
    for (int i = 0; i < count; i++)
        length += snprintf(key + length, sizeof key - (size_t)length, ":%u", va_arg(list, u32));
    scenario_lock();
    int code = permit(card, function, key);
    return leave(code == SUCCESS ? number_of(card, key, value) : code);
}

int ask(const card_t *card, const char *function, u64 *value, int count, ...) {
    va_list list;
    va_start(list, count);
    int code = ask_list(card, function, value, count, list);
    va_end(list);
    return code;
}

int ask_u32(const card_t *card, const char *function, u32 *value, int count, ...) {
    u64 wide = 0;
    va_list list;
    va_start(list, count);
    int code = ask_list(card, function, &wide, count, list);
    va_end(list);
    if (code == SUCCESS) *value = (u32)wide;
    return code;
}

int ask_array(const card_t *card, const char *function, u32 *values, int count) {
    for (int i = 0; i < count; i++) {
        int code = ask_u32(card, function, &values[i], 1, (u32)i);
        if (code == NOT_SUPPORTED && i > 0)
            values[i] = 0;
        else if (code != SUCCESS)
            return code;
    }
    return SUCCESS;
}
