// cli/terminal/exit_status.hpp: the program's exit statuses (vellum(1), EXIT STATUS).
#pragma once

#include <vellum/error.hpp>

namespace vellum::cli {

inline constexpr int kExitOk = 0;
inline constexpr int kExitDifferent = 1;   // diff --exit-code found a difference
inline constexpr int kExitBypassed = 13;   // run --strict: a file changed around vellum
inline constexpr int kExitWrongKey = 14;   // an encrypted store, and no key that opens it
inline constexpr int kExitUntrusted = 15;  // not signed by a wanted key, or not what was signed
inline constexpr int kExitOther = 12;      // a failure that no Errc describes

int exit_status(Errc code) noexcept;

}  // namespace vellum::cli
