#!/usr/bin/env python3
"""Many hosts with one repository in an object store: backs all up at once, kills and stops some,
prunes in the middle, restores each, and measures the costs of a host.

usage: soak_fleet.py PROGRAM [--hosts 20] [--files 100] [--at-once 8] [--write-only]

Each host has its own files, caches, state, credentials for the store and, if run as root, host name.
Three quarters of the files are the same on all hosts, like those of installed apps.

1. One host makes the first backup; then all others back up at once. One of them is killed and one
   is stopped in the middle, each with an open lease. All others must end with status 0 while that
   one is still stopped: no host waits for another. Files that hosts share must be stored once.
2. An hour passes. An update changes some files on all hosts in the same way, and each host changes
   some of its own files. All back up at once again, while another host removes old snapshots and
   prunes, and the stopped host continues.
3. Hosts back up without changes, and list all snapshots.
4. After a last prune nothing may be stored twice, `check --read-data` must find no damage, the newest
   snapshot of each host must exist, and each host restores all of its snapshots that no rule
   removed: names, contents, modes and times have to be equal.

With --write-only the repository is encrypted for a recipient, and only the host that prunes has its
identity, so hosts store data again that others have stored, until a prune. For restores they get the
identity.

The costs of a host must stay within those of docs/scale.md (`Fleet.check_costs`), and are printed.
The directory of a failed run is kept.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import random
import resource
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

sys.dont_write_bytecode = True
import soak_stores  # noqa: E402

# The seconds for which the store delays the first packs of the killed and the stopped host, so that
# they hold a lease during that time.
DELAY = 1
AN_HOUR = 3700
# Statuses of a prune: done, or a program may still need data that it would remove.
PRUNED = {0, 11}
# Statuses of a program that lost its lease while it was stopped for more than an hour.
LOST = {0, 1, 11}


class Host:
    """A host of the fleet: its files, its home directory, and the snapshots that it made."""

    def __init__(self, fleet, number):
        self.fleet, self.number, self.name = fleet, number, f"host-{number:04}"
        self.folder = fleet.folder / self.name
        self.files = self.folder / "data"
        self.snapshots = {}
        (self.folder / "home").mkdir(parents=True)
        self.files.mkdir()
        for file in range(fleet.files):
            self.write(file, self.text(file))

    @staticmethod
    def is_shared(file):
        return file % 4 != 3

    def text(self, file, version=0):
        """The seed of a file's content: the same on all hosts for a shared file."""
        return f"{'all' if self.is_shared(file) else self.name}/{file}/{version}"

    def write(self, file, seed):
        chance = random.Random(seed)
        path = self.files / f"app{file % 7}" / f"d{file % 29}" / f"file{file}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(chance.randbytes(chance.randint(100, 4000)))
        path.chmod(chance.choice([0o600, 0o640, 0o644, 0o755]))
        os.utime(path, ns=(0, 1_700_000_000_000_000_000 + chance.randrange(10**15)))

    def start(self, *words, reads=False):
        environment = {"HOME": str(self.folder / "home"), "PATH": os.environ["PATH"], "TZ": "UTC",
                       "SANDBOXCTL_REPOSITORY": self.fleet.location,
                       **self.fleet.store.of_key(self.name)}
        if reads and self.fleet.identity:
            environment["SANDBOXCTL_IDENTITY_FILE"] = self.fleet.identity
        process = subprocess.Popen(
            [*self.fleet.named(self.name), self.fleet.program, *words], cwd=self.folder,
            env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True)
        with self.fleet.lock:
            self.fleet.programs.add(process)
        return process

    def finish(self, process, allowed=(0,)):
        output, errors = process.communicate()
        with self.fleet.lock:
            self.fleet.programs.discard(process)
        if process.returncode not in allowed:
            raise Failure(f"{self.name}: {' '.join(process.args[-6:])} ended with "
                          f"{process.returncode}: {errors}")
        return output

    def run(self, *words, allowed=(0,), reads=False):
        return self.finish(self.start(*words, reads=reads), allowed)

    BACKUP = ("backup", "--layout", "folder", "--root", "data", "--quiet", "--json")

    def back_up(self, allowed=(0,)):
        self.record(self.run(*self.BACKUP, allowed=allowed))

    def record(self, output):
        """Records the snapshot that a backup reported, with the present files."""
        for line in output.splitlines():
            identity = json.loads(line).get("snapshot")
            if identity:
                self.snapshots[identity] = tree(self.files)

    def restore(self):
        """Restores all snapshots that were not removed, and compares them."""
        for identity, wanted in self.snapshots.items():
            if identity not in self.fleet.kept:
                continue
            target = self.folder / "restored"
            self.run("restore", f"{identity}:folders/data", "--to", target.name, "--quiet",
                     reads=True)
            if tree(target) != wanted:
                raise Failure(f"{self.name}: snapshot {identity} is restored with other content")
            shutil.rmtree(target)

    def change(self):
        """Changes a fifth of the host's own files, and with the update a tenth of the shared ones."""
        for file in range(self.fleet.files):
            if file < self.fleet.files // (10 if self.is_shared(file) else 5):
                self.write(file, self.text(file, version=1))

    def cached_bytes(self):
        cache = self.folder / "home/.cache"
        return sum(path.stat().st_size for path in cache.rglob("*") if path.is_file())


class Keeper(Host):
    """The host that forgets, prunes and checks, and has the identity of an encrypted repository."""

    def run(self, *words, allowed=(0,), reads=True):
        return super().run(*words, allowed=allowed, reads=reads)


class Failure(Exception):
    """A violated requirement."""


def tree(folder):
    """The names, contents, modes and times of all files below a directory."""
    return {str(path.relative_to(folder)): (
        path.read_bytes() if path.is_file() else None, path.stat().st_mode, path.stat().st_mtime_ns)
        for path in folder.rglob("*")}


class Fleet:
    """All hosts, the store, and the measurements."""

    def __init__(self, program, folder, options):
        self.program, self.folder, self.files = program, folder, options.files
        self.at_once = options.at_once
        # The first two packs are those of the first host. The killed and the stopped host each
        # upload up to two at once.
        self.store = soak_stores.TestStore(
            folder, [{"method": "PUT", "path": "/packs/", "skip": 2, "times": 4, "delay": DELAY}])
        self.location = self.store.location("fleet")
        self.has_names = os.geteuid() == 0 and subprocess.run(
            ["unshare", "--uts", "true"], check=False, stderr=subprocess.DEVNULL).returncode == 0
        self.hosts = [Host(self, number) for number in range(options.hosts)]
        self.first, self.stopped, self.killed, *self.others = self.hosts
        self.keeper = Keeper(self, options.hosts)
        self.identity = self.make_identity() if options.write_only else None
        self.lock = threading.Lock()
        self.totals, self.made, self.writing = {}, {"snapshots": 0, "index": 0}, set()
        self.programs = set()
        self.kept = set()
        self.index_bytes = 0
        self.costs = {}

    def named(self, name):
        """The words of a wrapper command that sets the host name of a program."""
        if not self.has_names:
            return []
        return ["unshare", "--uts", "sh", "-c", 'hostname "$0"; exec "$@"', name]

    def make_identity(self):
        """Makes an identity: the recovery key of a repository that is not used otherwise."""
        identity, passphrase = self.folder / "identity", self.folder / "passphrase"
        passphrase.write_text("a passphrase of a soak")
        passphrase.chmod(0o600)
        environment = {"HOME": str(self.folder), "PATH": os.environ["PATH"]}
        words = ["--passphrase-file", passphrase]
        for command in (["init", "made", "--recovery-key", identity, "--no-default", "--quiet"],
                        ["key", "show-recipient", "--repo", "made"]):
            made = subprocess.run([self.program, *command, *words], cwd=self.folder, check=True,
                                  env=environment, stdout=subprocess.PIPE, text=True)
        self.recipient = made.stdout.strip()
        return str(identity)

    def each(self, hosts, work):
        """Calls `work` for hosts in threads. Returns the seconds of the slowest one."""
        def timed(host):
            begun = time.monotonic()
            work(host)
            seconds = time.monotonic() - begun
            self.count()
            return seconds
        with concurrent.futures.ThreadPoolExecutor(self.at_once) as pool:
            return max(pool.map(timed, hosts))

    # Costs

    def count(self):
        """Counts the requests since the last call."""
        with self.lock:
            for client, method, target, sent, received in self.store.take_log():
                old = self.totals.get(client, (0, 0, 0))
                self.totals[client] = (old[0] + 1, old[1] + sent, old[2] + received)
                if method == "PUT":
                    self.made["snapshots"] += "/snapshots/" in target
                    self.made["index"] += "/index/" in target
                    if "/packs/" in target:
                        self.writing.add(client)

    def requests(self):
        """The requests, the sent and the received bytes of each host since the last call."""
        self.count()
        with self.lock:
            found, self.totals = self.totals, {}
        return found

    def measure(self, what, hosts):
        """Records the costs of a round: requests, bytes sent and received, bytes of the cache."""
        found = self.requests()
        self.costs[what] = [(*found[host.name], host.cached_bytes()) for host in hosts]

    def statistics(self):
        return json.loads(self.keeper.run("stats", "--json"))

    def check_costs(self):
        """Compares the costs with docs/scale.md: S snapshots of all hosts, I index objects."""
        self.count()
        snapshots = self.made["snapshots"]
        per_object = 2 * (snapshots + self.made["index"])
        limits = {
            "first backup": 30 + per_object, "backup after changes": 30 + per_object,
            "unchanged backup": 40, "list of snapshots": 2 + 2 * snapshots,
            "list of snapshots again": 2}
        for what, most in limits.items():
            requests = max(row[0] for row in self.costs[what])
            if requests > most:
                raise Failure(f"{what}: {requests} requests of a host, more than {most}")
        # Copies of the index, the heads of snapshots, and the state of the host's own files. Objects
        # that a prune has merged stay until the next run.
        most = 2 * self.index_bytes + 1000 * snapshots + 400 * self.files + 30_000
        cache = max(row[3] for rows in self.costs.values() for row in rows)
        if cache > most:
            raise Failure(f"{cache} bytes in the cache of a host, more than {most}")

    def print_costs(self):
        print(f"soak: costs of a host, {len(self.hosts)} hosts, {self.files} files each, "
              f"{self.at_once} at once: median (and maximum)")
        for what, rows in self.costs.items():
            columns = [f"{statistics.median(column):.0f} ({max(column)})" for column in zip(*rows)]
            print(f"soak: | {what} | {' | '.join(columns)} |")

    def note_index(self, found):
        """Records the largest index: a cache may have both it and the one that a prune made from it."""
        self.index_bytes = max(self.index_bytes, found["index_bytes"])

    def show_sizes(self, what, found):
        self.note_index(found)
        print(f"soak: {what}: {found['data']['bytes']} bytes of distinct data, "
              f"{found['pack_bytes']} of packs, {found['index_bytes']} of index", flush=True)

    def check_duplicates(self, what, allowed=0):
        """Requires that packs have little more than the distinct data.

        Their contents are random, so the rest consists of trees, tables of contents, the headers of
        encrypted packs, and data that is stored twice.
        """
        if self.identity and allowed:
            # Each host without the identity has stored the shared data.
            allowed += len(self.hosts) * self.shared_bytes()
        found = self.statistics()
        self.show_sizes(what, found)
        more = found["pack_bytes"] - found["data"]["bytes"]
        limit = (found["trees"]["bytes"] + 60 * found["trees"]["blobs"]
                 + 150 * found["data"]["blobs"] + 2000 * found["packs"] + allowed)
        if more > limit:
            raise Failure(f"{what}: {more} bytes of packs beyond the data, more than {limit}")

    # The rounds

    def first_round(self):
        form = ["--recipient", self.recipient] if self.identity else ["--plain"]
        self.first.run("init", self.location, *form, "--no-default", "--quiet")
        self.requests()
        self.first.back_up()
        disturbed = [self.stopped, self.killed]
        programs = [host.start(*host.BACKUP) for host in disturbed]
        self.wait_for_packs(disturbed)
        for program, number in zip(programs, (signal.SIGSTOP, signal.SIGKILL)):
            program.send_signal(number)
        # With few files it may already have ended.
        self.killed.finish(programs[1], [-signal.SIGKILL, 0])
        self.requests()
        seconds = self.each(self.others, Host.back_up)
        if programs[0].poll() is not None:
            raise Failure("the stopped host has ended")
        print(f"soak: {len(self.others)} first backups, {self.at_once} at once, beside a stopped and "
              f"a killed one: {seconds:.1f} s at most", flush=True)
        self.measure("first backup", self.others)
        # Packs of the killed and the stopped host.
        sent = max(row[1] for row in self.costs["first backup"])
        self.check_duplicates("after the first backups", 2 * sent)
        return programs[0]

    def wait_for_packs(self, hosts):
        """Waits until each host is writing its first pack."""
        end = time.monotonic() + 60
        while time.monotonic() < end:
            self.count()
            if {host.name for host in hosts} <= self.writing:
                return
            time.sleep(0.01)
        raise Failure("no pack of the disturbed hosts appeared")

    def second_round(self, stopped):
        """Backs all up while the keeper removes and prunes, and the stopped host continues."""
        self.store.set_leases_back(None, AN_HOUR)
        for host in [self.first, self.killed, *self.others]:
            host.change()
        self.requests()
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            backups = pool.submit(self.each, [self.first, self.killed, *self.others], Host.back_up)
            prunes = removed = 0
            while not backups.done():
                self.keeper.run("forget", "--keep-last", "1", "--quiet")
                prunes += not backups.done()
                # The index is largest before a prune, and hosts copy it then.
                self.note_index(self.statistics())
                output = self.keeper.run("prune", "--json", allowed=PRUNED)
                removed += sum(json.loads(line).get("removed_packs", 0)
                               for line in output.splitlines())
                if prunes == 1:
                    stopped.send_signal(signal.SIGCONT)
            seconds = backups.result()
        if not prunes:
            raise Failure("no prune began while hosts backed up")
        self.stopped.record(self.stopped.finish(stopped, LOST))
        print(f"soak: {len(self.hosts) - 1} backups after changes: {seconds:.1f} s at most; beside "
              f"them {prunes} prunes, {removed} packs removed; the stopped host ended with "
              f"{stopped.returncode}", flush=True)
        self.measure("backup after changes", self.others)
        self.stopped.change()
        self.stopped.back_up()
        # Programs that ran at once have stored the update twice, and replaced data still exists.
        self.show_sizes("after the update", self.statistics())

    def shared_bytes(self):
        return sum(path.stat().st_size for path in self.first.files.rglob("file*")
                   if Host.is_shared(int(path.name[4:])))

    def third_round(self):
        sample = self.others[:3]
        for host in sample:
            host.back_up()
        # The first of these reads all data that the others have stored since their last run.
        self.requests()
        for host in sample:
            host.back_up()
        self.measure("unchanged backup", sample)
        for what in ("list of snapshots", "list of snapshots again"):
            self.others[-1].run("snapshots", "--json", reads=True)
            self.measure(what, self.others[-1:])

    def last_round(self):
        self.store.set_leases_back(None, AN_HOUR)
        # The second one removes the packs that the first has rewritten.
        for _ in range(2):
            self.keeper.run("prune", "--max-unused", "0", "--quiet")
        self.check_duplicates("after the last prune")
        self.keeper.run("check", "--read-data", "--quiet")
        self.kept = {json.loads(line)["id"]
                     for line in self.keeper.run("snapshots", "--json").splitlines()}
        for host in self.hosts:
            if list(host.snapshots)[-1] not in self.kept:
                raise Failure(f"{host.name}: its last snapshot is gone")
        self.requests()
        self.each(self.hosts, Host.restore)
        self.measure("restore", self.others)

    def close(self):
        """Ends the programs that still run after a failure, and the store."""
        for process in self.programs:
            process.kill()
            process.wait()
        self.store.close()

    def run(self):
        self.second_round(self.first_round())
        self.third_round()
        self.last_round()
        self.print_costs()
        self.check_costs()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--hosts", type=int, default=20)
    parser.add_argument("--files", type=int, default=100)
    parser.add_argument("--at-once", type=int, default=8)
    parser.add_argument("--write-only", action="store_true")
    options = parser.parse_args()
    # A terminated run ends its store as well.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    folder = pathlib.Path(tempfile.mkdtemp(prefix="sandboxctl-fleet-"))
    fleet = Fleet(os.path.abspath(options.program), folder, options)
    try:
        fleet.run()
    except Failure as failure:
        print(f"soak: error: {failure}\nsoak: the directory is {folder}", file=sys.stderr)
        return 1
    finally:
        fleet.close()
    seconds = [sum(resource.getrusage(whose)[:2])
               for whose in (resource.RUSAGE_CHILDREN, resource.RUSAGE_SELF)]
    print("soak: {:.1f} s of processor time in all programs, {:.1f} s here".format(*seconds))
    shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
