#!/usr/bin/env python3
"""Checks the includes of src against src/layers.txt: no include goes up, and no modules form a cycle. The files of
the Python package form no cycle by their imports, either. The command line includes no more of the library's
internal headers than CLI_INTERNALS.

A module is a header with its sources, and with the headers and sources whose names begin with its name and
an underscore. docs/architecture.md shows the same file. Exit status: 0, or 1 with a line for each violation.
"""
import ast
import collections
import os
import re
import sys

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
SOURCE = os.path.join(ROOT, "src")
LAYERS = os.path.join(SOURCE, "layers.txt")


# The headers below the public interface that the command line still includes. A command that needs none of them is
# better: what it does is then in the library too. The list only shrinks.
CLI_INTERNALS = """
format/wire/types.hpp
group/remote/restore.hpp
interfaces/atomic_file/journal_file.hpp
interfaces/lmdb/copy.hpp
interfaces/lmdb/lock_file.hpp
interfaces/lmdb/transaction_content.hpp
memory/kernel/kernel.hpp
memory/statistics/layout.hpp
region/api/import.hpp
region/api/snapshots_of.hpp
region/api/version_names.hpp
region/api/when_free.hpp
region/encode/encoding.hpp
remote/engine/url.hpp
remote/holds.hpp
remote/lazy/open_remote.hpp
remote/pull.hpp
remote/push.hpp
remote/repair_remote.hpp
remote/replicator.hpp
remote/session/known_remotes.hpp
remote/session/missing_pieces.hpp
remote/session/open_engine.hpp
remote/session/remote.hpp
remote/session/remote_keys.hpp
remote/session/session.hpp
remote/upkeep.hpp
store/stream/content.hpp
""".split()


def read_layers():
    """The folders, highest first."""
    with open(LAYERS, encoding="utf-8") as file:
        return [line.split()[0] for line in file if line.strip() and not line.startswith("#")]


def read_includes():
    """{file: [(line, included file)]}, both relative to src, of files in src only."""
    names = [
        os.path.relpath(os.path.join(folder, name), SOURCE)
        for folder, _, files in os.walk(SOURCE)
        for name in files
        if name.endswith((".c", ".cpp", ".h", ".hpp"))
    ]
    known = set(names)
    includes = {}
    for name in sorted(names):
        with open(os.path.join(SOURCE, name), encoding="utf-8") as file:
            found = ((i, re.match(r'#include "([^"]+)"', line)) for i, line in enumerate(file, 1))
            includes[name] = [(i, m.group(1)) for i, m in found if m and m.group(1) in known]
    return includes


def upward_includes(layers, includes):
    height = {folder: -i for i, folder in enumerate(layers)}
    for name in includes:
        folder = os.path.dirname(name)
        if folder not in height:
            yield f"src/{name}: src/layers.txt has no folder '{folder}'"
            continue
        for line, included in includes[name]:
            other = os.path.dirname(included)
            if height.get(other, height[folder]) > height[folder]:
                yield f"src/{name}:{line}: includes {included}, which is in a higher folder"


def cli_internals(includes):
    """Violations of CLI_INTERNALS, and its unused entries."""
    inside = ("store/", "region/", "remote/", "memory/", "format/", "group/", "interfaces/")
    used = collections.defaultdict(list)
    for name, lines in includes.items():
        if name.startswith("cli/"):
            for line, included in lines:
                if included.startswith(inside):
                    used[included].append(f"src/{name}:{line}")
    for included in sorted(used.keys() - set(CLI_INTERNALS)):
        yield f"{used[included][0]}: includes {included}: the command line is a client of the public headers"
    for included in sorted(set(CLI_INTERNALS) - used.keys()):
        yield f"tools/check-layers.py: no command includes {included}: remove it from CLI_INTERNALS"


def modules_of(includes):
    """{file: module}. The shortest stem in the folder that is a prefix of the file's own stem."""
    headers = {os.path.splitext(name)[0] for name in includes if name.endswith((".h", ".hpp"))}
    result = {}
    for name in includes:
        stem = os.path.splitext(name)[0]
        parts = stem.split("_")
        begins = ("_".join(parts[:i]) for i in range(1, len(parts)))
        owner = next((b for b in begins if b in headers), stem)
        result[name] = owner
    return result


def python_imports():
    """{module: modules that it imports} of the Python package, also inside functions and for types only."""
    package = os.path.join(ROOT, "python", "vellum")
    found = {}
    for folder, _, files in os.walk(package):
        for name in (name for name in files if name.endswith(".py")):
            path = os.path.join(folder, name)
            inside = os.path.relpath(path, package)[: -len(".py")].split(os.sep)
            with open(path, encoding="utf-8") as file:
                tree = ast.parse(file.read())
            found["/".join(inside)] = {
                "/".join([*inside[: len(inside) - node.level], *filter(None, (node.module or "").split(".")), *last])
                for node in ast.walk(tree)
                if isinstance(node, ast.ImportFrom) and node.level
                for last in ([], *([each.name] for each in node.names))
            }
    return {name: {each for each in others if each in found} - {name} for name, others in found.items()}


def cycles(includes):
    """Strongly connected modules, as sorted lists."""
    module = modules_of(includes)
    edges = collections.defaultdict(set)
    for name, lines in includes.items():
        edges[module[name]] |= {module[i] for _, i in lines} - {module[name]}
    return circles(edges)


def circles(edges):
    """Tarjan's strongly connected components of more than one node."""
    index, low, stack, found = {}, {}, [], []

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in sorted(edges[node]):
            if other not in index:
                visit(other)
            if other in stack:
                low[node] = min(low[node], low[other])
        if low[node] == index[node]:
            group = stack[stack.index(node):]
            del stack[stack.index(node):]
            if len(group) > 1:
                found.append(sorted(group))

    sys.setrecursionlimit(10_000)
    for node in sorted(edges):
        if node not in index:
            visit(node)
    return found


def main():
    layers, includes = read_layers(), read_includes()
    problems = list(upward_includes(layers, includes))
    problems += cli_internals(includes)
    problems += ["modules that include each other: " + ", ".join(group) for group in cycles(includes)]
    problems += [
        f"python/vellum: files that import each other: {', '.join(group)}" for group in circles(python_imports())
    ]
    with open(LAYERS, encoding="utf-8") as file:
        lines = [line for line in file if not line.startswith("#")]
    with open(os.path.join(ROOT, "docs", "architecture.md"), encoding="utf-8") as file:
        if "".join(lines) not in file.read():
            problems.append("docs/architecture.md: does not show src/layers.txt as it is")
    folders = {os.path.dirname(name) for name in includes}
    problems += [f"src/layers.txt: no folder src/{f}" for f in layers if f not in folders]
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
