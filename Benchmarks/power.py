#!/usr/bin/env python3
"""Measure the wake-ups and the bytes written by sandboxctl when it has nothing to do.

usage: power.py --program PROGRAM [--seconds 3600] [--interval 60] [--directory DIR]

Two cases, each on the sample device (docs/power.md):

- an unchanged run: `backup` of a device that has not changed since the last one;
- a watch: `purge --watch` on a volume with enough free space, for --seconds.

Prints a line of JSON for each case. `wakeups` are the voluntary context switches of all threads
(getrusage(2), proc_pid_status(5)), `written` the bytes passed to write(2) and similar calls, and
`to_disk` those that reached the storage layer (proc_pid_io(5)).
"""

import argparse
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time


def counters(text):
    """The numbers of a file of /proc with lines `name: number`."""
    found = {}
    for line in text.splitlines():
        name, _, value = line.partition(":")
        if value.strip().isdigit():
            found[name] = int(value)
    return found


def process_io(pid):
    return counters(pathlib.Path(f"/proc/{pid}/io").read_text())


def switches(pid):
    """The voluntary context switches of all threads of a process."""
    total = 0
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        total += counters((task / "status").read_text())["voluntary_ctxt_switches"]
    return total


def processor_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def run_once(command):
    """Runs a command and returns its counters. They are read before the process is reaped."""
    began = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    seconds = time.monotonic() - began
    io = process_io(process.pid)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f"power.py: {command} ended with {process.returncode}")
    return {
        "seconds": round(seconds, 3),
        "wakeups": usage.ru_nvcsw,
        "written": io["wchar"],
        "to_disk": io["write_bytes"],
        "writes": io["syscw"],
        "cpu_seconds": round(usage.ru_utime + usage.ru_stime, 3),
    }


def unchanged_run(program, device, work):
    backup = [program, "backup", "--quiet", "--root", device, "--repo", work / "repo"]
    backup += ["--accept-same-disk", "--no-space-check"]
    first = run_once(backup)
    # Entries that changed less than a minute before they were read are read again (state-file.md).
    time.sleep(61)
    run_once(backup)
    result = min((run_once(backup) for _ in range(5)), key=lambda run: run["written"])
    return {"case": "unchanged run", "first_run": first, **result}


def watch(program, device, seconds, interval):
    process = subprocess.Popen(
        [program, "purge", "--watch", "--yes", "--root", device, "--interval", f"{interval}s",
         "--until-free", "1"], stdout=subprocess.DEVNULL)
    # The start is not part of the measurement.
    time.sleep(3)
    if process.poll() is not None:
        sys.exit(f"power.py: the watch ended with {process.returncode}")
    before, before_io = switches(process.pid), process_io(process.pid)
    before_cpu = processor_seconds(process.pid)
    began = time.monotonic()
    time.sleep(seconds)
    wakeups = switches(process.pid) - before
    io, cpu = process_io(process.pid), processor_seconds(process.pid)
    result = {
        "case": "watch",
        "seconds": round(time.monotonic() - began, 1),
        "interval": interval,
        "wakeups": wakeups,
        "written": io["wchar"] - before_io["wchar"],
        "to_disk": io["write_bytes"] - before_io["write_bytes"],
        "read": io["rchar"] - before_io["rchar"],
        "cpu_seconds": round(cpu - before_cpu, 3),
        "resident_kib": counters_of_memory(process.pid),
    }
    process.send_signal(signal.SIGTERM)
    process.wait(timeout=30)
    return result


def counters_of_memory(pid):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1])
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", required=True, type=pathlib.Path)
    parser.add_argument("--seconds", type=int, default=3600)
    parser.add_argument("--interval", type=int, default=60)
    parser.add_argument("--directory", type=pathlib.Path)
    parser.add_argument("--case", choices=["run", "watch", "both"], default="both")
    arguments = parser.parse_args()
    program = arguments.program.resolve()
    work = pathlib.Path(tempfile.mkdtemp(prefix="power-", dir=arguments.directory))
    os.environ["XDG_CACHE_HOME"] = str(work / "cache")
    os.environ["XDG_CONFIG_HOME"] = str(work / "config")
    os.environ["XDG_DATA_HOME"] = str(work / "data")
    try:
        device = work / "device"
        subprocess.run([program, "sample", device], check=True, stdout=subprocess.DEVNULL)
        subprocess.run(
            [program, "init", work / "repo", "--plain"], check=True, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)
        if arguments.case != "watch":
            print(json.dumps(unchanged_run(program, device, work)), flush=True)
        if arguments.case != "run":
            print(json.dumps(watch(program, device, arguments.seconds, arguments.interval)),
                  flush=True)
    finally:
        shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    main()
