#ifndef LIBRARY_H
#define LIBRARY_H

/* How often NVML was started and not shut down; the scenario's lock is held. */
int library_uses(void);

#endif
