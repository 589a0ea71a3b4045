import os

from conan import ConanFile
from conan.tools.build import can_run
from conan.tools.cmake import CMake, CMakeToolchain, cmake_layout


class VellumTest(ConanFile):
    settings = "os", "arch", "compiler", "build_type"
    generators = "CMakeDeps"

    def requirements(self):
        self.requires(self.tested_reference_str, run=True)  # with_cli: the program, too

    def layout(self):
        cmake_layout(self)

    def generate(self):
        toolchain = CMakeToolchain(self)
        toolchain.user_presets_path = False  # otherwise written into the sources
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def test(self):
        if not can_run(self):
            return
        options = self.dependencies["vellum"].options
        self.run(os.path.join(self.cpp.build.bindir, "hello"), env="conanrun")
        if not options.shared:
            self.run(os.path.join(self.cpp.build.bindir, "privateer") + " base", env="conanrun")
        if options.with_cli:
            self.run("vellum --version", env="conanrun")
