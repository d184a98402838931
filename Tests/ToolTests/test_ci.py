"""The stages and the time limit of .ci/run, with a `make` that does nothing."""

import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / ".ci/run"

MAKE = """#!/bin/sh
for word in "$@"; do
  if [ "$word" = "$BUSY" ]; then sh -c 'ulimit -t 2; while :; do :; done' 2>/dev/null; fi
  if [ "$word" = "$FAILING" ]; then echo "make: $word fails"; exit 2; fi
  if [ "$word" = test ]; then echo "$TESTED"; fi
  case "$word" in SAMPLE=*) echo "in sample $1 of ${word#*=}";; esac
  if [ "$word" = MEMORY_DISK=1 ]; then echo "in memory: $1"; fi
  if [ "$word" = test-all ]; then echo "every point"; fi
done
"""


class Stages(unittest.TestCase):
    def run_ci(self, failing="none", seconds=0, **environment):
        with tempfile.TemporaryDirectory() as directory:
            place = pathlib.Path(directory)
            (place / "project/.ci").mkdir(parents=True)
            shutil.copy(SCRIPT, place / "project/.ci/run")
            (place / "bin").mkdir()
            for name, text in (("make", MAKE), ("apt-get", "#!/bin/sh\n"),
                               ("sudo", '#!/bin/sh\nexec "$@"\n')):
                (place / "bin" / name).write_text(text)
                (place / "bin" / name).chmod(0o755)
            return subprocess.run(
                [place / "project/.ci/run"], check=False, capture_output=True, text=True,
                env={"PATH": f"{place}/bin:{os.environ['PATH']}", "FAILING": failing, "TESTED": "",
                     "BUSY": "", "SECONDS": str(seconds), **environment})

    @staticmethod
    def stages(outcome):
        table = outcome.stdout.partition("== the seconds of each stage, ")[2]
        return re.findall(r"^ *\d+ s +\d+ s  (.*)$", table, re.M)

    def test_each_stage_has_its_time(self):
        outcome = self.run_ci()
        self.assertEqual((outcome.returncode, outcome.stderr), (0, ""))
        names = ["packages", "lint", "build of the tests", "tests", "the other tests",
                 "all divisions", "scale", "bench-small", "soak-prune", "soak-databases", "in total"]
        self.assertEqual(self.stages(outcome), names)
        self.assertNotIn("every point", outcome.stdout)
        in_memory = re.findall("^in memory: (.*)$", outcome.stdout, re.M)
        self.assertEqual(in_memory, ["test", "test-rest", "test-divisions"] + names[6:-1])
        samples = re.findall("^in sample (.*) of (.*)$", outcome.stdout, re.M)
        self.assertEqual(
            [target for target, _ in samples], ["test", "test-rest", "test-divisions"])
        self.assertEqual(len({number for _, number in samples} & set("12345")), 1)

    def test_each_stage_has_its_processor_time(self):
        for busy, stage in (("test-build", "build of the tests"), ("soak-databases",) * 2):
            outcome = self.run_ci(BUSY=busy)
            for name, least, most in ((stage, 1, 3), ("scale", 0, 0), ("in total", 1, 9)):
                line = re.search(rf"^ *\d+ s +(\d+) s  {name}$", outcome.stdout, re.M)
                self.assertTrue(least <= int(line[1]) <= most, outcome.stdout)

    def test_the_weekly_run_tests_more_without_a_limit(self):
        usual = self.stages(self.run_ci())
        outcome = self.run_ci(seconds=121 * 60, SANDBOXCTL_WEEKLY="1")
        self.assertEqual((outcome.returncode, outcome.stderr), (0, ""))
        usual.remove("the other tests")
        usual.remove("all divisions")
        self.assertEqual(
            self.stages(outcome),
            usual[:-1] + ["build of the fuzzers", "fuzz", "build for users", "tsan"] + usual[-1:])
        self.assertIn("every point", outcome.stdout)

    def test_a_failing_stage_fails_and_the_others_run(self):
        for target in ("test-build", "test", "test-rest", "test-divisions", "scale", "bench-small",
                       "soak-databases", "soak-prune"):
            outcome = self.run_ci(target)
            self.assertEqual(outcome.returncode, 1, target)
            self.assertEqual(len(self.stages(outcome)), 11, target)
            self.assertIn(f"make: {target} fails", outcome.stdout)
        for target in ("deps", "peers", "lint"):
            outcome = self.run_ci(target)
            self.assertNotEqual(outcome.returncode, 0, target)
            self.assertEqual(self.stages(outcome), [])

    def test_a_missing_store_is_a_warning(self):
        outcome = self.run_ci("stores")
        self.assertEqual(outcome.returncode, 0, outcome.stderr)
        self.assertIn("ci: WARNING: Ceph cannot be installed", outcome.stdout)

    def test_skipped_tests_of_peers_fail(self):
        outcome = self.run_ci(TESTED="SKIPPED-PEERS: no .build-peers (run 'make peers')")
        self.assertEqual(outcome.returncode, 1)
        self.assertIn("ci: error: tests were skipped although 'make peers'", outcome.stderr)

    def test_the_time_is_limited(self):
        self.assertEqual(self.run_ci(seconds=44 * 60).stderr, "")
        slow = self.run_ci(seconds=46 * 60)
        self.assertEqual(slow.returncode, 0)
        self.assertIn("ci: WARNING: 46 minutes, more than 45", slow.stderr)
        slower = self.run_ci(seconds=121 * 60)
        self.assertEqual(slower.returncode, 1)
        self.assertIn("ci: error: 121 minutes, more than 120", slower.stderr)


class SetUp(unittest.TestCase):
    def test_run_and_test_install_the_packages_first(self):
        for target in ("run", "test"):
            printed = subprocess.run(["make", "--no-print-directory", "-n", target], check=True,
                                     cwd=SCRIPT.parents[1], capture_output=True, text=True).stdout
            self.assertTrue(printed.startswith("Tools/deps.sh libarchive-dev libbz2-dev "),
                            printed)


if __name__ == "__main__":
    unittest.main()
