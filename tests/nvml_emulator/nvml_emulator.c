/* An NVML that answers from a scenario file: for tests, ABI-compatible with libnvidia-ml.so.1.
 *
 * The file named by NVML_EMULATOR_SCENARIO is read again whenever it changes, so a test can make
 * a card fail while a program watches it. One statement a line; '#' begins a comment:
 *
 *   init CODE                        what nvmlInit returns (0 when absent)
 *   driver TEXT                      driver version
 *   card N name|uuid|bus TEXT        card N exists; cards are numbered from 0 without gaps
 *   card N FUNCTION[:ARG] NUMBER     what FUNCTION(card, ARG) answers
 *   fail N FUNCTION CODE [AFTER_S]   FUNCTION fails, from AFTER_S seconds after nvmlInit on
 *   hang N FUNCTION                  FUNCTION never returns
 *
 * FUNCTION may be '*' after fail: every function of that card. A function without an answer
 * returns NVML_ERROR_NOT_SUPPORTED. A symbol is left out with a linker version script.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    SUCCESS = 0,
    UNINITIALIZED = 1,
    INVALID_ARGUMENT = 2,
    NOT_SUPPORTED = 3,
    INSUFFICIENT_SIZE = 7,
    ARGUMENT_VERSION_MISMATCH = 25,
    UNKNOWN = 999
};
enum { MAX_LINES = 1024, MAX_CARDS = 64 };

typedef unsigned int u32;
typedef unsigned long long u64;

typedef struct {
    char verb[8];
    int card;
    char key[64];
    char text[128];
} line_t;

typedef struct {
    int index;
} card_t;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static line_t lines[MAX_LINES];
static int line_count;
static struct stat seen;
static card_t cards[MAX_CARDS];
static int uses;
static double started_s;

static double now_s(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void parse(char *text) {
    line_t line = {.card = -1};
    char *rest = NULL;
    char *word = strtok_r(text, " \t", &rest);
    if (word == NULL || word[0] == '#') return;
    snprintf(line.verb, sizeof line.verb, "%s", word);
    if (strcmp(line.verb, "init") != 0 && strcmp(line.verb, "driver") != 0) {
        word = strtok_r(NULL, " \t", &rest);
        if (word == NULL) return;
        line.card = atoi(word);
        word = strtok_r(NULL, " \t", &rest);
        if (word == NULL) return;
        snprintf(line.key, sizeof line.key, "%s", word);
    }
    snprintf(line.text, sizeof line.text, "%s", rest == NULL ? "" : rest);
    if (line_count < MAX_LINES) lines[line_count++] = line;
}

/* Read the scenario again if it changed. Called with the lock held. */
static void refresh(void) {
    const char *path = getenv("NVML_EMULATOR_SCENARIO");
    struct stat now;
    if (path == NULL || stat(path, &now) != 0) return;
    if (now.st_ino == seen.st_ino && now.st_size == seen.st_size &&
        now.st_mtim.tv_sec == seen.st_mtim.tv_sec && now.st_mtim.tv_nsec == seen.st_mtim.tv_nsec)
        return;
    FILE *file = fopen(path, "re");
    if (file == NULL) return;
    seen = now;
    line_count = 0;
    char text[256];
    while (fgets(text, sizeof text, file) != NULL) {
        text[strcspn(text, "\r\n")] = '\0';
        parse(text);
    }
    fclose(file);
}

static const line_t *find(const char *verb, int card, const char *key) {
    for (int i = 0; i < line_count; i++)
        if (strcmp(lines[i].verb, verb) == 0 && lines[i].card == card &&
            (strcmp(lines[i].key, key) == 0 || strcmp(lines[i].key, "*") == 0))
            return &lines[i];
    return NULL;
}

static int count_cards(void) {
    int count = 0;
    while (count < MAX_CARDS && find("card", count, "name") != NULL) count++;
    return count;
}

/* Whether FUNCTION of this card may answer now: SUCCESS, or the code to return. Lock held. */
static int permit(const card_t *card, const char *function) {
    if (uses == 0) return UNINITIALIZED;
    refresh();
    if (card < cards || card >= cards + MAX_CARDS) return INVALID_ARGUMENT;
    if (find("hang", card->index, function) != NULL) {
        pthread_mutex_unlock(&lock);
        for (;;) pause();
    }
    const line_t *failure = find("fail", card->index, function);
    if (failure != NULL) {
        int code = UNKNOWN;
        double after_s = 0.0;
        sscanf(failure->text, "%d %lf", &code, &after_s);
        if (now_s() - started_s >= after_s) return code;
    }
    return SUCCESS;
}

static int answer(card_t *card, const char *function, int argument, u64 *value) {
    pthread_mutex_lock(&lock);
    int code = permit(card, function);
    if (code == SUCCESS) {
        char key[64];
        if (argument < 0)
            snprintf(key, sizeof key, "%s", function);
        else
            snprintf(key, sizeof key, "%s:%d", function, argument);
        const line_t *line = find("card", card->index, key);
        if (line == NULL)
            code = NOT_SUPPORTED;
        else
            *value = strtoull(line->text, NULL, 0);
    }
    pthread_mutex_unlock(&lock);
    return code;
}

static int answer_u32(card_t *card, const char *function, int argument, u32 *value) {
    u64 wide = 0;
    int code = answer(card, function, argument, &wide);
    if (code == SUCCESS) *value = (u32)wide;
    return code;
}

static int answer_text(card_t *card, const char *function, const char *key, char *out, u32 size) {
    pthread_mutex_lock(&lock);
    int code = permit(card, function);
    if (code == SUCCESS) {
        const line_t *line = find("card", card->index, key);
        if (line == NULL)
            code = NOT_SUPPORTED;
        else if (strlen(line->text) >= size)
            code = INSUFFICIENT_SIZE;
        else
            strcpy(out, line->text);
    }
    pthread_mutex_unlock(&lock);
    return code;
}

/* --- the library itself ------------------------------------------------------------------- */

int nvmlInitWithFlags(u32 flags) {
    (void)flags;
    pthread_mutex_lock(&lock);
    refresh();
    const line_t *line = find("init", -1, "");
    int code = line == NULL ? SUCCESS : atoi(line->text);
    if (code == SUCCESS && uses++ == 0) {
        started_s = now_s();
        for (int i = 0; i < MAX_CARDS; i++) cards[i].index = i;
    }
    pthread_mutex_unlock(&lock);
    return code;
}

int nvmlInit_v2(void) { return nvmlInitWithFlags(0); }

int nvmlShutdown(void) {
    pthread_mutex_lock(&lock);
    int code = uses > 0 ? SUCCESS : UNINITIALIZED;
    if (uses > 0) uses--;
    pthread_mutex_unlock(&lock);
    return code;
}

const char *nvmlErrorString(int code) {
    (void)code;
    return "an error of the NVML emulator";
}

int nvmlSystemGetDriverVersion(char *out, u32 size) {
    pthread_mutex_lock(&lock);
    refresh();
    const line_t *line = find("driver", -1, "");
    int code = uses == 0 ? UNINITIALIZED : line == NULL ? NOT_SUPPORTED : SUCCESS;
    if (code == SUCCESS) snprintf(out, size, "%s", line->text);
    pthread_mutex_unlock(&lock);
    return code;
}

int nvmlDeviceGetCount_v2(u32 *count) {
    pthread_mutex_lock(&lock);
    refresh();
    int code = uses == 0 ? UNINITIALIZED : SUCCESS;
    *count = (u32)count_cards();
    pthread_mutex_unlock(&lock);
    return code;
}

int nvmlDeviceGetHandleByIndex_v2(u32 index, card_t **card) {
    pthread_mutex_lock(&lock);
    refresh();
    int code = index < (u32)count_cards() ? SUCCESS : INVALID_ARGUMENT;
    if (code == SUCCESS) code = permit(&cards[index], "nvmlDeviceGetHandleByIndex_v2");
    if (code == SUCCESS) *card = &cards[index];
    pthread_mutex_unlock(&lock);
    return code;
}

/* --- one card ------------------------------------------------------------------------------ */

#define TEXT(function, key) \
    int function(card_t *card, char *out, u32 size) { \
        return answer_text(card, #function, key, out, size); \
    }
#define PLAIN(function) \
    int function(card_t *card, u32 *value) { return answer_u32(card, #function, -1, value); }
#define WIDE(function) \
    int function(card_t *card, u64 *value) { return answer(card, #function, -1, value); }
#define INDEXED(function) \
    int function(card_t *card, u32 argument, u32 *value) { \
        return answer_u32(card, #function, (int)argument, value); \
    }

TEXT(nvmlDeviceGetName, "name")
TEXT(nvmlDeviceGetUUID, "uuid")
PLAIN(nvmlDeviceGetPowerUsage)
PLAIN(nvmlDeviceGetEnforcedPowerLimit)
PLAIN(nvmlDeviceGetPowerManagementDefaultLimit)
PLAIN(nvmlDeviceGetNumFans)
PLAIN(nvmlDeviceGetFanSpeed)
PLAIN(nvmlDeviceGetCurrPcieLinkGeneration)
PLAIN(nvmlDeviceGetCurrPcieLinkWidth)
PLAIN(nvmlDeviceGetMaxPcieLinkGeneration)
PLAIN(nvmlDeviceGetMaxPcieLinkWidth)
PLAIN(nvmlDeviceGetPerformanceState)
WIDE(nvmlDeviceGetTotalEnergyConsumption)
WIDE(nvmlDeviceGetCurrentClocksEventReasons)
WIDE(nvmlDeviceGetCurrentClocksThrottleReasons)
INDEXED(nvmlDeviceGetTemperature)
INDEXED(nvmlDeviceGetTemperatureThreshold)
INDEXED(nvmlDeviceGetClockInfo)
INDEXED(nvmlDeviceGetMaxClockInfo)
INDEXED(nvmlDeviceGetFanSpeed_v2)

int nvmlDeviceGetMinMaxFanSpeed(card_t *card, u32 *low, u32 *high) {
    int code = answer_u32(card, "nvmlDeviceGetMinMaxFanSpeed", 0, low);
    return code == SUCCESS ? answer_u32(card, "nvmlDeviceGetMinMaxFanSpeed", 1, high) : code;
}

typedef struct {
    u32 gpu, memory;
} utilization_t;

int nvmlDeviceGetUtilizationRates(card_t *card, utilization_t *rates) {
    rates->memory = 0;
    return answer_u32(card, "nvmlDeviceGetUtilizationRates", -1, &rates->gpu);
}

typedef struct {
    u64 total, free, used;
} memory_t;

/* Total and used are answers 0 and 1, in bytes; the first form counts the reserve as used. */
int nvmlDeviceGetMemoryInfo(card_t *card, memory_t *memory) {
    int code = answer(card, "nvmlDeviceGetMemoryInfo", 0, &memory->total);
    if (code == SUCCESS) code = answer(card, "nvmlDeviceGetMemoryInfo", 1, &memory->used);
    if (code == SUCCESS) memory->free = memory->total - memory->used;
    return code;
}

typedef struct {
    u32 version;
    u64 total, reserved, free, used;
} memory_v2_t;

int nvmlDeviceGetMemoryInfo_v2(card_t *card, memory_v2_t *memory) {
    if (memory->version != (sizeof(memory_v2_t) | 2u << 24)) return ARGUMENT_VERSION_MISMATCH;
    int code = answer(card, "nvmlDeviceGetMemoryInfo_v2", 0, &memory->total);
    if (code == SUCCESS) code = answer(card, "nvmlDeviceGetMemoryInfo_v2", 1, &memory->used);
    if (code == SUCCESS) {
        memory->free = memory->total - memory->used;
        memory->reserved = 0;
    }
    return code;
}

typedef struct {
    char busIdLegacy[16];
    u32 domain, bus, device, pciDeviceId, pciSubSystemId;
    char busId[32];
} pci_t;

int nvmlDeviceGetPciInfo_v3(card_t *card, pci_t *pci) {
    memset(pci, 0, sizeof *pci);
    return answer_text(card, "nvmlDeviceGetPciInfo_v3", "bus", pci->busId, sizeof pci->busId);
}
