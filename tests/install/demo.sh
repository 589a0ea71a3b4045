#!/usr/bin/env bash
# The program of `make demo`, from the build tree in the first argument: creates a store by a bare name in the
# working directory, and leaves no unfinished store behind.
set -euo pipefail

program=$1/examples/temporal_graph
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
fail() {
  echo "demo: $*" >&2
  exit 1
}

for store in mine ./beside ../"$(basename "$work")"/around "$work/whole"; do
  "$program" --scale 6 --edge-factor 4 --store "$store" >log 2>&1 || fail "--store $store: $(tail -n 1 log)"
  grep -qF 'Each was opened beside the live graph and answered as counted' log || fail "--store $store: $(tail -n 1 log)"
  [[ -d $store/packs ]] || fail "--store $store keeps no store"
done

# Obstructs a full copy.
mkdir other.full-copy
if "$program" --scale 6 --edge-factor 4 --store other >log 2>&1; then fail "overwrites a directory with a copy"; fi
[[ ! -e other ]] || fail "leaves half a store"
if "$program" --scale 6 --store mine >log 2>&1; then fail "overwrites an existing store"; fi
[[ -d mine/packs ]] || fail "removes an existing store"
echo "demo: good"
