#!/usr/bin/env python3
"""Holds code, comments and documents to the words of docs/glossary.md.

- No word of WORDS appears. Each has a standard term, which the line printed suggests.
- The first line of a header of src names its path.

Exit status: 0, or 1 with a line for each violation.
"""
import os
import re
import subprocess
import sys

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

# A pattern, and the words to use.
WORDS = {
    r"away": "remote, removed, or nothing",
    r"elsewhere": "name the place",
    r"aside": "staging, separate",
    r"dear(?:er|est)?": "expensive, large",
    r"stands? on": "is based on, depends on",
    r"anew": "again, new",
    r"is told": "is reported to, gets",
    r"nobody tells": "is not reported",
    r"tells? of": "reports, lists",
    r"k(?:At)?(?:Most|Least)(?:[A-Z]\w*)?": "kMax, kMin",
    r"mended": "repaired",
}
PATTERN = re.compile("|".join(rf"\b(?P<w{i}>{pattern})\b" for i, pattern in enumerate(WORDS)))
FILES = ["src/*", "include/*", "tests/*", "bench/*", "fuzz/*", "examples/*", "python/*", "rust/*", "docs/*", "tools/*", "cmake/*",
         "README.md", "CONTRIBUTING.md", "SECURITY.md"]
# Recordings show the output of their day, stores keep their names, and this file has the list.
EXEMPT = ("docs/recordings/", "tests/golden/", "tools/check-words.py")


def sources():
    listed = subprocess.run(["tools/sources.sh", *FILES], cwd=ROOT, check=True, capture_output=True, text=True)
    return [name for name in listed.stdout.split("\0") if name]


def text_of(name):
    try:
        with open(os.path.join(ROOT, name), encoding="utf-8") as file:
            return file.read()
    except UnicodeDecodeError:  # no text
        return ""


def problems_of(name):
    text = text_of(name)
    if not name.startswith(EXEMPT):
        for number, line in enumerate(text.splitlines(), 1):
            for found in PATTERN.finditer(line):
                better = list(WORDS.values())[int(found.lastgroup[1:])]
                yield f"{name}:{number}: '{found.group()}' is no word of this project (docs/glossary.md): {better}"
    if name.startswith("src/") and name.endswith((".hpp", ".h")):
        path, first = name[len("src/"):], text.split("\n", 1)[0]
        if not first.startswith(f"// {path}") and not first.startswith(f"/* {path}"):
            yield f"{name}:1: the first line does not begin with '// {path}'"


def main():
    problems = [problem for name in sources() for problem in problems_of(name)]
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
