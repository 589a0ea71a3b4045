#!/usr/bin/env bash
# Checks the format of every C and C++ source that git knows or would add, the includes of src against
# src/layers.txt, the links of every Markdown file, packaging/ against CMake, and the pipes of shell scripts;
# with --fix, repairs the format.
set -euo pipefail
cd "$(dirname "$0")/.."

sources() {
  git ls-files -co --exclude-standard -z -- '*.cpp' '*.hpp' '*.cc' '*.c' '*.h' |
    while IFS= read -r -d '' file; do
      # A tracked file may be deleted in the work tree.
      if [[ -f $file ]]; then printf '%s\0' "$file"; fi
    done
}

if [[ ${1-} == --fix ]]; then
  sources | xargs -0 -r -n 16 -P 2 clang-format-19 -i
  exit
fi
failed=0
tools/check-links.py || failed=1
tools/check-layers.py || failed=1
tools/check-packaging.py || failed=1
mkdir -p build
if ! sources | xargs -0 -r -n 16 -P 2 clang-format-19 --dry-run -Werror 2>build/lint.log; then
  sed -nE 's/^([^ :]+):[0-9]+:[0-9]+: error:.*/\1: not in the project format (make format repairs it)/p' \
    build/lint.log | sort -u
  grep -E 'clang-format-19: |No such' build/lint.log || true
  failed=1
fi
# With pipefail, what writes to a reader that ends early fails now and then, by SIGPIPE.
if git grep -nE '[|] *(grep -[a-zA-Z]*[qm]|head( |$)|sed [^|]*[0-9;]q)' -- '*.sh' .ci/run ':!tools/lint.sh'; then
  echo "these readers of a pipe end before their writer: let them read all of it"
  failed=1
fi
exit "$failed"
