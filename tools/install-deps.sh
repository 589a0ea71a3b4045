#!/usr/bin/env bash
# Installs the Debian 12 packages that building and testing Vellum needs and that are missing. Running
# it again changes nothing. Names given as arguments are wanted too.
set -euo pipefail

packages=(
  build-essential cmake ninja-build pkgconf ccache mold git python3
  clang-19 clang-tidy-19 clang-format-19 clang-tools-19 libclang-rt-19-dev llvm-19
  llvm-19-dev clang-16 llvm-16-dev
  libzstd-dev liblz4-dev libxxhash-dev libpmem-dev libssl-dev libfmt-dev liblmdb-dev
  libcli11-dev nlohmann-json3-dev libboost-dev
  libgtest-dev libgmock-dev libbenchmark-dev lmdb-utils
  "$@"
)

is_installed() {
  [[ $(dpkg-query -W -f='${db:Status-Abbrev}' "$1" 2>/dev/null) == ii* ]]
}

if ! command -v dpkg-query >/dev/null; then
  echo "install-deps: not a Debian system; install by hand what these packages hold: ${packages[*]}" >&2
  exit 1
fi

missing=()
for package in "${packages[@]}"; do
  is_installed "$package" || missing+=("$package")
done
if ((${#missing[@]} == 0)); then
  exit 0
fi

as_root=()
if ((EUID != 0)); then
  if ! command -v sudo >/dev/null; then
    echo "install-deps: missing packages: ${missing[*]}" >&2
    echo "install-deps: installing them takes root; run as root or install sudo" >&2
    exit 1
  fi
  as_root=(sudo)
fi

install_missing() {
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -q --no-install-recommends "${missing[@]}"
}

echo "install-deps: installing ${missing[*]}"
# The package lists may be absent or too old to download from: one refresh cures both.
install_missing || { "${as_root[@]}" apt-get update -q && install_missing; }
