# Metall (https://github.com/LLNL/metall) is headers only, and no package of Debian's. What needs it is built
# where it is found: -DMETALL_ROOT=DIR, or in the environment, for a checkout or an installation.
find_path(METALL_INCLUDE_DIR metall/metall.hpp HINTS ${METALL_ROOT} ENV METALL_ROOT PATH_SUFFIXES include)
find_path(VELLUM_BOOST_INCLUDE_DIR boost/version.hpp)
mark_as_advanced(METALL_INCLUDE_DIR VELLUM_BOOST_INCLUDE_DIR)
if(METALL_INCLUDE_DIR AND VELLUM_BOOST_INCLUDE_DIR)
  add_library(vellum_metall INTERFACE)
  target_include_directories(vellum_metall SYSTEM INTERFACE ${METALL_INCLUDE_DIR} ${VELLUM_BOOST_INCLUDE_DIR})
  target_link_libraries(vellum_metall INTERFACE vellum)
else()
  message(STATUS "Metall: not found (METALL_ROOT): its tests, example and benchmark are not built")
endif()
