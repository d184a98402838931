"""Tests of Tools/structure.py."""

import importlib.util
import pathlib
import subprocess
import sys
import tempfile
import unittest

TOOL = pathlib.Path(__file__).resolve().parents[2] / "Tools/structure.py"


class Structure(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.addCleanup(self.scratch.cleanup)
        self.root = pathlib.Path(self.scratch.name)

    def write(self, path, text):
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")

    def run_tool(self, *options):
        return subprocess.run(
            [sys.executable, "-B", str(TOOL), *options, str(self.root)],
            capture_output=True, text=True, check=False)

    def rows(self, *options):
        result = self.run_tool(*options)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        lines = [line.split() for line in result.stdout.splitlines()]
        return {
            words[0]: [int(word) for word in words[1:]]
            for words in lines if words[1:2] and words[1].isdigit()
        }

    def test_files_lines_and_top_level_types_are_counted(self):
        self.write(
            "Sources/A/One.swift",
            "package struct One {\n  enum Nested {}\n}\n// struct No {}\n")
        self.write("Sources/A/Two.swift", "private final class Two {}\nextension One {}\n")
        self.write("Sources/B/Text.swift", 'let text = "struct Text {}"\n')
        rows = self.rows("--modules")
        self.assertEqual(rows["A"][:4], [2, 6, 2, 3])
        self.assertEqual(rows["B"][:3], [1, 1, 0])
        self.assertEqual(rows["all"][:3], [3, 7, 2])

    def test_a_type_over_more_than_three_files_is_listed(self):
        self.write("Sources/A/One.swift", "struct One {}\n")
        for number in range(3):
            self.write(f"Sources/B/One+{number}.swift", "extension One {}\n")
        self.assertEqual(self.rows()["all"][4], 1)
        self.assertIn("One: 4 files", self.run_tool("--spread").stdout)

    def test_unlabelled_parameters_and_what_are_counted(self):
        self.write(
            "Sources/A/One.swift",
            "/// What it is.\nfunc one(_ a: Int, _ b: Int, _ c: Int) {}\n"
            "/// One.\n/// What follows.\n")
        self.assertEqual(self.rows()["all"][5:], [1, 1])

    def test_a_program_without_coverage_is_an_error(self):
        self.write("Sources/A/One.swift", "struct One {}\n")
        result = self.run_tool("--way", "/bin/true")
        self.assertEqual(result.returncode, 1)
        self.assertIn("/bin/true writes no coverage: build it with 'make structure'", result.stderr)

    def test_lines_of_regions_that_did_not_run_are_not_counted(self):
        specification = importlib.util.spec_from_file_location("structure", TOOL)
        structure = importlib.util.module_from_spec(specification)
        specification.loader.exec_module(structure)
        regions = [[1, 1, 9, 2, 1, 0, 0, 0], [3, 5, 5, 6, 0, 0, 0, 0], [4, 7, 4, 9, 2, 0, 0, 0]]
        self.assertEqual(structure.lines_run(regions), {1, 2, 4, 6, 7, 8, 9})

    def test_a_package_without_sources_is_an_error(self):
        result = self.run_tool()
        self.assertEqual(result.returncode, 2)
        self.assertIn("no Swift files", result.stderr)


if __name__ == "__main__":
    unittest.main()
