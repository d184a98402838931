"""Repeats list and restore, which the peers' harness runs only once."""

import os
import pathlib
import shlex
import subprocess
import time

import peers
import programs

COMMANDS = {
    "restic": {"list": "restic -q -r {repo} ls latest",
               "restore": "restic -q -r {repo} restore latest --target {dst}"},
    "cp-a": {"restore": "cp -a {repo}/c/. {dst}/"},
}
PASSWORD = {"RESTIC_PASSWORD": "bench"}


def rows(folder, profile, program, times):
    """Runs the tools in turn on the repositories of the harness. Yields rows in its format."""
    commands = COMMANDS | {"ours": peers.spec(program, profile)["ours"]}
    for operation in ("list", "restore"):
        for _ in range(times):
            for tool, known in commands.items():
                if operation in known:
                    yield once(folder / "work" / tool.replace("-", "_"), tool, operation,
                               known[operation])


def once(place, tool, operation, template):
    """Runs a command once and moves the restored tree aside."""
    fields = {"repo": place / "repo", "dst": place / "again", "state": place / "state"}
    programs.set_aside(fields["dst"])
    fields["dst"].mkdir(parents=True)
    command = template.format(**{name: shlex.quote(str(path)) for name, path in fields.items()})
    state = str(fields["state"])
    environment = os.environ | PASSWORD | peers.environment(state) | \
        {"RESTIC_CACHE_DIR": f"{state}/cache", "LC_ALL": "C.UTF-8"}
    warm(fields["repo"])
    start = time.monotonic()
    ended = subprocess.run(["bash", "-c", command], env=environment, stdout=subprocess.DEVNULL,
                           stderr=subprocess.PIPE, text=True, check=False)
    wall = time.monotonic() - start
    subprocess.run(["sync", "-f", str(place)], check=True)
    flush = time.monotonic() - start - wall
    programs.set_aside(fields["dst"])
    return {"tool": tool, "op": operation, "wall": wall, "flush": flush, "rc": ended.returncode,
            "err": ended.stderr, "note": ""}


def warm(folder: pathlib.Path):
    """Reads a tree into the page cache."""
    subprocess.run(f"tar cf - {shlex.quote(str(folder))} 2>/dev/null | cat >/dev/null", shell=True,
                   check=True)
