#!/usr/bin/env bash
# tools/install-deps.sh on a machine made of stubs: every thing of its table is there, or all but one. It must
# ask for nothing where nothing is lacking, and otherwise for the one package that brings what is lacking, by
# whatever packages the rest may have come. Of several packages it takes the first that the system offers, and
# leaves out with a word what may be left out. apt-get is a recorder.
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

# Makes the machine have these things.
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
run >/dev/null || fail "fails where nothing is lacking"
[[ ! -e $work/asked ]] || fail "asks where nothing is lacking: $(cat "$work/asked")"

all=build,demo,test,more,bench,lint,tidy,sanitizers,clang,mpi,power,allocators,docs,packages,python
for lacking in "${things[@]}"; do
  # Without these nothing else can be looked for.
  case $lacking in program:c++ | program:pkg-config | program:llvm-config-19) continue ;; esac
  rest=()
  for thing in "${things[@]}"; do [[ $thing == "$lacking" ]] || rest+=("$thing"); done
  make_machine "${rest[@]}"
  run --for "$all" >/dev/null || fail "fails where $lacking is lacking"
  [[ -e $work/asked ]] || fail "does not miss $lacking"
  wanted="install -y -q --no-install-recommends ${package_of[$lacking]}"
  # A compiler that is not there has no sanitizers either.
  [[ $lacking == program:clang-19 ]] && wanted+=" libclang-rt-19-dev"
  [[ $lacking == program:python3 ]] && wanted+=" python3-venv python3-dev" # nor has a Python its modules
  [[ $(cat "$work/asked") == "$wanted" ]] || fail "for $lacking it asks: $(cat "$work/asked")"
done

# Debian 13 has other packages, and some not at all. asked_without THING PACKAGE...: what is asked for where THING
# is lacking and the system does not offer these packages.
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
    [[ $(asked_without "$thing" "$package") == *" $next" ]] || fail "without $package it does not ask for $next"
    package+="|$next"
  fi
  # shellcheck disable=SC2086 # a list of packages
  if [[ -n ${may_be_left_out[$thing]-} ]]; then
    left_out=$((left_out + 1))
    [[ -z $(asked_without "$thing" ${package//|/ }) ]] || fail "asks for $package, which is not offered"
    grep -qF "left out, as this system does not offer them: $package" "$work/said" || fail "leaves $package out without a word"
  elif [[ $thing == program:cmake ]]; then
    asked_without "$thing" "$package" >"$work/asked-for"
    grep -qF " $package" "$work/asked-for" || fail "leaves $package out, which is required"
  fi
done
((others > 2 && left_out > 15)) || fail "only $others things have other packages, $left_out may be left out"

# A package that does not install prevents no other one, and is an error only where nothing works without it.
make_machine program:c++ program:pkg-config
echo xfsprogs >"$work/broken"
run --for build,test,power >"$work/said" 2>&1 || fail "one package that may be left out stops all: $(cat "$work/said")"
for package in cmake libsqlite3-dev btrfs-progs; do
  grep -qx "install .* $package" "$work/asked" || fail "does not install $package beside one that fails"
done
grep -qF 'left out, as this system does not offer them: xfsprogs' "$work/said" || fail "does not name xfsprogs"
echo cmake >"$work/broken"
if run --for build >"$work/said" 2>&1; then fail "ends well without cmake"; fi
: >"$work/broken"

make_machine "${things[@]}"
run zstd >/dev/null
[[ $(cat "$work/asked") == *" zstd" ]] || fail "a program that is an argument is not missed"

# Each purpose wants what it needs, and nothing else.
for group in ${all//,/ }; do
  of_group=() others=()
  for thing in "${things[@]}"; do
    if [[ ,${groups_of[$thing]}, == *",$group,"* ]]; then of_group+=("$thing"); else others+=("$thing"); fi
  done
  ((${#of_group[@]} > 0)) || fail "nothing is of group $group"
  make_machine "${of_group[@]}"
  run --for "$group" >/dev/null || fail "fails where only the things of group $group are"
  [[ ! -e $work/asked ]] || fail "for $group it asks for more: $(cat "$work/asked")"
  last=${of_group[-1]}
  make_machine "${of_group[@]:0:${#of_group[@]}-1}"
  run --for "$group" >/dev/null || fail "fails where $last is lacking"
  [[ $(cat "$work/asked") == *" ${package_of[$last]}"* ]] || fail "for $group it does not miss $last"
done
for package in clang llvm gtest mandoc; do
  if "$script" --list | awk '$2 ~ /demo/' | grep "$package"; then fail "the demo wants $package"; fi
done
if run --for nothing 2>"$work/refused"; then fail "takes a group that there is not"; fi
grep -q "no group 'nothing'" "$work/refused" || fail "does not name the group that there is not"
echo "deps: ${#things[@]} things"
