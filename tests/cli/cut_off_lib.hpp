// Ends the program `vellum` by a signal at the nth of its calls that change files.
#pragma once

#include "cli/run_lib.hpp"

namespace vellum::cli_test {

// Before the nth call (from 1) that makes, writes, syncs, names or removes something. False: it has
// fewer calls, and has ended by itself; it must have succeeded then.
bool cut_off(const Arguments& arguments, unsigned nth, int signal);

}  // namespace vellum::cli_test
