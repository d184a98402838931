#!/usr/bin/python3
"""Speaks as much of restic, borg and kopia as an import needs.

The states of the source are the directories of `states`, next to this file, in the order of their
names: each is a snapshot with the names in it as absolute paths. `states/NAME.json`, if it exists,
says how it fails:

  {"cut": N}      the archive ends after N bytes
  {"status": N}   the program ends with this status, after a message
  {"hang": true}  it writes the file `hanging` and waits after the first 2,000 bytes
  {"id": TEXT}    another ID in the list
  {"list": N}     the list of entries of restic ends with this status

`states/list.json` replaces the list. Each call is recorded in `calls`.
"""

import datetime
import hashlib
import io
import json
import os
import pathlib
import sys
import tarfile
import time

HERE = pathlib.Path(os.path.dirname(os.path.abspath(sys.argv[0])))
STATES = HERE / "states"


class State:
    """A state of the source, with its ID and its time."""

    def __init__(self, number, directory):
        self.directory = directory
        faults = directory.with_suffix(".json")
        self.faults = json.loads(faults.read_text()) if faults.exists() else {}
        self.id = hashlib.sha256(directory.name.encode()).hexdigest()
        self.name = f"docs-2024-01-{number:02}T03:04:05"
        self.time = f"2024-01-{number:02}T03:04:05"

    def entries(self):
        """Yields each path with its status, directories before what they contain."""
        pending = [self.directory]
        while pending:
            path = pending.pop()
            if path != self.directory:
                yield path, path.lstat()
            if path.is_dir() and not path.is_symlink():
                pending += sorted(path.iterdir(), reverse=True)

    def archive(self):
        """Returns the tar archive: times are in whole seconds, special files are missing."""
        output = io.BytesIO()
        with tarfile.open(fileobj=output, mode="w", format=tarfile.GNU_FORMAT) as tar:
            for path, status in self.entries():
                member = tar.gettarinfo(path, str(path.relative_to(self.directory)))
                if member is None or member.isfifo():
                    continue
                member.mtime = round(status.st_mtime)
                with open(path, "rb") if member.isreg() else io.BytesIO() as content:
                    tar.addfile(member, content)
        return output.getvalue()


def rfc3339(nanoseconds):
    date = datetime.datetime.fromtimestamp(nanoseconds // 10**9, datetime.timezone.utc)
    return date.strftime("%Y-%m-%dT%H:%M:%S") + f".{nanoseconds % 10**9:09}"


def restic_list(states):
    return [{"time": state.time + "+01:00", "tree": state.id, "paths": ["/docs"],
             "hostname": "ada", "username": "grace", "tags": ["a", "restic:" + "0" * 64],
             "id": state.faults.get("id", state.id)} for state in states]


def borg_list(states):
    return {"archives": [{"name": state.name, "barchive": state.name, "id": state.id,
                          "start": state.time + ".000000", "hostname": "ada", "username": "grace"}
                         for state in reversed(states)]}


def kopia_list(states):
    """The manifests of snapshots (snapshot/manifest.go), the last one incomplete."""
    manifests = [{
        "id": state.id[:32], "description": "", "startTime": state.time + ".5Z",
        "endTime": state.time + "Z", "tags": {"tag:env": "prod"},
        "source": {"host": "ada", "userName": "grace", "path": "/srv/files"},
        "rootEntry": {"name": "files", "type": "d", "mode": "0751", "obj": "k" + state.id[:32],
                      "mtime": "2023-01-02T03:04:05.123456789Z", "uid": 0, "gid": 0},
        "retentionReason": ["latest-1"]} for state in states]
    return manifests + [{"id": "f" * 32, "startTime": "2024-02-01T00:00:00Z",
                         "incomplete": "canceled", "source": manifests[0]["source"]}]


def restic_entries(state):
    print(json.dumps({"struct_type": "snapshot", "id": state.id}))
    kinds = {0o04: "dir", 0o10: "file", 0o12: "symlink", 0o01: "fifo"}
    for path, status in state.entries():
        print(json.dumps({
            "struct_type": "node", "type": kinds[status.st_mode >> 12],
            "path": "/" + str(path.relative_to(state.directory)),
            "mtime": rfc3339(status.st_mtime_ns) + "Z"}))


def borg_entries(state):
    for path, status in state.entries():
        print(json.dumps({
            "type": "-", "path": str(path.relative_to(state.directory)), "healthy": True,
            "isomtime": rfc3339(status.st_mtime_ns)[:-3]}))


def write_archive(state, output):
    content = state.archive()
    if state.faults.get("hang"):
        output.write(content[:2000])
        output.flush()
        (HERE / "hanging").write_text(str(os.getpid()))
        time.sleep(600)
    output.write(content[:state.faults.get("cut", len(content))])
    output.flush()
    if "status" in state.faults:
        print("progress 10 %\rreading\nFatal: the pack is damaged", file=sys.stderr)
        sys.exit(state.faults["status"])


def main(words):
    with open(HERE / "calls", "a") as calls:
        calls.write(json.dumps(words) + "\n")
    directories = sorted(path for path in STATES.iterdir() if path.is_dir())
    states = [State(number, path) for number, path in enumerate(directories, 1)]

    def named(text):
        return next(state for state in states if text in (
            state.id, state.id[:32], "old::" + state.name))

    def show(found):
        replaced = STATES / "list.json"
        print(replaced.read_text() if replaced.exists() else json.dumps(found, indent=2))

    options = [word for word in words if word.startswith("-")]
    names = [word for word in words if not word.startswith("-")]
    if names[:1] == ["snapshots"]:
        show(restic_list(states))
    elif names[:1] == ["dump"]:
        write_archive(named(names[2]), sys.stdout.buffer)
    elif names[:1] == ["ls"]:
        restic_entries(named(names[1]))
        sys.exit(named(names[1]).faults.get("list", 0))
    elif names[:2] == ["snapshot", "list"]:
        show(kopia_list(states))
    elif names[:1] == ["restore"]:
        # kopia opens its output like os.Create of Go.
        target = os.open(names[2], os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o666)
        with os.fdopen(target, "wb") as output:
            write_archive(named(names[1]), output)
    elif names[:1] == ["list"] and "--json" in options:
        show(borg_list(states))
    elif names[:1] == ["list"]:
        borg_entries(named(names[-1]))
    elif names[:1] == ["export-tar"]:
        write_archive(named(names[1]), sys.stdout.buffer)
    else:
        print(f"unknown command: {words}", file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main(sys.argv[1:])
