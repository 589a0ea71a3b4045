# What `cmake --install` puts where.
include(CMakePackageConfigHelpers)

set(config_dir ${CMAKE_INSTALL_LIBDIR}/cmake/Vellum)
install(TARGETS vellum vellum_privateer EXPORT VellumTargets)
install(EXPORT VellumTargets NAMESPACE Vellum:: DESTINATION ${config_dir})
install(DIRECTORY include/vellum include/privateer DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
        FILES_MATCHING PATTERN "*.hpp" PATTERN "*.h")
if(TARGET vellum_cli)
  install(TARGETS vellum_cli)
endif()

configure_package_config_file(cmake/VellumConfig.cmake.in VellumConfig.cmake
                              INSTALL_DESTINATION ${config_dir})
write_basic_package_version_file(VellumConfigVersion.cmake COMPATIBILITY SameMajorVersion)
install(FILES ${PROJECT_BINARY_DIR}/VellumConfig.cmake ${PROJECT_BINARY_DIR}/VellumConfigVersion.cmake
        DESTINATION ${config_dir})

# A static library needs its own libraries on the consumer's link line (a C program the C++ runtime
# too), a shared one brings them along.
set(VELLUM_PC_REQUIRES "Requires: libzstd liblz4 libxxhash libcrypto fmt")
if(VELLUM_WITH_PMEM)
  string(APPEND VELLUM_PC_REQUIRES " libpmem")
endif()
set(VELLUM_PC_MORE_LIBS " -lstdc++ -pthread")
if(BUILD_SHARED_LIBS)
  set(VELLUM_PC_REQUIRES "")
  set(VELLUM_PC_MORE_LIBS "")
endif()
# Relative to the file itself, so that the installed tree can move.
file(RELATIVE_PATH VELLUM_PC_PREFIX /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
foreach(pc vellum.pc vellum-privateer.pc)
  configure_file(cmake/${pc}.in ${pc} @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/${pc} DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endforeach()

install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
foreach(section 1 3 5 7)
  file(GLOB pages CONFIGURE_DEPENDS docs/man/*.${section})
  install(FILES ${pages} DESTINATION ${CMAKE_INSTALL_MANDIR}/man${section})
endforeach()

# Each shell looks for completions under a name of its own.
install(FILES completions/vellum.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions
        RENAME vellum)
install(FILES completions/_vellum DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
