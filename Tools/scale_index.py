#!/usr/bin/env python3
"""Measures a prune of a repository with millions of blobs.

usage: scale_index.py PROGRAM [BLOBS…] [--limit MB]

Generates a repository of each size (1000000 10000000): directories of 10,000 files of one blob each,
with real trees and index objects, and packs of file contents that have the right size but no
content. One snapshot has all directories, one the first half. Then it plans a prune, forgets the
larger snapshot, plans again and prunes, which removes half of the packs and writes the index again.
Prints a Markdown table: seconds and peak anonymous memory (RssAnon) in MB. Fails if the memory
exceeds 300 MB (`--limit`), or if a prune does not remove the expected number of packs.
"""

import argparse
import hashlib
import json
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tarfile
import tempfile
import time

from scale import Scale

FILES = 10_000
PACK_FILES = 5 * FILES
FRAME_FILES = 4000
LENGTH = 1000
OBJECT_BLOBS = 10_000_000
# A factor that spreads the files over the hashes: it has no divisor in common with any power of ten.
SPREAD = 7_368_787
MTIME = 1_700_000_000
DATA, TREE = 0, 1


def blake2b(data):
    return hashlib.blake2b(data, digest_size=32).digest()


class Hashes:
    """Generated hashes of the files of one index object, which need no sorting: file i has the hash
    of rank i * SPREAD modulo their number."""

    def __init__(self, number, count):
        self.count, self.step = count, (1 << 64) // count
        self.inverse = pow(SPREAD, -1, count)
        self.end = struct.pack(">Q", number) + b"made-up blob    "

    def of_rank(self, rank):
        return struct.pack(">Q", rank * self.step) + self.end

    def of_file(self, file):
        return self.of_rank(file * SPREAD % self.count)

    def file(self, rank):
        return rank * self.inverse % self.count


def compressed(content):
    """Returns a zstd frame with its content size and checksum."""
    return subprocess.run(["zstd", "-q", "-1", "-c", f"--stream-size={len(content)}"],
                          input=content, stdout=subprocess.PIPE, check=True).stdout


def member(name, content):
    """Returns a member of a tar archive."""
    header = tarfile.TarInfo(name)
    header.size, header.mtime = len(content), MTIME
    return header.tobuf(tarfile.USTAR_FORMAT) + content + b"\0" * (-len(content) % 512)


def record(digest, pack, frame, kind, offset, length):
    return digest + struct.pack("<IHBBII", pack, frame, kind, 0, offset, length)


class Index:
    """An index object that is written in order."""

    def __init__(self, packs, kind, count):
        """`packs` has the id, the size and the frames of each: offset, stored and plain size."""
        self.kind, self.count = kind, count
        bits = 0
        while bits < 16 and (16 << bits) < count:
            bits += 1
        self.bits = bits
        self.slots = [0] * (1 << bits)
        self.packs = packs
        self.records = []

    def add(self, data):
        self.slots[int.from_bytes(data[:2], "big") >> (16 - self.bits)] += 1
        self.records.append(data)

    def encoded(self):
        counts = [self.count if kind == self.kind else 0 for kind in range(3)]
        bits = [self.bits if kind == self.kind else 0 for kind in range(3)]
        frames = [frame for _, _, frames in self.packs for frame in frames]
        yield (b"sbxindex" + struct.pack("<IIII3I", 1, len(self.packs), len(frames), self.count,
                                         *counts) + bytes(bits)).ljust(64, b"\0")
        first = 0
        for name, size, own in self.packs:
            yield name + struct.pack("<QII", size, first, len(own))
            first += len(own)
        for frame in frames:
            yield struct.pack("<QII", *frame)
        for kind in range(3):
            total = 0
            for slot in self.slots if kind == self.kind else [0]:
                total += slot
                yield struct.pack("<I", total)
        yield from self.records

    def save(self, repository):
        unfinished, digest = repository / "index" / "unfinished", hashlib.blake2b(digest_size=32)
        with open(unfinished, "wb") as file:
            for part in self.encoded():
                digest.update(part)
                file.write(part)
        unfinished.rename(repository / "index" / f"{digest.hexdigest()}.index")


class TreePack:
    """A pack of trees, one in each frame."""

    def __init__(self):
        self.data, self.frames, self.records = bytearray(), [], []

    def add(self, tree):
        digest = blake2b(tree)
        content = member(f".sandboxctl/trees/{digest.hex()}", tree)
        self.records.append((digest, len(self.frames), 512, len(tree)))
        self.append(content)
        return digest

    def append(self, content):
        stored = compressed(content)
        self.frames.append((len(self.data), len(stored), len(content)))
        self.data += stored

    def save(self, repository):
        """Writes the pack. Returns its id, size and frames."""
        table = os.urandom(16) + b"sbxpack\0" + struct.pack("<II", 1, len(self.records))
        for digest, frame, offset, length in self.records:
            table += record(digest, 0, frame, TREE, offset, length)
        self.append(member(".sandboxctl/contents", table) + b"\0" * 1024)
        sizes = b"".join(struct.pack("<II", stored, plain) for _, stored, plain in self.frames)
        self.data += struct.pack("<II", 0x184D2A5E, len(sizes) + 9) + sizes
        self.data += struct.pack("<IBI", len(self.frames), 0, 0x8F92EAB1)
        name = blake2b(bytes(self.data))
        pack_path(repository, name).write_bytes(self.data)
        return name, len(self.data), self.frames


def pack_path(repository, name):
    return repository / "packs" / name.hex()[:2] / f"{name.hex()}.tar.zst"


def page(entries):
    """Returns a tree of one page of at most 65,535 encoded entries."""
    count = len(entries)
    if count < 24:
        head = bytes([0x80 | count])
    else:
        head = b"\x98" + bytes([count]) if count < 256 else b"\x99" + struct.pack(">H", count)
    return b"\xa1\x00" + head + b"".join(entries)


def directory_tree(hashes, first):
    """Returns a page with the entries of FILES files."""
    size = b"\x19" + struct.pack(">H", LENGTH)
    middle = b"\x07" + size + b"\x08\x81\x82" + size + b"\x58\x20"
    entries = [b"\xa3\x00\x46f%05d" % number + middle + hashes.of_file(first + number)
               for number in range(FILES)]
    return page(entries)


def root_tree(digests):
    entries = [b"\xa3\x00\x46d%05d\x01\x01\x0a\x58\x20" % number + digest
               for number, digest in enumerate(digests)]
    return page(entries)


def data_packs(repository, number, count):
    """Makes packs of `count` files without content. Returns their ids, sizes and frames."""
    packs = []
    for first in range(0, count, PACK_FILES):
        files = min(PACK_FILES, count - first)
        plain = [min(FRAME_FILES, files - start) * LENGTH for start in range(0, files, FRAME_FILES)]
        frames, offset = [], 0
        for size in [*plain, 48 * files]:
            frames.append((offset, size // 2, size))
            offset += size // 2
        name = blake2b(b"pack %d %d" % (number, first))
        path = pack_path(repository, name)
        path.touch()
        os.truncate(path, offset + 100)
        packs.append((name, offset + 100, frames))
    return packs


def add_files(repository, number, count, trees):
    """Adds an index object of `count` files and their packs. Returns the hashes of the trees."""
    hashes, packs = Hashes(number, count), data_packs(repository, number, count)
    index = Index(packs, DATA, count)
    for rank in range(count):
        pack, place = divmod(hashes.file(rank), PACK_FILES)
        frame, place = divmod(place, FRAME_FILES)
        index.add(record(hashes.of_rank(rank), pack, frame, DATA, place * LENGTH, LENGTH))
    index.save(repository)
    found = []
    for first in range(0, count, FILES):
        if not trees or len(trees[-1].data) > 64 << 20:
            trees.append(TreePack())
        found.append(trees[-1].add(directory_tree(hashes, first)))
    return found


class Place:
    """A generated repository with two snapshots."""

    def __init__(self, program, blobs):
        self.program = program
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="sandboxctl-index-")).resolve()
        self.repository = self.root / "repo"
        self.environment = {"HOME": str(self.root), "PATH": "/usr/bin:/bin", "TZ": "UTC",
                            "SANDBOXCTL_REPOSITORY": str(self.repository)}
        self.run("init", self.repository, "--plain")
        (self.root / "tree").mkdir()
        (self.root / "tree" / "file").write_text("a real backup\n")
        self.run("backup", "--root", self.root / "tree", "--layout", "folder", "--quiet")
        directories, trees = [], []
        for number, first in enumerate(range(0, blobs, OBJECT_BLOBS)):
            directories += add_files(self.repository, number, min(OBJECT_BLOBS, blobs - first),
                                     trees)
        roots = [root_tree(directories), root_tree(directories[:len(directories) // 2])]
        tops = [trees[-1].add(root) for root in roots]
        self.save_trees(trees)
        self.large = self.add_snapshot(tops[0], 2)
        self.add_snapshot(tops[1], 3)

    def save_trees(self, trees):
        packs = [pack.save(self.repository) for pack in trees]
        records = sorted((digest, record(digest, number, frame, TREE, offset, length))
                         for number, pack in enumerate(trees)
                         for digest, frame, offset, length in pack.records)
        index = Index(packs, TREE, len(records))
        for _, data in records:
            index.add(data)
        index.save(self.repository)

    def add_snapshot(self, tree, sequence):
        """Adds a snapshot like the real one, without the signature in line 2."""
        snapshots = self.repository / "snapshots"
        snapshot = json.loads(next(snapshots.iterdir()).read_bytes().split(b"\n")[0])
        snapshot["tree"], snapshot["sequence"] = tree.hex(), sequence
        data = json.dumps(snapshot, separators=(",", ":")).encode() + b"\n"
        name = blake2b(data).hex()
        (snapshots / f"{name}.json").write_bytes(data)
        return name

    def run(self, *words):
        """Runs a command. Returns seconds, bytes of anonymous memory, and the output."""
        with open(self.root / "errors", "wb") as errors, open(self.root / "out", "wb") as output:
            begun = time.monotonic()
            process = subprocess.Popen([self.program, *map(str, words)], env=self.environment,
                                       stdout=output, stderr=errors, stdin=subprocess.DEVNULL)
            memory = Scale.watch(process)
        taken = time.monotonic() - begun
        if process.returncode != 0:
            sys.exit(f"scale_index: error: {' '.join(map(str, words))}: status "
                     f"{process.returncode}\n" + (self.root / "errors").read_text()[-2000:])
        return taken, memory, (self.root / "out").read_text()

    def remove(self):
        shutil.rmtree(self.root, ignore_errors=True)


def measure(program, blobs):
    """Yields each step with its seconds and bytes of memory."""
    place = Place(program, blobs)
    prune = ("prune", "--max-unused", "unlimited", "--json")
    *row, output = place.run(*prune, "--dry-run")
    expect_removals(json.loads(output)["plan"], 0)
    yield "prune --dry-run", row
    yield "forget", place.run("forget", place.large, "--quiet")[:2]
    *row, output = place.run(*prune, "--dry-run")
    half = (blobs // FILES // 2 * FILES) // PACK_FILES
    expect_removals(json.loads(output)["plan"], (blobs + PACK_FILES - 1) // PACK_FILES - half)
    yield "prune --dry-run of a half", row
    *row, output = place.run(*prune)
    removed = json.loads(output)["removed_packs"]
    if removed != (blobs + PACK_FILES - 1) // PACK_FILES - half:
        sys.exit(f"scale_index: error: the prune removed {removed} packs")
    yield "prune of a half", row
    place.remove()


def expect_removals(plan, count):
    found = sum(pack["action"] == "remove" for pack in plan)
    if found != count:
        sys.exit(f"scale_index: error: the plan removes {found} packs instead of {count}")


def main():
    parser = argparse.ArgumentParser(usage="scale_index.py PROGRAM [BLOBS…] [--limit MB]")
    parser.add_argument("program")
    parser.add_argument("blobs", nargs="*", type=int, default=[1_000_000, 10_000_000])
    parser.add_argument("--limit", type=float, default=300, help="the anonymous memory in MB")
    options = parser.parse_args()
    if any(blobs % (2 * PACK_FILES) for blobs in options.blobs):
        sys.exit(f"scale_index: error: the number of blobs must be a multiple of {2 * PACK_FILES}")
    program, found, over = str(pathlib.Path(options.program).resolve()), {}, []
    for blobs in options.blobs:
        for step, (taken, memory) in measure(program, blobs):
            found.setdefault(step, []).append(f"{taken:.2f} | {memory / 1e6:.0f}")
            print(f"{blobs:>10} {step:30} {taken:8.2f} s {memory / 1e6:6.0f} MB", file=sys.stderr,
                  flush=True)
            if memory > options.limit * 1e6:
                over.append(f"{step}: {memory / 1e6:.0f} MB for {blobs} blobs")
    print("| blobs | " + " | ".join(f"{blobs:,}: s | MB" for blobs in options.blobs) + " |")
    print("| --- |" + " ---: | ---: |" * len(options.blobs))
    for step, rows in found.items():
        print(f"| {step} | " + " | ".join(rows) + " |")
    if over:
        sys.exit("\n".join(f"scale_index: error: {fault}" for fault in over))


if __name__ == "__main__":
    main()
