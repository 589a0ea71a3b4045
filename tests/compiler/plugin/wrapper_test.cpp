// vellum-clang and vellum-clang++ as the compiler.
#include <dlfcn.h>

#include "compiler/plugin/compile_lib.hpp"

namespace vellum::clang_test {
namespace {

class WrapperNoSanitizer : public CompileNoSanitizer {
 protected:
  const std::string cc_ = built("bin/vellum-clang");
  const std::string cxx_ = built("bin/vellum-clang++");
  const std::string source_ =
      file("main.c", "#include <stdio.h>\nint main(void) { puts(\"here\"); return 0; }\n");
};

TEST_F(WrapperNoSanitizer, CompilesAndLinksLikeACompiler) {
  must(cc_ + " -Werror -Wall -c " + source_ + " -o " + path("main.o"));
  must(cc_ + " -Werror " + path("main.o") + " -o " + path("main"));
  EXPECT_EQ("here\n", must(path("main")).output);
  EXPECT_NE(std::string::npos, must("ldd " + path("main")).output.find("libvellum-cards.so"));
  for (const char* only : {"-S -o -", "-E", "-M", "-MM", "-fsyntax-only", "-c -emit-llvm -o -"})
    must(cc_ + " -Werror " + only + " " + source_);
  must("cd " + path("") + " && " + cc_ +
       " -Werror -O2 -g -pthread -MD -MF main.d -MT main main.c -o both && ./both");
  must(cxx_ + " -Werror -x c++ " + source_ + " -o " + path("main") + " && " + path("main"));
}

TEST_F(WrapperNoSanitizer, CompilesStandardInput) {
  must("echo 'int main(void) { return 0; }' | " + cc_ + " -Werror -x c - -o " + path("main") +
       " && " + path("main"));
  must("echo 'int x;' | " + cc_ + " -Werror -x c -c - -o " + path("x.o"));
  EXPECT_NE(std::string::npos, must("echo | " + cc_ + " -dM -E -x c -").output.find("__clang__"));
}

TEST_F(WrapperNoSanitizer, LinksSharedLibrariesAndRelocatableObjects) {
  must(cc_ + " -Werror -fPIC -shared " + file("part.c", "int part(int* p) { return *p = 1; }\n") +
       " -o " + path("libpart.so"));
  must(cc_ + " -c " + path("part.c") + " -o " + path("part.o"));
  must(cc_ + " -Werror -r " + path("part.o") + " -o " + path("all.o"));
}

TEST_F(WrapperNoSanitizer, PrecompilesHeaders) {
  const std::string header = file("all.hpp", "#include <vector>\n");
  must(cxx_ + " -Werror -x c++-header " + header + " -o " + path("all.hpp.pch"));
  must(cxx_ + " -Werror " + header + " -o " + path("again.pch"));
  must("echo 'int main() { std::vector<int> v(3); return v[0]; }' | " + cxx_ +
       " -Werror -include-pch " + path("all.hpp.pch") + " -x c++ - -o " + path("main") + " && " +
       path("main"));
}

TEST_F(WrapperNoSanitizer, AnswersQuestionsAboutTheCompiler) {
  for (const char* question :
       {"--version", "-v", "-print-search-dirs", "-print-prog-name=ld", "-dumpmachine", "--help"})
    EXPECT_EQ(std::string::npos, must(cc_ + " " + question).output.find("vellum-cards"))
        << question;
  EXPECT_NE(std::string::npos, must(cc_ + " --vellum-help").output.find("VELLUM_CARDS_STATS"));
  EXPECT_NE(std::string::npos, must(cc_ + " --vellum-plugin").output.find("VellumCards-"));
}

TEST_F(WrapperNoSanitizer, UsesTheRequestedClang) {
  for (const int version : {VELLUM_PASS_VERSIONS}) {
    EXPECT_NE(std::string::npos, must(clang(version) + cc_ + " --version")
                                     .output.find("clang version " + std::to_string(version)));
    const std::string at = "VELLUM_CLANG=/usr/bin/clang-" + std::to_string(version) + " ";
    must(at + cxx_ + " -Werror -x c++ " + source_ + " -o " + path("main") + " && " + path("main"));
  }
}

TEST_F(WrapperNoSanitizer, RefusesUnusableCompilersAndOptions) {
  const auto refuses = [&](const std::string& command, const std::string& reason) {
    const Result result = run(command);
    EXPECT_EQ(1, result.status) << command;
    EXPECT_NE(std::string::npos, result.output.find(reason)) << result.output;
  };
  refuses("VELLUM_CLANG=7 " + cc_ + " -c " + source_, "there is no clang-7");
  refuses("VELLUM_CLANG=/usr/bin/gcc " + cc_ + " -c " + source_, "no plugin for clang 12");
  refuses("VELLUM_CLANG=nothing " + cc_ + " -c " + source_, "there is no such program");
  refuses(cc_ + " -static " + source_ + " -o " + path("main"), "cannot be static");
}

// The runtime exports every function whose uses are redirected.
TEST_F(WrapperNoSanitizer, RuntimeHasEveryRedirectedFunction) {
  void* runtime = dlopen(built("lib/libvellum-cards.so").c_str(), RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(nullptr, runtime) << dlerror();
  for (const char* name : {
#define VELLUM_REDIRECTED(name) "vellum_wrap_" #name,
#include "compiler/runtime/redirected.def"
#undef VELLUM_REDIRECTED
           "vellum_mark", "vellum_mark_card"})
    EXPECT_NE(nullptr, dlsym(runtime, name)) << name;
  const Result exported = must("nm -D --defined-only " + built("lib/libvellum-cards.so") +
                               " | grep -v ' vellum_' || true");
  EXPECT_EQ("", exported.output);
  dlclose(runtime);
}

TEST_F(WrapperNoSanitizer, CallsOnAMappedFileGoThroughMemory) {
  must(cc_ + " -Werror -Wall -O2 " + program("mapped_calls.c") + " -o " + path("main"));
  must("VELLUM_ATOMIC_FILES='*/data' " + path("main") + " " + path("data"));
}

TEST_F(WrapperNoSanitizer, CallsOnAMappedFileReturnTheKernelsResults) {
  must(cc_ +
       " -Werror -Wall -O2 -I" VELLUM_SOURCE_DIR "/tests/run/programs  " VELLUM_SOURCE_DIR
       "/tests/run/programs/kernels_answers.c -o " +
       path("main"));
  for (const char* scenario : {"refuses", "advice"})
    must("VELLUM_ATOMIC_FILES='*/data' " + path("main") + " " + scenario + " " + path("data"));
}

TEST_F(WrapperNoSanitizer, EachWayToMakeAMappedFileDurableIsACommit) {
  must(cc_ +
       " -Werror -Wall -O2 -I" VELLUM_SOURCE_DIR "/tests/run/programs  " VELLUM_SOURCE_DIR
       "/tests/run/programs/kernels_answers.c -o " +
       path("main"));
  for (const char* kind : {"fsync", "fdatasync", "syncfs", "sync", "sync_file_range", "O_DSYNC",
                           "O_SYNC", "RWF_DSYNC", "RWF_SYNC", "aio_fsync"}) {
    for (const char* mapped : {"read", "write"}) {
      must("rm -f " + path("data"));
      run("VELLUM_ATOMIC_FILES='*/data' " + path("main") + " durable " + path("data") + " " + kind +
          " " + mapped);
      must(built("bin/vellum") + " recover " + path("data"));
      EXPECT_EQ("acknowledged",
                must("dd if=" + path("data") + " bs=1 skip=8192 count=12 status=none").output)
          << kind << " " << mapped;
    }
  }
}

TEST_F(WrapperNoSanitizer, BuildsAProjectOfCMake) {
  for (const int version : {VELLUM_PASS_VERSIONS}) {
    const std::string build = path("cmake" + std::to_string(version));
    must(clang(version) + "cmake -S " + program("project") + " -B " + build +
         " -G Ninja -DCMAKE_C_COMPILER=" + cc_ + " -DCMAKE_CXX_COMPILER=" + cxx_ +
         " -DCMAKE_BUILD_TYPE=Release -DTRACKED_LIB=" + built("lib"));
    must(clang(version) + "cmake --build " + build);
    must(build + "/main");
  }
}

TEST_F(WrapperNoSanitizer, BuildsWithConfigureAndMake) {
  must("cp -r " + program("project") + "/. " + path("") + " && cd " + path("") + " && CC=" + cc_ +
       " CXX=" + cxx_ + " TRACKED_LIB=" + built("lib") + " sh ./configure && make && ./main");
  must("cd " + path("") + " && make clean && make CC=" + cc_ + " CXX=" + cxx_ +
       " TRACKED_LIB=" + built("lib") + " && ./main");
}

}  // namespace
}  // namespace vellum::clang_test
