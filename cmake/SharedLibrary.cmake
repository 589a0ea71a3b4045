# libvellum.so: the same objects as in the static library. It exports the names of the public headers, which
# src/interfaces/libvellum.map lists (tools/exports.sh), and nothing else. Its ABI number is not a version: it
# changes when programs have to be recompiled.
set(VELLUM_ABI 1)
set(exports ${PROJECT_SOURCE_DIR}/src/interfaces/libvellum.map)

add_library(vellum_shared SHARED)
foreach(layer IN LISTS present_layers)
  target_sources(vellum_shared PRIVATE $<TARGET_OBJECTS:vellum_${layer}>)
endforeach()
target_include_directories(vellum_shared PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
                                                $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_link_libraries(vellum_shared PRIVATE ${VELLUM_EXTERNAL_LIBS})
target_compile_features(vellum_shared INTERFACE cxx_std_17)
set_target_properties(vellum_shared PROPERTIES
  OUTPUT_NAME vellum LINKER_LANGUAGE CXX VERSION ${VELLUM_ABI}.${PROJECT_VERSION} SOVERSION ${VELLUM_ABI}
  LINK_DEPENDS ${exports})
target_link_options(vellum_shared PRIVATE -Wl,--version-script=${exports} -Wl,--no-undefined -Wl,-z,now)
