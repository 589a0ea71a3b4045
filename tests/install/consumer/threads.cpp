// The threads of this program write to a region while it commits: ThreadSanitizer has nothing to
// report with the suppressions of docs/guides/regions.md.
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <vector>
#include <vellum/store.hpp>

int main(int, char** argv) {
  constexpr std::size_t kThreads = 4, kWords = (1u << 20) / sizeof(std::uint64_t) / kThreads;
  constexpr int kCommits = 40;
  auto store = vellum::Store::create(argv[1]);
  auto region = store.create_region("main", 1u << 20);
  auto* const words = static_cast<std::uint64_t*>(region.data());
  std::atomic<int> committed{0};
  std::vector<std::thread> writers;
  for (std::size_t thread = 0; thread < kThreads; ++thread) {
    writers.emplace_back([&, thread] {
      for (std::size_t i = 0; committed.load() < kCommits; ++i) {
        words[thread * kWords + i * 127 % kWords] = i;
        if (i % 16 == 0) std::this_thread::yield();
      }
    });
  }
  for (; committed.load() < kCommits; ++committed) region.commit();
  for (std::thread& writer : writers) writer.join();
  region.snapshot("end");
  region.close();
  return store.open_version("end").size_bytes() == 1u << 20 ? 0 : 1;
}
