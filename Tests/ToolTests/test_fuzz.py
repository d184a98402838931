"""The fuzzer runner and its corpus."""

import contextlib
import importlib.util
import io
import pathlib
import re
import tempfile
import unittest
import unittest.mock

FUZZERS = pathlib.Path(__file__).resolve().parents[2] / "Fuzzers"
CORPUS_LIMIT = 300_000


def load_runner():
    spec = importlib.util.spec_from_file_location("fuzz_run", FUZZERS / "run.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Runner(unittest.TestCase):
    OUTPUT = """\
#3	INITED cov: 355 ft: 401 corp: 2/113b exec/s: 0 rss: 49Mb
#9	NEW    cov: 360 ft: 410 corp: 3/120b lim: 4 exec/s: 0 rss: 49Mb
#88	DONE   cov: 482 ft: 1061 corp: 86/5615b lim: 7804 exec/s: 19216 rss: 502Mb
stat::number_of_executed_units: 88
"""

    def test_reads_the_output_of_libfuzzer(self):
        run = load_runner()
        self.assertEqual(run.coverage(self.OUTPUT), (355, 482))
        self.assertEqual(run.executions(self.OUTPUT), 88)

    def test_empty_output_means_no_coverage(self):
        run = load_runner()
        self.assertEqual(run.coverage("no such file"), (0, 0))
        self.assertEqual(run.executions(""), 0)


class Targets(unittest.TestCase):
    """The runner with a program that takes the place of the fuzzers."""

    PROGRAM = """#!/bin/sh
[ "$1" = --targets ] && { echo canary one two three; exit; }
echo "#1 DONE cov: 7 ft: 1" >&2
echo "stat::number_of_executed_units: 5" >&2
[ "$FUZZ_TARGET" = canary ] && exit 77
[ "$FUZZ_TARGET" != "$BAD" ]
"""

    def run_with(self, bad):
        run = load_runner()
        with tempfile.TemporaryDirectory() as directory:
            run.HERE = pathlib.Path(directory)
            program = run.HERE / "fuzz"
            program.write_text(self.PROGRAM)
            program.chmod(0o755)
            run.build = lambda: program
            output, errors = io.StringIO(), io.StringIO()
            with contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors), \
                    unittest.mock.patch.dict("os.environ", BAD=bad), \
                    unittest.mock.patch("sys.argv", ["run.py", "--seconds", "0"]):
                status = run.main()
        names = [line.split()[0] for line in output.getvalue().splitlines()]
        return status, names, errors.getvalue()

    def test_runs_each_target_and_prints_them_in_order(self):
        status, names, errors = self.run_with(bad="")
        self.assertEqual((status, errors), (0, ""))
        self.assertEqual(names, ["canary", "one", "two", "three"])

    def test_fails_with_one_of_them(self):
        status, names, errors = self.run_with(bad="two")
        self.assertEqual(status, 1)
        self.assertEqual(len(names), 4)
        self.assertIn("two failed", errors)


class Corpus(unittest.TestCase):
    def targets(self):
        text = "".join(file.read_text() for file in (FUZZERS / "Sources/fuzz").glob("*.swift"))
        return set(re.findall(r'Target\(name: "([a-z-]+)"', text)) - {load_runner().CANARY}

    def test_each_target_has_seeds(self):
        """Seeds are generated, except archives of other programs, which have the names of formats."""
        targets = self.targets()
        self.assertGreater(len(targets), 15)
        for target in targets:
            names = "*" if target == "archive" else "seed-*"
            self.assertTrue(list((FUZZERS / "Corpus" / target).glob(names)), target)

    def test_each_directory_and_dictionary_belongs_to_a_target(self):
        directories = {directory.name for directory in (FUZZERS / "Corpus").iterdir()}
        words = {file.stem for file in (FUZZERS / "Dictionaries").iterdir()}
        self.assertEqual(directories, self.targets())
        self.assertLessEqual(words, self.targets())

    def test_the_corpus_is_small(self):
        size = sum(file.stat().st_size for file in FUZZERS.glob("Corpus/*/*"))
        self.assertLess(size, CORPUS_LIMIT)


if __name__ == "__main__":
    unittest.main()
