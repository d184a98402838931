"""The import of an iTunes backup, compared with a backup of the same files."""

import json
import os
import random
import shutil
import subprocess
import tempfile
import time

import peers
import programs
from budgets import Line

SMALL, LARGE = 20_000, 20  # files at full scale
SMALL_BYTES, LARGE_BYTES = 8_000, 20_000_000
TINY_BYTES = 200
BUDGET = 1.3  # of the time of a backup


def lines(program, runs, scale):
    """Yields the lines for the budget."""
    small, large = int(SMALL * scale), max(1, int(LARGE * scale))
    for files in ((small, SMALL_BYTES, large), (small, TINY_BYTES, 0)):
        scratch = tempfile.mkdtemp(prefix="sandboxctl-bench-", dir="/tmp")
        try:
            yield Importing(program, scratch).line(max(1, runs // 3), *files)
        finally:
            shutil.rmtree(scratch)


def make_tree(root, small, small_bytes, large):
    """Makes files, half of which are compressible. Their times are whole seconds, like those of an
    iTunes backup, so that the import and the backup result in the same tree."""
    for number in range(small + large):
        size = small_bytes if number < small else LARGE_BYTES
        place = os.path.join(root, f"folder-{number // 200:03}", f"file-{number:06}")
        os.makedirs(os.path.dirname(place), exist_ok=True)
        noise = random.Random(number).randbytes(size // 2)
        with open(place, "wb") as file:
            file.write(noise + b"text and more of it " * (size // 40))
    for folder, _, names in os.walk(root, topdown=False):
        for name in [*names, "."]:
            os.utime(os.path.join(folder, name), (1_600_000_000, 1_600_000_000))


class Importing:
    """A tree, and an iTunes backup of it."""

    def __init__(self, program, scratch):
        self.program, self.scratch = program, scratch
        self.tree, self.phone = (os.path.join(scratch, name) for name in ("tree", "phone"))
        self.environment = os.environ | peers.environment(os.path.join(scratch, "home"))

    def line(self, runs, small, small_bytes, large):
        make_tree(self.tree, small, small_bytes, large)
        backup = ("backup", "--layout", "folder", "--root", self.tree)
        self.measure("first", *backup)
        programs.seconds(self.words("first", "export", "itunes", self.phone), self.environment)
        imported = ("import", "itunes", self.phone)
        taken = {backup: [], imported: []}
        for run in range(runs):
            for words in (backup, imported) if run % 2 else (imported, backup):
                taken[words].append(self.measure(words[0], *words))
        if self.tree_of("backup") != self.tree_of("import"):
            raise programs.Failed("the import stored another tree than the backup")
        megabytes = (small * small_bytes + large * LARGE_BYTES) // 1_000_000
        return Line.ratio(f"import of an iTunes backup, {small + large:,} files, {megabytes:,} MB",
                          taken[imported], "backup", taken[backup], BUDGET)

    def words(self, name, *words):
        return [self.program, *words, "--quiet", "--repo", os.path.join(self.scratch, name)]

    def measure(self, name, *words):
        """Stores into a new repository. Returns the wall time until all of it is on the disk."""
        shutil.rmtree(os.path.join(self.scratch, name), ignore_errors=True)
        programs.seconds([self.program, "init", os.path.join(self.scratch, name), "--plain",
                          "--no-default", "--quiet"], self.environment)
        subprocess.run(["sync", "-f", self.scratch], check=True)
        start = time.perf_counter()
        programs.seconds(self.words(name, *words), self.environment)
        subprocess.run(["sync", "-f", self.scratch], check=True)
        return time.perf_counter() - start

    def tree_of(self, name):
        """Returns the tree of the snapshot in a repository."""
        shown = subprocess.run(
            [self.program, "snapshots", "show", "latest", "--json", "--repo",
             os.path.join(self.scratch, name)],
            check=True, capture_output=True, env=self.environment)
        return json.loads(shown.stdout)["tree"]
