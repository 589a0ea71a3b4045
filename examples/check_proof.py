#!/usr/bin/env python3
"""Checks that bytes belong to a version that somebody has signed, without Vellum.

    vellum cat STORE VERSION --offset 8192 --length 4096 >page
    vellum prove STORE VERSION 8192+4096 -o proof
    python3 check_proof.py proof key.pub.pem page

Pages past the file's end are zeros. The key is in PEM. Needs `cryptography` or `openssl`. docs/format.md, "Proofs".
"""

import hashlib
import subprocess
import sys
import tempfile

PAGE = 4096


def sha(*parts):
    return hashlib.sha256(b"".join(parts)).digest()


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, count):
        if self.at + count > len(self.data):
            sys.exit("the proof is truncated")
        self.at += count
        return self.data[self.at - count : self.at]

    def varint(self):
        value = shift = 0
        while True:
            byte = self.take(1)[0]
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value
            if shift > 63:
                sys.exit("the proof is malformed")


def root_of(reader, region_pages, first, leaves):
    """The root that the leaves and the hashes beside their path have."""
    for _ in range((region_pages - 1).bit_length()):
        if first % 2:
            leaves.insert(0, reader.take(32))
        if len(leaves) % 2:
            leaves.append(reader.take(32))
        leaves = [sha(b"\1", *leaves[i : i + 2]) for i in range(0, len(leaves), 2)]
        first //= 2
    return leaves[0]


def is_signed(public_key_file, statement, signature):
    try:
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.serialization import load_pem_public_key
    except ImportError:
        with tempfile.NamedTemporaryFile() as text, tempfile.NamedTemporaryFile() as mark:
            text.write(statement), text.flush(), mark.write(signature), mark.flush()
            command = ["openssl", "pkeyutl", "-verify", "-pubin", "-inkey", public_key_file, "-rawin",
                       "-in", text.name, "-sigfile", mark.name]  # fmt: skip
            return subprocess.run(command, stdout=subprocess.DEVNULL, check=False).returncode == 0
    with open(public_key_file, "rb") as file:
        key = load_pem_public_key(file.read())
    try:
        key.verify(signature, statement)
    except InvalidSignature:
        return False
    return True


def main(proof_file, public_key_file, page_file):
    with open(proof_file, "rb") as file:
        proof = Reader(file.read())
    with open(page_file, "rb") as file:
        content = file.read()
    if proof.take(4) != b"VLP1":
        sys.exit("not a proof of Vellum")
    name = proof.take(proof.take(1)[0])
    region_pages, first, pages = proof.varint(), proof.varint(), proof.varint()
    context, signature = proof.take(32), proof.take(64)
    if not 0 < pages <= min(region_pages - first, 1 << 18) or len(content) > pages * PAGE:
        sys.exit("the pages are not those of the proof")
    content = content.ljust(pages * PAGE, b"\0")
    leaves = [sha(b"\0", content[i : i + PAGE]) for i in range(0, len(content), PAGE)]
    root = root_of(proof, region_pages, first, leaves)
    statement = b"".join([b"Vellum signed version 1\n", (region_pages * PAGE).to_bytes(8, "little"), root,
                          len(name).to_bytes(4, "little"), name, context])  # fmt: skip
    if proof.at != len(proof.data) or not is_signed(public_key_file, statement, signature):
        sys.exit("these pages are not what was signed")
    print(f"{name.decode()}: pages {first} to {first + pages - 1} are what was signed")


if __name__ == "__main__":
    main(*sys.argv[1:])
