// Runs the fuzz functions on files, without libFuzzer. Every compiler and build thus repeats
// the findings of fuzzing. usage: replay <folder>...; each folder has a folder of inputs for each
// target, with the target's name.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>

#include "target.hpp"

namespace {

namespace stdfs = std::filesystem;

// In a heap block of exactly its size: the sanitizers then detect every read past the end.
void run_file(const vellum::fuzz::Target& target, const stdfs::path& path) {
  std::ifstream in(path, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  const auto bytes = std::make_unique<std::byte[]>(text.size());
  std::copy_n(reinterpret_cast<const std::byte*>(text.data()), text.size(), bytes.get());
  target.run(std::span(bytes.get(), text.size()));
}

std::size_t run_folder(const vellum::fuzz::Target& target, const stdfs::path& folder) {
  std::size_t files = 0;
  if (!stdfs::is_directory(folder)) return 0;
  for (const auto& entry : stdfs::directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    std::fprintf(stderr, "%s\n",
                 entry.path().c_str());  // the last printed one has caused a crash
    run_file(target, entry.path());
    ++files;
  }
  return files;
}

}  // namespace

int main(int argc, char** argv) {
  std::size_t all = 0;
  for (const auto& target : vellum::fuzz::targets()) {
    target.run({});
    std::size_t files = 0;
    for (int i = 1; i < argc; ++i) files += run_folder(target, stdfs::path(argv[i]) / target.name);
    std::printf("%-16s %zu inputs\n", target.name, files);
    all += files;
  }
  if (all == 0) std::fprintf(stderr, "no inputs: wrong folders?\n");
  return all == 0 ? 1 : 0;
}
