/* The test programs' view of the tracked memory that they store to: tracked_memory.cpp, which an
 * ordinary compiler has compiled. */
#ifndef TRACKED_H
#define TRACKED_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The memory: zeros, nothing marked. */
char* tracked_begin(void);
size_t tracked_bytes(void);

/* What a commit does: takes the marks. Complains of bytes that have changed since the last time and
 * are not marked, and where `exact` says so of cards that are marked and have not changed. `what`
 * names the store. Afterwards the memory is as it is (commit) or zeros again (check). */
void tracked_commit(const char* what);
void tracked_check(const char* what, int exact);

/* How many complaints there were; prints how many checks. For main() to return. */
int tracked_end(void);

/* A number that no compiler foresees, below `limit`. */
unsigned tracked_random(unsigned limit);

#ifdef __cplusplus
}
#endif

#endif
