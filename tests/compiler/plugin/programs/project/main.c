/* A program of two languages, whose stores are all marked. */
#include <string.h>

extern void part(long* at, long count);
extern char* tracked_begin(void);
extern void tracked_check(const char* what, int exact);
extern int tracked_end(void);

int main(void) {
  char* at = tracked_begin();
  part((long*)at, 100);
  tracked_check("a store of C++", 1);
  strcpy(at + 2000, "text");
  *(long*)at = 1;
  tracked_check("a store of C", 1);
  return tracked_end();
}
