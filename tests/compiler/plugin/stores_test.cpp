// Programs with stores of every kind, compiled by vellum-clang: the card of each changed byte is
// marked. The programs check it themselves, see programs/tracked.h.
#include <algorithm>
#include <cstdlib>
#include <ostream>
#include <regex>
#include <string>
#include <vector>

#include "compiler/plugin/compile_lib.hpp"

namespace vellum::clang_test {
namespace {

constexpr const char* kChecked = "VELLUM_CARDS_VERIFY=1 VELLUM_CARDS_STATS=1 ";

struct Setting {
  int version;
  const char* flags;
};

class Stores : public CompileNoSanitizer, public ::testing::WithParamInterface<Setting> {
 protected:
  std::string compile(const std::string& compiler, const std::string& source,
                      const std::string& more) const {
    const std::string out = path("program");
    const Result result =
        must(kChecked + clang(GetParam().version) + built("bin/" + compiler) + " " +
             GetParam().flags + " " + more + program(source) + tracked_memory() + " -lm -o " + out);
    EXPECT_NE(std::string::npos, result.output.find(" 0 not understood")) << result.output;
    return out;
  }
};

TEST_P(Stores, StoresOfEveryKindAreMarked) {
  must(compile("vellum-clang", "stores.c", "-latomic "));
}

TEST_P(Stores, StoresOfLibraryFunctionsAreMarked) {
  must(compile("vellum-clang", "library.c", ""));
}

// VELLUM_PASS_SEEDS=100 tries more seeds.
class RandomStores : public Stores {};

TEST_P(RandomStores, RandomStoresAreMarked) {
  const char* wanted = std::getenv("VELLUM_PASS_SEEDS");
  const int seeds = wanted == nullptr ? 1 : std::stoi(wanted);
  for (int seed = 1; seed <= seeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const std::string source = path("random.c");
    must("python3 " + program("random_program.py") + " " + std::to_string(seed) + " >" + source);
    must(kChecked + clang(GetParam().version) + built("bin/vellum-clang") + " " + GetParam().flags +
         " -w -fno-strict-aliasing -I" + program("") + " " + source + tracked_memory() + " -o " +
         path("random"));
    must(path("random"));
  }
}

class SomeStores : public Stores {};  // at fewer levels, as they take long to compile

TEST_P(SomeStores, StoresOfFortifiedLibraryFunctionsAreMarked) {
  must(compile("vellum-clang", "library.c", std::string("-D_FORTIFY_SOURCE=2 ")));
}

TEST_P(SomeStores, StoresOfContainersAndObjectsAreMarked) {
  const bool newer = std::string(GetParam().flags) == "-O2";
  must(compile("vellum-clang++", "containers.cpp", newer ? "-std=c++20 " : "-std=c++17 "));
}

std::vector<Setting> at_levels(const std::vector<const char*>& levels) {
  std::vector<Setting> all;
  for (const int version : {VELLUM_PASS_VERSIONS})
    for (const char* flags : levels) all.push_back({version, flags});
  return all;
}
std::string name_of(const ::testing::TestParamInfo<Setting>& info) {
  return "Clang" + std::to_string(info.param.version) +
         std::regex_replace(std::string(info.param.flags), std::regex("[^A-Za-z0-9]"), "");
}
void PrintTo(const Setting& setting, std::ostream* out) {
  *out << setting.version << " " << setting.flags;
}

INSTANTIATE_TEST_SUITE_P(
    NoSanitizer, Stores,
    ::testing::ValuesIn(at_levels({"-O0", "-O1", "-O2", "-O3", "-O3 -march=native"})), name_of);
INSTANTIATE_TEST_SUITE_P(NoSanitizer, SomeStores, ::testing::ValuesIn(at_levels({"-O0", "-O2"})),
                         name_of);

INSTANTIATE_TEST_SUITE_P(NoSanitizer, RandomStores,
                         ::testing::ValuesIn(at_levels({"-O2", "-O3 -march=native"})), name_of);

class PassNoSanitizer : public CompileNoSanitizer {};

// Otherwise the tests above could not fail.
TEST_F(PassNoSanitizer, StoresAreNotMarkedWithoutThePass) {
  const std::string out = path("program");
  must("clang-" + std::to_string(std::max({VELLUM_PASS_VERSIONS})) + " -O1 -w " +
       program("stores.c") + tracked_memory() + " -latomic -o " + out);
  const Result result = run(out);
  EXPECT_EQ(1, result.status);
  for (const char* kind :
       {"one_byte", "copy_200", "loop_up", "atomic_added", "memset_large", "long_jump"})
    EXPECT_NE(std::string::npos, result.output.find(std::string(kind) + ": card")) << kind;
}

// Stores are marked as well when marks are neither joined nor moved.
TEST_F(PassNoSanitizer, StepsOfThePassCanBeSkipped) {
  for (const char* off : {"merge", "loops", "merge,loops"}) {
    const std::string out = path("program");
    const Result result =
        must(kChecked + ("VELLUM_CARDS_OFF=" + std::string(off)) + " " + built("bin/vellum-clang") +
             " -O2 " + program("stores.c") + tracked_memory() + " -latomic -o " + out);
    const bool merges = std::string(off) == "loops";
    const bool moves = std::string(off) == "merge";
    EXPECT_EQ(!merges, result.output.find("(0 with another") != std::string::npos) << result.output;
    EXPECT_EQ(!moves, result.output.find(" 0 behind loops)") != std::string::npos) << result.output;
    must(out);
  }
}

unsigned count_of(const std::string& text, const std::string& word) {
  unsigned count = 0;
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1))
    ++count;
  return count;
}

// Five adjacent stores need one call; a loop without calls has no mark calls.
TEST_F(PassNoSanitizer, MarksAreMergedAndMovedOutOfLoops) {
  const std::string source =
      file("few.c",
           "void five(long* p) { p[0] = 1; p[1] = 2; p[2] = 3; p[3] = 4; p[4] = 5; }\n"
           "void fill(long* p, long n) {\n#pragma clang loop unroll(disable) vectorize(disable)\n"
           "  for (long i = 0; i < n; ++i) p[i] = i * i; }\n");
  for (const int version : {VELLUM_PASS_VERSIONS}) {
    const Result result = must(kChecked + clang(version) + built("bin/vellum-clang") +
                               " -O2 -S -emit-llvm -o - " + source);
    EXPECT_NE(std::string::npos, result.output.find("6 marked (4 with another, 1 behind loops)"))
        << result.output;
    // At most two cards for the five; two and a range after the loop.
    EXPECT_EQ(4U, count_of(result.output, "call preserve_allcc void @vellum_mark_card("))
        << result.output;
    EXPECT_EQ(1U, count_of(result.output, "call void @vellum_mark(")) << result.output;
  }
}

TEST_F(PassNoSanitizer, UnknownStoresAreReported) {
  const std::string source =
      file("asm.c",
           "void f(char* p, long n) { __asm__ volatile(\"rep stosb\" : \"+D\"(p), \"+c\"(n) : "
           "\"a\"(1) : \"memory\"); }\nvoid g(int* p) { *p = 1; }\nvoid h(void) { int a; "
           "volatile int* p = &a; *p = 1; }\n");
  for (const int version : {VELLUM_PASS_VERSIONS}) {
    const Result result =
        must("VELLUM_CARDS_STATS=1 " + clang(version) + built("bin/vellum-clang") +
             " -O1 -c -Rpass=vellum-cards -Rpass-missed=vellum-cards -g -o " + path("asm.o") + " " +
             source);
    EXPECT_NE(std::string::npos,
              result.output.find("asm.c:1:27: remark: this may store to tracked memory"))
        << result.output;
    EXPECT_NE(std::string::npos, result.output.find("asm.c:2:21: remark: store marked"))
        << result.output;
    EXPECT_NE(std::string::npos, result.output.find("1 stack, 0 global, 1 not understood"))
        << result.output;
  }
}

}  // namespace
}  // namespace vellum::clang_test
