"""The check of parameter labels counts the arguments that a reader of a call would have to guess."""

import contextlib
import importlib.util
import io
import pathlib
import tempfile
import unittest

PACKAGE = pathlib.Path(__file__).resolve().parents[2]
SPEC = importlib.util.spec_from_file_location("check_labels", PACKAGE / "Tools/check-labels.py")
check_labels = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(check_labels)


class LabelTests(unittest.TestCase):
    def counts(self, text):
        return [(line, count) for line, _, count in check_labels.violations(text)]

    def test_two_unlabelled_parameters_are_allowed(self):
        self.assertEqual(self.counts("func f(_ a: Int, _ b: Int, in c: Int) {}"), [])

    def test_three_are_refused_with_their_line(self):
        for head in ("func f", "func f<T>", "init", "init?", "subscript", "static func ==", "func `in`"):
            text = f"\nstruct S {{\n  {head}(_ a: Int, _ b: [Int: Int], _ c: (Int, Int) -> Int) {{}}\n}}"
            self.assertEqual(self.counts(text), [(3, 3)], head)

    def test_lists_over_several_lines_are_counted(self):
        text = "func f(\n  _ a: Int,\n  _ b: Int = g(1, 2),\n  _ c: Int\n) {}"
        self.assertEqual(self.counts(text), [(1, 3)])

    def test_calls_closures_comments_and_strings_are_not_declarations(self):
        for text in ("f(_a, _b, _c)", "// func f(_ a: A, _ b: B, _ c: C)",
                     'let a = "func f(_ a: A, _ b: B, _ c: C)"', "let f: (_ a: A, _ b: B, _ c: C) -> D"):
            self.assertEqual(self.counts(text), [], text)

    def test_closure_types_of_a_parameter_are_not_counted(self):
        self.assertEqual(self.counts("func f(_ a: (_ b: B, _ c: C, _ d: D) -> E) {}"), [])

    def test_the_exit_status_reports_violations(self):
        with tempfile.TemporaryDirectory() as scratch:
            source = pathlib.Path(scratch) / "Sources/A/A.swift"
            source.parent.mkdir(parents=True)
            for text, expected in (("func f(_ a: A) {}\n", 0), ("func f(_ a: A, _ b: B, _ c: C) {}\n", 1)):
                source.write_text(text)
                output = io.StringIO()
                with contextlib.redirect_stderr(output), contextlib.redirect_stdout(output):
                    status = check_labels.main(["check-labels.py", scratch])
                self.assertEqual(status, expected, output.getvalue())


if __name__ == "__main__":
    unittest.main()
