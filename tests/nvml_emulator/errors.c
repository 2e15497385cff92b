#include "errors.h"

#include <stdlib.h>
#include <string.h>

static const struct {
    int code;
    const char *name, *text;
} errors[] = {
    {0, "SUCCESS", "Success"},
    {1, "UNINITIALIZED", "Uninitialized"},
    {2, "INVALID_ARGUMENT", "Invalid Argument"},
    {3, "NOT_SUPPORTED", "Not Supported"},
    {4, "NO_PERMISSION", "Insufficient Permissions"},
    {5, "ALREADY_INITIALIZED", "Already Initialized"},
    {6, "NOT_FOUND", "Not Found"},
    {7, "INSUFFICIENT_SIZE", "Insufficient Size"},
    {8, "INSUFFICIENT_POWER", "Insufficient External Power"},
    {9, "DRIVER_NOT_LOADED", "Driver Not Loaded"},
    {10, "TIMEOUT", "Timeout"},
    {11, "IRQ_ISSUE", "Interrupt Request Issue"},
    {12, "LIBRARY_NOT_FOUND", "NVML Shared Library Not Found"},
    {13, "FUNCTION_NOT_FOUND", "Function Not Found"},
    {14, "CORRUPTED_INFOROM", "Corrupted infoROM"},
    {15, "GPU_IS_LOST", "GPU is lost"},
    {16, "RESET_REQUIRED", "GPU requires restart"},
    {17, "OPERATING_SYSTEM", "The operating system has blocked the request."},
    {18, "LIB_RM_VERSION_MISMATCH", "RM has detected an NVML/RM version mismatch."},
    {19, "IN_USE", "In use by another client"},
    {20, "MEMORY", "Insufficient Memory"},
    {21, "NO_DATA", "No data"},
    {22, "VGPU_ECC_NOT_SUPPORTED", "vGPU does not support ECC"},
    {23, "INSUFFICIENT_RESOURCES", "Insufficient Resources"},
    {24, "FREQ_NOT_SUPPORTED", "Frequency Not Supported"},
    {25, "ARGUMENT_VERSION_MISMATCH", "Argument Version Mismatch"},
    {26, "DEPRECATED", "Deprecated"},
    {27, "NOT_READY", "Not Ready"},
    {28, "GPU_NOT_FOUND", "GPU Not Found"},
    {29, "INVALID_STATE", "Invalid State"},
    {30, "RESET_TYPE_NOT_SUPPORTED", "Reset Type Not Supported"},
    {999, "UNKNOWN", "Unknown Error"},
};
enum { ERROR_COUNT = sizeof errors / sizeof errors[0] };

int error_code(const char *word) {
    char *end = NULL;
    long code = strtol(word, &end, 10);
    if (end != word && *end == '\0') return (int)code;
    for (int i = 0; i < ERROR_COUNT; i++)
        if (strcmp(errors[i].name, word) == 0) return errors[i].code;
    return -1;
}

const char *error_text(int code) {
    for (int i = 0; i < ERROR_COUNT; i++)
        if (errors[i].code == code) return errors[i].text;
    return "Unknown Error";
}
