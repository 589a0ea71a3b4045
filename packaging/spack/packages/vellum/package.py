# A repository for Spack: `spack repo add packaging/spack`, then, as there is no release yet,
# `spack dev-build vellum@0.1.0` in a checkout.
from spack.package import *


class Vellum(CMakePackage):
    """Versioned durable memory: plain pointers, atomic commits, cheap snapshots."""

    license("MIT")
    version("0.1.0")

    variant("shared", default=True, description="Build libvellum.so in addition to the static library")
    variant("cli", default=True, description="Build the command line and the run library")
    variant("lmdb", default=False, when="+cli", description="Backup of a live LMDB")
    variant("s3", default=True, description="Remotes on S3")
    variant("mount", default=False, when="+cli", description="vellum mount, by FUSE")
    variant("png", default=False, when="+cli", description="vellum heat --png")
    variant("web", default=False, when="+cli", description="vellum web")
    variant("pmem", default=False, description="Persistent memory through libpmem")
    variant("clang", default=False, description="Build vellum-clang, for LLVM 19 or 16")
    variant("metall", default=False, description="Depend on Metall, for vellum/metall.hpp")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("cmake@3.25:", type="build")
    depends_on("ninja", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("zstd@1.5:")
    depends_on("lz4@1.9:")
    depends_on("xxhash@0.8:")
    depends_on("openssl@3:")
    depends_on("fmt@9:")
    depends_on("cli11@2.2:", when="+cli", type="build")
    depends_on("nlohmann-json@3.11:", when="+cli", type="build")
    depends_on("lmdb@0.9.24:", when="+lmdb")
    depends_on("curl@7.85:", when="+s3")
    depends_on("libfuse@3.14:", when="+mount")
    depends_on("libpng@1.6:", when="+png")
    depends_on("libmicrohttpd@0.9.71:", when="+web")
    depends_on("pmdk@1.11:", when="+pmem")
    depends_on("llvm@19", when="+clang")
    depends_on("metall", when="+metall", type=("build", "link", "run"))
    depends_on("boost@1.74:", when="+metall", type=("build", "link", "run"))

    conflicts("platform=darwin", msg="Vellum runs on Linux")
    conflicts("target=aarch64:", msg="Only x86-64 has been tried")
    generator("ninja")

    def cmake_args(self):
        return [
            self.define("VELLUM_SHARED", self.spec.satisfies("+shared")),
            self.define("VELLUM_CLI", self.spec.satisfies("+cli")),
            self.define("VELLUM_LMDB", self.spec.satisfies("+lmdb")),
            self.define("VELLUM_S3", self.spec.satisfies("+s3")),
            self.define("VELLUM_MOUNT", self.spec.satisfies("+mount")),
            self.define("VELLUM_PNG", self.spec.satisfies("+png")),
            self.define("VELLUM_WEB", self.spec.satisfies("+web")),
            self.define("VELLUM_PMEM", self.spec.satisfies("+pmem")),
            self.define("VELLUM_CLANG", self.spec.satisfies("+clang")),
            # Used by Metall, the tests, an example and a benchmark; its interface is a header in
            # any case.
            self.define("VELLUM_METALL", False),
            self.define("VELLUM_MPI", False),
            self.define("VELLUM_TESTS", False),
            self.define("VELLUM_EXAMPLES", False),
            self.define("VELLUM_BENCH", False),
        ]
