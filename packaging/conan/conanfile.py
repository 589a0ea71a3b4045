"""Vellum for Conan 2: `conan create packaging/conan --build=missing`.

Without a remote, with the libraries of the system: `-nr -pr:a default -pr:a packaging/conan/system.profile`.
"""
import os
import re

from conan import ConanFile
from conan.errors import ConanInvalidConfiguration
from conan.tools.build import check_min_cppstd
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain, cmake_layout
from conan.tools.files import copy, load, rm, rmdir
from conan.tools.gnu import PkgConfigDeps

# (package, its component, the linker's name)
LIBRARIES = (
    ("zstd", "zstd", "zstd"),
    ("lz4", "lz4", "lz4"),
    ("xxhash", "xxhash", "xxhash"),
    ("openssl", "crypto", "crypto"),
    ("fmt", "fmt", "fmt"),
)


class VellumConan(ConanFile):
    name = "vellum"
    license = "MIT"
    description = "Versioned durable memory: plain pointers, atomic commits, cheap snapshots"
    topics = ("persistent-memory", "snapshots", "versioning")
    package_type = "library"
    settings = "os", "arch", "compiler", "build_type"
    options = {"shared": [True, False], "with_cli": [True, False]}
    default_options = {"shared": False, "with_cli": False, "fmt/*:header_only": False}

    def set_version(self):
        text = load(self, os.path.join(self._root(), "CMakeLists.txt"))
        self.version = re.search(r"project\(Vellum VERSION ([0-9.]+)", text).group(1)

    def _root(self):
        return os.path.normpath(os.path.join(self.recipe_folder, "..", ".."))

    # The sources of the checkout that contains the recipe.
    def export_sources(self):
        for folder in ("cmake", "completions", "docs/man", "include", "src"):
            copy(self, "*", os.path.join(self._root(), folder), os.path.join(self.export_sources_folder, folder))
        for file in ("CMakeLists.txt", "LICENSE"):
            copy(self, file, self._root(), self.export_sources_folder)

    def layout(self):
        cmake_layout(self)

    def validate(self):
        check_min_cppstd(self, 17)
        if self.settings.os != "Linux" or self.settings.arch != "x86_64":
            raise ConanInvalidConfiguration("Vellum runs on Linux on x86-64")

    def requirements(self):
        self.requires("zstd/[>=1.5 <1.6]")
        self.requires("lz4/[>=1.9 <2]")
        self.requires("xxhash/[>=0.8 <0.9]")
        self.requires("openssl/[>=3 <4]")
        self.requires("fmt/[>=9 <12]")
        if self.options.with_cli:
            # Headers that only the program includes.
            self.requires("cli11/[>=2.2 <3]", visible=False)
            self.requires("nlohmann_json/[>=3.11 <4]", visible=False)

    def generate(self):
        toolchain = CMakeToolchain(self)
        toolchain.cache_variables["VELLUM_SHARED"] = bool(self.options.shared)
        toolchain.cache_variables["VELLUM_CLI"] = "ON" if self.options.with_cli else "OFF"
        for part in ("VELLUM_LMDB", "VELLUM_S3", "VELLUM_MOUNT", "VELLUM_PNG", "VELLUM_WEB", "VELLUM_PMEM", "VELLUM_METALL", "VELLUM_MPI", "VELLUM_CLANG",
                     "VELLUM_TESTS", "VELLUM_EXAMPLES", "VELLUM_BENCH"):
            toolchain.cache_variables[part] = "OFF"
        toolchain.generate()
        CMakeDeps(self).generate()
        PkgConfigDeps(self).generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        copy(self, "LICENSE", self.source_folder, os.path.join(self.package_folder, "licenses"))
        CMake(self).install()
        # Conan describes the package itself.
        rmdir(self, os.path.join(self.package_folder, "lib", "cmake"))
        rmdir(self, os.path.join(self.package_folder, "lib", "pkgconfig"))
        if self.options.shared:
            # Privateer's interface uses more of Vellum than the shared library exports.
            rm(self, "libvellum*.a", os.path.join(self.package_folder, "lib"))

    def package_info(self):
        self.cpp_info.set_property("cmake_file_name", "Vellum")
        vellum = self.cpp_info.components["vellum"]
        vellum.set_property("cmake_target_name", "Vellum::vellum")
        vellum.set_property("pkg_config_name", "vellum")
        vellum.libs = ["vellum"]
        vellum.system_libs = ["pthread"]
        of_system = []
        for package, component, library in LIBRARIES:
            # A library of the system ([platform_requires]) is not a package of Conan.
            if package in self.dependencies:
                vellum.requires.append(f"{package}::{component}")
            else:
                vellum.system_libs.append(library)
                of_system.append(package)
        self.cpp_info.ignored_requires = of_system  # required by Conan 2.31 and later
        if not self.options.shared:
            privateer = self.cpp_info.components["privateer"]
            privateer.set_property("cmake_target_name", "Vellum::privateer")
            privateer.set_property("pkg_config_name", "vellum-privateer")
            privateer.libs = ["vellum_privateer"]
            privateer.requires = ["vellum"]
            privateer.includedirs = ["include", os.path.join("include", "privateer")]
