/* The codes of NVML with their names and texts. */
#ifndef ERRORS_H
#define ERRORS_H

/* The code of a name (`GPU_IS_LOST`) or of a number, -1 for anything else. */
int error_code(const char *word);
/* What nvmlErrorString says of a code. */
const char *error_text(int code);

#endif
