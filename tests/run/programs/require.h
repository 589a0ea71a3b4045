/* A program that checks itself ends with exit(1), and prints the line, if a check fails. */
#pragma once

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REQUIRE(holds)                                                         \
  do {                                                                         \
    if (!(holds)) {                                                            \
      fprintf(stderr, "line %d: %s: %s\n", __LINE__, #holds, strerror(errno)); \
      exit(1);                                                                 \
    }                                                                          \
  } while (0)
