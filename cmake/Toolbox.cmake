# Shared settings and small functions of all folders.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 11)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
# The same objects go into the static library, the shared one and the language bindings.
set(CMAKE_POSITION_INDEPENDENT_CODE ON)

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "Build type" FORCE)
endif()

add_compile_options(-Wall -Wextra -Wconversion)
if(VELLUM_WERROR)
  add_compile_options(-Werror)
endif()
if(VELLUM_SANITIZE)
  add_compile_options(-fsanitize=${VELLUM_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${VELLUM_SANITIZE})
endif()

if(PROJECT_IS_TOP_LEVEL)
  find_program(VELLUM_CCACHE ccache)
  if(VELLUM_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
    set(launcher ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros CCACHE_DEPEND=1
                 ${VELLUM_CCACHE})
    set(CMAKE_C_COMPILER_LAUNCHER ${launcher})
    set(CMAKE_CXX_COMPILER_LAUNCHER ${launcher})
  endif()
  find_program(VELLUM_MOLD mold)
  if(VELLUM_MOLD)
    # Where segments share pages and one ends just before the end of a page, mold 1.10 begins RELRO on an unmapped
    # page, and ld.so does not start the program; or mold never finishes the layout of the file.
    add_link_options(-fuse-ld=mold -Wl,-z,norelro -Wl,-z,separate-loadable-segments)
  endif()
endif()

# Compiles the files of a target together, `batch` at a time.
function(vellum_compile_together target batch)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${VELLUM_UNITY} UNITY_BUILD_BATCH_SIZE ${batch})
  if(VELLUM_UNITY AND CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    # It takes an included file for a header, where members of hidden types would be a mistake.
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-Wno-subobject-linkage>)
  endif()
endfunction()

# If VELLUM_PCH requests it, targets of one group share the precompiled headers that are listed for its first
# target.
function(vellum_precompile target group)
  if(NOT VELLUM_PCH MATCHES "^(all|${group})$")
    return()
  endif()
  get_property(first GLOBAL PROPERTY VELLUM_PCH_OF_${group})
  if(first)
    target_precompile_headers(${target} REUSE_FROM ${first})
  else()
    target_precompile_headers(${target} PRIVATE ${ARGN})
    set_property(GLOBAL PROPERTY VELLUM_PCH_OF_${group} ${target})
  endif()
endfunction()

set(VELLUM_PCH_STANDARD
    <algorithm> <array> <atomic> <chrono> <cstring> <filesystem> <functional> <map> <memory> <mutex>
    <optional> <random> <set> <span> <string> <thread> <unordered_map> <vector>)
