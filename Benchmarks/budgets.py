"""The budgets, and the lines that say whether they are kept."""

import dataclasses
import statistics


@dataclasses.dataclass
class Line:
    """One comparison: what was measured of ours and of a peer, and what must hold."""

    operation: str
    ours: str
    peer: str = ""
    theirs: str = ""
    quotient: str = ""
    must: str = ""
    kept: bool | None = None  # None where nothing must hold

    @classmethod
    def ratio(cls, operation, ours, peer, theirs, must, least=0.0, unit="s"):
        """Ours against a peer's, of which medians are told; the ratio is taken run by run where both
        have as many. What is at most `least` is good enough whatever the peer does."""
        if not ours or not theirs:
            missing = "ours" if not ours else peer
            return cls(operation, "", peer, "", "", told(must), None if must is None else False) \
                .failing(f"no measure of {missing}")
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
        """Ours against a figure."""
        return cls(operation, amount(ours, unit), must=amount(must, unit), kept=ours <= must)

    @classmethod
    def failed(cls, operation, why):
        """Something that could not be measured."""
        return cls(operation, "", kept=False).failing(why)

    def failing(self, why):
        self.ours = "failed: " + (why if len(why) <= 60 else why[:59] + "…")
        return self

    def cells(self):
        kept = {True: "yes", False: "NO", None: ""}[self.kept]
        return [self.operation, self.ours, self.peer, self.theirs, self.quotient, self.must, kept]


def told(must, least=0.0):
    if must is None:
        return ""
    return f"{must:g}" + (f" or {amount(least, 's')}" if least else "")


def amount(value, unit):
    """A measure for people: seconds, or bytes as MB."""
    if unit == "B":
        return f"{value / 1e6:.1f} MB"
    return f"{value * 1000:.1f} ms" if value < 0.1 else f"{value:.2f} s"


HEAD = ["operation", "ours", "peer", "its", "ratio", "must", "kept"]


def table(lines):
    """The lines as a table of Markdown."""
    rows = [HEAD] + [line.cells() for line in lines]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEAD))]
    text = ["| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths)) + " |"
            for row in rows]
    text.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(text)


# Where content does not compress there is nothing to gain on tar and zstd but what they waste.
FIRST_OF_TAR = {"media": 1.4}
RESTORE_OF_COPY = {"apps": 2, "many": 2}
SIZE_OF_RESTIC = {"media": 1.01}
DAY_OF_RESTIC = {"bigdb": 0.2}
MEMORY = 150e6
ONE_FILE = {"many": 0.1}


def of_runs(profile, runs):
    """The lines of what the peers' harness measured."""
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
