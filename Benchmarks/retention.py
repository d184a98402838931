"""Measures the cost of years of snapshots: a prune after days of changes, compared with restic's, and
the restore of the latest snapshot after more days with retention, compared with that from a new
repository. It continues with the repositories and the tree of the harness."""

import os
import shutil
import subprocess
import sys
import time

import budgets
import peers
import programs
import repeats
from budgets import Line

# The number of snapshots that are kept while the repository ages.
KEPT = 7


class Retention:
    """The repositories and the tree of one profile, which have the changes of one day."""

    def __init__(self, folder, profile, program, options):
        self.profile, self.program, self.options = profile, program, options
        self.source = folder / "live" / profile
        self.ours, self.restic = folder / "work" / "ours", folder / "work" / "restic"
        self.scratch = folder / "work" / "retention"

    def lines(self):
        """Yields a line for each measurement; one that fails states the reason."""
        shutil.rmtree(self.scratch, ignore_errors=True)
        self.scratch.mkdir(parents=True)
        days = self.options.days
        names = (f"prune to one after {days} days", f"restore after {3 * days} days")
        for name, measure in zip(names, (self.prune, self.restore), strict=True):
            try:
                yield measure(name)
            except programs.Failed as error:
                yield Line.failed(name, str(error))
        shutil.rmtree(self.scratch)

    def change(self, day):
        """Makes the changes of a day."""
        subprocess.run([sys.executable, str(programs.PACKAGE / "Benchmarks" / "day.py"),
                        str(peers.harness()), str(self.source), "--profile", self.profile, "--seed",
                        str(self.options.seed), "--day", str(day)],
                       check=True, stdout=subprocess.DEVNULL)

    def run(self, place, *arguments):
        """Runs sandboxctl with the repository and the state in a directory. Returns the seconds until
        all data is on disk."""
        environment = os.environ | peers.environment(str(place / "state"))
        return self.timed(place, [self.program, *arguments, "--repo", str(place / "repo"),
                                  "--quiet"], environment)

    def run_restic(self, *arguments):
        environment = os.environ | repeats.PASSWORD | {
            "RESTIC_CACHE_DIR": str(self.restic / "state" / "cache")}
        return self.timed(self.restic, ["restic", "-q", "-r", str(self.restic / "repo"),
                                        *arguments], environment)

    @staticmethod
    def timed(place, command, environment):
        start = time.perf_counter()
        programs.seconds(command, environment)
        subprocess.run(["sync", "-f", str(place)], check=True)
        return time.perf_counter() - start

    def backup(self, place):
        return self.run(place, "backup", "--layout", "folder", "--root", str(self.source))

    def prune(self, name):
        """Backs up the remaining days of changes with both, then prunes both to one snapshot."""
        for day in range(2, self.options.days + 1):
            self.change(day)
            self.backup(self.ours)
            self.run_restic("backup", str(self.source))
        aged = self.scratch / "aged"
        aged.mkdir()
        for part in ("repo", "state"):
            subprocess.run(["cp", "-a", str(self.ours / part), str(aged / part)], check=True)
        os.sync()
        repeats.warm(self.ours / "repo")
        ours = self.run(self.ours, "forget", "--keep-last", "1", "--prune")
        repeats.warm(self.restic / "repo")
        theirs = self.run_restic("forget", "--keep-last", "1", "--prune")
        self.verify(self.ours)
        return Line.ratio(name, [ours], "restic", [theirs], budgets.PRUNE_OF_RESTIC)

    def restore(self, name):
        """Ages the repository by more days with retention, and restores the latest snapshot from it
        and from a new one, in turn."""
        days, aged, fresh = self.options.days, self.scratch / "aged", self.scratch / "fresh"
        for day in range(days + 1, 3 * days + 1):
            self.change(day)
            self.backup(aged)
            self.run(aged, "forget", "--keep-last", str(KEPT), "--prune")
        fresh.mkdir()
        programs.seconds([self.program, "init", str(fresh / "repo"), "--plain"],
                         os.environ | peers.environment(str(fresh / "state")))
        self.backup(fresh)
        taken = {aged: [], fresh: []}
        for _ in range(max(self.options.reps, 2)):
            for place, seconds in taken.items():
                repeats.warm(place / "repo")
                seconds.append(self.run(place, *self.restoring(place)))
                programs.set_aside(place / "restored")
        self.verify(aged)
        return Line.ratio(name, taken[aged], "new repository", taken[fresh],
                          budgets.AGED_OF_FRESH)

    def restoring(self, place):
        return ("restore", f"latest:folders/{self.profile}", "--to", str(place / "restored"))

    def verify(self, place):
        """Restores the latest snapshot and compares it with the tree."""
        self.run(place, *self.restoring(place))
        compared = subprocess.run(
            [sys.executable, str(peers.harness() / "verify_tree.py"), str(self.source),
             str(place / "restored"), "--max-print", "3"], check=False, capture_output=True,
            text=True)
        programs.set_aside(place / "restored")
        if compared.returncode:
            raise programs.Failed(f"the restored tree differs: {compared.stdout[:200]}")
