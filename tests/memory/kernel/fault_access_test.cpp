// Whether a faulting access is a store, on processors that do not report it.
#include "memory/kernel/fault_access.hpp"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <thread>

#include "support/child.hpp"

namespace vellum::region::test {
namespace {

constexpr std::size_t kPage = 4096;

std::byte* map_pages(std::size_t pages, int access) {
  void* const at = mmap(nullptr, pages * kPage, access, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return at == MAP_FAILED ? nullptr : static_cast<std::byte*>(at);
}

TEST(FaultAccess, RepeatedFaultsOnAReadablePageAreAStore) {
  std::byte* const page = map_pages(1, PROT_NONE);
  ASSERT_NE(page, nullptr);
  for (int i = 0; i < 20; ++i) EXPECT_FALSE(is_write_by_trial(page + 17)) << i;
  ASSERT_EQ(mprotect(page, kPage, PROT_READ), 0);
  int faults = 1;
  while (faults < 20 && !is_write_by_trial(page + 17)) ++faults;
  EXPECT_GT(faults, 1) << "another thread may have filled the page after a load";
  EXPECT_LT(faults, 20) << "the store would hang";
  munmap(page, kPage);
}

// Loads at several addresses, or of several threads at one address, do not add up.
TEST(FaultAccess, FaultsAtOtherAddressesDoNotCount) {
  std::byte* const pages = map_pages(8, PROT_READ);
  ASSERT_NE(pages, nullptr);
  for (int round = 0; round < 20; ++round) {
    for (std::size_t i = 0; i < 8; ++i) EXPECT_FALSE(is_write_by_trial(pages + i * kPage));
    std::thread([&] { EXPECT_FALSE(is_write_by_trial(pages)); }).join();
  }
  munmap(pages, 8 * kPage);
}

std::byte* g_page = nullptr;
void resolve(int, siginfo_t* info, void*) {
  const bool write = is_write_by_trial(info->si_addr);
  mprotect(g_page, kPage, write ? PROT_READ | PROT_WRITE : PROT_READ);
}

// As in engine sigsegv: a page is filled for reading, and becomes writable at the first store.
TEST(FaultAccess, AStoreAndALoadBothComplete) {
  g_page = map_pages(1, PROT_NONE);
  ASSERT_NE(g_page, nullptr);
  EXPECT_CHILD_EXIT(vellum::test::run_child([] {
                      alarm(60);  // a store that hangs
                      struct sigaction action{};
                      action.sa_sigaction = resolve;
                      action.sa_flags = SA_SIGINFO;
                      sigaction(SIGSEGV, &action, nullptr);
                      auto* const at = static_cast<volatile std::byte*>(g_page);
                      vellum::test::require(at[5] == std::byte{0}, "zeros are there");
                      at[9] = std::byte{3};
                      vellum::test::require(at[9] == std::byte{3}, "the store is there");
                    }),
                    0);
  munmap(g_page, kPage);
}

}  // namespace
}  // namespace vellum::region::test
