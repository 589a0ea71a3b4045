/* A system call that the C library does not make, so that no other library replaces it. Returns the
 * kernel's result: an error is a negative errno. */
#pragma once

static long call(long number, long a, long b, long c, long d) {
  register long fourth __asm__("r10") = d;
  long result;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(number), "D"(a), "S"(b), "d"(c), "r"(fourth)
                   : "rcx", "r11", "memory");
  return result;
}
