"""Replaces a file's letters by b, in memory, and is killed when half of them are replaced."""
import mmap
import os
import signal
import sys

with open(sys.argv[1], "r+b") as file:
    letters = mmap.mmap(file.fileno(), 0)
    for i in range(len(letters)):
        if i == len(letters) // 2:
            os.kill(os.getpid(), signal.SIGKILL)
        letters[i:i + 1] = b"b"
    letters.flush()
