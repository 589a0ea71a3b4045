#!/usr/bin/env bash
# Installs a minimal Debian in a directory, like a new machine: apt, and the named packages. It uses this machine's
# mirror, proxy and certificates.
#   tools/debian-tree.sh SUITE DIRECTORY [PACKAGE...]    SUITE: bookworm (Debian 12), trixie (13)
#   tools/debian-tree.sh --enter DIRECTORY COMMAND...    runs a command in it
# Exit status 77: not possible here (not root, no debootstrap, no mirror, no namespaces). Mounts and processes of a
# command in it end with it: it has its own namespaces.
set -euo pipefail

cannot() {
  echo "debian-tree: $*" >&2
  exit 77
}
((EUID == 0)) || cannot "chroot(8) and debootstrap(8) take root"

enter() {
  local tree=$1
  shift
  # shellcheck disable=SC2016 # for the inner shell
  unshare --mount --pid --fork --kill-child -- sh -eu -c '
    tree=$1
    shift
    mount --make-rprivate /
    mount -t proc proc "$tree/proc"
    mount --rbind /sys "$tree/sys"
    mount --rbind /dev "$tree/dev"
    mount -t tmpfs tmpfs "$tree/dev/shm"
    exec env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 \
      ${http_proxy:+"http_proxy=$http_proxy"} ${https_proxy:+"https_proxy=$https_proxy"} \
      chroot "$tree" "$@"' sh "$tree" "$@"
}

if [[ ${1-} == --enter ]]; then
  shift
  enter "$@"
  exit
fi

suite=${1:?SUITE} tree=${2:?DIRECTORY}
shift 2
command -v debootstrap >/dev/null || cannot "there is no debootstrap"
unshare --mount --pid --fork true 2>/dev/null || cannot "there may be no namespaces here"
mirror=${VELLUM_DEBIAN_MIRROR-}
if [[ -z $mirror ]]; then
  mirror=$(apt-get indextargets --format '$(ORIGIN) $(SITE)' 'Created-By: Packages' 2>/dev/null |
    awk '$1 == "Debian" && !found { print $2; found = 1 }') || true
fi
mirror=${mirror:-http://deb.debian.org/debian}
packages=$(IFS=,; echo "$*")
debootstrap --variant=minbase ${packages:+"--include=$packages"} "$suite" "$tree" "$mirror" >"$tree.log" 2>&1 || {
  tail -n 5 "$tree.log" >&2
  cannot "debootstrap failed: $suite from $mirror"
}
rm -f "$tree.log"
rm -f "$tree"/var/cache/apt/archives/*.deb # only later downloads remain
apt-config dump | grep -E '^Acquire::((http|https|ftp)::|Check-|Retries)' >"$tree/etc/apt/apt.conf.d/90machine" || true
for scheme in http https; do
  name=${scheme}_proxy
  if [[ -n ${!name-} ]]; then echo "Acquire::$scheme::Proxy \"${!name}\";" >>"$tree/etc/apt/apt.conf.d/90machine"; fi
done
for file in /etc/resolv.conf /etc/hosts /etc/pip.conf /etc/ssl/certs/ca-certificates.crt; do
  if [[ -e $file && -d $tree${file%/*} ]]; then cp -L "$file" "$tree$file"; fi
done
