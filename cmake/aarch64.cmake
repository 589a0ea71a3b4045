# Toolchain for arm64 on a Debian or Ubuntu machine with another processor:
#
#   cmake -B build/aarch64 -G Ninja -DCMAKE_TOOLCHAIN_FILE=cmake/aarch64.cmake
#         -DVELLUM_AARCH64_ROOT=DIRECTORY
#
# DIRECTORY contains the arm64 packages of the libraries, unpacked (by `tools/aarch64.sh`). The programs run
# under qemu-aarch64-static where that is installed, tests included.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES VELLUM_AARCH64_ROOT)

set(CMAKE_FIND_ROOT_PATH ${VELLUM_AARCH64_ROOT})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(ENV{PKG_CONFIG_LIBDIR}
    ${VELLUM_AARCH64_ROOT}/usr/lib/aarch64-linux-gnu/pkgconfig:${VELLUM_AARCH64_ROOT}/usr/share/pkgconfig)
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${VELLUM_AARCH64_ROOT})

set(library_flags "-L${VELLUM_AARCH64_ROOT}/usr/lib/aarch64-linux-gnu \
-Wl,-rpath-link,${VELLUM_AARCH64_ROOT}/usr/lib/aarch64-linux-gnu")
foreach(language IN ITEMS C CXX)
  set(CMAKE_${language}_FLAGS_INIT
      "-isystem ${VELLUM_AARCH64_ROOT}/usr/include -isystem ${VELLUM_AARCH64_ROOT}/usr/include/aarch64-linux-gnu")
endforeach()
foreach(kind IN ITEMS EXE SHARED MODULE)
  set(CMAKE_${kind}_LINKER_FLAGS_INIT "${library_flags}")
endforeach()
find_program(VELLUM_QEMU_AARCH64 qemu-aarch64-static)
if(VELLUM_QEMU_AARCH64)
  set(CMAKE_CROSSCOMPILING_EMULATOR
      "${VELLUM_QEMU_AARCH64};-L;/usr/aarch64-linux-gnu;-E;LD_LIBRARY_PATH=${VELLUM_AARCH64_ROOT}/usr/lib/aarch64-linux-gnu")
endif()
set(VELLUM_CLANG OFF CACHE STRING "the compiler plugin is for x86-64")
