// Messages about a kernel without the required features.
#include "memory/kernel/support.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cerrno>

#include "support/child.hpp"

namespace vellum::region::test {
namespace {

TEST(KernelSupport, TheReasonNamesTheMissingFeature) {
  const auto why = [](int error) { return why_no_uffd({.synchronous = error}); };
  EXPECT_NE(why(EPERM).find("may not use userfaultfd"), std::string::npos) << why(EPERM);
  EXPECT_NE(why(ENOSYS).find("has no userfaultfd"), std::string::npos) << why(ENOSYS);
  EXPECT_NE(why(ENOTSUP).find("no write protection"), std::string::npos) << why(ENOTSUP);
  EXPECT_NE(why(0).find("trial"), std::string::npos) << why(0);
}

TEST(KernelSupport, TheReasonForSynchronousProtectionNamesTheMissingFeature) {
  const auto why = [](int asynchronous, int page_scan) {
    return why_synchronous(
        {.asynchronous = asynchronous, .page_scan = page_scan, .tracking = Tracking::synchronous});
  };
  EXPECT_NE(why(ENOTSUP, ENOTTY).find("asynchronous write protection"), std::string::npos);
  EXPECT_NE(why(0, ENOTTY).find("PAGEMAP_SCAN"), std::string::npos) << why(0, ENOTTY);
  EXPECT_NE(why(0, 0).find("trial"), std::string::npos) << why(0, 0);
}

TEST(KernelSupport, SupportAndReasonAgree) {
  const KernelSupport support = kernel_support();
  if (support.tracking == Tracking::asynchronous) {
    EXPECT_EQ(support.asynchronous, 0);
    EXPECT_EQ(support.page_scan, 0);
    EXPECT_TRUE(support.maps_armed);
  } else if (support.tracking == Tracking::synchronous) {
    EXPECT_EQ(support.synchronous, 0);
    EXPECT_FALSE(why_synchronous(support).empty());
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
  vellum::test::require(kernel_support().tracking == Tracking::none,
                        "there is no descriptor to probe with");
  setrlimit(RLIMIT_NOFILE, &usual);
  const KernelSupport now = kernel_support();
  vellum::test::require(
      now.asynchronous != EMFILE && now.synchronous != EMFILE && now.page_scan != EMFILE,
      "asks again");
});

}  // namespace
}  // namespace vellum::region::test
