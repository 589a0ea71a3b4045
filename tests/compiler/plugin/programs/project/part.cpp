// Stores from C++, in a separate library.
#include <vector>

extern "C" void part(long* at, long count) {
  std::vector<long> values(static_cast<std::size_t>(count), 7);
  for (const long value : values) *at++ = value;
}
