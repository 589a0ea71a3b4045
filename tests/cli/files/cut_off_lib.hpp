// Ends the program `vellum` by a signal at the nth of its calls that change files.
#pragma once

#include "run/run_lib.hpp"

namespace vellum::cli_test {

// Ends it before the nth call (from 1) that creates, writes, syncs, renames or removes a file.
// False: it has fewer calls, and has ended by itself; it must then have succeeded.
bool cut_off(const Arguments& arguments, unsigned nth, int signal);

}  // namespace vellum::cli_test
