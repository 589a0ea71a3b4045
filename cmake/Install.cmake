# The destinations of `cmake --install`; the components are the Debian packages (cmake/Packages.cmake).
include(CMakePackageConfigHelpers)

set(config_dir ${CMAKE_INSTALL_LIBDIR}/cmake/Vellum)
if(TARGET vellum_shared)
  install(TARGETS vellum_shared EXPORT VellumSharedTargets
          LIBRARY COMPONENT libvellum1 NAMELINK_COMPONENT libvellum-dev)
  install(EXPORT VellumSharedTargets NAMESPACE Vellum:: DESTINATION ${config_dir} COMPONENT libvellum-dev)
endif()
install(TARGETS vellum EXPORT VellumStaticTargets ARCHIVE COMPONENT libvellum-dev)
install(EXPORT VellumStaticTargets NAMESPACE Vellum:: DESTINATION ${config_dir} COMPONENT libvellum-dev)
install(TARGETS vellum_privateer EXPORT VellumPrivateerTargets
        ARCHIVE COMPONENT libvellum-dev LIBRARY COMPONENT libvellum-dev)
install(EXPORT VellumPrivateerTargets NAMESPACE Vellum:: DESTINATION ${config_dir} COMPONENT libvellum-dev)
if(VELLUM_WITH_MPI)
  list(TRANSFORM VELLUM_MPI_FLAVOURS PREPEND vellum_mpi_ OUTPUT_VARIABLE mpi_targets)
  install(TARGETS ${mpi_targets} EXPORT VellumMpiTargets ARCHIVE COMPONENT libvellum-dev)
  install(EXPORT VellumMpiTargets NAMESPACE Vellum:: DESTINATION ${config_dir} COMPONENT libvellum-dev)
endif()
install(FILES tools/tsan.supp DESTINATION ${CMAKE_INSTALL_DATADIR}/vellum COMPONENT libvellum-dev)
install(DIRECTORY include/vellum include/privateer DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
        COMPONENT libvellum-dev FILES_MATCHING PATTERN "*.hpp" PATTERN "*.h")
if(TARGET vellum_cli)
  install(TARGETS vellum_cli RUNTIME COMPONENT vellum)
  # systemd finds units below /usr/lib and /usr/local/lib only, not in a library directory of one architecture.
  configure_file(packaging/systemd/vellum-replicate@.service.in vellum-replicate@.service @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/vellum-replicate@.service DESTINATION lib/systemd/system COMPONENT vellum)
endif()

configure_package_config_file(cmake/VellumConfig.cmake.in VellumConfig.cmake
                              INSTALL_DESTINATION ${config_dir})
write_basic_package_version_file(VellumConfigVersion.cmake COMPATIBILITY SameMajorVersion)
install(FILES ${PROJECT_BINARY_DIR}/VellumConfig.cmake ${PROJECT_BINARY_DIR}/VellumConfigVersion.cmake
        DESTINATION ${config_dir} COMPONENT libvellum-dev)

# A static library needs its own libraries on the consumer's link line (a C program the C++ runtime too); a shared
# one loads them itself. With both installed, the linker takes the shared one, and `pkg-config --static` adds the
# libraries of the static one; no Requires.private, which always requires their headers.
set(VELLUM_PC_REQUIRES "Requires: libzstd liblz4 libxxhash libcrypto fmt")
set(VELLUM_PC_MORE_LIBS " -lstdc++ -pthread")
set(VELLUM_PC_STATIC_LIBS " -lzstd -llz4 -lxxhash -lcrypto -lfmt")
if(VELLUM_WITH_PMEM)
  string(APPEND VELLUM_PC_REQUIRES " libpmem")
  string(APPEND VELLUM_PC_STATIC_LIBS " -lpmem")
endif()
string(APPEND VELLUM_PC_STATIC_LIBS " -lstdc++ -pthread")
if(TARGET vellum_shared)
  set(VELLUM_PC_REQUIRES "Libs.private:${VELLUM_PC_STATIC_LIBS}")
  set(VELLUM_PC_MORE_LIBS "")
endif()
# Relative to the file itself: the installed tree can move.
file(RELATIVE_PATH VELLUM_PC_PREFIX /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
foreach(pc vellum.pc vellum-privateer.pc)
  configure_file(cmake/${pc}.in ${pc} @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/${pc} DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig
          COMPONENT libvellum-dev)
endforeach()

# vellum-mpi.pc is for the first MPI that was found.
foreach(VELLUM_MPI_FLAVOUR IN LISTS VELLUM_MPI_FLAVOURS)
  if(NOT VELLUM_WITH_MPI)
    break()
  endif()
  set(VELLUM_MPI_LIBS ${VELLUM_MPI_${VELLUM_MPI_FLAVOUR}_LINK_LIBRARIES})
  string(JOIN " " VELLUM_MPI_LIBS ${VELLUM_MPI_LIBS})
  list(TRANSFORM VELLUM_MPI_${VELLUM_MPI_FLAVOUR}_INCLUDE_DIRS PREPEND -I OUTPUT_VARIABLE include_flags)
  string(JOIN " " VELLUM_MPI_INCLUDES ${include_flags})
  set(names vellum-mpi-${VELLUM_MPI_FLAVOUR}.pc)
  list(GET VELLUM_MPI_FLAVOURS 0 first)
  if(VELLUM_MPI_FLAVOUR STREQUAL first)
    list(APPEND names vellum-mpi.pc)
  endif()
  foreach(name IN LISTS names)
    configure_file(cmake/vellum-mpi.pc.in ${name} @ONLY)
    install(FILES ${PROJECT_BINARY_DIR}/${name} DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig
            COMPONENT libvellum-dev)
  endforeach()
endforeach()

# Section 3 describes functions; vellum-clang has its own package.
function(vellum_install_page page)
  cmake_path(GET page EXTENSION LAST_ONLY extension)
  cmake_path(GET page FILENAME name)
  if(name MATCHES "^vellum-clang" AND NOT VELLUM_PASS_VERSIONS)
    return()
  endif()
  string(SUBSTRING ${extension} 1 1 section)
  set(package vellum)
  if(section EQUAL 3)
    set(package libvellum-dev)
  elseif(name MATCHES "^vellum-clang")
    set(package vellum-clang)
  endif()
  if(VELLUM_PACKAGES)
    # Through its input: a page may be a link to another.
    execute_process(COMMAND gzip -9n INPUT_FILE ${page} OUTPUT_FILE ${PROJECT_BINARY_DIR}/man/${name}.gz
                    COMMAND_ERROR_IS_FATAL ANY)
    set(page ${PROJECT_BINARY_DIR}/man/${name}.gz)
  endif()
  install(FILES ${page} DESTINATION ${CMAKE_INSTALL_MANDIR}/man${section} COMPONENT ${package})
endfunction()

get_property(VELLUM_PASS_VERSIONS GLOBAL PROPERTY VELLUM_PASS_VERSIONS)
file(GLOB pages CONFIGURE_DEPENDS docs/man/*.[1357])
file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/man)
foreach(page IN LISTS pages)
  vellum_install_page(${page})
endforeach()
if(NOT VELLUM_PACKAGES)
  install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT libvellum-dev)
endif()

# Each shell looks for completions under a different name.
install(FILES completions/vellum.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions
        RENAME vellum COMPONENT vellum)
set(zsh_completions ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
if(VELLUM_PACKAGES)
  set(zsh_completions ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions)
endif()
install(FILES completions/_vellum DESTINATION ${zsh_completions} COMPONENT vellum)
install(FILES completions/vellum.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d COMPONENT vellum)
