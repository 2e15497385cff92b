/* Entry points about the library, the system and its list of cards. */
#define _GNU_SOURCE
#include "library.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "answers.h"
#include "errors.h"
#include "scenario.h"

static int uses;

int library_uses(void) { return uses; }

int nvmlInitWithFlags(u32 flags) {
    (void)flags;
    scenario_lock();
    scenario_refresh();
    const line_t *init = scenario_find(SETTING, SYSTEM, "init");
    int code = init == NULL ? SUCCESS : init->code;
    if (code == SUCCESS && uses++ == 0) {
        scenario_begin();
        for (int id = 0; id < MAX_HANDLES; id++) nvml_cards[id].id = id;
    }
    return leave(code);
}

int nvmlInit_v2(void) { return nvmlInitWithFlags(0); }

int nvmlInit(void) { return nvmlInitWithFlags(0); }

int nvmlShutdown(void) {
    scenario_lock();
    int code = uses > 0 ? SUCCESS : UNINITIALIZED;
    if (uses > 0) uses--;
    return leave(code);
}

const char *nvmlErrorString(int code) { return error_text(code); }

static int system_text(const char *function, const char *key, char *out, u32 size) {
    int code = enter_system(function);
    if (code == UNINITIALIZED && strcmp(key, "driver") != 0) {
        scenario_refresh(); /* The other versions are told without a start. */
        code = SUCCESS;
    }
    const line_t *line = scenario_find(SETTING, SYSTEM, key);
    if (code == SUCCESS && line == NULL) code = NOT_SUPPORTED;
    if (code == SUCCESS && strlen(line->text) >= size) code = INSUFFICIENT_SIZE;
    if (code == SUCCESS) strcpy(out, line->text);
    return leave(code);
}

int nvmlSystemGetDriverVersion(char *out, u32 size) {
    return system_text("nvmlSystemGetDriverVersion", "driver", out, size);
}

int nvmlSystemGetNVMLVersion(char *out, u32 size) {
    return system_text("nvmlSystemGetNVMLVersion", "nvml", out, size);
}

int nvmlSystemGetCudaDriverVersion_v2(int *version) {
    char text[16];
    int code = system_text("nvmlSystemGetCudaDriverVersion_v2", "cuda", text, sizeof text);
    if (code == SUCCESS) *version = atoi(text);
    return code;
}

int nvmlSystemGetCudaDriverVersion(int *version) {
    return nvmlSystemGetCudaDriverVersion_v2(version);
}

int nvmlDeviceGetCount_v2(u32 *count) {
    int code = enter_system("nvmlDeviceGetCount_v2");
    if (code == SUCCESS) *count = (u32)scenario_count_cards();
    return leave(code);
}

int nvmlDeviceGetCount(u32 *count) { return nvmlDeviceGetCount_v2(count); }

/* --- handles ------------------------------------------------------------------------------- */

static int hand_out(const char *function, int id, card_t **card) {
    int code = scenario_permit(id, function, function);
    if (code == SUCCESS) *card = &nvml_cards[id];
    return code;
}

int nvmlDeviceGetHandleByIndex_v2(u32 index, card_t **card) {
    const char *function = "nvmlDeviceGetHandleByIndex_v2";
    int code = enter_system(function);
    if (code == SUCCESS && index >= (u32)scenario_count_cards()) code = INVALID_ARGUMENT;
    return leave(code == SUCCESS ? hand_out(function, (int)index, card) : code);
}

int nvmlDeviceGetHandleByIndex(u32 index, card_t **card) {
    return nvmlDeviceGetHandleByIndex_v2(index, card);
}

typedef int fits_t(int id, const char *wanted);

static int has_text(int id, const char *key, const char *wanted) {
    const line_t *line = scenario_find(CARD, id, key);
    return line != NULL && strcasecmp(line->text, wanted) == 0;
}

static int has_serial(int id, const char *wanted) {
    return !is_mig(id) && has_text(id, "serial", wanted);
}

static int parse_bus_id(const char *text, u32 *domain, u32 *bus, u32 *device) {
    return sscanf(text, "%x:%x:%x", domain, bus, device) == 3;
}

static int has_bus_id(int id, const char *wanted) {
    u32 ours[3], theirs[3];
    const line_t *line = is_mig(id) ? NULL : scenario_find(CARD, id, "bus");
    return line != NULL && parse_bus_id(line->text, &ours[0], &ours[1], &ours[2]) &&
           parse_bus_id(wanted, &theirs[0], &theirs[1], &theirs[2]) &&
           memcmp(ours, theirs, sizeof ours) == 0;
}

/* A MIG device is found by its own UUID and by the older MIG-GPU-UUID/GI/CI. */
static int has_uuid(int id, const char *wanted) {
    if (has_text(id, "uuid", wanted)) return 1;
    const line_t *parent = is_mig(id) ? scenario_find(CARD, mig_parent(id), "uuid") : NULL;
    if (parent == NULL) return 0;
    char older[256];
    snprintf(older, sizeof older, "MIG-%s/%d/%d", parent->text,
             (int)scenario_number(id, "nvmlDeviceGetGpuInstanceId", 0.0),
             (int)scenario_number(id, "nvmlDeviceGetComputeInstanceId", 0.0));
    return strcasecmp(older, wanted) == 0;
}

static int hand_out_by(const char *function, fits_t *fits, const char *wanted, card_t **card) {
    int code = enter_system(function);
    int found = NO_CARD, count = scenario_count_cards();
    for (int id = 0; id < count && found == NO_CARD; id++) {
        if (fits(id, wanted)) found = id;
        for (int index = 0; index < MAX_MIG && found == NO_CARD; index++)
            if (scenario_has_mig(mig_id(id, index)) && fits(mig_id(id, index), wanted))
                found = mig_id(id, index);
    }
    if (code == SUCCESS && found == NO_CARD) code = NOT_FOUND;
    return leave(code == SUCCESS ? hand_out(function, found, card) : code);
}

int nvmlDeviceGetHandleByUUID(const char *uuid, card_t **card) {
    return hand_out_by("nvmlDeviceGetHandleByUUID", has_uuid, uuid, card);
}

int nvmlDeviceGetHandleBySerial(const char *serial, card_t **card) {
    return hand_out_by("nvmlDeviceGetHandleBySerial", has_serial, serial, card);
}

int nvmlDeviceGetHandleByPciBusId_v2(const char *bus_id, card_t **card) {
    return hand_out_by("nvmlDeviceGetHandleByPciBusId_v2", has_bus_id, bus_id, card);
}

int nvmlDeviceGetHandleByPciBusId(const char *bus_id, card_t **card) {
    return nvmlDeviceGetHandleByPciBusId_v2(bus_id, card);
}

int nvmlDeviceGetIndex(const card_t *card, u32 *index) {
    int code = enter(card, "nvmlDeviceGetIndex");
    if (code == SUCCESS) *index = (u32)(is_mig(card->id) ? mig_index(card->id) : card->id);
    return leave(code);
}

int nvmlDeviceIsMigDeviceHandle(const card_t *card, u32 *is_mig_device) {
    int code = enter(card, "nvmlDeviceIsMigDeviceHandle");
    if (code == SUCCESS) *is_mig_device = is_mig(card->id) ? 1 : 0;
    return leave(code);
}

int nvmlDeviceGetMigDeviceHandleByIndex(const card_t *card, u32 index, card_t **mig) {
    const char *function = "nvmlDeviceGetMigDeviceHandleByIndex";
    int code = enter(card, function);
    if (code == SUCCESS && (is_mig(card->id) || index >= MAX_MIG)) code = INVALID_ARGUMENT;
    if (code == SUCCESS && !scenario_has_mig(mig_id(card->id, (int)index))) code = NOT_FOUND;
    return leave(code == SUCCESS ? hand_out(function, mig_id(card->id, (int)index), mig) : code);
}

int nvmlDeviceGetDeviceHandleFromMigDeviceHandle(const card_t *mig, card_t **card) {
    int code = enter(mig, "nvmlDeviceGetDeviceHandleFromMigDeviceHandle");
    if (code == SUCCESS && !is_mig(mig->id)) code = INVALID_ARGUMENT;
    if (code == SUCCESS) *card = &nvml_cards[mig_parent(mig->id)];
    return leave(code);
}

/* --- two cards ----------------------------------------------------------------------------- */

static int ask_pair(const char *function, const char *key, const card_t *card,
                    const card_t *other, u32 *value) {
    int code = enter(card, function);
    const line_t *line =
        code == SUCCESS ? scenario_find_pair(card->id, other->id, key) : NULL;
    if (code == SUCCESS && line == NULL) code = NOT_SUPPORTED;
    if (code == SUCCESS) *value = (u32)value_at(&line->value, card->id, scenario_now_s());
    return leave(code);
}

int nvmlDeviceGetTopologyCommonAncestor(const card_t *card, const card_t *other, u32 *level) {
    const char *function = "nvmlDeviceGetTopologyCommonAncestor";
    return ask_pair(function, function, card, other, level);
}

int nvmlDeviceGetP2PStatus(const card_t *card, const card_t *other, u32 index, u32 *status) {
    const char *function = "nvmlDeviceGetP2PStatus";
    char key[64];
    snprintf(key, sizeof key, "%s:%u", function, index);
    return ask_pair(function, key, card, other, status);
}
