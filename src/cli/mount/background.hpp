// cli/mount/background.hpp: a child process that continues after the command has returned.
#pragma once

#include <sys/types.h>

namespace vellum::cli {

// Forks. REQUIRES: one thread, and no store is open.
class Background {
 public:
  Background();
  ~Background();
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;

  bool is_child() const { return child_ == 0; }
  // In the child: the parent returns, and the child detaches from its terminal and directory.
  void is_ready();
  // In the parent: the exit status of the command. If it is not 0, the child has reported the
  // reason.
  int wait();

 private:
  pid_t child_ = -1;
  int ready_ = -1;  // a pipe: to read in the parent, to write in the child
};

}  // namespace vellum::cli
