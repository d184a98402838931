"""Measurements that the peers' harness lacks: memory, one file, the difference of two snapshots,
the check of all data, and an audit. They use the repositories of the harness."""

import json
import os
import shutil
import subprocess

import budgets
import peers
import programs
from budgets import Line


AUDITED = ["apps"]  # the profiles that are devices
AUDIT_OF_FIND = 2


def some_file(source):
    """Returns the path of a file of at most 64 KiB with an ASCII name, the median of such."""
    found = []
    for folder, _, names in os.walk(source):
        for name in names:
            path = os.path.join(folder, name)
            relative = os.path.relpath(path, source)
            if relative.isascii() and relative.isprintable() and os.path.isfile(path) \
                    and not os.path.islink(path):
                found.append((os.path.getsize(path) > 65536, relative))
    small = sorted(found)
    return small[sum(1 for large, _ in small if not large) // 2][1]


class Extras:
    """The repositories of one profile, and the program."""

    def __init__(self, folder, profile, program, runs):
        self.profile, self.program, self.runs = profile, program, runs
        self.source = folder / "live" / profile
        self.ours = folder / "work" / "ours"
        self.restic = folder / "work" / "restic"
        self.scratch = folder / "work" / "extras"
        self.environment = os.environ | peers.environment(str(self.ours / "state"))

    def lines(self):
        """Yields a line for each measurement; one that fails states the reason."""
        shutil.rmtree(self.scratch, ignore_errors=True)
        self.scratch.mkdir(parents=True)
        # Memory is measured last: it deletes a whole tree, which keeps the disk busy for a long time.
        measures = [("restore one file", self.one_file), ("diff", self.diff),
                    ("check --read-data", self.check), ("memory", self.memory)]
        if self.profile in AUDITED:
            measures.insert(0, ("audit", self.audit))
        for name, measure in measures:
            try:
                yield measure()
            except programs.Failed as error:
                yield Line.failed(name, str(error))
        shutil.rmtree(self.scratch)

    def command(self, *arguments, repository=None):
        return [self.program, *arguments, "--repo", str(repository or self.ours / "repo")]

    def memory(self):
        """Measures the peak anonymous memory of a first backup and of a restore."""
        fresh = self.scratch / "fresh"
        environment = os.environ | peers.environment(str(self.scratch / "state"))
        programs.seconds([self.program, "init", str(fresh), "--plain"], environment)
        backup = self.command("backup", "--layout", "folder", "--root", str(self.source),
                              repository=fresh)
        restore = self.command("restore", "latest", "--to", str(self.scratch / "restored"),
                               repository=fresh)
        peak = max(programs.peak_memory(backup, environment),
                   programs.peak_memory(restore, environment))
        programs.set_aside(self.scratch / "restored")
        programs.set_aside(fresh)
        return Line.absolute("memory (RssAnon)", peak, budgets.MEMORY, unit="B")

    def one_file(self):
        """Restores a small file from the middle of the tree."""
        target = self.scratch / "file"
        command = self.command("restore", f"latest:folders/{self.profile}/{some_file(self.source)}",
                               "--to", str(target))
        # A restore syncs its files and would otherwise wait for pending writes of other programs.
        os.sync()
        runs = max(self.runs, programs.RUNS_OF_SHORT)
        taken = programs.median_seconds(command, runs, self.environment,
                                        lambda: target.exists() and target.unlink())
        must = budgets.ONE_FILE.get(self.profile)
        if must is None:
            return Line("restore one file", budgets.amount(taken, "s"))
        return Line.absolute("restore one file", taken, must)

    def audit(self):
        """Audits the device without a repository, paired with find, by wall time: the audit uses
        all processors."""
        ours = [self.program, "audit", "--root", str(self.source), "--json"]
        find = ["find", str(self.source), "-printf", "%s %T@\n"]
        pairs = programs.paired(ours, find, max(self.runs, programs.RUNS_OF_SHORT),
                                self.environment)
        taken = [[pair[place][0] for pair in pairs] for place in (0, 1)]
        return Line.ratio("audit", taken[0], "find", taken[1], AUDIT_OF_FIND)

    def diff(self):
        """Compares the snapshots before and after the day of changes."""
        runs = max(self.runs, programs.RUNS_OF_SHORT)
        ours = [programs.seconds(self.command("diff", "latest~1", "latest"), self.environment)[0]
                for _ in range(runs)]
        environment = os.environ | {"RESTIC_PASSWORD": "bench",
                                    "RESTIC_CACHE_DIR": str(self.restic / "state" / "cache")}
        restic = ["restic", "-q", "-r", str(self.restic / "repo")]
        shown = subprocess.run(restic + ["snapshots", "--json"], env=environment, check=True,
                               capture_output=True, text=True)
        pair = [snapshot["id"] for snapshot in json.loads(shown.stdout)[-2:]]
        theirs = [programs.seconds(restic + ["diff", *pair], environment)[0]
                  for _ in range(runs)]
        return Line.ratio("diff", ours, "restic", theirs, 0.15)

    def check(self):
        """Reads and verifies all data, compared with standard programs that do the same."""
        packs = str(self.ours / "repo" / "packs")
        plain = f"find {packs} -type f -print0 | xargs -0 zstd -q -t && " \
                f"find {packs} -type f -print0 | xargs -0 b2sum -l 256"
        ours, theirs = [], []
        for _ in range(self.runs):
            ours.append(programs.seconds(self.command("check", "--read-data"), self.environment)[0])
            theirs.append(programs.seconds(["sh", "-c", plain])[0])
        return Line.ratio("check --read-data", ours, "zstd -t, b2sum", theirs, 0.9)
