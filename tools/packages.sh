#!/usr/bin/env bash
# Builds the Debian packages into build/package/packages (cmake/Packages.cmake).
set -euo pipefail
cd "$(dirname "$0")/.."
tools/install-deps.sh --for build,clang,packages
cmake --preset package
cmake --build --preset package
rm -rf build/package/packages
(cd build/package && cpack --config CPackConfig.cmake >cpack.log) || {
  cat build/package/cpack.log >&2
  exit 1
}
ls -l build/package/packages/*.deb
