"""Tools/readme-tour.py, tested with its own program and README."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

TOOL = pathlib.Path(__file__).resolve().parents[2] / "Tools" / "readme-tour.py"

TOUR = """#!/bin/bash
cd "$(mktemp -d)"
step() { printf '\\n%s\\n' "$1"; }
run() { printf '$ %s\\n' "sandboxctl $*"; "$1" "${@:2}"; }
step "First"
run echo "in $PWD, snapshot 0123abcd, in under 0.1 s"
step "Then"
run printf 'a  b\\n\\nlast\\n'
run true
"""

README = """A tour:

```
$ sandboxctl echo in /home/you, snapshot ffff0000, in 3 s
in /home/you, snapshot ffff0000, in 3 s
$ sandboxctl printf a  b\\n\\nlast\\n
%s
```
"""


class ReadmeTour(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.root = pathlib.Path(scratch.name)
        (self.root / "tour.sh").write_text(TOUR)
        self.tool = self.root / "readme-tour.py"
        self.tool.write_text(TOOL.read_text())
        self.readme = self.root / "README.md"

    def run_tool(self, *options):
        return subprocess.run(
            [sys.executable, "-B", self.tool, *options, "program", self.readme],
            capture_output=True, text=True, check=False)

    def check(self, shown):
        self.readme.write_text(README % shown)
        return self.run_tool("--check")

    def test_printed_text_is_accepted(self):
        self.assertEqual(self.check("a b\n\nlast").returncode, 0)
        self.assertEqual(self.check("…\nlast").returncode, 0)
        self.assertEqual(self.check("a b\n…").returncode, 0)

    def test_durations_are_ignored(self):
        for duration in ["under 0.1 s", "12 s", "1 min 5 s", "2 h 59 min"]:
            self.readme.write_text((README % "…").replace("3 s", duration))
            self.assertEqual(self.run_tool("--check").returncode, 0, duration)

    def test_anything_else_is_refused(self):
        for shown in ["a b\nlast", "a b\n\nlast\nmore", "a c\n\nlast", "…\nfirst", "a b"]:
            result = self.check(shown)
            self.assertEqual(result.returncode, 1, shown)
            self.assertIn("README.md:6: the tour prints something else", result.stdout)

    def test_a_command_missing_in_the_tour_is_refused(self):
        self.readme.write_text("```\n$ sandboxctl nothing\n```\n")
        result = self.run_tool("--check")
        self.assertEqual(result.returncode, 1)
        self.assertIn("the tour has no further '$ sandboxctl nothing'", result.stdout)
        self.readme.write_text("no tour\n")
        self.assertEqual(self.run_tool("--check").returncode, 1)

    def test_steps_skipped_at_the_end_are_ignored(self):
        shown = README % "a b\n\nlast" + "```\n$ sandboxctl further\n```\n"
        self.readme.write_text(shown)
        self.assertEqual(self.run_tool("--check").returncode, 1)
        with open(self.root / "tour.sh", "a") as tour:
            tour.write("echo 'skipped: not permitted'\n")
        self.assertEqual(self.run_tool("--check").returncode, 0)
        self.assertEqual(self.run_tool().returncode, 0)
        self.assertIn("$ sandboxctl further\n", self.readme.read_text())
        # The steps that the tour ran are compared nevertheless.
        self.readme.write_text(README % "a b\n\nfirst")
        self.assertEqual(self.run_tool("--check").returncode, 1)

    def test_the_readme_is_rewritten(self):
        self.readme.write_text(README % "old")
        self.assertEqual(self.run_tool().returncode, 0)
        self.assertEqual(self.run_tool("--check").returncode, 0)
        self.assertIn("\na  b\n\nlast\n```", self.readme.read_text())
