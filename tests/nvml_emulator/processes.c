/* Entry points about what runs on a card. A card lists processes when it has a statement
 * `card N processes listed` or a `process` of its own; otherwise the query is not supported.
 */
#define _GNU_SOURCE
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "answers.h"
#include "scenario.h"

static int counts_kind(const line_t *line, const char *kind) {
    return kind == NULL || strcmp(line->key, kind) == 0;
}

/* Whether the card lists processes, with the lock held; their number, of a kind or of all. */
static int count_processes(const card_t *card, const char *kind, u32 *count) {
    int position = 0, lists = scenario_find(CARD, card->id, "processes") != NULL;
    const line_t *line;
    *count = 0;
    while ((line = scenario_next(PROCESS, card->id, &position)) != NULL) {
        lists = 1;
        if (counts_kind(line, kind)) (*count)++;
    }
    return lists ? SUCCESS : NOT_SUPPORTED;
}

/* Begin a query for a list: SUCCESS when `room` entries hold all of it, which may be none. */
static int enter_list(const card_t *card, const char *function, const char *kind, u32 *room,
                      int has_array) {
    u32 count = 0;
    int code = enter(card, function);
    if (code == SUCCESS) code = count_processes(card, kind, &count);
    if (code != SUCCESS) return code;
    int fits = count == 0 || (has_array && *room >= count);
    *room = count;
    return fits ? SUCCESS : INSUFFICIENT_SIZE;
}

/* Ids of the MIG instance that is asked, or "none" for a whole card. */
static u32 instance_of(const card_t *card, const char *key) {
    u64 id = 0xffffffffu;
    return is_mig(card->id) && number_of(card, key, &id) == SUCCESS ? (u32)id : 0xffffffffu;
}

static int list_processes(const card_t *card, const char *function, const char *kind, u32 *count,
                          process_t *out, process_v1_t *out_v1) {
    int code = enter_list(card, function, kind, count, out != NULL || out_v1 != NULL);
    int position = 0;
    const line_t *line;
    for (u32 i = 0; code == SUCCESS && i < *count;) {
        line = scenario_next(PROCESS, card->id, &position);
        if (!counts_kind(line, kind)) continue;
        if (out_v1 != NULL)
            out_v1[i] = (process_v1_t){(u32)line->numbers[0], line->numbers[1]};
        else
            out[i] = (process_t){(u32)line->numbers[0], line->numbers[1],
                                 instance_of(card, "nvmlDeviceGetGpuInstanceId"),
                                 instance_of(card, "nvmlDeviceGetComputeInstanceId")};
        i++;
    }
    return leave(code);
}

#define LIST_V1(function, kind) \
    int function(card_t *card, u32 *count, process_v1_t *out) { \
        return list_processes(card, #function, kind, count, NULL, out); \
    }
#define LIST(function, kind) \
    int function(card_t *card, u32 *count, process_t *out) { \
        return list_processes(card, #function, kind, count, out, NULL); \
    }

LIST_V1(nvmlDeviceGetComputeRunningProcesses, "compute")
LIST(nvmlDeviceGetComputeRunningProcesses_v2, "compute")
LIST(nvmlDeviceGetComputeRunningProcesses_v3, "compute")
LIST_V1(nvmlDeviceGetGraphicsRunningProcesses, "graphics")
LIST(nvmlDeviceGetGraphicsRunningProcesses_v2, "graphics")
LIST(nvmlDeviceGetGraphicsRunningProcesses_v3, "graphics")
LIST_V1(nvmlDeviceGetMPSComputeRunningProcesses, "mps")
LIST(nvmlDeviceGetMPSComputeRunningProcesses_v2, "mps")
LIST(nvmlDeviceGetMPSComputeRunningProcesses_v3, "mps")

/* The latest sample of every process; NOT_FOUND when there is none, as NVML has it. */
int nvmlDeviceGetProcessUtilization(card_t *card, process_utilization_t *out, u32 *count,
                                    u64 since_us) {
    const char *function = "nvmlDeviceGetProcessUtilization";
    int code = enter_list(card, function, NULL, count, out != NULL);
    int position = 0;
    (void)since_us;
    if (code == SUCCESS && *count == 0) code = NOT_FOUND;
    for (u32 i = 0; code == SUCCESS && i < *count; i++) {
        const line_t *line = scenario_next(PROCESS, card->id, &position);
        out[i] = (process_utilization_t){.pid = (u32)line->numbers[0],
                                         .timeStamp = 1000000ull * (u64)time(NULL),
                                         .smUtil = (u32)line->numbers[2]};
    }
    return leave(code);
}

int nvmlDeviceGetAccountingPids(card_t *card, u32 *count, u32 *pids) {
    int code = enter_list(card, "nvmlDeviceGetAccountingPids", "compute", count, pids != NULL);
    int position = 0;
    for (u32 i = 0; code == SUCCESS && i < *count;) {
        const line_t *line = scenario_next(PROCESS, card->id, &position);
        if (counts_kind(line, "compute")) pids[i++] = (u32)line->numbers[0];
    }
    return leave(code);
}

int nvmlDeviceGetAccountingStats(card_t *card, u32 pid, accounting_stats_t *stats) {
    int code = enter(card, "nvmlDeviceGetAccountingStats");
    int position = 0;
    const line_t *line = NULL;
    while (code == SUCCESS && (line = scenario_next(PROCESS, card->id, &position)) != NULL)
        if (line->numbers[0] == pid) break;
    if (code == SUCCESS && line == NULL) code = NOT_FOUND;
    if (code != SUCCESS) return leave(code);
    *stats = (accounting_stats_t){.gpuUtilization = (u32)line->numbers[2],
                                  .maxMemoryUsage = line->numbers[1],
                                  .isRunning = 1};
    return leave(SUCCESS);
}
