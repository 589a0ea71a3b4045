#!/usr/bin/env bash
# Tests the Rust crates of rust/ with build/release's library, in build/rust: format, clippy, tests with the shared
# library, and the example of docs/guides/rust.md, linked statically. Needs no network: the crates depend on nothing.
# CARGO names another cargo. Exit status 77: there is none.
#   tools/rust.sh [ARGUMENTS OF cargo test]
set -euo pipefail
cd "$(dirname "$0")/.."

cargo=${CARGO-cargo}
if ! command -v "$cargo" >/dev/null; then
  echo "rust.sh: no cargo" >&2
  exit 77
fi
if [[ ! -e build/release/lib/libvellum.so || ! -e build/release/lib/libvellum.a ]]; then
  echo "rust.sh: build/release has no library: cmake --build --preset release --target vellum vellum_shared" >&2
  exit 1
fi
export VELLUM_BUILD_DIR=$PWD/build/release
export CARGO_TARGET_DIR=$PWD/build/rust CARGO_PROFILE_DEV_DEBUG=0 CARGO_INCREMENTAL=0
export LD_LIBRARY_PATH=$VELLUM_BUILD_DIR/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}

# in_crates ARGUMENTS OF cargo
in_crates() { (cd rust && "$cargo" "$@"); }

if "$cargo" fmt --version >/dev/null 2>&1; then
  in_crates fmt --check
else
  echo "rust.sh: the format is not checked: no rustfmt"
fi
if "$cargo" clippy --version >/dev/null 2>&1; then
  in_crates clippy --offline --locked --all-targets --quiet -- -D warnings
else
  echo "rust.sh: clippy does not run: it is not installed"
fi
in_crates test --offline --locked "$@"

work=build/rust/guide
rm -rf "$work"
mkdir -p "$work"
sed -n '/^```rust$/,/^```$/p' docs/guides/rust.md | sed '/^```/d' >"$work/counter.rs"
diff "$work/counter.rs" rust/vellum/examples/counter.rs
sed -n '/^```text$/,/^```$/p' docs/guides/rust.md | sed '/^```/d' >"$work/expected"
for _ in 1 2; do
  VELLUM_STATIC=1 CARGO_TARGET_DIR=$PWD/build/rust/static LD_LIBRARY_PATH='' \
    in_crates run --offline --locked --quiet --example counter -- "$PWD/$work/store"
done >"$work/printed"
diff "$work/expected" "$work/printed"
