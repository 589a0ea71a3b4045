// The libFuzzer program: `fuzz_decoders --target=<name> [libFuzzer's options] [corpus folders]`.
// One program for many targets keeps the build short; libFuzzer ignores options with two dashes.
#include <cstdint>
#include <string_view>

#include "target.hpp"

namespace {

const vellum::fuzz::Target* chosen = nullptr;

const vellum::fuzz::Target* find_target(std::string_view name) {
  for (const auto& t : vellum::fuzz::targets()) {
    if (name == t.name) return &t;
  }
  return nullptr;
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  constexpr std::string_view kFlag = "--target=";
  for (int i = 1; i < *argc; ++i) {
    const std::string_view argument = (*argv)[i];
    if (argument.starts_with(kFlag)) chosen = find_target(argument.substr(kFlag.size()));
  }
  if (chosen != nullptr) return 0;
  std::fprintf(stderr, "usage: --target=<name>; the targets are:\n");
  for (const auto& t : vellum::fuzz::targets()) std::printf("%s\n", t.name);
  std::exit(2);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  chosen->run(std::as_bytes(std::span(data, size)));
  return 0;
}
