#!/usr/bin/env bash
# Builds the libcurl that is linked into the Python package's wheel: HTTP and HTTPS over OpenSSL, and nothing else,
# from the newest source package of this Debian, security patches included. apt-get checks its signatures. Debian's
# own libcurl.a needs about thirty more libraries. The result is build/libcurl/lib/libcurl.a with its headers, for
# -DVELLUM_LIBCURL=build/libcurl. It is built once: remove build/libcurl for a newer one. The script has its own
# lists of apt-get: it needs neither root nor a line of `deb-src` in /etc/apt.
set -euo pipefail
cd "$(dirname "$0")/.."

out=$PWD/build/libcurl
if [[ -e $out/lib/libcurl.a ]]; then
  exit 0
fi
if ! command -v apt-get >/dev/null; then
  echo "build-libcurl: not a Debian system: build a static libcurl with OpenSSL only, and set VELLUM_LIBCURL" >&2
  exit 1
fi
work=$out/work
rm -rf "$out"
mkdir -p "$work/sources" "$work/lists/partial" "$work/cache/archives/partial" "$work/curl"

# The machine's own package sources, for source packages.
for file in /etc/apt/sources.list /etc/apt/sources.list.d/*; do
  case $file in
    *.list) [[ -e $file ]] && sed -E 's/^deb(-src)?\s/deb-src /' "$file" >"$work/sources/${file##*/}" ;;
    *.sources) sed -E 's/^Types:.*/Types: deb-src/' "$file" >"$work/sources/${file##*/}" ;;
  esac
done
cat >"$work/apt.conf" <<EOF
Dir::Etc::SourceList "/dev/null";
Dir::Etc::SourceParts "$work/sources";
Dir::State::Lists "$work/lists";
Dir::Cache "$work/cache";
APT::Sandbox::User "";
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
EOF
apt-get -c "$work/apt.conf" update -q
(cd "$work/curl" && apt-get -c "$work/apt.conf" source -q --only-source curl)

cmake -S "$work"/curl/curl-*/ -B "$work/build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_INSTALL_PREFIX="$out" \
  -DCMAKE_INSTALL_LIBDIR=lib -DCMAKE_POSITION_INDEPENDENT_CODE=ON -DBUILD_SHARED_LIBS=OFF -DBUILD_CURL_EXE=OFF \
  -DBUILD_TESTING=OFF -DENABLE_MANUAL=OFF -DHTTP_ONLY=ON -DCURL_USE_OPENSSL=ON \
  -DCURL_DISABLE_OPENSSL_AUTO_LOAD_CONFIG=ON -DCURL_CA_BUNDLE=none -DCURL_CA_PATH=none -DCURL_ZLIB=OFF \
  -DUSE_LIBIDN2=OFF -DCURL_USE_LIBPSL=OFF -DCURL_USE_LIBSSH2=OFF -DENABLE_UNIX_SOCKETS=OFF
cmake --build "$work/build" --parallel "${VELLUM_JOBS:-$(nproc)}"
cmake --install "$work/build"
basename "$work"/curl/*.dsc .dsc | tr _ ' ' | tee "$out/version"
cp "$work"/curl/curl-*/COPYING "$out/copyright"
rm -rf "$work"
