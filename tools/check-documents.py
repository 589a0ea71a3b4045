#!/usr/bin/env python3
"""Checks every Markdown file that git tracks or would add, without a network.

    tools/check-documents.py [FILE...]

- A relative link leads to a file or folder of the repository, and a #fragment to a heading of that file. Links with a
  scheme (https:, mailto:) are skipped. python/README.md is PyPI's page and has no relative link.
- A row of a table has as many cells as its header.
- docs/security.md names tests, as `Suite.Test` or `Suite.*`, that exist.
- README.md fits two screens of 80 columns and 50 lines; LINES has the limits of other documents; the files that
  START_HERE.md lists have fewer than 2,000 lines together.

Prints one line for each problem and exits with 1 if there is one.
"""

import functools
import os
import re
import subprocess
import sys
import textwrap
import urllib.parse

LINK = re.compile(r"!?\[(?:[^\[\]]|\[[^\]]*\])*\]\(\s*<?([^()\s>]*(?:\([^()\s]*\)[^()\s>]*)*)>?(?:\s+\"[^\"]*\")?\s*\)")
REFERENCE = re.compile(r"^\s{0,3}\[[^\]]+\]:\s*<?(\S+?)>?\s*$")

LINES = {"docs/architecture.md": 200, "docs/measurements.md": 500}
COLUMNS, ROWS = 80, 2 * 50
ON_PYPI = "python/README.md"
NAMES_TESTS = "docs/security.md"


def prose_lines(text):
    """The numbered lines outside of fenced code, without `code spans`."""
    fence = None
    for number, line in enumerate(text.split("\n"), 1):
        start = re.match(r"\s*(```+|~~~+)", line)
        if fence is None and start:
            fence = start.group(1)
        elif fence is not None:
            if line.strip().startswith(fence):
                fence = None
        else:
            yield number, re.sub(r"(`+)(?:(?!\1).)*\1", lambda span: "`" * len(span.group(0)), line)


@functools.lru_cache(None)
def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


@functools.lru_cache(None)
def anchors(path):
    """The fragments of a file's headings, in GitHub's form."""
    found, fence = set(), False
    for line in read(path).split("\n"):
        if re.match(r"\s*(```|~~~)", line):
            fence = not fence
        heading = None if fence else re.match(r"#{1,6}\s+(.*?)\s*#*$", line)
        if heading:
            text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading.group(1)).lower()
            slug = re.sub(r"[^\w\- ]", "", text).replace(" ", "-")
            count = 1
            unique = slug
            while unique in found:
                unique, count = f"{slug}-{count}", count + 1
            found.add(unique)
    return found


def problem(source, link):
    """Why a link is broken, or None."""
    path, _, fragment = urllib.parse.unquote(link).partition("#")
    if re.match(r"[a-zA-Z][a-zA-Z0-9+.-]*:", link):
        return None
    if path.startswith("/"):
        return "an absolute path"
    if source == ON_PYPI:
        return "relative, on PyPI's page"
    target = os.path.normpath(os.path.join(os.path.dirname(source), path)) if path else source
    if target.startswith(".."):
        return "leads out of the repository"
    if not os.path.exists(target):
        return f"no such file: {target}"
    if fragment and (not target.endswith(".md") or fragment not in anchors(target)):
        return f"no heading #{fragment} in {target}"
    return None


def link_problems(source):
    found = []
    for number, line in prose_lines(read(source)):
        reference = REFERENCE.match(line)
        for link in LINK.findall(line) + ([reference.group(1)] if reference else []):
            why = problem(source, link)
            if why:
                found.append(f"{source}:{number}: broken link ({link}): {why}")
    return found


def table_problems(source):
    found, cells = [], None
    for number, line in prose_lines(read(source)):
        if not line.startswith("|"):
            cells = None
            continue
        count = len(re.findall(r"(?<!\\)\|", line.rstrip()))
        cells = cells or count
        if count != cells:
            found.append(f"{source}:{number}: {count - 1} cells, the header of the table has {cells - 1}")
    return found


def test_problems():
    """The tests that docs/security.md names and that no file of tests has."""
    listed = subprocess.run(["tools/sources.sh", "tests/*.cpp"], check=True, capture_output=True).stdout.decode()
    tests = set()
    for source in listed.split("\0")[:-1]:
        tests |= set(re.findall(r"^TEST(?:_[FP])?\((\w+), (\w+)\)", read(source), re.M))
    suites = {suite for suite, _ in tests}
    found = []
    for number, line in enumerate(read(NAMES_TESTS).split("\n"), 1):
        for suite, test in re.findall(r"`([A-Z]\w+)\.([A-Z]\w+|\*)`", line):
            if (suite, test) not in tests and not (test == "*" and suite in suites):
                found.append(f"{NAMES_TESTS}:{number}: there is no test {suite}.{test}")
    return found


def rows_of(text):
    """The rows of a rendered text on a terminal: paragraphs are filled, links are their words, a picture is a row."""
    rows, paragraph = 0, []
    prose = dict(prose_lines(text))
    lines = text.split("\n")
    for number, line in enumerate([*lines, ""], 1):
        words = re.sub(r"!?\[((?:[^\[\]]|\[[^\]]*\])*)\]\([^)]*\)", r"\1", line)
        stays = number not in prose or not line or line[0] in "|#"
        if stays or line.startswith("- "):
            rows += len(textwrap.wrap(" ".join(paragraph), COLUMNS))
            paragraph = []
        if not stays:
            paragraph.append(words)
        elif not re.match(r"```|\| ---", line) and number <= len(lines):
            rows += max(1, -(-len(words) // COLUMNS))
    return rows


def length_problems():
    found = []
    for path, most in LINES.items():
        lines = len(read(path).splitlines())
        if lines > most:
            found.append(f"{path}: {lines} lines, limit {most}")
    rows = rows_of(read("README.md").rstrip("\n"))
    if rows > ROWS:
        found.append(f"README.md: {rows} rows of {COLUMNS} columns, limit {ROWS}")
    listed = re.findall(r"^\| \d \| \[[^\]]*\]\(\.\./([^)]*)\)", read("docs/START_HERE.md"), re.M)
    lines = sum(len(read(path).splitlines()) for path in listed)
    if len(listed) != 7 or lines >= 2000:
        found.append(f"docs/START_HERE.md: {len(listed)} files with {lines} lines, limit 7 and 2,000")
    print(f"check-documents: README.md has {rows} rows of {COLUMNS} columns, START_HERE's files {lines} lines")
    return found


def markdown_files():
    listed = subprocess.run(["tools/sources.sh", "*.md"], check=True, capture_output=True).stdout.decode()
    return listed.split("\0")[:-1]


def main():
    os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
    files = sys.argv[1:] or markdown_files()
    found = [] if sys.argv[1:] else length_problems() + test_problems()
    for source in files:
        found += link_problems(source) + table_problems(source)
    for line in found:
        print(line)
    print(f"check-documents: {len(files)} files, {len(found)} problems")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
