"""Compares an encrypted and an unencrypted repository of the same tree: the first backup, an unchanged
one, a restore, and the restore of one file. The key is given as an identity, because a passphrase adds
the time of scrypt, about half a second, to each command."""

import os
import shutil
import statistics
import subprocess
import time

import budgets
import extras
import peers
import programs
from budgets import Line


class Encryption:
    """The repositories of both kinds, and the tree of one profile."""

    KINDS = ("plain", "encrypted")

    def __init__(self, folder, profile, program, runs):
        self.profile, self.program, self.runs = profile, program, runs
        self.source = folder / "live" / profile
        self.scratch = folder / "work" / "encryption"
        self.key = self.scratch / "recovery-key"
        self.passphrase = self.scratch / "passphrase"
        self.file = extras.some_file(self.source)
        self.taken = {}

    def lines(self):
        """Yields a line for each measurement; one that fails states the reason."""
        shutil.rmtree(self.scratch, ignore_errors=True)
        self.scratch.mkdir(parents=True)
        self.passphrase.write_text("a passphrase for measurements\n")
        self.passphrase.chmod(0o600)
        try:
            for _ in range(self.runs):
                self.measure_backups()
            os.sync()
            for _ in range(max(self.runs, programs.RUNS_OF_SHORT)):
                self.measure("unchanged", self.backup)
                self.measure("one file", self.restore_one)
            yield from self.compared()
        except programs.Failed as error:
            yield Line.failed("encrypted", str(error))
        shutil.rmtree(self.scratch)

    def measure_backups(self):
        """Measures a first backup to new repositories, and a restore from them."""
        for kind in self.KINDS:
            for place in (self.place(kind), self.scratch / f"{kind}-restored"):
                programs.set_aside(place)
            self.key.unlink(missing_ok=True)
            options = ["--plain"] if kind == "plain" else [
                "--passphrase-file", str(self.passphrase), "--recovery-key", str(self.key)]
            self.run(kind, "init", str(self.place(kind) / "repo"), *options, "--no-default",
                     "--quiet", with_key=False)
        os.sync()
        self.measure("first", self.backup)
        self.measure("restore", self.restore)

    def measure(self, operation, command):
        """Measures an operation with both kinds, in alternating order."""
        done = self.taken.setdefault(operation, {kind: [] for kind in self.KINDS})
        kinds = self.KINDS if len(done["plain"]) % 2 else self.KINDS[::-1]
        for kind in kinds:
            start = time.perf_counter()
            command(kind)
            subprocess.run(["sync", "-f", str(self.scratch)], check=True)
            done[kind].append(time.perf_counter() - start)

    def compared(self):
        """Yields the lines with budgets."""
        first, restored = self.taken["first"], self.taken["restore"]
        yield Line.ratio("first backup, encrypted", first["encrypted"], "plain", first["plain"],
                         budgets.ENCRYPTED_FIRST[self.profile])
        yield Line.ratio("restore, encrypted", restored["encrypted"], "plain", restored["plain"],
                         budgets.ENCRYPTED_RESTORE)
        unchanged = self.taken["unchanged"]
        more = statistics.median(unchanged["encrypted"]) - statistics.median(unchanged["plain"])
        yield Line.absolute("unchanged, encrypted: more time", max(0.0, more),
                            budgets.ENCRYPTED_MORE)
        one = statistics.median(self.taken["one file"]["encrypted"])
        must = budgets.ONE_FILE.get(self.profile)
        yield Line("one file, encrypted", budgets.amount(one, "s")) if must is None \
            else Line.absolute("one file, encrypted", one, must)

    def place(self, kind):
        return self.scratch / kind

    def backup(self, kind):
        self.run(kind, "backup", "--layout", "folder", "--root", str(self.source), "--repo",
                 str(self.place(kind) / "repo"), "--quiet")

    def restore(self, kind):
        self.run(kind, "restore", "latest", "--to", str(self.scratch / f"{kind}-restored"), "--repo",
                 str(self.place(kind) / "repo"), "--quiet")

    def restore_one(self, kind):
        target = self.scratch / "file"
        target.unlink(missing_ok=True)
        self.run(kind, "restore", f"latest:folders/{self.profile}/{self.file}", "--to", str(target),
                 "--repo", str(self.place(kind) / "repo"), "--quiet")

    def run(self, kind, *arguments, with_key=True):
        environment = os.environ | peers.environment(str(self.place(kind) / "state"))
        key = ["--identity", str(self.key)] if with_key and kind == "encrypted" else []
        programs.seconds([self.program, *arguments, *key], environment)
