/* The test programs' interface to the tracked memory that they store to: tracked_memory.cpp, compiled
 * by an ordinary compiler. */
#ifndef TRACKED_H
#define TRACKED_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The memory: zeros, nothing marked. */
char* tracked_begin(void);
size_t tracked_bytes(void);

/* Does the work of a commit: clears the marks. Reports bytes that have changed since the last time
 * and are not marked, and with `exact` also cards that are marked and have not changed. `what` names
 * the store. Afterwards the memory is unchanged (commit) or zeros again (check). */
void tracked_commit(const char* what);
void tracked_check(const char* what, int exact);

/* The number of reports, for main() to return; prints the number of checks. */
int tracked_end(void);

/* A number below `limit` that no compiler can predict. */
unsigned tracked_random(unsigned limit);

#ifdef __cplusplus
}
#endif

#endif
