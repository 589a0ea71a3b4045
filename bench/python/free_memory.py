"""Frees memory, so that the next measurement gets it at full speed.

A virtual machine's host takes back what its guest has freed (free page reporting, balloons). The first touch of such
a page then waits for the host: 2.5 to 4 s a GiB were seen, beside 0.1 s. What a measurement is about to
allocate, also for the page cache, is therefore touched before, in a process that ends.
"""

import mmap
import subprocess
import sys

PIECE_BYTES = 128 << 20
LEFT_BYTES = 1 << 30  # for other programs; evicts nothing
MADV_POPULATE_WRITE = 23  # Linux 5.14


def touch(mib):
    subprocess.run([sys.executable, __file__, str(mib)], check=True)


def free_bytes():
    with open("/proc/meminfo", encoding="ascii") as lines:
        return next(int(line.split()[1]) << 10 for line in lines if line.startswith("MemFree:"))


def main():
    pieces = []
    while len(pieces) * PIECE_BYTES < int(sys.argv[1]) << 20 and free_bytes() > LEFT_BYTES + PIECE_BYTES:
        pieces.append(mmap.mmap(-1, PIECE_BYTES, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS))
        pieces[-1].madvise(mmap.MADV_HUGEPAGE)
        pieces[-1].madvise(MADV_POPULATE_WRITE)


if __name__ == "__main__":
    main()
