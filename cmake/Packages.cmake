# Debian packages, one for each component of cmake/Install.cmake: `make package` (tools/packages.sh).
#   libvellum1     libvellum.so.1, for programs
#   libvellum-dev  headers, libvellum.a, pkg-config, CMake, pages of section 3
#   vellum         the command line, the run library, its pages and completions
#   vellum-clang   the compiler's plugin and its runtime
# The program is linked to the static library, so `vellum` does not need libvellum1.
set(debian ${PROJECT_SOURCE_DIR}/packaging/debian)

# Debian's revision and the maintainer are those of the newest entry of Debian's changelog; its version is the
# project's (tools/check-packaging.py). To build for others, set your own address, as for Debian's tools: DEBFULLNAME
# and DEBEMAIL.
file(READ ${debian}/changelog changelog)
string(REGEX MATCH "^vellum \\([^)]*-([0-9]+)\\)" ignored "${changelog}")
set(CPACK_DEBIAN_PACKAGE_RELEASE ${CMAKE_MATCH_1})
string(REGEX MATCH "\n -- ([^\n]*>)" ignored "${changelog}")
set(CPACK_DEBIAN_PACKAGE_MAINTAINER "${CMAKE_MATCH_1}")
if(DEFINED ENV{DEBEMAIL} AND DEFINED ENV{DEBFULLNAME})
  set(CPACK_DEBIAN_PACKAGE_MAINTAINER "$ENV{DEBFULLNAME} <$ENV{DEBEMAIL}>")
endif()

# Each package contains its license and its changelog.
file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/debian)
foreach(log changelog.Debian=${debian}/changelog changelog=${PROJECT_SOURCE_DIR}/CHANGELOG.md)
  string(REPLACE = ";" log ${log})
  list(GET log 0 name)
  list(GET log 1 file)
  execute_process(COMMAND gzip -9nc ${file} OUTPUT_FILE ${PROJECT_BINARY_DIR}/debian/${name}.gz
                  COMMAND_ERROR_IS_FATAL ANY)
endforeach()
set(packages libvellum1 libvellum-dev vellum)
if(TARGET vellum_cards_runtime AND (TARGET vellum_pass_19 OR TARGET vellum_pass_16))
  list(APPEND packages vellum-clang)
endif()
foreach(package IN LISTS packages)
  install(FILES ${debian}/copyright ${PROJECT_BINARY_DIR}/debian/changelog.gz
                ${PROJECT_BINARY_DIR}/debian/changelog.Debian.gz
          DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${package} COMPONENT ${package})
endforeach()

# Overrides for lintian, with the reason.
foreach(package IN LISTS packages)
  if(EXISTS ${debian}/${package}.lintian-overrides)
    install(FILES ${debian}/${package}.lintian-overrides DESTINATION ${CMAKE_INSTALL_DATADIR}/lintian/overrides
            RENAME ${package} COMPONENT ${package})
  endif()
endforeach()

# The list of exported names, each with the version that introduced it, which dpkg-shlibdeps of other packages reads.
configure_file(${debian}/libvellum1.symbols debian/symbols COPYONLY)
file(WRITE ${PROJECT_BINARY_DIR}/debian/shlibs "libvellum ${VELLUM_ABI} libvellum1 (>= ${PROJECT_VERSION})\n")
file(WRITE ${PROJECT_BINARY_DIR}/debian/triggers "activate-noawait ldconfig\n")

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME vellum)
set(CPACK_PACKAGE_DIRECTORY ${PROJECT_BINARY_DIR}/packages)
set(CPACK_COMPONENTS_ALL ${packages})
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${PROJECT_BINARY_DIR}/lib)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
    OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)

# vellum_describe(<package> <section> <depends> <one line> <more lines>)
macro(vellum_describe package section depends line more)
  string(TOUPPER ${package} upper)
  set(CPACK_DEBIAN_${upper}_PACKAGE_NAME ${package})
  set(CPACK_DEBIAN_${upper}_PACKAGE_SECTION ${section})
  set(CPACK_DEBIAN_${upper}_PACKAGE_DEPENDS "${depends}")
  set(CPACK_COMPONENT_${upper}_DESCRIPTION "${line}\n${more}")
endmacro()
set(full_version ${PROJECT_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE})
vellum_describe(libvellum1 libs "" "versioned durable memory (library)"
  "Plain memory that is durable, failure-atomic and versioned; each version\ntakes the bytes that changed.")
set(CPACK_DEBIAN_LIBVELLUM1_PACKAGE_CONTROL_EXTRA ${PROJECT_BINARY_DIR}/debian/symbols
    ${PROJECT_BINARY_DIR}/debian/shlibs ${PROJECT_BINARY_DIR}/debian/triggers)
set(CPACK_DEBIAN_LIBVELLUM1_PACKAGE_MULTIARCH same)
vellum_describe(libvellum-dev libdevel "libvellum1 (= ${full_version})" "versioned durable memory (development)"
  "Headers for C++17 and C11, the static library, pkg-config and CMake files.")
set(CPACK_DEBIAN_LIBVELLUM-DEV_PACKAGE_SUGGESTS
    "libzstd-dev, liblz4-dev, libxxhash-dev, libssl-dev, libfmt-dev, libboost-dev")
# Loaded at the first use of a passphrase (src/base/crypto/argon2.cpp), and of S3
# (src/remote/s3/libcurl.hpp); no list of linked libraries has them.
set(CPACK_DEBIAN_LIBVELLUM1_PACKAGE_SUGGESTS libargon2-1)
set(libcurl "")
if(VELLUM_WITH_S3)
  set(libcurl "libcurl4t64 | libcurl4")
  set(CPACK_DEBIAN_LIBVELLUM1_PACKAGE_SUGGESTS "libargon2-1, libcurl4")
endif()
vellum_describe(vellum utils "${libcurl}" "versioned durable memory (command line)"
  "Inspects and changes stores, backs up LMDB, and runs unmodified programs\nthat read and write versions as files.")
vellum_describe(vellum-clang devel "clang-19 | clang-16" "versioned durable memory (compiler)"
  "clang with a pass that marks stores to tracked memory, and its runtime.")
include(CPack)
