// A counter that survives kill -9: the smallest program that uses a region.
//
//   counter STORE [--increments N]          N: 1 by default; each increment is one durable commit,
//                                           and then prints one line
//
//   counter /tmp/c --increments 1000000 | tail -n 1 &
//   sleep 1; killall -9 counter             # at any time
//   counter /tmp/c --increments 0           # the last number printed, or the one in progress
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <vellum/store.hpp>

int main(int argc, char** argv) try {
  const bool has_option = argc == 4 && std::strcmp(argv[2], "--increments") == 0;
  if (argc != 2 && !has_option) {
    std::fprintf(stderr, "usage: counter STORE [--increments N]\n");
    return 2;
  }
  const std::uint64_t increments = has_option ? std::strtoull(argv[3], nullptr, 10) : 1;

  auto store = vellum::Store::open_or_create(argv[1]);
  auto region = store.open_or_create_region("counter", 4096);
  auto& count = region.root<std::uint64_t>();  // plain memory; zero the first time

  std::printf("found %llu\n", static_cast<unsigned long long>(count));
  for (std::uint64_t i = 0; i < increments; ++i) {
    ++count;
    region.commit();  // on the disk when this returns
    std::printf("%llu\n", static_cast<unsigned long long>(count));
    std::fflush(stdout);
  }
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "counter: %s\n", error.what());
  return 1;
}
