#!/usr/bin/env bash
# Checks the format of every C and C++ source (tools/sources.sh), the includes of src against src/layers.txt,
# the words of all texts (tools/check-words.py), the links, tables and lengths of documents, packaging/ against CMake,
# that the mutations of tests/mutations still apply, and the pipes of shell scripts; with --fix, repairs the format.
set -euo pipefail
cd "$(dirname "$0")/.."

sources() { tools/sources.sh '*.cpp' '*.hpp' '*.cc' '*.c' '*.h'; }

if [[ ${1-} == --fix ]]; then
  sources | xargs -0 -r -n 16 -P 2 clang-format-19 -i
  exit
fi
failed=0
mkdir -p build
tools/check-documents.py || failed=1
tools/check-layers.py || failed=1
tools/check-words.py || failed=1
tools/check-packaging.py || failed=1
if command -v git >/dev/null; then
  tools/mutation-check.sh --check >build/mutations.log 2>&1 || { cat build/mutations.log; failed=1; }
fi
if ! command -v clang-format-19 >/dev/null; then
  echo "lint: the format is not checked: no clang-format-19"
elif ! sources | xargs -0 -r -n 16 -P 2 clang-format-19 --dry-run -Werror 2>build/lint.log; then
  sed -nE 's/^([^ :]+):[0-9]+:[0-9]+: error:.*/\1: not in the project format (make format repairs it)/p' \
    build/lint.log | sort -u
  grep -E 'clang-format-19: |No such' build/lint.log || true
  failed=1
fi
# With pipefail, a writer to a reader that ends early occasionally fails by SIGPIPE.
if tools/sources.sh '*.sh' .ci/run | grep -zvx tools/lint.sh |
  xargs -0 grep -nE '[|] *(grep -[a-zA-Z]*[qm]|head( |$)|sed [^|]*[0-9;]q)'; then
  echo "these readers of a pipe end before their writer: let them read all of it"
  failed=1
fi
exit "$failed"
