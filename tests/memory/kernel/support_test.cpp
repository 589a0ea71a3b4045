// Messages about a kernel without the required features.
#include "memory/kernel/support.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cerrno>

#include "support/child.hpp"

namespace vellum::region::test {
namespace {

TEST(KernelSupport, TheReasonNamesTheMissingFeature) {
  const auto why = [](int write_protection, int page_scan) {
    return why_no_uffd({write_protection, page_scan, false, false});
  };
  EXPECT_NE(why(EPERM, 0).find("may not use userfaultfd"), std::string::npos) << why(EPERM, 0);
  EXPECT_NE(why(ENOSYS, 0).find("has no userfaultfd"), std::string::npos) << why(ENOSYS, 0);
  EXPECT_NE(why(ENOTSUP, ENOTTY).find("asynchronous write protection"), std::string::npos);
  EXPECT_NE(why(0, ENOTTY).find("PAGEMAP_SCAN"), std::string::npos) << why(0, ENOTTY);
  EXPECT_NE(why(0, 0).find("trial"), std::string::npos) << why(0, 0);
}

TEST(KernelSupport, SupportAndReasonAgree) {
  const KernelSupport support = kernel_support();
  if (support.engine_uffd) {
    EXPECT_EQ(support.write_protection, 0);
    EXPECT_EQ(support.page_scan, 0);
  } else {
    EXPECT_FALSE(why_no_uffd(support).empty());
    EXPECT_FALSE(support.shares);
  }
}

// A temporary shortage is no evidence about the kernel.
TEST(KernelSupport, AProcessWithoutDescriptorsRepeatsTheTest) {
  EXPECT_CHILD_EXIT(vellum::test::run_program("probes-twice", {}), 0);
}

const vellum::test::ChildProgram kProbesTwice("probes-twice", [](const auto&) {
  rlimit usual{};
  getrlimit(RLIMIT_NOFILE, &usual);
  const rlimit none{0, usual.rlim_max};
  setrlimit(RLIMIT_NOFILE, &none);
  vellum::test::require(!kernel_support().engine_uffd, "there is no descriptor to probe with");
  setrlimit(RLIMIT_NOFILE, &usual);
  const KernelSupport now = kernel_support();
  vellum::test::require(now.write_protection != EMFILE && now.page_scan != EMFILE, "asks again");
});

}  // namespace
}  // namespace vellum::region::test
