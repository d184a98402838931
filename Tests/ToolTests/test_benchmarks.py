"""The evaluation of benchmark results, without measurements."""

import io
import json
import pathlib
import plistlib
import subprocess
import sys
import tempfile
import time
import unittest
import unittest.mock
import urllib.request

PACKAGE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(PACKAGE / "Benchmarks"))

import budgets  # noqa: E402
import peers  # noqa: E402
import programs  # noqa: E402
import run  # noqa: E402
from budgets import Line  # noqa: E402


class Lines(unittest.TestCase):
    def test_the_ratio_is_taken_run_by_run(self):
        line = Line.ratio("x", [1, 10, 3], "peer", [2, 10, 6], 0.6)
        self.assertEqual((line.quotient, line.kept), ("0.50", True))
        self.assertEqual((line.ours, line.theirs), ("3.00 s", "6.00 s"))
        self.assertFalse(Line.ratio("x", [1, 10, 3], "peer", [2, 10, 6], 0.4).kept)

    def test_one_against_many_is_a_ratio_of_medians(self):
        line = Line.ratio("x", [3], "peer", [1, 2, 6], 1.5)
        self.assertEqual((line.quotient, line.kept), ("1.50", True))

    def test_small_values_are_good_enough(self):
        self.assertTrue(Line.ratio("x", [0.039], "peer", [0.001], 3, least=0.04).kept)
        self.assertFalse(Line.ratio("x", [0.041], "peer", [0.001], 3, least=0.04).kept)

    def test_without_a_budget_nothing_is_required(self):
        self.assertIsNone(Line.ratio("x", [9], "peer", [1], None).kept)

    def test_missing_results_violate_the_budget(self):
        for ours, theirs, missing in (([], [1], "ours"), ([1], [], "peer")):
            line = Line.ratio("x", ours, "peer", theirs, 1)
            self.assertFalse(line.kept)
            self.assertIn(missing, line.ours)
        self.assertFalse(Line.failed("x", "why").kept)
        self.assertEqual(Line.failed("x", "why").ours, "failed: why")

    def test_a_failed_step_fails_the_run_without_check(self):
        fine, missed = Line.absolute("x", 0.1, 0.1), Line.absolute("x", 0.2, 0.1)
        self.assertEqual([run.status([fine, missed], checks) for checks in (False, True)], [0, 1])
        self.assertEqual(run.status([fine], True), 0)
        for failed in (Line.failed("x", "why"), Line.ratio("y", [], "peer", [1], None)):
            with unittest.mock.patch("sys.stderr", io.StringIO()) as errors:
                self.assertEqual(run.status([fine, failed], False), 1)
            self.assertIn(f"failed: {failed.operation}", errors.getvalue())

    def test_a_peer_time_of_zero_violates_the_budget(self):
        self.assertFalse(Line.ratio("x", [1], "peer", [0], 1).kept)

    def test_absolute_values_are_formatted(self):
        self.assertTrue(Line.absolute("x", 0.1, 0.1).kept)
        line = Line.absolute("x", 151e6, 150e6, unit="B")
        self.assertEqual((line.ours, line.must, line.kept), ("151.0 MB", "150.0 MB", False))

    def test_table_rows_have_equal_width(self):
        text = budgets.table([Line.absolute("x", 0.1, 0.1), Line.failed("longer", "why")])
        self.assertEqual(len({len(line) for line in text.split("\n")}), 1)
        self.assertIn("NO", text)


def row(tool, op, wall, flush=0.0, size=None, code=0, note=""):
    return {"tool": tool, "op": op, "wall": wall, "flush": flush, "rc": code, "note": note,
            "repo_bytes": size, "err": "it broke"}


class Rows(unittest.TestCase):
    def runs(self, *more):
        rows = list(more)
        for tool, wall in (("ours", 1.0), ("restic", 10.0), ("tar-zstd", 1.0), ("cp-a", 1.0),
                           ("find", 1.0)):
            rows += [row(tool, "initial", wall, 0.5, 100), row(tool, "nochange", wall, 9, 110),
                     row(tool, "mutate", wall, 0.5, 150), row(tool, "list", wall, 9),
                     row(tool, "restore", wall, 0.5, note="verify 5 entries: identical")]
        return peers.Runs(rows)

    def test_all_budgets_are_reported(self):
        lines = list(budgets.of_runs("apps", self.runs()))
        self.assertTrue(all(line.kept in (True, None) for line in lines), lines)
        first = lines[0]
        self.assertEqual((first.peer, first.ours, first.quotient), ("tar+zstd", "1.50 s", "1.00"))
        self.assertEqual([line.ours for line in lines if line.operation == "stored after a day"],
                         ["0.0 MB"])
        day = [line for line in budgets.of_runs("bigdb", self.runs())
               if line.operation == "stored after a day"]
        self.assertEqual([line.kept for line in day], [False])

    def test_failures_and_differences_are_reported(self):
        broken = row("ours", "list", 1, code=1)
        differs = row("ours", "restore", 1, note="verify 5 entries: mtime 3")
        lines = list(budgets.of_runs("apps", self.runs(broken, differs)))
        self.assertEqual([(line.operation, line.ours) for line in lines if line.kept is False],
                         [("list", "failed: exit code 1: it broke"),
                          ("restore", "failed: verify 5 entries: mtime 3")])


class Programs(unittest.TestCase):
    def test_times_and_failures_are_measured(self):
        clock, processor = programs.seconds([sys.executable, "-c", "import time; time.sleep(0.1)"])
        self.assertGreater(clock, 0.1)
        self.assertLess(processor, clock)
        with self.assertRaisesRegex(programs.Failed, "exit code 3: no"):
            programs.seconds(["sh", "-c", "echo no >&2; exit 3"])

    def test_peak_memory_is_measured(self):
        program = "import time; a = bytearray(60_000_000); time.sleep(0.1); del a; time.sleep(0.1)"
        peak = programs.peak_memory([sys.executable, "-c", program])
        self.assertGreater(peak, 60e6)
        self.assertLess(peak, 120e6)

    def test_the_harness_accepts_our_program(self):
        spec = peers.spec("/bin/sandboxctl", "many")
        fields = {name: name for name in ("repo", "src", "dst", "state", "n", "last")}
        for tool in spec.values():
            for command in ("init", "backup", "list", "restore"):
                if command in tool:
                    self.assertNotIn("{", tool[command].format(**fields))

    def test_without_the_material_there_is_no_harness(self):
        with tempfile.TemporaryDirectory() as empty:
            with unittest.mock.patch.dict("os.environ", {"SANDBOXCTL_SHARED": empty}):
                self.assertIsNone(peers.harness())


class Days(unittest.TestCase):
    """The changes of a day, with a harness that reads a property list as the real one does."""

    HARNESS = """
import plistlib, sys
class Mut:
    def files(self, pred=lambda rel, st: True):
        return [rel for rel in ("/a.plist", "/b.txt") if pred(rel, None)]
def main():
    with open(sys.argv[1], "rb") as file:
        print(plistlib.load(file), Mut().files())
"""

    def changed(self, content):
        with tempfile.TemporaryDirectory() as directory:
            (pathlib.Path(directory) / "mutate_corpus.py").write_text(self.HARNESS)
            settings = pathlib.Path(directory) / "settings.plist"
            settings.write_bytes(content)
            return subprocess.run(
                [sys.executable, str(PACKAGE / "Benchmarks" / "day.py"), directory, str(settings)],
                check=True, capture_output=True, text=True).stdout.strip()

    def test_an_invalid_property_list_counts_as_empty(self):
        valid = plistlib.dumps({"launches": 3}, fmt=plistlib.FMT_BINARY)
        self.assertEqual(self.changed(valid), "{'launches': 3} ['/b.txt']")
        for invalid in (valid[:-1], valid[:8] + bytes(len(valid) - 8), b"", b"<plist><dict>"):
            self.assertEqual(self.changed(invalid), "{} ['/b.txt']")


class Links(unittest.TestCase):
    """The link with a delay between client and server."""

    def delay(self, counts, *arguments):
        return [sys.executable, str(PACKAGE / "Benchmarks" / "delay.py"), "--ms", "60", "--counts",
                str(counts), *arguments]

    def test_a_pipe_delays_and_counts(self):
        packet = (5).to_bytes(4, "big") + b"\x01" + (3).to_bytes(4, "big")
        with tempfile.TemporaryDirectory() as directory:
            counts = pathlib.Path(directory) / "counts"
            start = time.monotonic()
            done = subprocess.run(
                self.delay(counts, "pipe", "--", "cat", "-o", "ignored", "host"), check=True,
                input=packet * 3, capture_output=True)
            self.assertGreaterEqual(time.monotonic() - start, 0.06)
            self.assertEqual(done.stdout, packet * 3)
            found = json.loads(counts.read_text())
            self.assertEqual(found, {"requests": {"init": 3}, "sent": 27, "received": 27})

    def test_a_connection_is_delayed_and_counted(self):
        store = PACKAGE / "Tests" / "RemoteStorageTests" / "Programs" / "store.py"
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        with tempfile.TemporaryDirectory() as directory:
            counts = pathlib.Path(directory) / "counts"
            with subprocess.Popen([sys.executable, str(store)], **pipes) as server:
                port = server.stdout.readline().strip()
                with subprocess.Popen(self.delay(counts, "tcp", port), **pipes) as link:
                    place = f"http://127.0.0.1:{link.stdout.readline().strip()}/-/log"
                    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
                    start = time.monotonic()
                    self.assertEqual(json.load(opener.open(place)), [])
                    self.assertGreaterEqual(time.monotonic() - start, 0.12)
                    for _ in range(100):
                        if counts.exists():
                            break
                        time.sleep(0.05)
                    self.assertEqual(json.loads(counts.read_text())["requests"], {"GET": 1})
                    link.stdin.close()
                server.stdin.close()


if __name__ == "__main__":
    unittest.main()
