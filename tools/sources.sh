#!/usr/bin/env bash
# The files of the checkout that git tracks or would add, each ended by a zero byte; arguments are patterns of their
# names. Where git does not answer (a tarball, another user's checkout, no git), these are the existing files.
#   tools/sources.sh '*.cpp' '*.hpp'
set -euo pipefail
cd "$(dirname "$0")/.."

list() {
  local names=() pattern
  # Not above the checkout: a tarball may be in another project's repository.
  if [[ -z $(git rev-parse --show-prefix 2>/dev/null || echo none) ]]; then
    git ls-files -co --exclude-standard -z -- "$@"
    return
  fi
  for pattern in "$@"; do names+=(-o -path "./$pattern"); done
  # Files named by .gitignore are left out.
  find . \( -name build -o -name .git -o -name __pycache__ -o -name target -o -name '.*cache' -o -name .hypothesis \) -prune -o \
    -type f \( -false "${names[@]}" \) -printf '%P\0'
}

list "$@" | while IFS= read -r -d '' file; do
  # A tracked file may be deleted in the work tree.
  if [[ -f $file ]]; then printf '%s\0' "$file"; fi
done
