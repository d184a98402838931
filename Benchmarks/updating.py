"""An update of a large app: the time during which its data is being exchanged."""

import json
import os
import shutil
import statistics
import subprocess
import tempfile

import peers
import programs
from budgets import Line

EXCHANGE_BUDGET = 0.050  # seconds
FILES = 100_000  # at full scale
BYTES = 10 << 30
APP = "org.example.large"
METADATA = ".com.apple.mobile_container_manager.metadata.plist"


def lines(program, runs, scale):
    """Yields the line for the exchange of an app with FILES files and 10 GiB of sparse data."""
    scratch = tempfile.mkdtemp(prefix="sandboxctl-bench-", dir="/tmp")
    try:
        device = os.path.join(scratch, "device")
        make_device(device, int(FILES * scale))
        taken = [update(program, device, scratch, run) for run in range(max(1, runs // 3))]
        yield Line.absolute("update of a 10 GB app, exchange", statistics.median(taken),
                            EXCHANGE_BUDGET)
    finally:
        shutil.rmtree(scratch)


def make_device(root, files):
    """Makes a simulator device with one app, all of whose data is kept."""
    containers = os.path.join(root, "Containers")
    bundle = os.path.join(containers, "Bundle", "Application", "0C0C0C0C-0000-4000-8000-000000000003")
    data = os.path.join(containers, "Data", "Application", "0A0A0A0A-0000-4000-8000-000000000001")
    make_bundle(os.path.join(bundle, "Large.app"), 1)
    documents = os.path.join(data, "Documents")
    os.makedirs(documents)
    write(os.path.join(data, METADATA), f"<key>MCMMetadataIdentifier</key><string>{APP}</string>")
    with open(os.path.join(documents, "film"), "wb") as film:
        film.truncate(BYTES)
    for number in range(files):
        if number % 100 == 0:
            os.mkdir(place := os.path.join(documents, f"folder-{number // 100:04}"))
        handle = os.open(os.path.join(place, f"{number:06}"), os.O_WRONLY | os.O_CREAT, 0o644)
        os.write(handle, b"x" * 100)
        os.close(handle)


def make_bundle(path, build):
    """Makes a bundle of the app."""
    os.makedirs(path)
    write(os.path.join(path, "Info.plist"),
          f"<key>CFBundleIdentifier</key><string>{APP}</string>"
          f"<key>CFBundleShortVersionString</key><string>{build}.0</string>"
          f"<key>CFBundleVersion</key><string>{build}</string>")


def write(path, members):
    """Writes a property list."""
    with open(path, "w", encoding="utf-8") as file:
        file.write(f"<plist><dict>{members}</dict></plist>")


def update(program, device, scratch, run):
    """Updates the app once. Returns the seconds of the exchange, as the program reports them."""
    package = os.path.join(scratch, f"{run}", "Large.app")
    make_bundle(package, run + 2)
    applications = os.path.join(device, "Containers", "Data", "Application")
    before = os.listdir(applications)
    environment = os.environ | peers.environment(os.path.join(scratch, "home"))
    out = subprocess.run(
        [program, "update", package, "--root", device, "--layout", "coresimulator", "--no-snapshot",
         "--force", "--json"], capture_output=True, text=True, env=environment, check=False)
    if out.returncode:
        raise programs.Failed(f"exit code {out.returncode}: {out.stderr.strip()}")
    if os.listdir(applications) == before:
        raise programs.Failed("the data container was not replaced")
    return json.loads(out.stdout)["exchange_seconds"]
