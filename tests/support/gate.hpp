// A meeting point of two threads or two processes: by pipes, and a dead side does not block the
// other.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

namespace vellum::test {

class Gate {
 public:
  Gate() {
    EXPECT_EQ(::pipe(arrived_), 0);
    EXPECT_EQ(::pipe(opened_), 0);
  }
  ~Gate() {
    for (const int fd : {arrived_[0], arrived_[1], opened_[0], opened_[1]}) ::close(fd);
  }
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;

  // One side: reports its arrival, and waits until the gate opens. Later the gate is open.
  void pass() {
    if (passed_) return;
    passed_ = true;
    arrive();
    char c = 0;
    [[maybe_unused]] const auto n = ::read(opened_[0], &c, 1);
  }
  void arrive() { tell(arrived_[1]); }
  // The other side.
  void wait_for_arrival() {
    char c = 0;
    [[maybe_unused]] const auto n = ::read(arrived_[0], &c, 1);
  }
  void open() { tell(opened_[1]); }

 private:
  static void tell(int fd) { EXPECT_EQ(::write(fd, "x", 1), 1); }
  int arrived_[2], opened_[2];
  bool passed_ = false;
};

}  // namespace vellum::test
