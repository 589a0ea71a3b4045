// cli/history/no_heat_png.cpp: for builds without libpng.
#include "base/fail.hpp"
#include "cli/history/heat_drawing.hpp"

namespace vellum::cli {

Png heat_png(const HeatMap&) {
  fail(Errc::unsupported, "this vellum was built without libpng: --svg makes a picture, too");
}

}  // namespace vellum::cli
