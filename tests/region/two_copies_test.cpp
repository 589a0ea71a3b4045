// Two copies of the library in one process, in modules that are loaded and unloaded: the handlers
// and threads of an unloaded copy must not jump into unmapped memory.
#include <dlfcn.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <string>

#include <gtest/gtest.h>

#include "base/temp_directory.hpp"

namespace vellum {
namespace {

struct Module {
  explicit Module(const char* path) : handle(dlopen(path, RTLD_NOW | RTLD_LOCAL)) {}
  template <typename Function>
  Function* function(const char* name) const {
    return reinterpret_cast<Function*>(dlsym(handle, name));
  }
  void* handle;
};

// The result of one round: 0, or the number of what is wrong.
int round_of(const std::string& directory, std::uint64_t round) {
  const Module modules[] = {Module(VELLUM_MODULE_A), Module(VELLUM_MODULE_B)};
  if (modules[0].handle == nullptr || modules[1].handle == nullptr) return 1;
  if (modules[0].function<void()>("end") == modules[1].function<void()>("end")) return 2;
  for (const Module& module : modules) {
    const std::string store = directory + (&module == modules ? "/a" : "/b");
    module.function<bool(const char*, const char*)>("begin")(store.c_str(), "main");
  }
  for (const Module& module : modules)
    if (module.function<std::uint64_t()>("add_one")() != round) return 3;
  for (const Module& module : modules) module.function<void()>("end")();
  for (const Module& module : modules)
    if (dlclose(module.handle) != 0) return 4;
  return 0;
}

int all_rounds(const std::string& directory) {
  for (std::uint64_t round = 0; round < 3; ++round)
    if (const int wrong = round_of(directory, round)) return wrong;
  return 0;
}

TEST(TwoCopiesNoSanitizer, TwoCopiesInModulesLoadAndUnloadThreeTimes) {
  const test::TempDirectory directory;
  EXPECT_EXIT(_exit(all_rounds(directory.path())), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace vellum
