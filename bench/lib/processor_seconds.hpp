// bench/lib/processor_seconds.hpp: the processor time of this process.
#pragma once

#include <sys/resource.h>

namespace bench {

// Of all threads of this process so far, in user and kernel mode.
inline double processor_seconds() {
  rusage use{};
  getrusage(RUSAGE_SELF, &use);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
  };
  return seconds(use.ru_utime) + seconds(use.ru_stime);
}

}  // namespace bench
