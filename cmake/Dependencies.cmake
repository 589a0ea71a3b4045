# The required dependencies of the library, and those of the optional parts (Parts.cmake).
option(VELLUM_STATIC_NEEDS "Link the libraries that the library needs statically, for the Python package" OFF)
set(fmt_target fmt::fmt)
if(VELLUM_STATIC_NEEDS)
  set(CMAKE_FIND_LIBRARY_SUFFIXES .a)
  set(OPENSSL_USE_STATIC_LIBS ON)
  set(fmt_target fmt::fmt-header-only)  # Debian has no static library
endif()
find_package(Threads REQUIRED)
find_package(PkgConfig QUIET)
vellum_require("pkg-config (pkgconf)" PKG_CONFIG_FOUND)
if(NOT PKG_CONFIG_FOUND)
  return()  # nothing else can be checked
endif()
find_package(OpenSSL QUIET COMPONENTS Crypto)
vellum_require("OpenSSL's libcrypto (libssl-dev)" OPENSSL_FOUND)
find_package(fmt QUIET)
vellum_require("fmt (libfmt-dev)" fmt_FOUND)
foreach(module "ZSTD zstd 1.5" "LZ4 lz4 1.9" "XXHASH xxhash 0.8")
  string(REPLACE " " ";" module ${module})
  list(GET module 0 prefix)
  list(GET module 1 name)
  list(GET module 2 least)
  pkg_check_modules(VELLUM_${prefix} QUIET IMPORTED_TARGET lib${name}>=${least})
  vellum_require("${name} ${least} (lib${name}-dev)" VELLUM_${prefix}_FOUND)
endforeach()
set(VELLUM_EXTERNAL_LIBS PkgConfig::VELLUM_ZSTD PkgConfig::VELLUM_LZ4 PkgConfig::VELLUM_XXHASH
                         OpenSSL::Crypto ${fmt_target} Threads::Threads)

find_path(VELLUM_CLI11_INCLUDE_DIR CLI/CLI.hpp)
find_path(VELLUM_JSON_INCLUDE_DIR nlohmann/json.hpp)
mark_as_advanced(VELLUM_CLI11_INCLUDE_DIR VELLUM_JSON_INCLUDE_DIR)
set(need_json VELLUM_JSON_INCLUDE_DIR "nlohmann-json (nlohmann-json3-dev)")
vellum_part(CLI "command line" VELLUM_CLI11_INCLUDE_DIR "CLI11 (libcli11-dev)" ${need_json})
set(need_cli VELLUM_WITH_CLI "command line")

pkg_check_modules(LMDB_PC QUIET IMPORTED_TARGET lmdb>=0.9.24)
vellum_part(LMDB "backup of a live LMDB" ${need_cli} LMDB_PC_FOUND "LMDB 0.9.24 (liblmdb-dev)")

# Only its headers: the library itself is loaded when a program names a remote on S3 (src/remote/s3). One of
# tools/build-libcurl.sh, or another with OpenSSL as its only dependency, is linked in instead.
set(VELLUM_LIBCURL "" CACHE PATH "Prefix of a static libcurl over OpenSSL to link, instead of loading the machine's")
if(VELLUM_LIBCURL)
  set(CURL_PC_FOUND TRUE)
  set(CURL_PC_INCLUDE_DIRS ${VELLUM_LIBCURL}/include)
  list(PREPEND VELLUM_EXTERNAL_LIBS ${VELLUM_LIBCURL}/lib/libcurl.a OpenSSL::SSL)
else()
  pkg_check_modules(CURL_PC QUIET libcurl>=7.85)
endif()
vellum_part(S3 "remotes on S3" CURL_PC_FOUND "libcurl 7.85 (libcurl4-openssl-dev)")

pkg_check_modules(FUSE_PC QUIET IMPORTED_TARGET fuse3>=3.14)
vellum_part(MOUNT "vellum mount" ${need_cli} FUSE_PC_FOUND "FUSE 3.14 (libfuse3-dev)")

pkg_check_modules(PNG_PC QUIET IMPORTED_TARGET libpng>=1.6)
vellum_part(PNG "vellum heat --png" ${need_cli} PNG_PC_FOUND "libpng 1.6 (libpng-dev)")

pkg_check_modules(MHD_PC QUIET IMPORTED_TARGET libmicrohttpd>=0.9.71)
vellum_part(WEB "vellum web" ${need_cli} MHD_PC_FOUND "libmicrohttpd 0.9.71 (libmicrohttpd-dev)")

pkg_check_modules(PMEM_PC QUIET IMPORTED_TARGET libpmem>=1.11)
vellum_part(PMEM "persistent memory" PMEM_PC_FOUND "libpmem 1.11 (libpmem-dev)")
if(VELLUM_WITH_PMEM)
  list(APPEND VELLUM_EXTERNAL_LIBS PkgConfig::PMEM_PC)
endif()

# For tests and benchmarks: -DLMDB1_ROOT=DIR, or in the environment, a directory of LMDB 1.0 with lmdb.h and liblmdb.a.
find_path(LMDB1_INCLUDE_DIR lmdb.h HINTS ${LMDB1_ROOT} ENV LMDB1_ROOT NO_DEFAULT_PATH)
find_file(LMDB1_LIBRARY liblmdb.a HINTS ${LMDB1_ROOT} ENV LMDB1_ROOT NO_DEFAULT_PATH)

# Metall (https://github.com/LLNL/metall) is headers only, and Debian has no package of it. Its dependents are built
# where it is found: -DMETALL_ROOT=DIR, or in the environment, for a checkout or an installation.
find_path(METALL_INCLUDE_DIR metall/metall.hpp HINTS ${METALL_ROOT} ENV METALL_ROOT PATH_SUFFIXES include)
find_path(VELLUM_BOOST_INCLUDE_DIR boost/interprocess/offset_ptr.hpp)
mark_as_advanced(METALL_INCLUDE_DIR VELLUM_BOOST_INCLUDE_DIR)
set(need_boost VELLUM_BOOST_INCLUDE_DIR "Boost (libboost-dev)")
vellum_part(METALL "tests, example, benchmark of Metall" METALL_INCLUDE_DIR "Metall (METALL_ROOT)" ${need_boost})

# MPI: a library for each implementation that is found. Debian has two, with separate pkg-config files; for another
# one, FindMPI runs the compiler wrapper.
set(VELLUM_MPI_FLAVOURS "")
foreach(flavour "openmpi ompi-c" "mpich mpich")
  string(REPLACE " " ";" flavour ${flavour})
  list(GET flavour 0 name)
  list(GET flavour 1 module)
  pkg_check_modules(VELLUM_MPI_${name} QUIET ${module})
  if(VELLUM_MPI_${name}_FOUND)
    list(APPEND VELLUM_MPI_FLAVOURS ${name})
  endif()
endforeach()
if(NOT VELLUM_MPI_FLAVOURS)
  find_package(MPI QUIET COMPONENTS C)
  if(MPI_C_FOUND)
    set(VELLUM_MPI_FLAVOURS other)
    set(VELLUM_MPI_other_INCLUDE_DIRS ${MPI_C_INCLUDE_DIRS})
    set(VELLUM_MPI_other_LINK_LIBRARIES ${MPI_C_LIBRARIES})
  endif()
endif()
vellum_part(MPI "versions over the ranks of MPI" VELLUM_MPI_FLAVOURS "MPI (libopenmpi-dev or libmpich-dev)")

# A project that includes this one needs the library only.
if(PROJECT_IS_TOP_LEVEL)
  find_package(GTest QUIET)
  foreach(library gtest gmock)  # Debian has two packages
    set(has_${library} FALSE)
    if(TARGET GTest::${library} AND TARGET GTest::gtest_main)
      set(has_${library} TRUE)
    endif()
  endforeach()
  vellum_part(TESTS "tests" has_gtest "GoogleTest (libgtest-dev)" has_gmock "GoogleMock (libgmock-dev)" ${need_boost})
  vellum_part(EXAMPLES "examples" ${need_boost})
  vellum_part(BENCH "benchmarks" ${need_boost} ${need_json})
endif()

# Not a part of this build: the presets `asan` and `tsan` are separate builds.
find_program(VELLUM_CLANG_19 clang-19)
mark_as_advanced(VELLUM_CLANG_19)
set(state "no, not found: clang 19 and its sanitizers (clang-19, libclang-rt-19-dev)")
if(VELLUM_SANITIZE)
  set(state "${VELLUM_SANITIZE}")
elseif(VELLUM_CLANG_19)
  execute_process(COMMAND ${VELLUM_CLANG_19} -print-resource-dir OUTPUT_VARIABLE resources
                  OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  file(GLOB runtimes ${resources}/lib/*/libclang_rt.asan*)
  if(runtimes)
    set(state "possible (presets asan, tsan)")
  endif()
endif()
vellum_summarise("sanitizers" "${state}")
set(state yes)
if(NOT VELLUM_SHARED OR VELLUM_SANITIZE)
  set(state no)
endif()
vellum_summarise("libvellum.so" "${state}")
