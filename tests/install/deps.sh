#!/usr/bin/env bash
# tools/install-deps.sh on a machine of stubs: all items of its table are present, or all but one. It must
# request no package when nothing is missing, and otherwise only the package that provides the missing item,
# whichever packages the other items are from. Of several packages it takes the first that the system offers; it
# skips an optional one with a message. apt-get is a recorder.
set -euo pipefail

script=$(cd "$(dirname "$0")/../.." && pwd)/tools/install-deps.sh
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/bin"

stub() { printf '#!/bin/bash\n%s\n' "$2" >"$work/bin/$1" && chmod +x "$work/bin/$1"; }

for tool in bash env grep printf cat sed tr; do ln -s "$(command -v "$tool")" "$work/bin/$tool"; done
stub apt-get "[[ \$1 == update ]] && exit
echo \"\$*\" >>'$work/asked'
! printf '%s\n' \"\$@\" | grep -xFf '$work/broken' >/dev/null"
stub apt-cache "for name in \"\${@:2}\"; do
  grep -qxF \"\$name\" '$work/not-offered' || printf '%s:\\n  Candidate: 1.0\\n' \"\$name\"
done"
: >"$work/broken" >"$work/not-offered"
stub sudo 'exec "$@"'
stub dpkg-query 'exit 1' # no package of these names is installed
stub pkg-config "grep -qxF \"module:\$2\" '$work/things'"
stub c++ "read -r _ header; header=\${header#<}; grep -qxF \"header:\${header%>}\" '$work/things'"
stub ldconfig "[[ \$* == -p ]] && grep ^library: '$work/things' | while IFS=: read -r _ file; do echo \"	\$file (libc6)\"; done"

# Gives the machine these items.
make_machine() {
  local thing name
  printf '%s\n' "$@" >"$work/things"
  rm -rf "$work"/bin/*-1[0-9] "$work/clang" "$work/llvm" "$work/python" "$work/asked"
  for thing in "${programs[@]}"; do
    case $thing in
      program:c++ | program:pkg-config) ;; # the stubs above
      *) rm -f "$work/bin/${thing#program:}" ;;
    esac
  done
  for thing in "$@"; do
    name=${thing#*:}
    case $thing in
      program:clang-[0-9]*) stub "$name" "echo '$work/clang/${name#clang-}'" ;;
      program:python3)
        stub python3 "case \$2 in
          *sysconfig*) echo '$work/python' ;;
          *) grep -qxF \"python:\${2#import }\" '$work/things' ;;
        esac"
        ;;
      python-header:*) mkdir -p "$work/python" && : >"$work/python/$name" ;;
      program:*) [[ -e $work/bin/$name ]] || stub "$name" 'exit 0' ;;
      llvm:*)
        stub "llvm-config-$name" "echo '$work/llvm/$name'"
        mkdir -p "$work/llvm/$name/llvm/Passes" && : >"$work/llvm/$name/llvm/Passes/PassPlugin.h"
        ;;
      sanitizers:*) mkdir -p "$work/clang/$name/lib/x" && : >"$work/clang/$name/lib/x/libclang_rt.asan.a" ;;
    esac
  done
}

run() { VELLUM_SBIN=$work/bin PATH=$work/bin "$work/bin/bash" "$script" "$@"; }
fail() {
  echo "deps: $*" >&2
  exit 1
}

things=() programs=()
declare -A package_of others_of may_be_left_out groups_of
while read -r packages groups list; do
  for thing in $list; do
    thing=${thing%%|*}
    things+=("$thing")
    [[ $packages == *\? ]] && may_be_left_out[$thing]=1
    package_of[$thing]=${packages%\?}
    package_of[$thing]=${package_of[$thing]%%|*}
    others_of[$thing]=${packages#"${package_of[$thing]}"}
    groups_of[$thing]=$groups
    [[ $thing == program:* ]] && programs+=("$thing")
  done
done < <("$script" --list)
((${#things[@]} > 20)) || fail "the table has only ${#things[@]} things"

make_machine "${things[@]}"
run >/dev/null || fail "fails when nothing is missing"
[[ ! -e $work/asked ]] || fail "requests packages when nothing is missing: $(cat "$work/asked")"

all=build,demo,test,more,bench,lint,tidy,sanitizers,clang,mpi,power,allocators,docs,packages,python,fresh
for lacking in "${things[@]}"; do
  # Without these the script cannot check anything else.
  case $lacking in program:c++ | program:pkg-config | program:llvm-config-19) continue ;; esac
  rest=()
  for thing in "${things[@]}"; do [[ $thing == "$lacking" ]] || rest+=("$thing"); done
  make_machine "${rest[@]}"
  run --for "$all" >/dev/null || fail "fails when $lacking is missing"
  [[ -e $work/asked ]] || fail "does not miss $lacking"
  wanted="install -y -q --no-install-recommends ${package_of[$lacking]}"
  # A missing compiler has no sanitizers either.
  [[ $lacking == program:clang-19 ]] && wanted+=" libclang-rt-19-dev"
  [[ $lacking == program:python3 ]] && wanted+=" python3-venv python3-dev" # nor has a Python its modules
  [[ $(cat "$work/asked") == "$wanted" ]] || fail "for $lacking it requests: $(cat "$work/asked")"
done

# Debian 13 has other packages, and lacks some. asked_without THING PACKAGE...: the requested packages when THING
# is missing and the system does not offer these packages.
asked_without() {
  local lacking=$1 thing rest=() status=0
  shift
  for thing in "${things[@]}"; do [[ $thing == "$lacking" ]] || rest+=("$thing"); done
  make_machine "${rest[@]}"
  printf '%s\n' "$@" >"$work/not-offered"
  run --for "$all" >"$work/said" 2>&1 || status=$?
  : >"$work/not-offered"
  cat "$work/asked" 2>/dev/null || true
  return "$status"
}
others=0 left_out=0
for thing in "${things[@]}"; do
  case $thing in program:c++ | program:pkg-config | program:llvm-config-19) continue ;; esac
  package=${package_of[$thing]}
  if [[ ${others_of[$thing]} == *\|* ]]; then
    others=$((others + 1))
    next=${others_of[$thing]#|}
    next=${next%%[|?]*}
    [[ $(asked_without "$thing" "$package") == *" $next" ]] || fail "without $package it does not request $next"
    package+="|$next"
  fi
  # shellcheck disable=SC2086 # a list of packages
  if [[ -n ${may_be_left_out[$thing]-} ]]; then
    left_out=$((left_out + 1))
    [[ -z $(asked_without "$thing" ${package//|/ }) ]] || fail "requests $package, which is not offered"
    grep -qF "left out, as this system does not offer them: $package" "$work/said" || fail "skips $package without a message"
  elif [[ $thing == program:cmake ]]; then
    asked_without "$thing" "$package" >"$work/asked-for"
    grep -qF " $package" "$work/asked-for" || fail "skips $package, which is required"
  fi
done
((others > 2 && left_out > 15)) || fail "only $others items have other packages, $left_out are optional"

# A package that fails to install does not stop the others, and is an error only if it is required.
make_machine program:c++ program:pkg-config
echo xfsprogs >"$work/broken"
run --for build,test,power >"$work/said" 2>&1 || fail "one optional package stops all: $(cat "$work/said")"
for package in cmake libsqlite3-dev btrfs-progs; do
  grep -qx "install .* $package" "$work/asked" || fail "does not install $package when another one fails"
done
grep -qF 'left out, as this system does not offer them: xfsprogs' "$work/said" || fail "does not name xfsprogs"
echo cmake >"$work/broken"
if run --for build >"$work/said" 2>&1; then fail "succeeds without cmake"; fi
: >"$work/broken"

make_machine "${things[@]}"
run zstd >/dev/null
[[ $(cat "$work/asked") == *" zstd" ]] || fail "does not miss a program that is an argument"

# Each group requests exactly its needs.
for group in ${all//,/ }; do
  of_group=() others=()
  for thing in "${things[@]}"; do
    if [[ ,${groups_of[$thing]}, == *",$group,"* ]]; then of_group+=("$thing"); else others+=("$thing"); fi
  done
  ((${#of_group[@]} > 0)) || fail "group $group is empty"
  make_machine "${of_group[@]}"
  run --for "$group" >/dev/null || fail "fails with only the items of group $group"
  [[ ! -e $work/asked ]] || fail "for $group it requests more: $(cat "$work/asked")"
  last=${of_group[-1]}
  make_machine "${of_group[@]:0:${#of_group[@]}-1}"
  run --for "$group" >/dev/null || fail "fails when $last is missing"
  [[ $(cat "$work/asked") == *" ${package_of[$last]}"* ]] || fail "for $group it does not miss $last"
done
for package in clang llvm gtest mandoc; do
  if "$script" --list | awk '$2 ~ /demo/' | grep "$package"; then fail "the demo requests $package"; fi
done
if run --for nothing 2>"$work/refused"; then fail "accepts an unknown group"; fi
grep -q "no group 'nothing'" "$work/refused" || fail "does not name the unknown group"
echo "deps: ${#things[@]} things"
