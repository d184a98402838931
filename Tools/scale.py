#!/usr/bin/env python3
"""Runs every command once on a device with large containers, on two volumes.

usage: scale.py PROGRAM [ENTRIES]

The device has one container of ENTRIES files (60,000), with directories nested to a depth of a
thirtieth of that, thirty containers of a sixtieth each, and one on a second volume (root can mount
one; without root this is reported). Each command must end with the expected status and the correct
result, within its time limit (a multiple of the time of `find` or `cp -a` for the same tree in the
same run, but at least three seconds) and its memory limit. The commands come from the program's
parser: a command that no step runs is an error.

Everything runs on a tenth of the entries first: the processor time of a step may grow by at most
three times n log n (a quadratic step grows by eight times that).
"""

import dataclasses
import json
import math
import os
import pathlib
import plistlib
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path("device")
UUID = "0A0A0A0A-0000-4000-8000-{:012X}"
SMALL_APPS = 30
# Short enough that system calls accept the path of a file in the deepest directory.
MOST_LEVELS = 1800
# Python's functions for trees are recursive.
sys.setrecursionlimit(3 * MOST_LEVELS)
LEAST_SECONDS = 3.0
# Anonymous memory (RssAnon) in bytes: a fixed part, and a part for each entry.
BASE_MEMORY, ENTRY_MEMORY = 150e6, 25
# The minimum processor time for a comparison, in seconds, and the factor allowed over n log n.
LEAST_COMPARED, TOLERANCE = 0.5, 3.0
# The time of the suite in seconds, for devices of up to MOST_ENTRIES entries: more is a warning,
# because machines and their disks differ, and more than the second number a failure.
USUAL_SECONDS, MOST_SECONDS, MOST_ENTRIES = 300, 600, 60_000
ANONYMOUS = re.compile(r"RssAnon:\s+(\d+) kB")


class Failed(Exception):
    """A step with an unexpected result."""


@dataclasses.dataclass
class Row:
    """The cost of a step: seconds, ratio to a reference, bytes of memory, processor time."""

    words: str
    taken: float
    ratio: float
    of: str
    memory: int
    used: float


def processor_seconds():
    """Returns the processor time of all child processes that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


class Device:
    """The device and its containers."""

    def __init__(self, directory, entries):
        self.root = directory / ROOT
        self.entries = entries
        self.count = 0
        begin_device(self.root, 0)
        self.big = self.app("big", 0, entries)
        for number in range(1, SMALL_APPS + 1):
            self.app(f"small{number:02}", number, entries // 60)
        self.nested = self.big / "Documents/nested"
        self.nest()
        self.other_volume = self.mount(directory)
        if self.other_volume:
            self.app("elsewhere", SMALL_APPS + 1, entries // 60, self.other_volume)

    def container(self, family, number, identifier, content_class):
        place = self.root / "data/Containers" / family / UUID.format(number)
        place.mkdir(parents=True)
        metadata = {"MCMMetadataIdentifier": identifier, "MCMMetadataUUID": place.name,
                    "MCMMetadataContentClass": content_class}
        (place / ".com.apple.mobile_container_manager.metadata.plist").write_bytes(
            plistlib.dumps(metadata))
        return place

    def app(self, name, number, files, volume=None):
        """Makes an app with a bundle and `files` files: two thirds documents, half of them in one
        directory, the rest caches, half of them in directories that are deleted as a whole."""
        bundle = self.container("Bundle/Application", 2 * number, f"org.example.{name}", 1)
        write_bundle(bundle, name, "1.0")
        data = self.container("Data/Application", 2 * number + 1, f"org.example.{name}", 2)
        if volume:
            self.move_to(data, volume)
        whole = files // 12
        self.fill(data / "Documents", files // 3, name)
        self.fill(data / "Library/Caches", files // 3 - 2 * whole, name)
        for number in range(whole):
            responses = data / f"Library/Caches/host-{number}/fsCachedData"
            responses.mkdir(parents=True)
            write(responses, 0, name)
            write(responses, 1, name)
        flat = data / "Documents/flat"
        flat.mkdir()
        for file in range(files // 3):
            write(flat, file, name)
        self.count += files // 3 * 3
        (data / "tmp").mkdir()
        return data

    def nest(self):
        """Makes nested directories, each next to an empty one, with a file in every tenth."""
        place = self.nested
        for level in range(min(self.entries // 32, MOST_LEVELS)):
            place.mkdir()
            (place / "beside").mkdir()
            if level % 10 == 0:
                write(place, level, "nested")
            place /= "d"

    @staticmethod
    def fill(place, files, name):
        """Makes directories of 80 files, 64 directories in each parent."""
        for first in range(0, files, 80):
            directory = place / f"group-{first // 5120}" / f"directory-{first:07}"
            directory.mkdir(parents=True)
            for file in range(first, min(files, first + 80)):
                write(directory, file, name)

    @staticmethod
    def move_to(data, volume):
        """Moves a container to another volume, replacing it with a link."""
        place = volume / data.name
        shutil.copytree(data, place)
        shutil.rmtree(data)
        data.symlink_to(place)

    @staticmethod
    def mount(directory):
        """Mounts a second volume; returns None if mounting is not permitted."""
        place = directory / "volume"
        place.mkdir()
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2g", "tmpfs", place],
                                 capture_output=True, check=False).returncode == 0
        if not mounted:
            print("scale: no second volume: mounting is not permitted here", flush=True)
        return place if mounted else None


def write(directory, file, name):
    (directory / f"file-{file:07}.txt").write_bytes(b"%s %d\n" % (name.encode(), file))


def begin_device(root, number):
    """Makes a simulator directory without apps."""
    (root / "data/Containers").mkdir(parents=True)
    (root / "device.plist").write_bytes(plistlib.dumps({
        "UDID": UUID.format(number), "name": f"iPhone {number}",
        "deviceType": "com.apple.CoreSimulator.SimDeviceType.iPhone-15",
        "runtime": "com.apple.CoreSimulator.SimRuntime.iOS-17-5"}))


def write_bundle(place, name, version):
    bundle = place / f"{name}.app"
    bundle.mkdir(parents=True)
    (bundle / "Info.plist").write_bytes(plistlib.dumps({
        "CFBundleIdentifier": f"org.example.{name}", "CFBundleName": name,
        "CFBundleExecutable": name, "CFBundlePackageType": "APPL",
        "CFBundleShortVersionString": version, "CFBundleVersion": version}))
    (bundle / name).write_bytes(b"program " + version.encode())
    return bundle


class Scale:
    """Runs the steps and records which commands they cover."""

    def __init__(self, program, directory, entries):
        self.program, self.directory = program, directory
        self.environment = {"HOME": str(directory), "PATH": f"{directory}/bin:/usr/bin:/bin",
                            "TZ": "UTC", "SANDBOXCTL_REPOSITORY": str(directory / "repo")}
        self.commands = self.parser_commands()
        self.seen = set()
        self.rows = []
        self.device = Device(directory, entries)
        self.yardsticks = {"find": self.seconds("find", ROOT, "-printf", "%s%T@"),
                           # A backup or restore also ends with a sync to disk.
                           "cp": self.seconds("sh", "-c", 'cp -a "$0" copy && sync -f copy',
                                              self.device.big)}
        self.check_fake_crontab()

    def seconds(self, *words):
        begun = time.monotonic()
        subprocess.run(words, cwd=self.directory, check=True, stdout=subprocess.DEVNULL)
        return time.monotonic() - begun

    def check_fake_crontab(self):
        """Installs a fake crontab, so that the user's is never touched."""
        place = self.directory / "bin/crontab"
        place.parent.mkdir()
        place.write_text('#!/bin/sh\ntable="$HOME/crontab"\ncase "$1" in\n'
                         '  -l) cat "$table" 2>/dev/null || { echo "no crontab for user" >&2; '
                         'exit 1; } ;;\n  -r) rm -f "$table" ;;\n  *) cat > "$table" ;;\nesac\n')
        place.chmod(0o755)

    def parser_commands(self):
        """Returns the words of each command of the parser, without groups and `help`."""
        output = subprocess.run([self.program, "--experimental-dump-help"], check=True,
                                capture_output=True, text=True).stdout
        found = set()

        def collect(command, words):
            below = [each for each in command.get("subcommands") or []
                     if each["commandName"] != "help"]
            for each in below:
                collect(each, (*words, each["commandName"]))
            if not below:
                found.add(words)

        collect(json.loads(output)["command"], ())
        return found

    def run(self, *words, times=None, of="find", status=0, stdin=None):
        """Runs a command, checks its status, time and memory, and returns its standard output."""
        words = [str(word) for word in words]
        command = max((each for each in self.commands if tuple(words[:len(each)]) == each),
                      key=len, default=None)
        if command is None:
            raise Failed(f"no such command: {' '.join(words)}")
        self.seen.add(command)
        output, errors = self.directory / "output", self.directory / "errors"
        with open(output, "wb") as out, open(errors, "wb") as err:
            begun, used = time.monotonic(), processor_seconds()
            process = subprocess.Popen(
                [self.program, *words], cwd=self.directory, env=self.environment, stdout=out,
                stderr=err, stdin=open(stdin, "rb") if stdin else subprocess.DEVNULL)
            memory = self.watch(process)
            taken = time.monotonic() - begun
        self.rows.append(Row(" ".join(words)[:60], taken, taken / self.yardsticks[of], of, memory,
                             processor_seconds() - used))
        if process.returncode != status:
            raise Failed(f"{' '.join(words)}: status {process.returncode}, not {status}\n"
                         f"{errors.read_text(errors='replace')[-2000:]}")
        if times and taken > max(LEAST_SECONDS, times * self.yardsticks[of]):
            raise Failed(f"{' '.join(words)}: {taken:.1f} s, more than {times} times {of} "
                         f"({self.yardsticks[of]:.2f} s)")
        if memory > BASE_MEMORY + ENTRY_MEMORY * self.device.count:
            raise Failed(f"{' '.join(words)}: {memory / 1e6:.0f} MB of memory")
        return output.read_text(errors="replace")

    @staticmethod
    def watch(process):
        """Waits for a process. Returns its peak anonymous memory."""
        memory = 0
        while process.poll() is None:
            try:
                status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
            except OSError:
                continue
            found = ANONYMOUS.search(status)
            memory = max(memory, int(found[1]) * 1024 if found else 0)
            time.sleep(0.002)
        return memory

    def require_all_commands(self):
        missing = sorted(" ".join(words) for words in self.commands - self.seen)
        if missing:
            raise Failed(f"no step runs these commands: {', '.join(missing)}")

    def table(self):
        yield f"{'step':60}  {'seconds':>8}  {'ratio':>12}  {'memory':>8}"
        for row in self.rows:
            yield (f"{row.words:60}  {row.taken:8.2f}  {row.ratio:7.2f} {row.of:>4}  "
                   f"{row.memory / 1e6:5.0f} MB")


def expect(condition, reason):
    if not condition:
        raise Failed(reason)


def lines(text):
    return [json.loads(line) for line in text.splitlines() if line.strip()]


def identical(first, second):
    """Whether two trees have the same files with the same content."""
    return subprocess.run(["diff", "-r", "--no-dereference", "-q", first, second],
                          capture_output=True, check=False).returncode == 0


def look(scale):
    """Runs commands that only read the device."""
    apps = SMALL_APPS + 1 + bool(scale.device.other_volume)
    found = lines(scale.run("apps", "--root", ROOT, "--json", times=3))
    listed = {app["id"] for device in found for app in device.get("apps", [])}
    expect(len(listed) == apps, f"apps lists {len(listed)} apps, not {apps}")
    summary = scale.run("classify", "--root", ROOT, "--summary", "--json", times=6)
    expect("user-data" in summary and "cache" in summary, "classify names no classes")
    entries = len(lines(scale.run("classify", "--root", ROOT, "--json", times=40)))
    expect(entries >= scale.device.count, f"classify lists only {entries} entries")
    reason = scale.run("explain", "--root", ROOT, "--purge", "big/Library/Caches", times=6)
    expect("rule caches" in reason, "explain names no rule")
    found = lines(scale.run("audit", "--root", ROOT, "--json", times=20))
    expect(found and "summary" in found[-1], "audit prints no summary")
    for word in ("exclude", "include"):
        marked = lines(scale.run(
            word, "big/Documents/group-0", "--root", ROOT, "--json", times=6))
        expect(marked[0]["stored"] == (word == "include") and marked[0]["marks"],
               f"{word} changes no mark")
    handlers = scale.run("interapp", "handlers", "--type", "public.png", "--root", ROOT, times=3,
                         status=5)
    expect("no app opens it" in handlers, "an app without document types opens a type")
    opened = scale.run("interapp", "open", "mailto:a@example.com", "--root", ROOT, times=3)
    expect("Mail" in opened, "the system does not open a mail address")
    found = lines(scale.run("interapp", "extensions", "--root", ROOT, "--json", times=3))
    expect(len(found[0]["points"]) >= 50, "extensions lists no points")
    found = lines(scale.run("interapp", "groups", "--root", ROOT, "--json", times=6))
    expect("groups" in found[0], "groups prints no groups")
    text = scale.run("interapp", "share", "text:x", "--root", ROOT, times=3, status=5)
    expect("no app of the device" in text, "a device without extensions offers one")
    (scale.directory / "test.scenario.yaml").write_text(SCENARIO, encoding="utf-8")
    tested = scale.run("scenario", "run", "test.scenario.yaml")
    expect("1 case: 1 passed" in tested, "the scenario does not pass")
    listed = scale.run("scenario", "list")
    expect(len(listed.splitlines()) == 10, "scenario list lists other scenarios than ten")
    expect('"steps"' in scale.run("scenario", "schema"), "the schema of scenarios lacks the steps")
    scale.run("scenario", "init", "--root", ROOT, "--to", "device.scenario.yaml", times=40)
    inboxes(scale)


def inboxes(scale):
    """Runs the commands about inboxes; the apps of the device declare no document types."""
    (scale.directory / "report.pdf").write_bytes(b"%PDF-1.7\n")
    scale.run("interapp", "deliver", "report.pdf", "--to", "big", "--root", ROOT, times=3, status=1)
    for word in ("list", "check"):
        text = scale.run("interapp", "inbox", word, "--root", ROOT, times=3)
        expect("empty" in text, f"inbox {word} lists files of an empty inbox")
    scale.run("interapp", "inbox", "claim", "x", "--app", "big", "--root", ROOT, times=3, status=1)
    text = scale.run("interapp", "inbox", "clean", "--yes", "--root", ROOT, times=3)
    expect("nothing is old enough" in text, "inbox clean finds files in an empty inbox")


# A scenario on the sample device.
SCENARIO = """\
scenario: an update keeps the notes
schema: 1
device: {sample: 0}
steps:
  - update: {app: notebook, version: "9.0"}
  - expect: [{match: apps/org.example.notebook/data/Documents/Notes/**, same-bytes: beginning}]
"""


def mounted(scale):
    """Runs `mount` while another thread lists everything, reads a file, and unmounts. Without FUSE the
    directory is missing, which is an error."""
    view = scale.directory / "view"
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        print("scale: nothing is mounted: /dev/fuse cannot be opened here", flush=True)
        scale.run("mount", view, status=2)
        return
    view.mkdir()
    seen = {}

    def use():
        try:
            end = time.monotonic() + 60
            while not os.path.ismount(view) and time.monotonic() < end:
                time.sleep(0.02)
            seen["entries"] = sum(len(names) + len(files) for _, names, files
                                  in os.walk(view / "latest/apps/org.example.big"))
            path = "data/Documents/group-0/directory-0000000/file-0000007.txt"
            seen["bytes"] = (view / "latest/apps/org.example.big" / path).read_bytes()
        finally:
            words = ["umount"] if os.geteuid() == 0 else ["fusermount3", "-u"]
            subprocess.run([*words, view], check=False)

    user = threading.Thread(target=use)
    user.start()
    scale.run("mount", view, times=20)
    user.join()
    expect(seen.get("bytes") == b"big 7\n", f"the mount has other bytes: {seen}")
    expect(seen["entries"] >= scale.device.entries // 2, f"the mount has {seen['entries']} entries")


def store(scale):
    """Runs backups and commands that read a repository."""
    scale.run("init", "repo", "--plain")
    dry = scale.run("backup", "--root", ROOT, "--dry-run", times=10)
    expect("big" in dry, "the dry run names no app")
    scale.run("backup", "--root", ROOT, "--quiet", times=4, of="cp")
    scale.run("backup", "--root", ROOT, "--quiet", times=30)
    for number in range(100):
        path = scale.device.big / "Documents/group-0/directory-0000000" / f"new-{number}"
        path.write_bytes(b"new")
    # Archives are limited to 512 nested directories: the latest snapshot has fewer.
    shutil.rmtree(scale.device.nested)
    scale.run("backup", "--root", ROOT, "--quiet", times=30)
    snapshots = lines(scale.run("snapshots", "list", "--json"))
    expect(len(snapshots) == 3, f"{len(snapshots)} snapshots, not 3")
    expect("ios" in scale.run("snapshots", "show", "latest"), "the snapshot names no policy")
    listed = scale.run("ls", "latest", "--recursive", times=20).count("\n")
    kept = 2 * scale.device.count // 3
    expect(listed > kept, f"ls lists {listed} entries, not {kept}")
    found = scale.run("find", "file-0000001.txt", "--snapshot", "latest", times=20)
    expect(found.count("file-0000001.txt") >= SMALL_APPS, "find does not find the files")
    expect(scale.run("diff", "latest~1", "latest", times=20).count("new-") == 100,
           "diff does not name the 100 new files")
    versions = lines(scale.run("versions", "--json", "big/Documents/group-0/directory-0000000"))
    expect(len(versions) == 2, f"versions names {len(versions)} versions, not 2")
    expect("big 7" in scale.run(
        "dump", "latest:big/Documents/group-0/directory-0000000/file-0000007.txt"), "dump is wrong")
    mounted(scale)
    scale.run("stats", "latest", times=20)
    scale.run("check", "--read-data", "--quiet", times=40)
    # A user who may write to a directory can also remove its files.
    checked = lines(scale.run("check", "--append-only", "--json", times=3, status=5))
    expect(checked[-1]["append_only"] is False, "check finds a directory that is append-only")
    scale.run("repair", "index", times=20)
    scale.run("repair", "packs", times=20)
    scale.run("repair", "snapshots", times=20)
    scale.run("snapshots", "pin", "latest")
    scale.run("snapshots", "unpin", "latest")
    kept = lines(scale.run("forget", "--keep-last", 9, "--json"))
    expect(kept[-1]["summary"]["kept"] == 3, f"forget keeps {kept[-1]}")
    scale.run("prune", "--dry-run", times=20)
    scale.run("prune", "--quiet", times=20)
    scale.run("init", "second", "--plain", "--no-default")
    scale.run("copy", "--to", "second", "--check", "--quiet", times=40)
    copied = lines(scale.run("copy", "--to", "second", "--json", times=4))
    expect(copied[-1]["summary"]["present"] == 3, f"copy finds {copied[-1]}")
    scale.run("mirror", "--to", "mirror", "--quiet", times=20)
    mirrored = lines(scale.run("mirror", "--to", "mirror", "--json", times=4))
    expect(mirrored[-1]["summary"]["copied"]["packs"] == 0, f"mirror copies {mirrored[-1]}")
    scale.run("leases", "--quiet")
    exchange(scale)
    scale.device.nest()


def exchange(scale):
    """Exports the device's snapshots, and imports archives into the second repository."""
    scale.run("export", "tar", "latest", "all.tar", "--quiet", times=40)
    imported = lines(scale.run("import", "tar", "all.tar", "--json", "--repo", "second", times=40))
    expect(imported[0]["skipped"] == 0 and imported[0]["files"] >= scale.device.count // 2,
           f"import tar reports {imported[0]}")
    expect(imported[0]["new_bytes"] < imported[0]["bytes"] // 2, "import tar stores data again")
    scale.run("export", "zip", "latest:big/Documents/group-0", "group.zip", "--quiet", times=20)
    scale.run("import", "zip", "group.zip", "--quiet", "--repo", "second", times=20)
    group = "latest:big/Documents/group-0"
    for name, words in (("itunes", "phone"), ("android", "phone.ab")):
        scale.run("export", name, group, words, "--quiet", times=60)
        imported = lines(scale.run("import", name, words, "--json", "--repo", "second", times=60))
        expect(imported[0]["skipped"] == 0 and imported[0]["new_bytes"] < imported[0]["bytes"] // 2,
               f"import {name} reports {imported[0]}")
    for kind in ("restic", "borg", "kopia"):
        peer = make_peer(scale.directory, kind)
        words = ("import", kind, "old", "--program", peer, "--json", "--repo", "second")
        # An empty list of entries from restic or borg is reported.
        lists = int(kind != "kopia")
        imported = lines(scale.run(*words, times=60, status=3 * lists))
        expect(imported[0]["outcome"] == ("incomplete" if lists else "imported")
               and imported[0]["skipped"] == lists
               and imported[0]["new_bytes"] < imported[0]["bytes"] // 2,
               f"import {kind} reports {imported[0]}")
        again = lines(scale.run(*words, times=4))
        expect(again[0]["outcome"] == "present", f"a second import {kind} reports {again[0]}")
    exchange_apps(scale)
    scale.run("export", "all", "archives", "--quiet", times=200)
    again = lines(scale.run("export", "all", "archives", "--json", times=4))
    expect(again[-1]["summary"]["written"] == 0, f"export all writes {again[-1]} again")


def make_peer(directory, kind):
    """Makes a program that takes the place of restic, borg or kopia, with one snapshot in all.tar."""
    number, when = "ab" * (16 if kind == "kopia" else 32), "2024-01-02T03:04:05"
    listed = {
        "restic": [{"id": number, "time": when + "Z", "hostname": "host", "paths": ["/"]}],
        "borg": {"archives": [{"id": number, "name": "all", "start": when, "hostname": "host"}]},
        "kopia": [{"id": number, "startTime": when + "Z",
                   "source": {"host": "host", "userName": "user", "path": "/"}}],
    }
    peer = directory / f"{kind}-peer"
    # The list of entries is empty: times are then those of the archive.
    peer.write_text(f"""#!/bin/sh
case "$*" in
  *dump*|*export-tar*) exec cat all.tar;;
  *restore*) exec cat all.tar > /dev/stdout;;
  *--json-lines*|*" ls "*) exit 0;;
esac
cat <<'END'
{json.dumps(listed[kind])}
END
""")
    peer.chmod(0o755)
    return peer


def exchange_apps(scale):
    """Exports the data of an app and of snaps, and imports it into the second repository."""
    for name, target in (("xcappdata", "big.xcappdata"), ("ipa", "big.ipa")):
        scale.run("export", name, "latest", target, "--app", "big", "--quiet", times=100)
        imported = lines(scale.run("import", name, target, "--json", "--repo", "second", times=60))
        expect(imported[0]["skipped"] == 0, f"import {name} reports {imported[0]}")
    snaps = scale.directory / "snap-home" / "snap"
    (snaps / "editor" / "1").mkdir(parents=True)
    (snaps / "editor" / "current").symlink_to("1")
    shutil.copytree(scale.device.big / "Documents" / "group-0", snaps / "editor" / "common",
                    symlinks=True)
    scale.run("init", "snaps", "--plain", "--no-default", "--quiet")
    scale.run("backup", "--layout", "snap", "--root", snaps, "--repo", "snaps", "--quiet", times=20)
    scale.run("export", "snap", "latest", "data.snapshot", "--repo", "snaps", "--quiet", times=20)
    imported = lines(scale.run("import", "snap", "data.snapshot", "--json", "--repo", "second",
                               times=20))
    expect(imported[0]["skipped"] == 0 and imported[0]["snaps"] == 1,
           f"import snap reports {imported[0]}")


def encrypt(scale):
    """Backs the device up to an encrypted repository, and changes its keys."""
    old, new = scale.directory / "old-passphrase", scale.directory / "new-passphrase"
    for file in (old, new):
        file.write_text(f"the words of {file.name}\n")
        file.chmod(0o600)
    key = ("--repo", "encrypted", "--passphrase-file")
    scale.run("init", "encrypted", "--passphrase-file", old, "--no-default", "--quiet",
              "--recovery-key", scale.directory / "recovery-key")
    scale.run("backup", "--root", ROOT, *key, old, "--quiet", times=4, of="cp")
    scale.run("backup", "--root", ROOT, *key, old, "--quiet", times=30)
    scale.run("check", "--read-data", *key, old, "--quiet", times=40)
    documents = scale.device.big / "Documents"
    scale.run("restore", "latest:big/Documents", "--to", "decrypted", *key, old, "--quiet",
              times=4, of="cp")
    expect(identical(documents, scale.directory / "decrypted"), "the restored documents differ")
    shutil.rmtree(scale.directory / "decrypted")
    scale.run("key", "add", "second", *key, old, "--new-passphrase-file", new)
    scale.run("key", "change", "second", *key, new, "--new-passphrase-file", old)
    listed = lines(scale.run("key", "list", "--repo", "encrypted", "--json"))
    keys = [each for each in listed if "key" in each]
    expect(len(keys) == 2, f"{len(keys)} keys, not 2")
    scale.run("key", "trust", *key, old, "--quiet")
    scale.run("check", *key, old, "--quiet", times=20)
    signer = next(each["signer"] for each in listed if each.get("this_host"))
    scale.run("key", "untrust", signer, *key, old, "--quiet")
    recipients = scale.run("key", "show-recipient", "--repo", "encrypted").split()
    expect(recipients and all(each.startswith("age1") for each in recipients), "no recipients")
    scale.run("key", "remove", "second", *key, old)
    scale.run("key", "rotate", *key, old, "--quiet",
              "--recovery-key", scale.directory / "next-recovery-key")
    scale.run("key", "rewrap", *key, old, "--dry-run", "--quiet", times=20)
    report = lines(scale.run("key", "rewrap", *key, old, "--json", times=20, of="cp"))[-1]
    expect(report["packs"] and report["older_identities"] == 0,
           f"{report['older_identities']} older identities after {report['packs']} packs")
    scale.run("check", *key, old, "--quiet", times=20)


def restore(scale):
    """Restores to a directory, in place, and to another device."""
    documents = scale.device.big / "Documents"
    # The latest snapshot does not contain them.
    shutil.rmtree(scale.device.nested)
    scale.run("restore", "latest:big/Documents", "--to", "back", "--quiet", times=4, of="cp")
    expect(identical(documents, scale.directory / "back"), "the restored documents differ")
    for path in documents.glob("flat/file-*[02468].txt"):
        path.write_bytes(b"changed since")
    words = ("restore", "latest", "--in-place", "--app", "big", "--overwrite", "always")
    scale.run(*words, "--dry-run", times=60)
    scale.run(*words, "--quiet", times=20, of="cp")
    expect(identical(documents, scale.directory / "back"), "the documents were not restored")
    shutil.rmtree(scale.directory / "back")
    other = scale.directory / "other"
    begin_device(other, 1)
    scale.run("restore", "latest~1", "--to-device", other, "--quiet", times=10, of="cp")
    files = sum(len(names) for _, _, names in os.walk(other))
    expect(files > 2 * scale.device.count // 3, f"only {files} files came to the other device")
    scale.device.nest()


def change_apps(scale):
    """Updates and removes the large app."""
    place = ("--root", ROOT)
    new = write_bundle(scale.directory / "new", "big", "2.0")
    files = scale.device.count
    scale.run("update", new, *place, times=40)
    scale.run("rollback", "big", *place, times=60)
    scale.run("offload", "big", *place, times=40)
    old = write_bundle(scale.directory / "old", "big", "1.0")
    scale.run("reinstall", old, *place, times=20)
    scale.run("uninstall", "small01", *place, "--quiet", times=40)
    scale.run("install", write_bundle(scale.directory / "fresh", "fresh", "1.0"), *place, times=20)
    scale.run("recover", *place)
    expect(lines(scale.run("trash", "list", *place, "--json")), "the trash is empty")
    scale.run("trash", "empty", *place, times=20, of="cp")
    kept = sum(len(names) for _, _, names in os.walk(scale.directory / ROOT))
    expect(kept > files * 9 // 10, f"only {kept} files are left")


def migrate(scale):
    """Moves a profile of as many files as a small app has from the host to a Flatpak."""
    home = scale.directory / "mover"
    profile = home / ".mozilla/firefox/x.default"
    profile.mkdir(parents=True)
    scale.device.fill(profile, scale.device.entries // 6, "profile")
    (home / ".var/app").mkdir(parents=True)
    words = ("migrate", "--from", f"host:{home}", "--to", f"flatpak:{home}", "--app", "firefox")
    scale.run(*words, "--dry-run", times=40)
    scale.run(*words, "--quiet", times=40)
    copied = home / ".var/app/org.mozilla.firefox/.mozilla"
    expect(identical(home / ".mozilla", copied), "the migrated profile differs")
    again = lines(scale.run(*words, "--json", times=40))
    expect(again[0]["files"] == 0 and not again[0]["conflicts"], f"migrate finds {again[0]}")
    shutil.rmtree(home)


def purge(scale):
    """Runs purge queries of each level, then purges all caches."""
    for words in (("--query",), ("--level", "critical", "--dry-run")):
        scale.run("purge", "--root", ROOT, *words, times=30)
    scale.run("purge", "--root", ROOT, "--level", "critical", "--yes", "--quiet", times=20,
              of="cp")
    emptied = set()
    for data in (scale.directory / ROOT / "data/Containers/Data/Application").iterdir():
        caches = data / "Library/Caches"
        expect(not caches.exists() or not any(caches.iterdir()), f"{caches} is not empty")
        if not any((data / "Documents").iterdir()):
            metadata = data / ".com.apple.mobile_container_manager.metadata.plist"
            emptied.add(plistlib.loads(metadata.read_bytes())["MCMMetadataIdentifier"])
    expect(emptied == {"org.example.fresh"}, f"no documents in {', '.join(sorted(emptied))}")


def rest(scale):
    """Runs commands that do not depend on the size of a device, for completeness."""
    scale.run("sample", "small-device")
    for words in (("list",), ("show", "ios"), ("schema",)):
        expect(scale.run("policy", *words), f"policy {words[0]} prints nothing")
    policy = scale.directory / "ios.yaml"
    policy.write_text(scale.run("policy", "show", "ios"))
    scale.run("policy", "lint", policy)
    scale.run("policy", "test", policy)
    scale.run("schedule", "install", "--cron", "--", "--root", str(scale.device.root))
    expect("backup" in scale.run("schedule", "status"), "nothing is scheduled")
    scale.run("schedule", "remove")
    expect(lines(scale.run("cache", "list", "--json")), "there is no cache")
    scale.run("cache", "clear", "--all", "--quiet")
    expect(not lines(scale.run("cache", "list", "--json")), "a cache is left")


def run_all(program, entries):
    """Runs every step on a device of the given size. Returns the cost of each."""
    directory = pathlib.Path(tempfile.mkdtemp(prefix="sandboxctl-scale-")).resolve()
    scale, begun = None, time.monotonic()
    try:
        scale = Scale(program, directory, entries)
        for part in (look, store, encrypt, restore, change_apps, migrate, purge,
                     rest):
            part(scale)
        scale.require_all_commands()
    except Failed as failure:
        sys.exit(f"scale: error: {failure}")
    finally:
        if scale:
            print("\n".join(scale.table()), flush=True)
        subprocess.run(["umount", directory / "volume"], capture_output=True, check=False)
        shutil.rmtree(directory, ignore_errors=True)
    print(f"scale: {scale.device.count} files, {len(scale.commands)} commands, "
          f"{time.monotonic() - begun:.0f} s: all as expected", flush=True)
    return scale.rows


def allowed_growth(least, most):
    """Returns the factor by which a time may grow from `least` to `most` entries."""
    return TOLERANCE * most * math.log(most) / (least * math.log(least))


def compare_growth(small, large, sizes):
    """Fails if a step's processor time grows faster than n log n."""
    least, most = sizes
    allowed = allowed_growth(least, most)
    worst = (0.0, "no step takes long enough for a comparison")
    for before, after in zip(small, large, strict=True):
        if after.used < LEAST_COMPARED:
            continue
        growth = after.used / max(before.used, 0.01)
        worst = max(worst, (growth, after.words))
        if growth > allowed:
            sys.exit(f"scale: error: {after.words}: {before.used:.2f} s of processor time for "
                     f"{least} entries, {after.used:.2f} s for {most}: more than n log n")
    print(f"scale: from {least} to {most} entries, processor time grows by at most {worst[0]:.1f} "
          f"({worst[1]}); allowed: {allowed:.1f}")


def limit_time(seconds):
    """Fails if the suite took too long, and warns if it took longer than usual."""
    if seconds > MOST_SECONDS:
        sys.exit(f"scale: error: {seconds:.0f} s, more than {MOST_SECONDS}")
    if seconds > USUAL_SECONDS:
        print(f"scale: WARNING: {seconds:.0f} s, more than {USUAL_SECONDS}", file=sys.stderr)


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit("usage: scale.py PROGRAM [ENTRIES]")
    program = str(pathlib.Path(sys.argv[1]).resolve())
    entries = int(sys.argv[2]) if len(sys.argv) > 2 else 60_000
    sizes, begun = (max(600, entries // 10), entries), time.monotonic()
    compare_growth(*(run_all(program, size) for size in sizes), sizes)
    if entries <= MOST_ENTRIES:
        limit_time(time.monotonic() - begun)


if __name__ == "__main__":
    main()
