// atomic/apply_runs.hpp: writes what commits have stored into the file.
#pragma once

#include <vector>

#include "atomic/medium.hpp"
#include "format/redo.hpp"

namespace vellum::atomic {

// Writes the runs, later ones over earlier ones: REQUIRES: their bytes lie in one log, in the order
// of the commits. Clipped at the end of the file: the last line may reach over it. No barrier.
// Sorts `runs`.
void apply_runs(std::vector<format::RedoRun>& runs, MediumFile& image);

}  // namespace vellum::atomic
