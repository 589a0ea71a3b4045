"""Vellum for Conan 2: `conan create packaging/conan --build=missing`.

Without a remote, with the libraries of the system: `-pr:a default -pr:a packaging/conan/system.profile`.
"""
import os
import re

from conan import ConanFile
from conan.errors import ConanInvalidConfiguration
from conan.tools.build import check_min_cppstd
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain, cmake_layout
from conan.tools.files import copy, load, rm, rmdir
from conan.tools.gnu import PkgConfigDeps


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

    # The sources are those that the recipe lies in.
    def export_sources(self):
        for folder in ("cmake", "completions", "docs/man", "include", "packaging", "src"):
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
            self.requires("cli11/[>=2.2 <3]")
            self.requires("nlohmann_json/[>=3.11 <4]")

    def generate(self):
        toolchain = CMakeToolchain(self)
        toolchain.cache_variables["VELLUM_SHARED"] = bool(self.options.shared)
        toolchain.cache_variables["VELLUM_CLI"] = "ON" if self.options.with_cli else "OFF"
        for part in ("LMDB", "PMEM", "METALL", "TESTS", "EXAMPLES", "BENCH", "CLANG"):
            toolchain.cache_variables["VELLUM_" + part] = "OFF"
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
        self.cpp_info.components["vellum"].libs = ["vellum"]
        self.cpp_info.components["vellum"].set_property("cmake_target_name", "Vellum::vellum")
        self.cpp_info.components["vellum"].set_property("pkg_config_name", "vellum")
        self.cpp_info.components["vellum"].requires = [
            "zstd::zstd", "lz4::lz4", "xxhash::xxhash", "openssl::crypto", "fmt::fmt"]
        if self.options.with_cli:
            self.cpp_info.components["vellum"].requires += ["cli11::cli11", "nlohmann_json::nlohmann_json"]
        self.cpp_info.components["vellum"].system_libs = ["pthread"]
        if not self.options.shared:
            self.cpp_info.components["privateer"].libs = ["vellum_privateer"]
            self.cpp_info.components["privateer"].requires = ["vellum"]
            self.cpp_info.components["privateer"].set_property("cmake_target_name", "Vellum::privateer")
            self.cpp_info.components["privateer"].set_property("pkg_config_name", "vellum-privateer")
