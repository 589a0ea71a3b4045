# What the library cannot be built without, and what the optional parts need (Parts.cmake).
find_package(Threads REQUIRED)
find_package(OpenSSL REQUIRED COMPONENTS Crypto)
find_package(fmt REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(VELLUM_ZSTD REQUIRED IMPORTED_TARGET libzstd>=1.5)
pkg_check_modules(VELLUM_LZ4 REQUIRED IMPORTED_TARGET liblz4>=1.9)
pkg_check_modules(VELLUM_XXHASH REQUIRED IMPORTED_TARGET libxxhash>=0.8)
set(VELLUM_EXTERNAL_LIBS PkgConfig::VELLUM_ZSTD PkgConfig::VELLUM_LZ4 PkgConfig::VELLUM_XXHASH
                         OpenSSL::Crypto fmt::fmt Threads::Threads)

find_path(VELLUM_CLI11_INCLUDE_DIR CLI/CLI.hpp)
find_path(VELLUM_JSON_INCLUDE_DIR nlohmann/json.hpp)
mark_as_advanced(VELLUM_CLI11_INCLUDE_DIR VELLUM_JSON_INCLUDE_DIR)
vellum_part(CLI "command line" "CLI11 and nlohmann-json (libcli11-dev, nlohmann-json3-dev)"
            VELLUM_CLI11_INCLUDE_DIR VELLUM_JSON_INCLUDE_DIR)

pkg_check_modules(LMDB_PC QUIET IMPORTED_TARGET lmdb>=0.9.24)
vellum_part(LMDB "backup of a live LMDB" "LMDB 0.9.24 (liblmdb-dev)" VELLUM_WITH_CLI LMDB_PC_FOUND)

pkg_check_modules(PMEM_PC QUIET IMPORTED_TARGET libpmem>=1.11)
vellum_part(PMEM "persistent memory" "libpmem 1.11 (libpmem-dev)" PMEM_PC_FOUND)
if(VELLUM_WITH_PMEM)
  list(APPEND VELLUM_EXTERNAL_LIBS PkgConfig::PMEM_PC)
endif()

# Metall (https://github.com/LLNL/metall) is headers only, and no package of Debian's. What needs it is built
# where it is found: -DMETALL_ROOT=DIR, or in the environment, for a checkout or an installation.
find_path(METALL_INCLUDE_DIR metall/metall.hpp HINTS ${METALL_ROOT} ENV METALL_ROOT PATH_SUFFIXES include)
find_path(VELLUM_BOOST_INCLUDE_DIR boost/interprocess/offset_ptr.hpp)
mark_as_advanced(METALL_INCLUDE_DIR VELLUM_BOOST_INCLUDE_DIR)
vellum_part(METALL "tests, example, benchmark of Metall" "Metall (METALL_ROOT) and Boost"
            METALL_INCLUDE_DIR VELLUM_BOOST_INCLUDE_DIR)

# A project that includes this one wants the library.
set(is_top_level ${PROJECT_IS_TOP_LEVEL})
find_package(GTest QUIET)
vellum_part(TESTS "tests" "GoogleTest and Boost (libgtest-dev, libgmock-dev, libboost-dev)"
            is_top_level GTest_FOUND VELLUM_BOOST_INCLUDE_DIR)
vellum_part(EXAMPLES "examples" "Boost (libboost-dev)" is_top_level VELLUM_BOOST_INCLUDE_DIR)
vellum_part(BENCH "benchmarks" "Boost and nlohmann-json (libboost-dev, nlohmann-json3-dev)" is_top_level
            VELLUM_BOOST_INCLUDE_DIR VELLUM_JSON_INCLUDE_DIR)
