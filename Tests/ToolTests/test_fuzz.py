"""The fuzzer runner and its corpus."""

import importlib.util
import pathlib
import re
import unittest

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
