"""Single parts of the program: the walk, the classifier, startup, a purge, an update, an import,
inter-app commands, scenarios."""

import os
import shutil
import statistics
import subprocess
import tempfile

import importing
import interapp
import programs
import purging
import updating
from budgets import Line

WALK_BUDGET = 0.8  # of find's time
CLASSIFY_BUDGET = 1.0  # seconds
START_BUDGET = 0.030  # seconds
PATHS, DIRECTORIES = 1_000_000, 4000  # at full scale


def lines(runs, scale):
    """Measures all parts, on trees of the given scale. Yields a line for each budget."""
    yield walk(programs.build("walkbench"), runs, int(DIRECTORIES * scale))
    yield classify(programs.build("classifybench"), runs, int(PATHS * scale))
    program = programs.build("sandboxctl")
    yield start(program, runs)
    yield from purging.lines(program, runs, scale)
    yield from updating.lines(program, runs, scale)
    yield from importing.lines(program, runs, scale)
    yield from interapp.lines(program, runs, scale)


def make_tree(root, folders, files=50):
    """Makes nested directories, about 64 in each, with small files in all of them."""
    content = b"x" * 100
    places = []
    for number in range(folders):
        above = places[(number - 64) // 64] if number >= 64 else root
        place = os.path.join(above, f"folder-{number:04}")
        os.mkdir(place)
        places.append(place)
        for file in range(files):
            handle = os.open(os.path.join(place, f"file-{number:04}-{file:02}.dat"),
                             os.O_WRONLY | os.O_CREAT, 0o644)
            os.write(handle, content)
            os.close(handle)


def walk(program, runs, directories):
    """Compares the walk with find by processor time, which excludes other programs. Both are
    single-threaded and never wait."""
    scratch = tempfile.mkdtemp(prefix="sandboxctl-bench-")
    try:
        tree = os.path.join(scratch, "tree")
        os.mkdir(tree)
        make_tree(tree, directories)
        require_same_entries(program, tree)
        pairs = programs.paired([program, tree], ["find", tree, "-printf", "%s%T@"], runs)
    finally:
        shutil.rmtree(scratch)
    ours, theirs = ([pair[place][1] for pair in pairs] for place in (0, 1))
    return Line.ratio(f"walk of {51 * directories:,} entries", ours, "find", theirs, WALK_BUDGET)


def require_same_entries(program, tree):
    """Both must visit the same entries, otherwise the comparison is meaningless."""
    own = subprocess.run([program, tree], check=True, capture_output=True, text=True)
    counted = subprocess.run(["find", tree, "-mindepth", "1", "-printf", "."], check=True,
                             capture_output=True, text=True)
    entries = int(own.stdout.split()[0].removeprefix("entries="))
    if entries != len(counted.stdout):
        raise programs.Failed(f"{entries} entries walked, but find counts {len(counted.stdout)}")


def classify(program, runs, paths):
    """Measures the classification of paths in one thread, in seconds reported by the program."""
    taken = []
    for _ in range(max(1, runs // 3)):
        out = subprocess.run([program, str(paths)], check=True, capture_output=True, text=True)
        taken.append(float(out.stdout.split("seconds=")[1].split()[0]))
    return Line.absolute(f"classify {paths:,} paths", statistics.median(taken), CLASSIFY_BUDGET)


def start(program, runs):
    """Measures the startup of the program."""
    taken = programs.median_seconds([program, "--version"], runs)
    return Line.absolute("sandboxctl --version", taken, START_BUDGET)
