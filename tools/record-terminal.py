#!/usr/bin/env python3
"""Records commands in a terminal: tools/record-terminal.py SCRIPT OUT.cast [DIRECTORY]

SCRIPT has a command on each line; lines with # are comments, which the recording shows, too. Each
runs in bash, on a terminal of 100 columns, in a new directory with a copy of the Python programs
beside SCRIPT; DIRECTORY, with the program vellum (build/release/bin by default), is first in PATH. A failing command ends the recording. OUT is an asciicast
of version 2, for `asciinema play` and web players. These commands have printed all of its text; only the
pace of typing is simulated.
"""

import json
import os
import pathlib
import pty
import select
import shutil
import struct
import subprocess
import sys
import tempfile
import termios
import fcntl
import time

COLUMNS, LINES = 100, 32
KEY_SECONDS, READ_SECONDS, MOST_WAIT_SECONDS = 0.03, 1.5, 0.5
PROMPT = "\x1b[32m$\x1b[0m "


class Cast:
    def __init__(self, out):
        self.out = out
        self.now = 0.0
        self.line({"version": 2, "width": COLUMNS, "height": LINES, "title": "Vellum"})

    def line(self, value):
        self.out.write(json.dumps(value, ensure_ascii=False) + "\n")

    def show(self, text, wait_seconds=0.0):
        self.now += wait_seconds
        self.line([round(self.now, 3), "o", text])

    def type(self, text):
        for key in text:
            self.show(key, KEY_SECONDS)
        self.show("\r\n", KEY_SECONDS)


def run(command, cast, environment, directory):
    """Runs one command on its own terminal; returns its exit status."""
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
    process = subprocess.Popen(["bash", "-c", command], stdin=follower, stdout=follower,
                               stderr=follower, env=environment, cwd=directory,
                               start_new_session=True)
    os.close(follower)
    pending, last = b"", time.monotonic()
    while True:
        select.select([leader], [], [])
        try:
            some = os.read(leader, 65536)
        except OSError:  # the last process has closed the terminal
            break
        pending += some
        try:
            text = pending.decode()
        except UnicodeDecodeError:  # the rest of a character has not arrived yet
            continue
        waited, last, pending = time.monotonic() - last, time.monotonic(), b""
        cast.show(text, min(waited, MOST_WAIT_SECONDS))
    status = process.wait()
    os.close(leader)  # after its end, which a hangup would make another one
    return status


def environment_for(programs):
    environment = {name: os.environ[name] for name in ("HOME", "PATH") if name in os.environ}
    environment["PATH"] = f"{programs}:{environment.get('PATH', '/usr/bin:/bin')}"
    environment |= {"TERM": "xterm-256color", "LC_ALL": "C.UTF-8", "XDG_CONFIG_HOME": "/nonexistent"}
    return environment


def main():
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    script, out = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    usual = pathlib.Path(__file__).resolve().parent.parent / "build/release/bin"
    programs = pathlib.Path(sys.argv[3] if len(sys.argv) == 4 else usual).resolve()
    if shutil.which("vellum", path=str(programs)) is None:
        sys.exit(f"record-terminal: there is no vellum in {programs}")
    with tempfile.TemporaryDirectory() as directory, open(out, "w", encoding="utf-8") as file:
        for program in script.parent.glob("*.py"):
            shutil.copy(program, directory)
        cast = Cast(file)
        for line in script.read_text(encoding="utf-8").splitlines():
            cast.show(PROMPT)
            cast.type(line)
            if line.startswith("#"):
                continue
            status = run(line, cast, environment_for(programs), directory)
            if status != 0:
                sys.exit(f"record-terminal: {line}: exit status {status}")
            cast.show("", READ_SECONDS)


if __name__ == "__main__":
    main()
