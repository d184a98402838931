"""The stores in which the soaks have their repositories: a directory, an object store for tests,
Ceph RGW, and a directory behind sshd.

Each has the location of a repository, and the options and variables with which the program accesses
it. It sets heartbeats of leases back, as if programs had slept, or, if the store does not allow
that, removes the leases of killed programs.
"""

import datetime
import hashlib
import hmac
import json
import os
import pathlib
import re
import secrets
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

PROJECT = pathlib.Path(__file__).resolve().parents[1]
SHARED = pathlib.Path(os.environ.get("SANDBOXCTL_SHARED", PROJECT.parent / "shared"))
KINDS = ["directory", "test", "ceph", "ssh"]


class Skipped(Exception):
    """The store is not installed."""


def request(method, url, body=b"", headers=None):
    """Returns the body of an answer, past any proxy."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    wanted = urllib.request.Request(url, data=body or None, headers=headers or {}, method=method)
    with opener.open(wanted, timeout=60) as answer:
        return answer.read()


class Directory:
    """Repositories in a directory of this host."""

    options, environment = [], {}

    def __init__(self, folder):
        self.folder = folder

    def location(self, name):
        return name

    def set_leases_back(self, repositories, seconds):
        """Sets the heartbeats of all programs back."""
        then = time.time() - seconds
        for repository in repositories:
            for alive in (self.folder / repository / "leases").glob("*/alive"):
                try:
                    os.utime(alive, (then, then))
                except FileNotFoundError:
                    pass

    def forget(self, process, repositories):
        """Does nothing: the lease of a killed program expires when it is set back."""

    def close(self):
        pass


class SSH(Directory):
    """Repositories in a directory behind an sshd of this host, started by lab/sftp."""

    def __init__(self, folder):
        super().__init__(folder / "server")
        up = SHARED / "lab/sftp/sshd-up.sh"
        if not up.exists() or not pathlib.Path("/usr/sbin/sshd").exists() or os.geteuid() != 0:
            raise Skipped("the shared material, the package openssh-server, and root")
        self.folder.mkdir()
        self.place = folder / "sshd"
        subprocess.run(["bash", up, self.place], check=True, stdin=subprocess.DEVNULL)
        self.pid = self.started()
        words = ["ssh", "-i", self.place / "id", "-o", f"UserKnownHostsFile={self.place}/known_hosts"]
        self.options = ["--ssh-command", " ".join(map(str, words))]

    def location(self, name):
        return f"sftp://root@127.0.0.1:19022{self.folder}/{name}"

    def started(self):
        """Waits for the PID file of sshd, which it writes once it listens. Returns its process id."""
        for _ in range(100):
            try:
                return int((self.place / "sshd.pid").read_text())
            except (FileNotFoundError, ValueError):
                time.sleep(0.1)
        sys.exit("soak: error: sshd does not start: "
                 + (self.place / "sshd.log").read_text(errors="replace").strip())

    def close(self):
        os.kill(self.pid, 15)


class TestStore:
    """Repositories in the object store of the tests, which is in memory and verifies no signatures, so
    each access key is another client."""

    options = []

    def __init__(self, folder, rules=()):
        script = folder / "rules.json"
        script.write_text(json.dumps(list(rules)))
        program = PROJECT / "Tests/RemoteStorageTests/Programs/store.py"
        self.process = subprocess.Popen(
            [sys.executable, program, script], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.url = f"http://127.0.0.1:{int(self.process.stdout.readline())}"
        self.environment = self.of_key("SOAK")

    def of_key(self, key):
        """The variables for an access key."""
        return {"AWS_ENDPOINT_URL": self.url, "AWS_ACCESS_KEY_ID": key,
                "AWS_SECRET_ACCESS_KEY": "secret"}

    def location(self, name):
        return f"s3://bucket/{name}"

    def set_leases_back(self, _, seconds):
        """Makes all objects older, and so all heartbeats."""
        request("GET", f"{self.url}/-/sleep?{seconds}")

    def forget(self, process, repositories):
        """Does nothing, as in a directory."""

    def take_log(self):
        """The requests since the last call: for each the client, the method, the target, and the bytes
        of the request and of its answer."""
        for entry in json.loads(request("GET", self.url + "/-/log?take")):
            found = re.search(r"Credential=([^/]*)/", entry["headers"].get("authorization", ""))
            yield (found[1] if found else "", entry["method"], entry["target"], entry["size"],
                   entry["sent"])

    def close(self):
        self.process.stdin.close()
        self.process.wait()


class Ceph:
    """Repositories in Ceph RGW, started by lab/s3. Its objects cannot be made older."""

    options = []
    URL, KEY, SECRET = "http://127.0.0.1:19000", "LABKEY", "LABSECRET"

    def __init__(self, folder):
        self.up, self.down = SHARED / "lab/s3/ceph-up.sh", SHARED / "lab/s3/ceph-down.sh"
        if not self.up.exists() or not all(map(shutil.which, ["radosgw", "ceph-mon", "ceph-osd"])):
            raise Skipped("the packages ceph-mon ceph-osd ceph-common radosgw")
        self.place = folder / "ceph"
        self.is_own = not self.answers()
        if self.is_own:
            self.place.mkdir()
            with open(folder / "ceph.log", "w", encoding="utf-8") as log:
                subprocess.run(["bash", self.up, self.place], check=True, stdin=subprocess.DEVNULL,
                               stdout=log, stderr=log)
        self.bucket = "sandboxctl-" + secrets.token_hex(6)
        self.environment = {"AWS_ENDPOINT_URL": self.URL, "AWS_ACCESS_KEY_ID": self.KEY,
                            "AWS_SECRET_ACCESS_KEY": self.SECRET}
        self.call("PUT")

    def answers(self):
        try:
            request("GET", self.URL)
        except urllib.error.HTTPError:
            return True
        except OSError:
            return False
        return True

    def location(self, name):
        return f"s3://{self.bucket}/{name}"

    def call(self, method, key="", **query):
        """Sends a request with Signature V4 and returns the body of the answer."""
        path = urllib.parse.quote(f"/{self.bucket}/{key}" if key else f"/{self.bucket}")
        words = "&".join(f"{urllib.parse.quote(name, safe='')}={urllib.parse.quote(value, safe='')}"
                         for name, value in sorted(query.items()))
        moment = datetime.datetime.now(datetime.timezone.utc).strftime("%Y%m%dT%H%M%SZ")
        scope = f"{moment[:8]}/us-east-1/s3/aws4_request"
        empty = hashlib.sha256(b"").hexdigest()
        headers = {"host": urllib.parse.urlsplit(self.URL).netloc, "x-amz-content-sha256": empty,
                   "x-amz-date": moment}
        lines = "".join(f"{name}:{value}\n" for name, value in headers.items())
        form = f"{method}\n{path}\n{words}\n{lines}\n{';'.join(headers)}\n{empty}"
        text = f"AWS4-HMAC-SHA256\n{moment}\n{scope}\n{hashlib.sha256(form.encode()).hexdigest()}"
        key = ("AWS4" + self.SECRET).encode()
        for part in scope.split("/"):
            key = hmac.digest(key, part.encode(), "sha256")
        headers["Authorization"] = (
            f"AWS4-HMAC-SHA256 Credential={self.KEY}/{scope},SignedHeaders={';'.join(headers)},"
            f"Signature={hmac.digest(key, text.encode(), 'sha256').hex()}")
        return request(method, self.URL + path + ("?" + words if words else ""), headers=headers)

    def keys(self, prefix):
        """Lists the keys with a prefix, at most a thousand."""
        text = self.call("GET", **{"list-type": "2", "prefix": prefix}).decode()
        return re.findall(r"<Key>([^<]*)</Key>", text)

    def set_leases_back(self, repositories, seconds):
        """Does nothing: the store sets the times of its objects."""

    def forget(self, process, repositories):
        """Removes the leases of a killed program, once its last requests are done."""
        process.wait()
        time.sleep(0.5)
        for repository in repositories:
            keys = self.keys(f"{repository}/leases/")
            own = {key.rsplit("/", 1)[0] for key in keys if f"/by-{process.pid}-" in key}
            for key in keys:
                if key.rsplit("/", 1)[0] in own:
                    self.call("DELETE", key)

    def close(self):
        if self.is_own:
            subprocess.run(["bash", self.down, self.place], check=False, stdin=subprocess.DEVNULL,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def open_store(kind, folder):
    """Starts a store; prints a line and returns None if it is not installed."""
    try:
        return {"directory": Directory, "test": TestStore, "ceph": Ceph, "ssh": SSH}[kind](folder)
    except Skipped as reason:
        print(f"\nSKIPPED-STORE: the soak with a real store ({kind}) needs {reason}", flush=True)
        return None
