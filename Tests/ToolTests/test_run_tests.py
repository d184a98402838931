"""Tools/run-tests.py, with a program in the place of a test bundle."""

import collections
import importlib.util
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOOL = ROOT / "Tools" / "run-tests.py"
spec = importlib.util.spec_from_file_location("run_tests", TOOL)
run_tests = importlib.util.module_from_spec(spec)
spec.loader.exec_module(run_tests)

TESTS = [f"{module}.Suite{number}/test{case}()" for module in ("AModuleTests", "CommandTests")
         for number in range(20) for case in range(2)] + ["AModuleTests.alone()"]

# Prints its tests, or runs those that match: each takes a second, those of a Suite3 nine seconds.
BUNDLE = """#!{python}
import json, re, sys
tests = {tests}
words = sys.argv[1:]
if "--list-tests" in words:
    print("\\n".join(tests))
    sys.exit()
assert "--no-parallel" in words, words
chosen = [test for test in tests if re.search(words[words.index("--filter") + 1], test)]
with open(words[words.index("--event-stream-output-path") + 1], "w") as events:
    chosen = [test for test in chosen if test not in {lost}]
    def note(kind, test, now, **more):
        print(json.dumps({{"kind": "event", "version": 0, "payload": {{
            "kind": kind, "testID": test, "instant": {{"absolute": now}}, **more}}}}), file=events)
    note("testStarted", "CommandTests.Suite0", 1)
    note("testSkipped", "CommandTests.Suite9", 1)
    for number, test in enumerate(chosen):
        place = test if test.endswith("alone()") else test + "/File.swift:1:2"
        note("testStarted", place, number)
        if test in {crashing}:
            events.flush()
            sys.exit(5)
        if test in {failing}:
            note("issueRecorded", place, number,
                 messages=[{{"text": "expected\\n 3"}}, {{"text": "saw 4"}}],
                 issue={{"isKnown": False, "sourceLocation": {{"fileID": "A/B.swift", "line": 7}}}})
        note("testEnded", place, number + (9 if "Suite3/" in test else 1))
        print("ran " + test)
    sys.exit(bool(set(chosen) & set({failing})))
"""


def suites_in(module):
    """Returns the names of the types of a test module that have tests, read from its sources."""
    found = set()
    for path in (ROOT / "Tests" / module).rglob("*.swift"):
        name = None
        for line in path.read_text().splitlines():
            kind = re.match(r"(?:@Suite.*? |private |final )*(?:struct|class|extension) (\w+)", line)
            name = kind.group(1) if kind else name
            if re.match(r"  @Test\b", line):
                found.add(name)
    return found


class Runs(unittest.TestCase):
    def run_bundle(self, tests, *options, crashing=(), lost=(), failing=()):
        with tempfile.TemporaryDirectory() as directory:
            bundle = pathlib.Path(directory) / "bundle"
            bundle.write_text(BUNDLE.format(python=sys.executable, tests=tests,
                                            crashing=list(crashing), lost=list(lost),
                                            failing=list(failing)))
            bundle.chmod(0o755)
            outcome = subprocess.run([sys.executable, TOOL, bundle, "--count", "3", *options],
                                     check=False, capture_output=True, text=True)
        self.assertEqual(outcome.stderr, "")
        return outcome

    def test_each_test_runs_once(self):
        outcome = self.run_bundle(TESTS)
        self.assertEqual(outcome.returncode, 0, outcome.stdout)
        ran = re.findall("^ran (.*)", outcome.stdout, re.M)
        self.assertEqual(sorted(ran), sorted(TESTS))
        self.assertIn(f"== {len(TESTS)} tests, ", outcome.stdout)

    def test_only_the_chosen_suites_run(self):
        outcome = self.run_bundle(TESTS, "--suites", r"CommandTests\.Suite(3|19)")
        self.assertEqual(outcome.returncode, 0, outcome.stdout)
        ran = re.findall("^ran (.*)", outcome.stdout, re.M)
        self.assertEqual({test.split("/")[0] for test in ran},
                         {"CommandTests.Suite3", "CommandTests.Suite19"})
        self.assertEqual(self.run_bundle(TESTS, "--suites", "Suite3").returncode, 1)

    def test_a_sample_and_its_remainder_have_all_suites(self):
        def run(*options):
            outcome = self.run_bundle(TESTS, *options)
            self.assertEqual(outcome.returncode, 0, outcome.stdout)
            note = re.search(r"^== (.*?) of 5: (\d+) of 41 suites", outcome.stdout, re.M)
            ran = re.findall("^ran (.*)", outcome.stdout, re.M)
            self.assertEqual(int(note[2]), len({test.split("/")[0] for test in ran}))
            return note[1], set(ran)

        usual = {test for test in TESTS if not test.startswith("CommandTests.")}
        found = collections.Counter()
        for number in range(1, 6):
            name, ran = run("--sample", str(number))
            self.assertEqual(name, f"sample {number}")
            self.assertTrue(ran > usual)
            found.update(ran - usual)
            rest = run("--rest-of", str(number))
            self.assertEqual(rest, (f"all but sample {number}", set(TESTS) - ran))
        self.assertEqual(found, collections.Counter(set(TESTS) - usual))
        name, ran = run("--sample", "0")
        self.assertEqual(run("--sample", name.split()[-1])[1], ran)

    def test_a_file_chooses_suites_and_must_name_all(self):
        chosen = ["CommandTests.Suite3", "CommandTests.Suite19"]
        others = [f"CommandTests.Suite{number}" for number in range(20) if number not in (3, 19)]
        with tempfile.TemporaryDirectory() as directory:
            path = pathlib.Path(directory) / "suites.txt"

            def run(*lines):
                path.write_text("\n".join(["# suites", "both kinds:", *lines, ""]))
                outcome = self.run_bundle(TESTS, "--suites", f"@{path}")
                ran = {line.split("/")[0] for line in re.findall("^ran (.*)", outcome.stdout, re.M)}
                return outcome, ran

            # AModuleTests is not in the file, so its suites need not be there either.
            outcome, ran = run(*chosen, "", "plain only, for a reason:", *others)
            self.assertEqual(outcome.returncode, 0, outcome.stdout)
            self.assertEqual(ran, set(chosen))
            for lines, message in (
                    ([*chosen, "plain only:", *others[1:]], f"{others[0]} is missing: add it to "),
                    ([*chosen, "plain only:", *others, "CommandTests.Gone"],
                     "there is no suite CommandTests.Gone"),
                    ([*chosen, "plain only:", *others, chosen[0]], f"names {chosen[0]} again"),
                    ([*chosen, "a suite", "plain only:", *others],
                     "line 5 is neither the title of a section nor a suite")):
                outcome, ran = run(*lines)
                self.assertEqual(outcome.returncode, 1, message)
                self.assertIn(message, outcome.stdout)
                self.assertEqual(ran, set(chosen))

    def test_the_slowest_come_first(self):
        table = self.run_bundle(TESTS).stdout.partition("\n== the 3 slowest of 81 tests\n")[2]
        rows = [row.split("  ")[-1] for row in table.splitlines()[:3]]
        self.assertTrue(all("Suite3/" in row for row in rows), rows)
        suites = table.partition("of 41 suites\n")[2].splitlines()[:2]
        self.assertEqual({row.strip() for row in suites},
                         {"18.0 s  AModuleTests.Suite3", "18.0 s  CommandTests.Suite3"})

    def test_a_crash_fails_and_is_named(self):
        crashing = "CommandTests.Suite7/test1()"
        outcome = self.run_bundle(TESTS, crashing=[crashing])
        self.assertEqual(outcome.returncode, 1)
        self.assertIn(f"run-tests: error: {crashing} did not end", outcome.stdout)
        self.assertIn("run-tests: error: status 5 of the tests of", outcome.stdout)
        self.assertIn("ran CommandTests.Suite19/test1()", outcome.stdout)

    def test_a_test_that_did_not_run_is_a_failure(self):
        lost = "AModuleTests.Suite7/test1()"
        outcome = self.run_bundle(TESTS, lost=[lost])
        self.assertEqual(outcome.returncode, 1)
        self.assertIn(f"run-tests: error: {lost} did not run", outcome.stdout)
        skipped = ["CommandTests.Suite9/test0()", "CommandTests.Suite9/test1()"]
        self.assertEqual(self.run_bundle(TESTS, lost=skipped).returncode, 0)

    def test_failed_tests_are_named_with_their_messages_at_the_end(self):
        failing = "AModuleTests.Suite7/test1()"
        outcome = self.run_bundle(TESTS, failing=[failing])
        self.assertEqual(outcome.returncode, 1)
        line = f"run-tests: error: {failing} failed: A/B.swift:7: expected 3; saw 4"
        self.assertEqual(outcome.stdout.splitlines()[-2], line)

    def test_no_tests_are_a_failure(self):
        self.assertEqual(self.run_bundle([]).returncode, 1)


class Groups(unittest.TestCase):
    def test_each_suite_is_in_one_group_and_slow_modules_come_first(self):
        groups = run_tests.groups(TESTS)
        names = [name for group in groups for name in group]
        self.assertEqual(len(names), len(set(names)))
        self.assertTrue(names[0].startswith("CommandTests."))
        for test in TESTS:
            matching = [group for group in groups if re.search(run_tests.pattern(group), test)]
            self.assertEqual(len(matching), 1, test)

    def test_slow_suites_run_alone_and_first(self):
        slow = run_tests.SLOW_SUITES[1]
        groups = run_tests.groups([*TESTS, f"{slow}/test()", f"{slow}Too/test()"])
        self.assertEqual(groups[0], [slow])
        self.assertTrue(re.search(run_tests.pattern(groups[0]), f"{slow}/test()"))
        self.assertFalse(re.search(run_tests.pattern(groups[0]), f"{slow}Too/test()"))

    def test_the_list_of_encrypted_suites_names_each_suite_once(self):
        suites = run_tests.SuiteList(ROOT / "Tests" / "encrypted-suites.txt")
        modules = {name.split(".")[0] for name in suites.sections}
        self.assertEqual(modules, {"ArchiveStoreTests", "CommandTests", "OperationTests"})
        found = {f"{module}.{name}" for module in modules for name in suites_in(module)}
        self.assertEqual(list(suites.differences(found)), [])
        self.assertIn(run_tests.SuiteList.CHOSEN, suites.sections.values())

    def test_the_suites_with_a_trait_are_found(self):
        texts = {path: path.read_text() for path in (ROOT / "Tests").rglob("*.swift")
                 if path.name != "ScanVariant.swift"}
        uses = sum(text.count(".spreadScans") for text in texts.values())
        found = run_tests.suites_with("spreadScans", ROOT / "Tests").split("|")
        self.assertEqual(len(set(found)), uses)
        self.assertIn(r"OperationTests\.BackupTests", found)
        self.assertEqual(run_tests.suites_with("spread", ROOT / "Tests"), "(?!)")

    def test_each_division_of_a_scan_has_a_run(self):
        makefile = (ROOT / "Makefile").read_text()
        numbers = re.search(r"^DIVISIONS = (.*)$", makefile, re.M)[1].split()
        source = (ROOT / "Tests/OperationTests/Fixtures/ScanVariant.swift").read_text()
        shares = re.search(r"\+ \[([^]]*usual.share)\].flatMap", source)[1].split(",")
        workers = re.search(r"\[([\d, ]+)\].map", source)[1].split(",")
        self.assertEqual(numbers, [str(n + 1) for n in range(1 + len(shares) * len(workers))])

    def test_slow_suites_exist(self):
        for name in run_tests.SLOW_SUITES:
            module, kind = name.split(".")
            texts = [path.read_text() for path in (ROOT / "Tests" / module).rglob("*.swift")]
            self.assertTrue(any(re.search(rf"(struct|class) {kind}\b", text) for text in texts), name)


if __name__ == "__main__":
    unittest.main()
