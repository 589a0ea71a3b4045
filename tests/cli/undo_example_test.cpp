// The program of the guide "Undo and redo".
#include "run/run_lib.hpp"

#include <unistd.h>

namespace vellum::cli_test {
namespace {

#ifdef VELLUM_UNDO_EXAMPLE

TEST_F(CliTest, TheUndoExampleUndoesAndRedoes) {
  const auto undo = [this](const Arguments& arguments) {
    Arguments argv = {VELLUM_UNDO_EXAMPLE};
    argv.insert(argv.end(), arguments.begin(), arguments.end());
    return run_program(argv, [this] {
      if (::chdir(directory_.c_str()) != 0) ::_exit(99);
    });
  };
  EXPECT_EQ(undo({"add", "1", "2"}).out, "edit 1: (1, 2)\n");
  EXPECT_EQ(undo({"add", "3", "4"}).out, "edit 2: (1, 2) (3, 4)\n");
  EXPECT_EQ(undo({"undo"}).out, "edit 1: (1, 2)\n");
  EXPECT_EQ(undo({"redo"}).out, "edit 2: (1, 2) (3, 4)\n");
  EXPECT_EQ(undo({"redo"}).status, 1);
  EXPECT_EQ(undo({"undo"}).out, "edit 1: (1, 2)\n");
  EXPECT_EQ(undo({"undo"}).out, "edit 0:\n");
  EXPECT_EQ(undo({"add", "5", "6"}).out, "edit 1: (5, 6)\n");
  EXPECT_EQ(undo({"redo"}).status, 1);  // another line now
  EXPECT_EQ(undo({"tidy"}).status, 0);
  EXPECT_EQ(undo({}).out, "edit 1: (5, 6)\n");
}

#endif

}  // namespace
}  // namespace vellum::cli_test
