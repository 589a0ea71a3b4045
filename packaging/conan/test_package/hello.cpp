// Commits, takes a snapshot, and reads it while the region is open.
#include <cstdio>
#include <filesystem>
#include <vellum/store.hpp>

int main() {
  std::filesystem::remove_all("hello.store");
  auto store = vellum::Store::create("hello.store");
  auto region = store.create_region("main", 1 << 20);
  auto& count = region.root<long>();
  count = 1;
  region.snapshot("first");
  count = 2;
  region.commit();
  const auto first = store.open_version("first");
  const long then = first.root<const long>();
  std::printf("%ld now, %ld then\n", count, then);
  return count == 2 && then == 1 ? 0 : 1;
}
