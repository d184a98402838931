"""A purge: its plan compared with find, its deletion compared with rm -r, and its memory."""

import os
import shutil
import tempfile

import peers
import programs
from budgets import Line

PLANNED, DELETED = 200_000, 100_000  # files at full scale
PLAN_BUDGET = 1.5  # of find's time
DELETION_BUDGET = 1.3  # of rm -r's
MEMORY = 100e6
LEVEL = ["--level", "critical"]


def lines(program, runs, scale):
    """Yields a line for each budget."""
    scratch = tempfile.mkdtemp(prefix="sandboxctl-bench-", dir="/tmp")
    try:
        yield from plan(program, runs, scratch, int(PLANNED * scale))
        yield deletion(program, max(1, runs // 3), scratch, int(DELETED * scale))
    finally:
        shutil.rmtree(scratch)


def make_device(root, files, folder=50):
    """Makes a simulator device with one app that has `files` cache files and a document."""
    data = os.path.join(root, "Containers", "Data", "Application",
                        "0A0A0A0A-0000-4000-8000-000000000001")
    os.makedirs(os.path.join(data, "Documents"))
    with open(os.path.join(data, "Documents", "thesis"), "wb") as file:
        file.write(b"thesis")
    caches = os.path.join(data, "Library", "Caches")
    for number in range(files // folder):
        place = os.path.join(caches, f"group-{number // 64}", f"folder-{number:04}")
        os.makedirs(place)
        for file in range(folder):
            handle = os.open(os.path.join(place, f"file-{number:04}-{file:02}.dat"),
                             os.O_WRONLY | os.O_CREAT, 0o644)
            os.write(handle, b"x" * 100)
            os.close(handle)
    return caches


def command(program, root, *words):
    return [program, "purge", "--root", root, "--layout", "coresimulator", *words]


def plan(program, runs, scratch, files):
    """Measures the plan for the files, by processor time like the walk, and its memory."""
    root = os.path.join(scratch, "planned")
    make_device(root, files)
    environment = os.environ | peers.environment(os.path.join(scratch, "home"))
    query = command(program, root, "--query")
    pairs = programs.paired(query, ["find", root, "-printf", "%s %T@\n"], runs, environment)
    ours, theirs = ([pair[place][1] for pair in pairs] for place in (0, 1))
    yield Line.ratio(f"purge --query, {files:,} files", ours, "find", theirs, PLAN_BUDGET)
    peak = programs.peak_memory(query, environment)
    yield Line.absolute("purge --query, memory (RssAnon)", peak, MEMORY, unit="B")
    shutil.rmtree(root)


def deletion(program, runs, scratch, files):
    """Measures the deletion of files by wall time, alternating with rm -r, each on its own tree."""
    environment = os.environ | peers.environment(os.path.join(scratch, "home"))
    ours, theirs = [], []
    for run in range(runs):
        measures = [(ours, purge), (theirs, remove)]
        for taken, measure in measures if run % 2 else reversed(measures):
            taken.append(measure(program, scratch, environment, files))
    return Line.ratio(f"purge of {files:,} files", ours, "rm -r", theirs, DELETION_BUDGET)


def purge(program, scratch, environment, files):
    root = os.path.join(scratch, "purged")
    caches = make_device(root, files)
    taken = programs.seconds(command(program, root, *LEVEL, "--yes", "--quiet"), environment)[0]
    if os.listdir(caches):
        raise programs.Failed("the purge left files behind")
    shutil.rmtree(root)
    return taken


def remove(_, scratch, environment, files):
    root = os.path.join(scratch, "removed")
    caches = make_device(root, files)
    taken = programs.seconds(["rm", "-r", caches], environment)[0]
    shutil.rmtree(root)
    return taken
