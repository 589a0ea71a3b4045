#!/usr/bin/env python3
"""Prints the failed tests of a JUnit report, each with the lines that show the reason; or the skipped tests.

tools/failed-tests.py [--skipped] REPORT

With --skipped, a line for each test that was not run, with the reason that it prints.

Reads the reports of ctest and pytest. When a log is truncated, this output remains: the name, then the message
of the test, of a sanitizer or of the C++ runtime.
"""

import re
import sys
import xml.etree.ElementTree as ElementTree

MOST_LINES = 10
MOST_CHARACTERS = 160
SAYS_WHY = re.compile(
    r"^E  |: Failure$|ERROR: |WARNING: \w+Sanitizer|runtime error: |terminate called|[Aa]ssertion"
)


def failures_of(case):
    """The report's text about the failure of a test; empty where it passed."""
    return [part for part in case if part.tag in ("failure", "error")]


def reasons(case):
    """From the first line that shows the reason of a failure; the last lines where none does."""
    texts = [part.text or part.get("message") or "" for part in failures_of(case)]
    texts += [part.text or "" for part in case if part.tag in ("system-out", "system-err")]
    lines = [line for line in "\n".join(texts).splitlines() if line.strip()]
    first = next((i for i, line in enumerate(lines) if SAYS_WHY.search(line)), -MOST_LINES)
    return [line[:MOST_CHARACTERS] for line in lines[first:][:MOST_LINES]]


def reason_to_skip(case):
    """GoogleTest prints it in the output, pytest in the message; None where the test was run."""
    skipped = case.find("skipped")
    if skipped is None and case.get("status") not in ("notrun", "disabled"):
        return None
    said = re.search(r": Skipped\n(.+)", case.findtext("system-out") or "")
    message = said.group(1) if said else "" if skipped is None else skipped.get("message") or ""
    return message.strip()[:MOST_CHARACTERS] or "no reason given"


def print_skipped(report):
    for case in report.iter("testcase"):
        reason = reason_to_skip(case)
        if reason:
            print(reason)


def main():
    path = sys.argv[-1]
    try:
        report = ElementTree.parse(path)
    except (OSError, ElementTree.ParseError) as error:
        sys.exit(f"failed-tests.py: {path}: {error}")
    if sys.argv[1] == "--skipped":
        print_skipped(report)
        return
    for case in report.iter("testcase"):
        if failures_of(case):
            print(f"failed: {case.get('name')} ({float(case.get('time') or 0):.0f} s)")
            print("".join(f"    {line}\n" for line in reasons(case)), end="")


if __name__ == "__main__":
    main()
