#!/usr/bin/env bash
# The summary of configuring on a machine without the libraries: all missing ones at once, and the optional parts
# that are not built, with the reason.
set -euo pipefail

source=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() {
  echo "summary: $*" >&2
  cat "$work/log" >&2
  exit 1
}

configure() {
  PKG_CONFIG_LIBDIR=$work cmake -S "$source" -B "$work/build" -DVELLUM_TESTS=OFF "$@" >"$work/log" 2>&1
}

if configure -DCMAKE_DISABLE_FIND_PACKAGE_fmt=ON; then fail "configures without any library"; fi
for lacking in fmt zstd lz4 xxhash; do
  grep -qE "^  $lacking .*NOT FOUND" "$work/log" || fail "the table does not miss $lacking"
  tr '\n' ' ' <"$work/log" | grep -E "Vellum is not built without:[^:]*$lacking" >/dev/null || fail "the error does not name $lacking"
done
grep -qE '^  OpenSSL.* yes$' "$work/log" || fail "misses OpenSSL, which is installed"
grep -qE '^  backup of a live LMDB +no, not found: LMDB' "$work/log" || fail "does not miss LMDB"
grep -qE '^  remotes on S3 +no, not found: libcurl' "$work/log" || fail "does not miss libcurl"
grep -qE '^  tests +no \(VELLUM_TESTS=OFF\)' "$work/log" || fail "does not report that tests are off"
for part in "command line" "persistent memory" examples benchmarks sanitizers libvellum.so; do
  grep -qE "^  $part +[a-z]" "$work/log" || fail "the table has no line for $part"
done
echo "summary: names the missing libraries"
