#!/usr/bin/env python3
"""Checks the links of every Markdown file that git tracks or would add, without a network.

    tools/check-links.py [FILE...]

A relative link must lead to a file or folder of the repository, and a #fragment to a heading of that
file. Links with a scheme (https:, mailto:) are skipped. Prints one line for each broken link and exits
with 1 if there is one.
"""

import functools
import os
import re
import subprocess
import sys
import urllib.parse

LINK = re.compile(r"!?\[(?:[^\[\]]|\[[^\]]*\])*\]\(\s*<?([^()\s>]*(?:\([^()\s]*\)[^()\s>]*)*)>?(?:\s+\"[^\"]*\")?\s*\)")
REFERENCE = re.compile(r"^\s{0,3}\[[^\]]+\]:\s*<?(\S+?)>?\s*$")


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
    target = os.path.normpath(os.path.join(os.path.dirname(source), path)) if path else source
    if target.startswith(".."):
        return "leads out of the repository"
    if not os.path.exists(target):
        return f"no such file: {target}"
    if fragment and (not target.endswith(".md") or fragment not in anchors(target)):
        return f"no heading #{fragment} in {target}"
    return None


def markdown_files():
    listed = subprocess.run(["tools/sources.sh", "*.md"], check=True, capture_output=True).stdout.decode()
    return listed.split("\0")[:-1]


def main():
    os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
    files, links, broken = sys.argv[1:] or markdown_files(), 0, 0
    for source in files:
        for number, line in prose_lines(read(source)):
            reference = REFERENCE.match(line)
            for link in LINK.findall(line) + ([reference.group(1)] if reference else []):
                links += 1
                why = problem(source, link)
                if why:
                    broken += 1
                    print(f"{source}:{number}: broken link ({link}): {why}")
    print(f"check-links: {links} links in {len(files)} files, {broken} broken")
    sys.exit(1 if broken else 0)


if __name__ == "__main__":
    main()
