#!/usr/bin/env bash
# The program of `make demo`, of the build tree given first: a store by a bare name in the working directory, and
# nothing left of one that was not finished.
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

# In the way of a full copy.
mkdir other.full-copy
if "$program" --scale 6 --edge-factor 4 --store other >log 2>&1; then fail "makes a copy where a directory is"; fi
[[ ! -e other ]] || fail "leaves half a store"
if "$program" --scale 6 --store mine >log 2>&1; then fail "takes a store that there is"; fi
[[ -d mine/packs ]] || fail "removes a store of somebody else's"
echo "demo: good"
