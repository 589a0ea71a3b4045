#!/usr/bin/env python3
"""Compares packaging/ and the manual pages with CMakeLists.txt and cmake/, which are the source.

The project's version: Debian's changelog, Spack's recipe, each manual page. The options: each recipe sets
VELLUM_SHARED and each optional part (vellum_part), and no other. The minimum versions of libraries. Exit status:
0, or 1 with a line for each difference.
"""
import glob
import os
import re
import sys

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
CONAN = "packaging/conan/conanfile.py"
SPACK = "packaging/spack/packages/vellum/package.py"
CHANGELOG = "packaging/debian/changelog"
SPACK_NAMES = {"libpmem": "pmdk", "libcurl": "curl", "fuse3": "libfuse"}


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def one(pattern, path):
    """The group of a pattern's first match in a file."""
    found = re.search(pattern, read(path), re.M)
    return found.group(1) if found else "nothing"


def version_differences(version):
    stated = {
        CHANGELOG: one(r"\Avellum \((.*)-\d+\)", CHANGELOG),
        SPACK: one(r'^    version\("([^"]*)"', SPACK),
    }
    for page in sorted(glob.glob("docs/man/*.[0-9]", root_dir=ROOT)):
        if not read(page).startswith(".so "):
            stated[page] = one(r'\A\.TH .* "Vellum ([^" ]*)" ', page)
    # Conan's recipe reads CMakeLists.txt; a version in the recipe would override it.
    if re.search(r"^    version = ", read(CONAN), re.M) or "def set_version" not in read(CONAN):
        yield f"{CONAN}: has a version of its own"
    for path, has in stated.items():
        if has != version:
            yield f"{path}: version {has}, CMakeLists.txt has {version}"


def option_differences():
    cmake = "\n".join(read(path) for path in (
        glob.glob("cmake/*.cmake", root_dir=ROOT) + glob.glob("src/**/CMakeLists.txt", root_dir=ROOT, recursive=True)))
    parts = set(re.findall(r"^\s*vellum_part\((\w+)", cmake, re.M)) | {"SHARED"}
    for recipe in (CONAN, SPACK):
        named = set(re.findall(r'"VELLUM_(\w+)"', read(recipe)))
        for name in sorted(parts - named):
            yield f"{recipe}: does not set VELLUM_{name}"
        for name in sorted(named - parts):
            yield f"{recipe}: sets VELLUM_{name}, which is no part"


def least_differences():
    cmake = read("cmake/Dependencies.cmake")
    least = dict(re.findall(r'"[A-Z0-9]+ (\w+) ([0-9.]+)"', cmake) + re.findall(r" (\w+)>=([0-9.]+)\)", cmake))
    least["cmake"] = one(r"cmake_minimum_required\(VERSION ([0-9.]+)\)", "CMakeLists.txt")
    if len(least) < 6:
        yield f"cmake/Dependencies.cmake: only {len(least)} least versions are found"
    for name, version in least.items():
        spack = SPACK_NAMES.get(name, name)
        has = one(rf'"{spack}@([0-9.]+):', SPACK)
        if has != version:
            yield f"{SPACK}: {spack} from {has}, CMake has {version}"
        has = one(rf'"{name}/\[>=([0-9.]+)', CONAN)
        if has not in (version, "nothing"):
            yield f"{CONAN}: {name} from {has}, CMake has {version}"


def main():
    version = one(r"^project\(Vellum VERSION ([0-9.]+)", "CMakeLists.txt")
    found = [*version_differences(version), *option_differences(), *least_differences()]
    for line in found:
        print(line)
    print(f"check-packaging: version {version}, {len(found)} differences")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
