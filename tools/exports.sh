#!/usr/bin/env bash
# The exports of libvellum.so: the functions of the public headers, and the type of their exception.
#   tools/exports.sh BUILD            compares: the static library's public names, src/interfaces/libvellum.map, and
#   the
#                                     names that BUILD's libvellum.so exports
#   tools/exports.sh --update BUILD   writes src/interfaces/libvellum.map and packaging/debian/libvellum1.symbols
# A removed or changed name breaks programs: this needs a new VELLUM_ABI (cmake/SharedLibrary.cmake).
set -euo pipefail
cd "$(dirname "$0")/.."
update=
if [[ ${1-} == --update ]]; then
  update=1
  shift
fi
build=$1
map=src/interfaces/libvellum.map
symbols=packaging/debian/libvellum1.symbols
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Members of the headers' classes, free functions of namespace vellum, and C functions that a header declares.
# Nested namespaces of vellum, and classes named Impl, are internal.
public_names() {
  nm --defined-only "$1" 2>/dev/null | awk '$2 == "T" { print $3 }' | sort -u >"$work/all"
  c++filt <"$work/all" | paste "$work/all" - >"$work/demangled"
  grep -hoE '\b(vellum_[a-z0-9_]+)\(' include/vellum/*.h include/vellum/*.hpp | tr -d '(' | sort -u >"$work/c"
  {
    grep -E $'\tvellum::([A-Z][A-Za-z]*::[^:(]+|[a-z_]+)(\\[abi:[a-z0-9]+\\])?\\(' "$work/demangled" | cut -f 1
    grep -E '^vellum_' "$work/all" | grep -Fx -f "$work/c"
    printf '%s\n' _ZTIN6vellum5ErrorE _ZTSN6vellum5ErrorE _ZTVN6vellum5ErrorE
  } | LC_ALL=C sort -u
}

listed_names() { sed -nE 's/^    ([A-Za-z0-9_]+);$/\1/p' "$map"; }

exported_names() {
  nm -D --defined-only "$1" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' | LC_ALL=C sort -u
}

write_map() {
  echo "/* Written by tools/exports.sh --update. Read it with c++filt. */"
  printf 'VELLUM_1 {\n  global:\n'
  sed 's/.*/    &;/' "$work/public"
  printf '  local: *;\n};\n'
}

# Keeps the version in which a name first appeared.
write_symbols() {
  local version name since
  version=$(sed -nE 's/^project\(Vellum VERSION ([0-9.]+) .*/\1/p' CMakeLists.txt)
  printf 'libvellum.so.1 libvellum1 #MINVER#\n VELLUM_1@VELLUM_1 %s\n' "$version"
  while read -r name; do
    since=$(sed -nE "s/^ $name@VELLUM_1 //p" "$symbols" 2>/dev/null || true)
    echo " $name@VELLUM_1 ${since:-$version}"
  done <"$work/public"
}

public_names "$build/lib/libvellum.a" >"$work/public"
if [[ -n $update ]]; then
  write_map >"$work/map"
  write_symbols >"$work/symbols"
  mv "$work/map" "$map"
  mv "$work/symbols" "$symbols"
  echo "exports: $(wc -l <"$work/public") names"
  exit
fi

failed=0
listed_names >"$work/listed"
exported_names "$build/lib/libvellum.so" >"$work/exported"
# differ WHAT: lines that only the list has, or that only the other has.
differ() {
  diff "$work/listed" "$1" >"$work/diff" && return
  echo "exports: $map and $2 differ (tools/exports.sh --update $build):"
  c++filt <"$work/diff" | grep '^[<>]'
  failed=1
}
differ "$work/public" "the public functions of libvellum.a"
differ "$work/exported" "what libvellum.so exports"
((failed)) || echo "exports: $(wc -l <"$work/listed") names"
exit "$failed"
