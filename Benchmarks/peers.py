"""Runs sandboxctl and the peers with ../shared/bench/run_peers.py, operation by operation."""

import collections
import json
import os
import pathlib
import shutil
import subprocess
import sys

import programs

TOOLS = ["restic", "tar-zstd", "cp-a", "find", "ours"]
FIND = "find {src} -printf '%p %s %T@ %C@ %i %m\\n' > /dev/null"


def harness():
    """Returns the directory of the corpora and the harness, or None if it is missing."""
    named = os.environ.get("SANDBOXCTL_SHARED")
    shared = pathlib.Path(named) if named else programs.PACKAGE.parent / "shared"
    return shared / "bench" if (shared / "bench" / "run_peers.py").is_file() else None


def environment(state):
    """Returns the environment that isolates settings and caches of a run from the user's."""
    return {"HOME": state, "XDG_CONFIG_HOME": f"{state}/config", "XDG_CACHE_HOME": f"{state}/cache",
            "XDG_DATA_HOME": f"{state}/data", "XDG_STATE_HOME": f"{state}/state"}


def spec(program, profile):
    """Returns sandboxctl and find in the harness's format for added tools."""
    ours = {
        "version": "this tree", "setup": "plain", "fsync": "yes", "env": environment("{state}"),
        "init": f"{program} init {{repo}} --plain",
        "backup": f"{program} backup --layout folder --root {{src}} --repo {{repo}} --quiet",
        "list": f"{program} ls latest --recursive --repo {{repo}}",
        "restore": f"{program} restore latest:folders/{profile} --to {{dst}} --repo {{repo}} --quiet",
    }
    find = {"version": "-", "setup": "names and status of all", "fsync": "no", "backup": FIND}
    return {"ours": ours, "find": find}


class Runs:
    """The rows written by the harness, by tool and operation."""

    def __init__(self, rows):
        self.rows = rows

    def collect(self, operation, value):
        found = collections.defaultdict(list)
        for row in self.rows:
            if row["op"] == operation and row["rc"] == 0:
                found[row["tool"]].append(value(row))
        return found

    def seconds(self, operation):
        """Returns the wall time in seconds, by tool."""
        return self.collect(operation, lambda row: row["wall"])

    def durable(self, operation):
        """Returns the seconds until all data is on disk, by tool."""
        return self.collect(operation, lambda row: row["wall"] + row["flush"])

    def size(self, tool):
        """Returns the size of the repository in bytes after a first backup."""
        return self.collect("initial", lambda row: row["repo_bytes"])[tool][-1:]

    def growth(self, tool):
        """Returns the number of bytes added by the day of changes."""
        before = self.collect("nochange", lambda row: row["repo_bytes"])[tool][-1:]
        after = self.collect("mutate", lambda row: row["repo_bytes"])[tool][-1:]
        return [max(0, b - a) for a, b in zip(before, after)]

    def faults(self):
        """Yields sandboxctl's failures and differences in restored trees."""
        for row in self.rows:
            if row["tool"] == "ours" and row["rc"]:
                yield row["op"], f"exit code {row['rc']}: {row['err'].strip()[-200:]}"
            elif row["tool"] == "ours" and row["note"].startswith("verify") and \
                    not row["note"].endswith("identical"):
                yield row["op"], row["note"]


def corpus(folder, profile, options):
    """Returns the tree of a profile, created if missing; it is deterministic for a seed."""
    seed = f"-seed{options.seed}" if options.seed != 1 else ""
    place = folder / f"{profile}-{options.scale:g}{seed}"
    if not place.is_dir():
        unfinished = place.with_name(place.name + ".unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        subprocess.run([sys.executable, str(harness() / "make_corpus.py"), str(unfinished),
                        "--profile", profile, "--seed", str(options.seed), "--scale",
                        str(options.scale)], check=True, stdout=sys.stderr)
        unfinished.rename(place)
    return place


def run(folder, source, profile, program, options):
    """Runs all tools on a copy of `source` in `folder` and returns the rows. The repositories stay
    in `folder`/work and the changed copy in `folder`/live."""
    pristine = folder / "pristine" / profile
    pristine.parent.mkdir(parents=True, exist_ok=True)
    pristine.unlink(missing_ok=True)
    pristine.symlink_to(source)
    specs = folder / "spec.json"
    specs.write_text(json.dumps(spec(program, profile)))
    raw = folder / "raw.jsonl"
    raw.unlink(missing_ok=True)
    subprocess.run(
        [sys.executable, str(programs.PACKAGE / "Benchmarks" / "aside.py"), str(harness()),
         "--profile", profile, "--tools", ",".join(TOOLS), "--spec", str(specs), "--ops",
         "initial,nochange,mutate,list,restore", "--reps",
         str(max(options.reps, programs.RUNS_OF_SHORT)), "--initial-reps", str(options.reps),
         "--scale", str(options.scale), "--seed", str(options.seed), "--timeout", "3600", "--keep"],
        check=True, stdout=sys.stderr, env=os.environ | {"BENCH_DIR": str(folder)})
    return Runs([json.loads(line) for line in raw.read_text(encoding="utf-8").splitlines()])
