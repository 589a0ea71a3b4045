#!/usr/bin/env bash
# tools/lint.sh checks the same files wherever the sources are: in a clone, in a checkout of another user, where
# git refuses to answer, in a tarball, in one inside another project's repository that ignores it, and without git.
set -euo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() {
  echo "sources: $*" >&2
  exit 1
}
list() { "$1/tools/sources.sh" '*.cpp' '*.h' '*.sh' '*.md' .ci/run | tr '\0' '\n' | LC_ALL=C sort; }

list "$root" >"$work/expected"
for file in src/region/api/store.cpp tests/install/sources.sh README.md .ci/run; do
  grep -qx "$file" "$work/expected" || fail "a checkout misses $file"
done
compare() {
  diff "$work/expected" "$work/found" >&2 || fail "$* has other files"
}

outer=$work/outer
tarball=$outer/vellum
mkdir -p "$tarball/build/release" "$work/bin"
"$root/tools/sources.sh" '*' | tar -C "$root" --null -T - -c | tar -C "$tarball" -x
touch "$tarball/build/release/unity_0.cpp"
list "$tarball" >"$work/found"
compare "a tarball"

for tool in bash env dirname find tr sort; do ln -s "$(command -v "$tool")" "$work/bin/$tool"; done
PATH=$work/bin list "$tarball" >"$work/found"
compare "a tarball without git"

if command -v git >/dev/null; then
  git -C "$outer" init -q
  echo /vellum/ >"$outer/.gitignore"
  list "$tarball" >"$work/found"
  compare "a tarball inside a repository"

  git -C "$tarball" init -q
  list "$tarball" >"$work/found"
  compare "a clone"
  if GIT_TEST_ASSUME_DIFFERENT_OWNER=1 git -C "$tarball" rev-parse 2>/dev/null; then fail "git accepts another user"; fi
  GIT_TEST_ASSUME_DIFFERENT_OWNER=1 list "$tarball" >"$work/found"
  compare "another user's checkout"
fi
echo "sources: $(wc -l <"$work/expected") files"
