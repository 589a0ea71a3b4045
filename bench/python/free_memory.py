"""Free memory that the next measurement can use at memory's speed.

A virtual machine's host reclaims the memory that its guest has freed (free page reporting, balloons). The first
touch of such a page then waits for the host: 2.5 to 4 s per GiB instead of 0.1 s. Therefore a process that ends
first touches as much memory as the measurement is about to allocate, including the page cache.
"""

import mmap
import subprocess
import sys

PIECE_BYTES = 128 << 20
LEFT_BYTES = 1 << 30  # for others; nothing is evicted from memory
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
