// A child of fork() is distinguished from its parent, even if both are process 1 of a PID
// namespace.
#include "base/threads/fork_count.hpp"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/syscall.h>

#include "base/threads/per_process.hpp"
#include "base/threads/thread_pool.hpp"
#include "support/child.hpp"

namespace vellum::base {
namespace {

using test::require;
using test::run_child;

constexpr int kNotPermitted = 96;

// Runs in a child that is process 1 of its own namespace. Its exit status is 0 if all checks
// succeeded there.
test::ChildEnd as_process_one(const std::function<void()>& body) {
  return run_child([&] {
    if (unshare(CLONE_NEWPID) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWPID) != 0)
      _exit(kNotPermitted);
    const pid_t child = fork();
    if (child == 0) test::detail::run_body(body);
    int status = 0;
    require(child > 0 && waitpid(child, &status, 0) == child && status == 0, "a child's checks");
  });
}

TEST(ForkCount, IsAnotherInEachProcess) {
  const std::uint32_t here = fork_count();
  EXPECT_EQ(here, fork_count());
  EXPECT_CHILD_EXIT(run_child([&] {
                      const std::uint32_t child = fork_count();
                      require(child != here && child == fork_count(), "a child's number");
                      const auto end = run_child([&] {
                        require(fork_count() != child && fork_count() != here, "its child's");
                      });
                      require(end.exited_with(0), "its child");
                    }),
                    0);
  EXPECT_EQ(here, fork_count());
}

// The C library's handlers of fork(2) do not run then.
TEST(ForkCount, SeesAForkThatTheCLibraryDoesNotMake) {
  const std::uint32_t here = fork_count();
  const long child = syscall(SYS_fork);
  if (child == 0) syscall(SYS_exit_group, fork_count() == here ? 1 : 0);
  int status = 0;
  ASSERT_EQ(child, waitpid(static_cast<pid_t>(child), &status, 0));
  EXPECT_EQ(0, status);
}

TEST(ForkCount, TellsProcessesApartThatHaveOneNumber) {
  const auto end = as_process_one([] {
    PerProcess<int> objects;
    int made = 0;
    const auto make = [&] { return ++made; };
    ThreadPool pool(2);
    const auto work = [&] {
      std::atomic<int> done{0};
      pool.parallel_for(8, [&](std::size_t, std::size_t) { ++done; });
      return done.load();
    };
    const std::uint32_t here = fork_count();
    require(getpid() == 1 && objects.get(make) == 1 && work() == 8, "process 1");
    require(as_process_one([&] {
              require(getpid() == 1 && fork_count() != here, "another process 1");
              require(objects.get(make) == 2, "an object of its own");
              require(work() == 8, "work without the parent's threads");
            }).exited_with(0),
            "a namespace within");
  });
  if (end.exited_with(kNotPermitted)) GTEST_SKIP() << "no PID namespaces here";
  EXPECT_CHILD_EXIT(end, 0);
}

}  // namespace
}  // namespace vellum::base
