/* Entry points about one card: plain ones as a table, those with structures one by one. */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "answers.h"
#include "scenario.h"

/* --- the table: each function answers by the statement of its own name ----------------------- */

#define PLAIN(function) \
    int function(card_t *card, u32 *value) { return ask_u32(card, #function, value, 0); }
#define WIDE(function) \
    int function(card_t *card, u64 *value) { return ask(card, #function, value, 0); }
#define INDEXED(function) \
    int function(card_t *card, u32 index, u32 *value) { \
        return ask_u32(card, #function, value, 1, index); \
    }
/* Two answers: FUNCTION:0 and FUNCTION:1. */
#define TWO(function) \
    int function(card_t *card, u32 *first, u32 *second) { \
        u32 values[2]; \
        int code = ask_array(card, #function, values, 2); \
        if (code == SUCCESS) { \
            *first = values[0]; \
            *second = values[1]; \
        } \
        return code; \
    }
#define TEXT(function, key) \
    int function(card_t *card, char *out, u32 size) { \
        int code = enter(card, #function); \
        return leave(code == SUCCESS ? text_of(card, key, out, size) : code); \
    }

TEXT(nvmlDeviceGetName, "name")
TEXT(nvmlDeviceGetUUID, "uuid")
TEXT(nvmlDeviceGetSerial, "serial")
TEXT(nvmlDeviceGetVbiosVersion, "vbios")
TEXT(nvmlDeviceGetBoardPartNumber, "part_number")

PLAIN(nvmlDeviceGetMinorNumber)
PLAIN(nvmlDeviceGetBoardId)
PLAIN(nvmlDeviceGetMultiGpuBoard)
PLAIN(nvmlDeviceGetBrand)
PLAIN(nvmlDeviceGetArchitecture)
PLAIN(nvmlDeviceGetNumGpuCores)
PLAIN(nvmlDeviceGetMemoryBusWidth)
PLAIN(nvmlDeviceGetBusType)
PLAIN(nvmlDeviceGetModuleId)
PLAIN(nvmlDeviceGetNumaNodeId)
PLAIN(nvmlDeviceGetIrqNum)
PLAIN(nvmlDeviceGetDisplayActive)
PLAIN(nvmlDeviceGetDisplayMode)
PLAIN(nvmlDeviceGetPersistenceMode)
PLAIN(nvmlDeviceGetComputeMode)
PLAIN(nvmlDeviceGetVirtualizationMode)
PLAIN(nvmlDeviceGetAccountingMode)
PLAIN(nvmlDeviceGetAccountingBufferSize)
PLAIN(nvmlDeviceGetDefaultEccMode)
PLAIN(nvmlDeviceGetRetiredPagesPendingStatus)

PLAIN(nvmlDeviceGetPowerUsage)
PLAIN(nvmlDeviceGetEnforcedPowerLimit)
PLAIN(nvmlDeviceGetPowerManagementLimit)
PLAIN(nvmlDeviceGetPowerManagementDefaultLimit)
PLAIN(nvmlDeviceGetPowerManagementMode)
PLAIN(nvmlDeviceGetPowerSource)
PLAIN(nvmlDeviceGetPowerState)
PLAIN(nvmlDeviceGetPerformanceState)
PLAIN(nvmlDeviceGetNumFans)
PLAIN(nvmlDeviceGetFanSpeed)
PLAIN(nvmlDeviceGetCurrPcieLinkGeneration)
PLAIN(nvmlDeviceGetCurrPcieLinkWidth)
PLAIN(nvmlDeviceGetMaxPcieLinkGeneration)
PLAIN(nvmlDeviceGetMaxPcieLinkWidth)
PLAIN(nvmlDeviceGetGpuMaxPcieLinkGeneration)
PLAIN(nvmlDeviceGetPcieLinkMaxSpeed)
PLAIN(nvmlDeviceGetPcieSpeed)
PLAIN(nvmlDeviceGetPcieReplayCounter)
PLAIN(nvmlDeviceGetMaxMigDeviceCount)
PLAIN(nvmlDeviceGetGpuInstanceId)
PLAIN(nvmlDeviceGetComputeInstanceId)

WIDE(nvmlDeviceGetTotalEnergyConsumption)
WIDE(nvmlDeviceGetCurrentClocksEventReasons)
WIDE(nvmlDeviceGetCurrentClocksThrottleReasons)
WIDE(nvmlDeviceGetSupportedClocksEventReasons)
WIDE(nvmlDeviceGetSupportedClocksThrottleReasons)
WIDE(nvmlDeviceGetSupportedEventTypes)

INDEXED(nvmlDeviceGetTemperature)
INDEXED(nvmlDeviceGetTemperatureThreshold)
INDEXED(nvmlDeviceGetClockInfo)
INDEXED(nvmlDeviceGetMaxClockInfo)
INDEXED(nvmlDeviceGetApplicationsClock)
INDEXED(nvmlDeviceGetDefaultApplicationsClock)
INDEXED(nvmlDeviceGetMaxCustomerBoostClock)
INDEXED(nvmlDeviceGetFanSpeed_v2)
INDEXED(nvmlDeviceGetTargetFanSpeed)
INDEXED(nvmlDeviceGetPcieThroughput)
INDEXED(nvmlDeviceGetNvLinkState)
INDEXED(nvmlDeviceGetNvLinkVersion)
INDEXED(nvmlDeviceGetNvLinkRemoteDeviceType)

TWO(nvmlDeviceGetEccMode)
TWO(nvmlDeviceGetMigMode)
TWO(nvmlDeviceGetDriverModel)
TWO(nvmlDeviceGetDriverModel_v2)
TWO(nvmlDeviceGetCudaComputeCapability)
TWO(nvmlDeviceGetMinMaxFanSpeed)
TWO(nvmlDeviceGetPowerManagementLimitConstraints)
TWO(nvmlDeviceGetGspFirmwareMode)
/* Share of time and the period it is of, in microseconds. */
TWO(nvmlDeviceGetEncoderUtilization)
TWO(nvmlDeviceGetDecoderUtilization)
TWO(nvmlDeviceGetJpgUtilization)
TWO(nvmlDeviceGetOfaUtilization)

/* --- the rest ------------------------------------------------------------------------------ */

int nvmlDeviceGetClock(card_t *card, u32 type, u32 id, u32 *clock) {
    return ask_u32(card, "nvmlDeviceGetClock", clock, 2, type, id);
}

int nvmlDeviceGetTotalEccErrors(card_t *card, u32 error, u32 counter, u64 *count) {
    return ask(card, "nvmlDeviceGetTotalEccErrors", count, 2, error, counter);
}

int nvmlDeviceGetMemoryErrorCounter(card_t *card, u32 error, u32 counter, u32 location,
                                    u64 *count) {
    return ask(card, "nvmlDeviceGetMemoryErrorCounter", count, 3, error, counter, location);
}

int nvmlDeviceGetUtilizationRates(card_t *card, utilization_t *rates) {
    int code = ask_u32(card, "nvmlDeviceGetUtilizationRates", &rates->gpu, 0);
    if (code == SUCCESS && ask_u32(card, "nvmlDeviceGetUtilizationRates", &rates->memory, 1, 1))
        rates->memory = 0;
    return code;
}

/* Bytes: total and used are answers 0 and 1, what the driver reserves is answer 2. */
static int ask_memory(card_t *card, memory_v2_t *memory) {
    const char *function = "nvmlDeviceGetMemoryInfo_v2";
    int code = ask(card, function, &memory->total, 1, 0);
    if (code == SUCCESS) code = ask(card, function, &memory->used, 1, 1);
    if (code != SUCCESS) return code;
    if (ask(card, function, &memory->reserved, 1, 2) != SUCCESS) memory->reserved = 0;
    memory->free = memory->total - memory->used - memory->reserved;
    return SUCCESS;
}

int nvmlDeviceGetMemoryInfo_v2(card_t *card, memory_v2_t *memory) {
    if (memory->version != VERSION(memory_v2_t, 2)) return ARGUMENT_VERSION_MISMATCH;
    return ask_memory(card, memory);
}

/* The first form counts what the driver reserves as used. */
int nvmlDeviceGetMemoryInfo(card_t *card, memory_t *memory) {
    int code = ask(card, "nvmlDeviceGetMemoryInfo", &memory->total, 1, 0);
    if (code == SUCCESS) code = ask(card, "nvmlDeviceGetMemoryInfo", &memory->used, 1, 1);
    if (code == NOT_SUPPORTED) {
        memory_v2_t newer;
        code = ask_memory(card, &newer);
        if (code == SUCCESS) {
            memory->total = newer.total;
            memory->used = newer.used + newer.reserved;
        }
    }
    if (code == SUCCESS) memory->free = memory->total - memory->used;
    return code;
}

int nvmlDeviceGetBAR1MemoryInfo(card_t *card, bar1_memory_t *memory) {
    int code = ask(card, "nvmlDeviceGetBAR1MemoryInfo", &memory->bar1Total, 1, 0);
    if (code == SUCCESS) code = ask(card, "nvmlDeviceGetBAR1MemoryInfo", &memory->bar1Used, 1, 1);
    if (code == SUCCESS) memory->bar1Free = memory->bar1Total - memory->bar1Used;
    return code;
}

/* Answers of a MIG device: those of its parent, which it is a part of. */
int nvmlDeviceGetPciInfo_v3(card_t *card, pci_t *pci) {
    int code = enter(card, "nvmlDeviceGetPciInfo_v3");
    if (code != SUCCESS) return leave(code);
    const card_t *board = is_mig(card->id) ? &nvml_cards[mig_parent(card->id)] : card;
    u64 number = 0;
    memset(pci, 0, sizeof *pci);
    code = text_of(board, "bus", pci->busId, sizeof pci->busId);
    if (code != SUCCESS) return leave(code);
    sscanf(pci->busId, "%x:%x:%x", &pci->domain, &pci->bus, &pci->device);
    snprintf(pci->busIdLegacy, sizeof pci->busIdLegacy, "%04X:%02X:%02X.0", pci->domain & 0xffff,
             pci->bus & 0xff, pci->device & 0xff);
    if (number_of(board, "pci:0", &number) == SUCCESS) pci->pciDeviceId = (u32)number;
    if (number_of(board, "pci:1", &number) == SUCCESS) pci->pciSubSystemId = (u32)number;
    return leave(SUCCESS);
}

int nvmlDeviceGetPciInfo_v2(card_t *card, pci_v2_t *pci) {
    pci_t newer;
    int code = nvmlDeviceGetPciInfo_v3(card, &newer);
    if (code != SUCCESS) return code;
    memset(pci, 0, sizeof *pci);
    memcpy(pci->busId, newer.busIdLegacy, sizeof pci->busId);
    pci->domain = newer.domain;
    pci->bus = newer.bus;
    pci->device = newer.device;
    pci->pciDeviceId = newer.pciDeviceId;
    pci->pciSubSystemId = newer.pciSubSystemId;
    return SUCCESS;
}

int nvmlDeviceGetPciInfo(card_t *card, pci_v2_t *pci) { return nvmlDeviceGetPciInfo_v2(card, pci); }

int nvmlDeviceGetTemperatureV(card_t *card, temperature_t *temperature) {
    if (temperature->version != VERSION(temperature_t, 1)) return ARGUMENT_VERSION_MISMATCH;
    u32 value = 0;
    int code = ask_u32(card, "nvmlDeviceGetTemperatureV", &value, 1, temperature->sensorType);
    if (code == SUCCESS) temperature->temperature = (int)value;
    return code;
}

int nvmlDeviceGetMarginTemperature(card_t *card, margin_temperature_t *margin) {
    if (margin->version != VERSION(margin_temperature_t, 1)) return ARGUMENT_VERSION_MISMATCH;
    u32 value = 0;
    int code = ask_u32(card, "nvmlDeviceGetMarginTemperature", &value, 0);
    if (code == SUCCESS) margin->marginTemperature = (int)value;
    return code;
}

int nvmlDeviceGetThermalSettings(card_t *card, u32 index, thermal_settings_t *settings) {
    u32 value = 0;
    int code = ask_u32(card, "nvmlDeviceGetThermalSettings", &value, 0);
    if (code != SUCCESS) return code;
    (void)index;
    memset(settings, 0, sizeof *settings);
    settings->count = 1;
    settings->sensor[0].controller = 1; /* in the GPU */
    settings->sensor[0].target = 1;     /* of the GPU */
    settings->sensor[0].currentTemp = (int)value;
    return SUCCESS;
}

int nvmlDeviceGetFanSpeedRPM(card_t *card, fan_speed_t *fan) {
    if (fan->version != VERSION(fan_speed_t, 1)) return ARGUMENT_VERSION_MISMATCH;
    return ask_u32(card, "nvmlDeviceGetFanSpeedRPM", &fan->speed, 1, fan->fan);
}

/* Whether a CPU shares the module, over the chip-to-chip link of the Grace superchips. */
int nvmlDeviceGetC2cModeInfoV(card_t *card, c2c_mode_t *mode) {
    return ask_u32(card, "nvmlDeviceGetC2cModeInfoV", &mode->isC2cEnabled, 0);
}

/* Nanoseconds a policy has held the clock down, since an arbitrary instant in microseconds. */
int nvmlDeviceGetViolationStatus(card_t *card, u32 policy, violation_time_t *violation) {
    violation->referenceTime = (u64)(1e6 * scenario_now_s());
    return ask(card, "nvmlDeviceGetViolationStatus", &violation->violationTime, 1, policy);
}

int nvmlDeviceGetRemappedRows(card_t *card, u32 *corrected, u32 *uncorrected, u32 *is_pending,
                              u32 *has_failed) {
    u32 values[4];
    int code = ask_array(card, "nvmlDeviceGetRemappedRows", values, 4);
    if (code != SUCCESS) return code;
    *corrected = values[0];
    *uncorrected = values[1];
    *is_pending = values[2];
    *has_failed = values[3];
    return SUCCESS;
}

int nvmlDeviceGetRowRemapperHistogram(card_t *card, row_remapper_histogram_t *histogram) {
    return ask_array(card, "nvmlDeviceGetRowRemapperHistogram", (u32 *)histogram, 5);
}

int nvmlDeviceGetAttributes_v2(card_t *card, attributes_t *attributes) {
    int code = ask_array(card, "nvmlDeviceGetAttributes_v2", (u32 *)attributes, 8);
    if (code != SUCCESS) return code;
    return ask(card, "nvmlDeviceGetAttributes_v2", &attributes->memorySizeMB, 1, 8);
}

/* Pages are counted per cause; their addresses are of no interest. */
int nvmlDeviceGetRetiredPages(card_t *card, u32 cause, u32 *count, u64 *addresses) {
    u32 pages = 0;
    int code = ask_u32(card, "nvmlDeviceGetRetiredPages", &pages, 1, cause);
    if (code != SUCCESS) return code;
    int fits = addresses != NULL && *count >= pages;
    for (u32 i = 0; fits && i < pages; i++) addresses[i] = 0x10000ull * (i + 1);
    *count = pages;
    return fits || pages == 0 ? SUCCESS : INSUFFICIENT_SIZE;
}

int nvmlDeviceGetCpuAffinity(card_t *card, u32 size, unsigned long *set) {
    u64 mask = 0;
    int code = ask(card, "nvmlDeviceGetCpuAffinity", &mask, 0);
    if (code != SUCCESS) return code;
    memset(set, 0, size * sizeof *set);
    if (size > 0) set[0] = (unsigned long)mask;
    return SUCCESS;
}

/* --- field values -------------------------------------------------------------------------- */

enum { UNSIGNED_INT = 1, UNSIGNED_LONG_LONG = 3, SIGNED_INT = 5 };

/* nvmlValueType_t of the fields that are not 64 bits wide, as runs of ids. */
static const struct {
    u32 first, last, type;
} field_types[] = {
    {1, 2, UNSIGNED_INT},     /* ECC mode */
    {29, 31, UNSIGNED_INT},   /* retired pages */
    {82, 82, UNSIGNED_INT},   /* memory temperature */
    {84, 95, UNSIGNED_INT},   /* NVLink speed and count, pages pending, PCIe replays */
    {142, 145, UNSIGNED_INT}, /* remapped rows */
    {185, 192, UNSIGNED_INT}, /* power and its limits */
    {193, 196, SIGNED_INT},   /* temperature limits as margins */
};

static u32 field_type(u32 id) {
    for (size_t i = 0; i < sizeof field_types / sizeof field_types[0]; i++)
        if (field_types[i].first <= id && id <= field_types[i].last) return field_types[i].type;
    return UNSIGNED_LONG_LONG;
}

/* FIELD answers as `field:ID`, or `field:ID:SCOPE` where a scope (a link, a sensor) is named. */
static void ask_field(card_t *card, field_value_t *field) {
    u64 value = 0;
    int code = ask(card, "field", &value, 2, field->fieldId, field->scopeId);
    if (code == NOT_SUPPORTED && field->scopeId == 0)
        code = ask(card, "field", &value, 1, field->fieldId);
    field->nvmlReturn = (u32)code;
    field->valueType = field_type(field->fieldId);
    field->timestamp = (i64)(1e6 * (double)time(NULL));
    field->latencyUsec = 0;
    field->value.ullVal = field->valueType == UNSIGNED_LONG_LONG ? value : (u32)value;
}

int nvmlDeviceGetFieldValues(card_t *card, int count, field_value_t *fields) {
    if (count <= 0 || fields == NULL) return INVALID_ARGUMENT;
    int code = leave(enter(card, "nvmlDeviceGetFieldValues"));
    for (int i = 0; code == SUCCESS && i < count; i++) ask_field(card, &fields[i]);
    return code;
}
