/* What NVML's documentation declares, as far as the emulator answers it: codes and structures.
 *
 * Fields keep the names of the documentation, which `pynvml` uses too; layout.c tells their
 * offsets, and a test compares them with the ctypes structures of the installed pynvml.
 */
#ifndef NVML_H
#define NVML_H

typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;

/* nvmlReturn_t */
enum {
    SUCCESS = 0,
    UNINITIALIZED = 1,
    INVALID_ARGUMENT = 2,
    NOT_SUPPORTED = 3,
    NOT_FOUND = 6,
    INSUFFICIENT_SIZE = 7,
    TIMEOUT = 10,
    GPU_IS_LOST = 15,
    ARGUMENT_VERSION_MISMATCH = 25,
    UNKNOWN = 999
};

/* A versioned structure begins with its size and version, which the library checks. */
#define VERSION(type, number) ((u32)sizeof(type) | (number) << 24)

/* A card or a MIG device; callers hold pointers to it and never look inside. */
typedef struct {
    int id;
} card_t;

typedef struct {
    u64 total, free, used;
} memory_t;

typedef struct {
    u32 version;
    u64 total, reserved, free, used;
} memory_v2_t;

typedef struct {
    u64 bar1Total, bar1Free, bar1Used;
} bar1_memory_t;

typedef struct {
    u32 gpu, memory;
} utilization_t;

/* Versions 1 and 2 of the PCI information. */
typedef struct {
    char busId[16];
    u32 domain, bus, device, pciDeviceId, pciSubSystemId, reserved0, reserved1, reserved2,
        reserved3;
} pci_v2_t;

typedef struct {
    char busIdLegacy[16];
    u32 domain, bus, device, pciDeviceId, pciSubSystemId;
    char busId[32];
} pci_t;

typedef struct {
    u32 version, sensorType;
    int temperature;
} temperature_t;

typedef struct {
    u32 version;
    int marginTemperature;
} margin_temperature_t;

typedef struct {
    int controller, defaultMinTemp, defaultMaxTemp, currentTemp, target;
} thermal_sensor_t;

typedef struct {
    u32 count;
    thermal_sensor_t sensor[3];
} thermal_settings_t;

typedef struct {
    u32 version, fan, speed;
} fan_speed_t;

typedef union {
    double dVal;
    u32 uiVal;
    unsigned long ulVal;
    u64 ullVal;
    i64 sllVal;
    int siVal;
    unsigned short usVal;
} value_union_t;

typedef struct {
    u32 fieldId, scopeId;
    i64 timestamp, latencyUsec;
    u32 valueType, nvmlReturn;
    value_union_t value;
} field_value_t;

typedef struct {
    u32 isC2cEnabled;
} c2c_mode_t;

typedef struct {
    u64 referenceTime, violationTime;
} violation_time_t;

typedef struct {
    u32 max, high, partial, low, none;
} row_remapper_histogram_t;

typedef struct {
    u32 multiprocessorCount, sharedCopyEngineCount, sharedDecoderCount, sharedEncoderCount,
        sharedJpegCount, sharedOfaCount, gpuInstanceSliceCount, computeInstanceSliceCount;
    u64 memorySizeMB;
} attributes_t;

/* Version 1 of the process queries. */
typedef struct {
    u32 pid;
    u64 usedGpuMemory;
} process_v1_t;

/* Versions 2 and 3 of the process queries. */
typedef struct {
    u32 pid;
    u64 usedGpuMemory;
    u32 gpuInstanceId, computeInstanceId;
} process_t;

typedef struct {
    u32 pid;
    u64 timeStamp;
    u32 smUtil, memUtil, encUtil, decUtil;
} process_utilization_t;

typedef struct {
    u32 gpuUtilization, memoryUtilization;
    u64 maxMemoryUsage, time, startTime;
    u32 isRunning, reserved[5];
} accounting_stats_t;

typedef struct {
    card_t *device;
    u64 eventType, eventData;
    u32 gpuInstanceId, computeInstanceId;
} event_data_t;

#endif
