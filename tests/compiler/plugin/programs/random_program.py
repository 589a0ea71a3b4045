#!/usr/bin/env python3
"""Writes a C program of random functions: loops, branches and stores of every width to tracked memory,
with commits in between. usage: random_program.py SEED"""
import random
import sys

FUNCTIONS = 40
TYPES = ["uint8_t", "uint16_t", "uint32_t", "uint64_t", "float", "double"]
HEAD = """#include <stdint.h>
#include <string.h>
#include "tracked.h"
static uint64_t src[600];
static int commits;  /* left to this call of a function: each takes microseconds */
"""
# Addresses: a and b are random and may overlap, q moves through the 4 KiB behind a.
MAIN = """int main(void) {
  for (unsigned i = 0; i < 600; i++)
    src[i] = ((uint64_t)tracked_random(1u << 31) << 20 ^ tracked_random(1u << 31)) | 0x0101010101010101ull;
  for (unsigned round = 0; round < 6; round++)
    for (unsigned i = 0; i < FUNCTIONS; i++) {
      const char name[4] = {'f', (char)('0' + i / 10), (char)('0' + i % 10), 0};
      commits = 10;
      char* a = tracked_begin() + tracked_random(2000);
      all[i](a, a + tracked_random(30000), tracked_random(60) + 1, tracked_random(9) + 1);
      tracked_check(name, 0);
    }
  return tracked_end();
}
"""
pick = random.Random(int(sys.argv[1]))


class Function:
    def __init__(self):
        self.counters = []  # of the enclosing loops
        self.made = 0

    def index(self):
        terms = [str(pick.randrange(60))]
        terms += [f"{c} * {pick.choice([1, 1, 1, 2, 3, 5, 8, 9, 16, 17, 'k'])}" for c in self.counters if pick.random() < 0.7]
        if pick.random() < 0.1:
            terms.append(f"(unsigned)(src[{self.inner()}] % 40)")
        return f"({' + '.join(terms)}) % 1500" if pick.random() < 0.15 else " + ".join(terms)

    def inner(self):
        return self.counters[-1] if self.counters else "n"

    def store(self):
        kind, place, of = pick.random(), pick.choice("aabq"), pick.choice(TYPES)
        value = pick.choice([str(pick.randrange(1, 250)), f"src[{self.inner()}] | 1"])
        length = pick.choice(["n", "k", "k * 3", str(pick.randrange(1, 200))])
        if kind < 0.08:
            return f"memset({place} + {self.index()}, {pick.randrange(1, 200)}, {length});"
        if kind < 0.14:
            return f"memcpy({place} + {self.index()}, src, {length});"
        if kind < 0.20:
            order = pick.choice(["RELAXED", "SEQ_CST"])
            return f"__atomic_fetch_add((uint8_t*){place} + {pick.randrange(100)}, 3, __ATOMIC_{order});"
        if kind < 0.26:
            return f"(({of}*){place})[{pick.randrange(40)}] += {value};"
        return f"(({of}*){place})[{self.index()}] = {value};"

    def loop(self, depth):
        i = f"i{self.made}"
        self.made += 1
        end = pick.choice(["n", "k", "n / 4", "20", "7"])
        up = f"for (unsigned {i} = 0; {i} < {end}; {i} += {pick.choice([1, 1, 1, 2, 4])})"
        down = f"for (unsigned {i} = {end}; {i}-- > 0;)"
        self.counters.append(i)
        body = " ".join(self.statement(depth - 1) for _ in range(pick.randrange(1, 4)))
        if pick.random() < 0.2:
            body += f" if (src[{i}] % {pick.randrange(20, 60)} == 0) {pick.choice(['break', 'continue', 'return'])};"
        self.counters.pop()
        return f"{pick.choice([up, down])} {{ {body} }}"

    def statement(self, depth):
        kind = pick.random()
        if depth > 0 and kind < 0.35:
            return self.loop(depth)
        if depth > 0 and kind < 0.5:
            branch = f"if (src[{self.inner()}] >> {pick.randrange(8)} & 1) {{ {self.statement(depth - 1)} }}"
            return branch + (f" else {{ {self.statement(depth - 1)} }}" if pick.random() < 0.5 else "")
        if kind < 0.52:
            return "if (commits-- > 0) tracked_commit(__func__);"
        if kind < 0.55:
            return "q = a + (q - a + 64) % 4096;"
        return " ".join(self.store() for _ in range(pick.randrange(1, 5)))

    def text(self, number):
        body = "\n  ".join(self.statement(3) for _ in range(pick.randrange(2, 5)))
        return (f"__attribute__((noinline)) static void f{number}(char* a, char* b, unsigned n, unsigned k) {{\n"
                f"  char* q = a + n;\n  {body}\n}}")


print(HEAD)
for number in range(FUNCTIONS):
    print(Function().text(number))
names = ", ".join(f"f{number}" for number in range(FUNCTIONS))
print(f"static void (*const all[])(char*, char*, unsigned, unsigned) = {{{names}}};")
print(MAIN.replace("FUNCTIONS", str(FUNCTIONS)))
