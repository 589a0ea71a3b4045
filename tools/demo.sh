#!/usr/bin/env bash
# Builds Vellum and grows a temporal graph in persistent memory, with a snapshot for each period.
#   EDGES=FILE          lines "source target unix_time"; empty: a generated R-MAT graph
#   PERIOD=year|month   (year)
#   arguments           are passed to the program: see build/demo/examples/temporal_graph --help
# The store is kept in build/demo.store until the next demo, unless --store names another path.
set -euo pipefail
edges=${EDGES-}
if [[ -n $edges && $edges != - ]]; then
  edges=$(realpath -e -- "$edges") || { echo "demo: no such file: $EDGES" >&2; exit 1; }
fi
cd "$(dirname "$0")/.."

tools/install-deps.sh --for demo zstd
mkdir -p build
cmake --preset demo >build/demo-configure.log || { cat build/demo-configure.log >&2; exit 1; }
cmake --build --preset demo --target example_temporal_graph

arguments=(--period "${PERIOD:-year}" "$@")
if [[ -n $edges ]]; then
  arguments=("$edges" "${arguments[@]}")
fi
kept=
if [[ " $* " != *" --store "* ]]; then
  kept=build/demo.store # of the last demo
  rm -rf "$kept"
  arguments+=(--store "$kept")
fi
build/demo/examples/temporal_graph "${arguments[@]}"
if [[ -n $kept && " $* " != *" --json "* ]]; then
  printf '\nThe store is kept. To look at it: make build, and then\n'
  printf '  build/release/bin/vellum %s\n' "log $kept graph --graph" "heat $kept graph" "web $kept"
fi
