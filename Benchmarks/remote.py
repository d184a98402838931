#!/usr/bin/env python3
"""Compares the program with restic over a link with a delay: repositories in S3 and over SFTP.

usage: remote.py [--program PROGRAM] [--profiles apps many] [--stores s3 sftp] [--scale 0.3] [--seed 1]
                 [--reps 3] [--ms 20] [--encrypted] [--folder DIR] [--keep] [--check]

Both programs do the same operation in turn, with the same server, through delay.py, which adds the delay
and counts requests and bytes. S3 is Ceph RGW, started from the lab in ../shared, if that exists and its
packages are installed; otherwise the store of the tests, a Python program with objects in memory. SFTP is
OpenSSH's server without SSH. Without --program, a release build is made. DIR must be on a disk, because
each backup reads files in a file system in memory again (docs/state-file.md).

Prints for each operation the medians, the ratio and its goal (issue 23), the requests and the bytes of one run.
The exit status is 1 if a step failed, and with --check if a goal is missed.
"""

import argparse
import collections
import json
import os
import pathlib
import shutil
import socket
import statistics
import subprocess
import sys
import time

import budgets
import peers
import programs
from budgets import Line

HERE = pathlib.Path(__file__).resolve().parent
SFTP_SERVERS = ["/usr/lib/openssh/sftp-server", "/usr/libexec/openssh/sftp-server",
                "/usr/lib/ssh/sftp-server"]
GOALS = {"first backup": 0.5, "unchanged": 0.3, "restore": 0.4, "list": 0.3, "snapshots": 0.3}
REQUEST_GOALS = {"unchanged": 10, "snapshots": 3}
BUCKET = "sandboxctl-bench"


class Store:
    """A server behind the link."""

    def __init__(self, folder, milliseconds):
        self.folder, self.milliseconds = folder, milliseconds
        self.counts = folder / "counts"
        self.processes = []

    def delay(self):
        return [sys.executable, str(HERE / "delay.py"), "--ms", str(self.milliseconds), "--counts",
                str(self.counts)]

    def taken(self):
        """Returns the requests by kind and the bytes of the connections since the last call."""
        time.sleep(0.3 + self.milliseconds / 500)
        kinds, transferred = collections.Counter(), 0
        if self.counts.exists():
            for line in self.counts.read_text(encoding="utf-8").splitlines():
                found = json.loads(line)
                kinds.update(found["requests"])
                transferred += found["sent"] + found["received"]
            self.counts.unlink()
        return kinds, transferred

    def renew(self):
        """Removes all stored objects, if the store has little space."""

    def start(self, command):
        """Starts a server that prints its port, and ends with its standard input."""
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.processes.append(process)
        return int(process.stdout.readline())

    def close(self):
        for process in reversed(self.processes):
            process.stdin.close()
            process.wait()


class SFTP(Store):
    """OpenSSH's SFTP server, in place of ssh."""

    title = "SFTP (OpenSSH's server)"

    def __init__(self, folder, milliseconds):
        super().__init__(folder, milliseconds)
        server = next((name for name in SFTP_SERVERS if os.path.exists(name)), None)
        if server is None:
            raise programs.Failed("OpenSSH's sftp-server is not installed")
        self.command = " ".join(self.delay() + ["pipe", server])
        self.root = folder / "server"
        self.root.mkdir()

    def ours(self, name):
        return f"sftp:bench{self.root}/{name}", ["--ssh-command", self.command]

    def restic(self, name):
        return f"sftp:bench:{self.root}/{name}", ["-o", f"sftp.command={self.command}"]

    def environment(self):
        return {}


class S3(Store):
    """Ceph RGW, or the store of the tests."""

    def __init__(self, folder, milliseconds):
        super().__init__(folder, milliseconds)
        self.lab = peers.harness() and peers.harness().parent / "lab" / "s3"
        self.is_ceph = self.lab and shutil.which("radosgw") and self.start_ceph()
        if self.is_ceph:
            self.title, port = "S3 (Ceph RGW)", 19000
            self.keys = ("LABKEY", "LABSECRET")
        else:
            self.title = "S3 (the store of the tests, which is slow)"
            program = programs.PACKAGE / "Tests" / "RemoteStorageTests" / "Programs" / "store.py"
            port = self.start([sys.executable, str(program)])
            self.keys = ("test", "test")
        self.port = self.start(self.delay() + ["tcp", str(port)])

    def start_ceph(self):
        """Starts Ceph unless it is running. Returns whether it is available."""
        if listens(19000):
            return True
        subprocess.run(["bash", str(self.lab / "ceph-up.sh"), str(self.folder / "ceph"), "memstore"],
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
        self.has_started = listens(19000)
        return self.has_started

    def stop_ceph(self):
        subprocess.run(["bash", str(self.lab / "ceph-down.sh"), str(self.folder / "ceph")],
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)

    def renew(self):
        """Restarts Ceph: its objects are in memory, at most 2 GB, and it blocks if there are more."""
        if getattr(self, "has_started", False):
            self.stop_ceph()
            if not self.start_ceph():
                raise programs.Failed("Ceph does not start again")

    def close(self):
        super().close()
        if getattr(self, "has_started", False):
            self.stop_ceph()

    def ours(self, name):
        return f"s3://{BUCKET}/{name}", []

    def restic(self, name):
        return f"s3:http://127.0.0.1:{self.port}/{BUCKET}/{name}", []

    def environment(self):
        return {"AWS_ACCESS_KEY_ID": self.keys[0], "AWS_SECRET_ACCESS_KEY": self.keys[1],
                "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self.port}"}


def listens(port):
    with socket.socket() as connection:
        return connection.connect_ex(("127.0.0.1", port)) == 0


class Program:
    """sandboxctl or restic, with its repository and caches."""

    def __init__(self, store, folder, options):
        self.store, self.options = store, options
        self.state = folder / self.name
        self.state.mkdir()
        self.number = 0
        self.target = self.extra = None
        self.environment = os.environ | store.environment() | peers.environment(str(self.state))
        self.password = folder / "password"
        self.password.write_text("correct horse\n", encoding="utf-8")
        self.password.chmod(0o600)
        self.measured = collections.defaultdict(list)

    def run(self, *arguments):
        return programs.seconds(self.command(*arguments), self.environment)[0]

    def measure(self, operation, *arguments):
        self.store.taken()
        seconds = self.run(*arguments)
        self.measured[operation].append((seconds, *self.store.taken()))

    def begin(self):
        """Makes a new repository without caches."""
        self.number += 1
        shutil.rmtree(self.state)
        self.state.mkdir()
        place = getattr(self.store, self.name)
        self.target, self.extra = place(f"{self.name}-{os.getpid()}-{self.number}")

    def seconds(self, operation):
        return [found[0] for found in self.measured[operation]]

    def requests(self, operation):
        found = self.measured[operation]
        return statistics.median_low(sum(kinds.values()) for _, kinds, _ in found) if found else 0

    def bytes(self, operation):
        found = self.measured[operation]
        return statistics.median_low(amount for *_, amount in found) if found else 0


class Ours(Program):
    name = "ours"

    def command(self, *arguments):
        key = ["--passphrase-file", str(self.password)] if self.options.encrypted else []
        return [self.options.program, *arguments, "--repo", self.target, *self.extra, *key]

    def begin(self):
        super().begin()
        key = ["--passphrase-file", str(self.password), "--recovery-key",
               str(self.state / "recovery")] if self.options.encrypted else ["--plain"]
        programs.seconds([self.options.program, "init", self.target, *key, *self.extra],
                         self.environment)

    def backup(self, operation, source):
        self.measure(operation, "backup", "--layout", "folder", "--root", str(source), "--quiet")

    def restore(self, source, target):
        self.measure("restore", "restore", f"latest:folders/{source.name}", "--to", str(target),
                     "--quiet")

    def list(self):
        self.measure("list", "ls", "latest", "--recursive")

    def snapshots(self):
        self.measure("snapshots", "snapshots")


class Restic(Program):
    name = "restic"

    def command(self, *arguments):
        return ["restic", "--repo", self.target, "--password-file", str(self.password), *self.extra,
                "--quiet", *arguments]

    def begin(self):
        super().begin()
        self.run("init")

    def backup(self, operation, source):
        self.measure(operation, "backup", str(source))

    def restore(self, source, target):
        self.measure("restore", "restore", f"latest:{source}", "--target", str(target)) \
            if self.restores_folders() else \
            self.measure("restore", "restore", "latest", "--target", str(target))

    def restores_folders(self):
        """Whether `restore` accepts SNAPSHOT:PATH, as it does since restic 0.16."""
        text = subprocess.run(["restic", "version"], capture_output=True, text=True, check=True).stdout
        return tuple(int(n) for n in text.split()[1].split(".")[:2]) >= (0, 16)

    def list(self):
        self.measure("list", "ls", "latest")

    def snapshots(self):
        self.measure("snapshots", "snapshots")


def warm(source):
    """Reads a tree, so that it is in the page cache."""
    subprocess.run(f"tar -cf - -C {source} . | cat > /dev/null", shell=True, check=True)


def verify(source, target):
    """Compares a restored tree with its source."""
    tool = peers.harness() / "verify_tree.py"
    done = subprocess.run([sys.executable, str(tool), str(source), str(target)],
                          capture_output=True, text=True, check=False)
    if done.returncode:
        raise programs.Failed("the restored tree differs: " + done.stdout.strip()[-200:])


def lines(store, profile, options):
    """Measures one corpus in one store."""
    source = peers.corpus(pathlib.Path(options.folder), profile, options)
    work = store.folder / profile
    work.mkdir()
    both = [Ours(store, work, options), Restic(store, work, options)]
    for run in range(options.reps):
        order = both if run % 2 == 0 else both[::-1]
        if run:
            store.renew()
        # restic makes the bucket if it is missing.
        for program in both[::-1]:
            program.begin()
        for program in order:
            warm(source)
            program.backup("first backup", source)
        for _ in range(2):
            for program in order:
                program.backup("unchanged", source)
        for program in order:
            program.snapshots()
            program.list()
        for program in order:
            target = work / f"restored-{program.name}"
            program.restore(source, target)
            if program is both[0] and run == 0:
                verify(source, target)
            programs.set_aside(target)
    for operation, goal in GOALS.items():
        yield Line.ratio(operation, both[0].seconds(operation), "restic",
                         both[1].seconds(operation), goal)
        kept = None
        if operation in REQUEST_GOALS and isinstance(store, S3):
            kept = both[0].requests(operation) <= REQUEST_GOALS[operation]
        yield Line(f"  requests of {operation}", str(both[0].requests(operation)), "restic",
                   str(both[1].requests(operation)), must=str(REQUEST_GOALS.get(operation, "")),
                   kept=kept)
        yield Line(f"  bytes of {operation}", budgets.amount(both[0].bytes(operation), "B"), "restic",
                   budgets.amount(both[1].bytes(operation), "B"))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program")
    parser.add_argument("--profiles", nargs="*", default=["apps", "many"])
    parser.add_argument("--stores", nargs="*", default=["s3", "sftp"], choices=["s3", "sftp"])
    parser.add_argument("--scale", type=float, default=0.3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--reps", type=int, default=3)
    parser.add_argument("--ms", type=float, default=20)
    parser.add_argument("--encrypted", action="store_true")
    parser.add_argument("--folder", default="/tmp/bench")
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    if peers.harness() is None or shutil.which("restic") is None:
        sys.exit("remote.py: the corpora in ../shared/bench or restic are missing")
    options.program = options.program or programs.build("sandboxctl")
    pathlib.Path(options.folder).mkdir(parents=True, exist_ok=True)
    status = 0
    for kind in options.stores:
        for profile in options.profiles:
            folder = pathlib.Path(options.folder) / f"remote-{os.getpid()}-{kind}-{profile}"
            folder.mkdir()
            store = (S3 if kind == "s3" else SFTP)(folder, options.ms)
            try:
                found = list(lines(store, profile, options))
            except programs.Failed as error:
                found = [Line.failed(profile, str(error))]
            finally:
                store.close()
                if not options.keep:
                    shutil.rmtree(folder, ignore_errors=True)
            what = "encrypted" if options.encrypted else "plain; restic encrypts"
            print(f"\n{profile} at {options.scale:g}, {store.title}, {options.ms:g} ms ({what})\n\n"
                  f"{budgets.table(found)}", flush=True)
            if any(line.has_failed or options.check and line.kept is False for line in found):
                status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
