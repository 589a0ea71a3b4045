// A program's own use of signals: a small alternate stack, an earlier handler, a later handler that
// does not pass faults on.
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <filesystem>

#include "support/child.hpp"
#include "support/store_fixture.hpp"

namespace vellum::test {
namespace {

class SignalHandlers : public StoreTest {
 protected:
  // A branch of numbers that compress.
  std::string store_with_numbers() {
    Store store = create();
    Region region = store.create_region("main", 4 * kMiB, options());
    for (std::uint64_t at = 0; at < region.size_bytes(); at += 8) word_at(region, at) = at / 3;
    region.commit();
    region.close();
    return path();
  }
};

void overflow(int) { _exit(77); }

// As programs do that report their own stack overflows: with an inaccessible page below.
void use_alternate_stack(std::size_t length_bytes) {
  const std::size_t whole = (length_bytes + kPage - 1) / kPage * kPage;
  auto* const at = static_cast<std::byte*>(
      mmap(nullptr, kPage + whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  require(at != MAP_FAILED && mprotect(at, kPage, PROT_NONE) == 0, "a stack and its guard");
  stack_t stack{};
  stack.ss_sp = at + kPage;
  stack.ss_size = length_bytes;
  require(sigaltstack(&stack, nullptr) == 0, "sigaltstack");
  struct sigaction action{};
  action.sa_handler = overflow;
  action.sa_flags = SA_ONSTACK;
  require(sigaction(SIGSEGV, &action, nullptr) == 0, "sigaction");
}

RegionOptions options_from(const std::string& engine) {
  RegionOptions options;
  options.engine = engine_named(engine);
  return options;
}

const ChildProgram kSmallStack("small alternate stack", [](const auto& arguments) {
  use_alternate_stack(std::stoul(arguments.at(2)));
  Store store = Store::open(arguments.at(1));
  Region region = store.open_region("main", options_from(arguments.at(0)));
  for (std::uint64_t at = 0; at < region.size_bytes(); at += kPage) {
    require(word_at(region, at) == at / 3, "the content");
    word_at(region, at + 8) = at;
  }
  region.commit();
});

// Frames under AddressSanitizer are too large for this stack.
class SmallSignalStackNoAsan : public SignalHandlers {};

TEST_P(SmallSignalStackNoAsan, PagesAreLoadedOnAnAlternateStackOf8KiB) {
  const std::string store = store_with_numbers();
  const auto least = static_cast<std::size_t>(sysconf(_SC_MINSIGSTKSZ));
  for (const std::size_t length : {std::size_t{8192}, least + 2048})
    EXPECT_CHILD_EXIT(run_program("small alternate stack",
                                  {engine_name(GetParam()), store, std::to_string(length)}),
                      0);
}

const ChildProgram kStrayStore("stray store", [](const auto& arguments) {
  use_alternate_stack(16384);
  Store store = Store::open(arguments.at(1));
  Region region = store.open_region("main", options_from(arguments.at(0)));
  require(word_at(region, 0) == 0, "the content");
  const volatile std::uintptr_t nowhere = 8;
  *reinterpret_cast<volatile char*>(nowhere) = 1;
});

TEST_P(SignalHandlers, TheProgramsHandlerGetsOtherFaults) {
  EXPECT_CHILD_EXIT(run_program("stray store", {engine_name(GetParam()), store_with_numbers()}),
                    77);
}

void does_not_pass_on(int) { _exit(78); }

const ChildProgram kLaterHandler("later handler", [](const auto& arguments) {
  Store store = Store::open(arguments.at(1));
  Region region = store.open_region("main", options_from(arguments.at(0)));
  word_at(region, 0) = 1;
  region.commit();
  word_at(region, 8) = 2;
  require(signal(SIGBUS, does_not_pass_on) != SIG_ERR, "signal");
  region.commit();
  region.commit();
});

TEST_P(SignalHandlers, ACommitReportsAHandlerInstalledLater) {
  const auto end = run_program("later handler", {engine_name(GetParam()), store_with_numbers()});
  EXPECT_CHILD_EXIT(end, 0);
  const std::size_t told = end.standard_error.find("a handler for SIGBUS was installed after");
  EXPECT_EQ(GetParam() == Engine::mapped, told == std::string::npos) << end.standard_error;
  if (told == std::string::npos) return;
  EXPECT_EQ(std::string::npos, end.standard_error.find("a handler for", told + 1)) << "once";
}

VELLUM_BOTH_ENGINES(SignalHandlers);
VELLUM_BOTH_ENGINES(SmallSignalStackNoAsan);

}  // namespace
}  // namespace vellum::test
