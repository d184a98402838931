"""The budgets, and the result lines that compare measurements with them."""

import dataclasses
import statistics


@dataclasses.dataclass
class Line:
    """A comparison: the measurements of sandboxctl and of a peer, and the budget."""

    operation: str
    ours: str
    peer: str = ""
    theirs: str = ""
    quotient: str = ""
    must: str = ""
    kept: bool | None = None  # None without a budget
    has_failed: bool = False  # there is no measurement

    @classmethod
    def ratio(cls, operation, ours, peer, theirs, must, least=0.0, unit="s"):
        """Compares measurements with a peer's by their medians. The ratio is the median of the
        ratios of single runs if both have the same number. A value of at most `least` always meets
        the budget."""
        if not ours or not theirs:
            missing = "ours" if not ours else peer
            return cls(operation, "", peer, "", "", told(must), None if must is None else False) \
                .failing(f"no measurement of {missing}")
        if len(ours) == len(theirs):
            quotient = statistics.median(a / b for a, b in zip(ours, theirs) if b) \
                if any(theirs) else float("inf")
        else:
            quotient = statistics.median(ours) / statistics.median(theirs)
        own = statistics.median(ours)
        kept = None if must is None else quotient <= must or own <= least
        return cls(operation, amount(own, unit), peer, amount(statistics.median(theirs), unit),
                   f"{quotient:.2f}", told(must, least), kept)

    @classmethod
    def absolute(cls, operation, ours, must, unit="s"):
        """Compares a measurement with a fixed limit."""
        return cls(operation, amount(ours, unit), must=amount(must, unit), kept=ours <= must)

    @classmethod
    def failed(cls, operation, why):
        """A measurement that failed."""
        return cls(operation, "", kept=False).failing(why)

    def failing(self, why):
        self.ours = "failed: " + (why if len(why) <= 60 else why[:59] + "…")
        self.has_failed = True
        return self

    def cells(self):
        kept = {True: "yes", False: "NO", None: ""}[self.kept]
        return [self.operation, self.ours, self.peer, self.theirs, self.quotient, self.must, kept]


def told(must, least=0.0):
    if must is None:
        return ""
    return f"{must:g}" + (f" or {amount(least, 's')}" if least else "")


def amount(value, unit):
    """A measurement for display: seconds, or bytes as MB."""
    if unit == "B":
        return f"{value / 1e6:.1f} MB"
    return f"{value * 1000:.1f} ms" if value < 0.1 else f"{value:.2f} s"


HEAD = ["operation", "ours", "peer", "its", "ratio", "must", "kept"]


def table(lines):
    """Formats lines as a Markdown table."""
    rows = [HEAD] + [line.cells() for line in lines]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEAD))]
    text = ["| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths)) + " |"
            for row in rows]
    text.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(text)


# With incompressible content, only the overhead of tar and zstd can be saved.
FIRST_OF_TAR = {"media": 1.4}
RESTORE_OF_COPY = {"apps": 2, "many": 2}
SIZE_OF_RESTIC = {"media": 1.01}
DAY_OF_RESTIC = {"bigdb": 0.2}
PRUNE_OF_RESTIC = 0.25
AGED_OF_FRESH = 1.5
MEMORY = 150e6
ONE_FILE = {"many": 0.1}
# An encrypted repository, compared with one without encryption.
ENCRYPTED_FIRST = {"apps": 1.08, "many": 1.08, "bigdb": 1.12, "media": 1.25}
ENCRYPTED_RESTORE = 1.15
ENCRYPTED_MORE = 0.02  # seconds


def of_runs(profile, runs):
    """Yields the lines for the measurements of the peers' harness."""
    first, restored = runs.durable("initial"), runs.durable("restore")
    again, day = runs.seconds("nochange"), runs.durable("mutate")
    listed = runs.seconds("list")
    yield Line.ratio("first backup", first["ours"], "tar+zstd", first["tar-zstd"],
                     FIRST_OF_TAR.get(profile, 1.0))
    yield Line.ratio("first backup", first["ours"], "restic", first["restic"], 0.45)
    yield Line.ratio("unchanged", again["ours"], "find", again["find"], 3, least=0.04)
    yield Line.ratio("unchanged", again["ours"], "restic", again["restic"], 0.2)
    yield Line.ratio("after a day", day["ours"], "restic", day["restic"], 0.5)
    yield Line.ratio("restore", restored["ours"], "cp -a", restored["cp-a"],
                     RESTORE_OF_COPY.get(profile, 4))
    yield Line.ratio("restore", restored["ours"], "restic", restored["restic"], 0.4)
    yield Line.ratio("list", listed["ours"], "restic", listed["restic"], 0.15)
    yield Line.ratio("size", runs.size("ours"), "restic", runs.size("restic"),
                     SIZE_OF_RESTIC.get(profile, 1.0), unit="B")
    yield Line.ratio("stored after a day", runs.growth("ours"), "restic", runs.growth("restic"),
                     DAY_OF_RESTIC.get(profile), unit="B")
    for operation, why in runs.faults():
        yield Line.failed(operation, why)
