"""The language check refuses exactly the phrases and forms listed in docs/style.md."""

import contextlib
import importlib.util
import io
import pathlib
import tempfile
import unittest

PACKAGE = pathlib.Path(__file__).resolve().parents[2]
SPEC = importlib.util.spec_from_file_location("check_words", PACKAGE / "Tools/check-words.py")
check_words = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(check_words)

STYLE = "# Style\n\n## Words\n\n| not | but |\n| --- | --- |\n| `gives way`, `hinder*` | is replaced |\n"


class WordTests(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.package = pathlib.Path(scratch.name)
        self.write("docs/style.md", STYLE)

    def write(self, name, text):
        file = self.package / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def problems(self, name, text):
        self.write(name, text)
        return self.all_problems()

    def all_problems(self):
        table = check_words.phrases((self.package / "docs/style.md").read_text())
        return list(check_words.problems(check_words.texts(self.package), table))

    def test_a_phrase_is_refused_with_file_line_and_replacement(self):
        found = self.problems("Sources/A/A.swift", "// fine\n// it Gives way\n")
        self.assertEqual(found, ["Sources/A/A.swift:2: 'Gives way': is replaced"])

    def test_a_phrase_is_found_across_lines_of_a_comment(self):
        found = self.problems("Sources/A/A.swift", "/// The file that gives\n  /// way.\n")
        self.assertEqual(len(found), 1)
        self.assertTrue(found[0].startswith("Sources/A/A.swift:1: "))

    def test_an_ending_is_matched_only_where_the_table_has_a_star(self):
        self.assertEqual(len(self.problems("Tools/a.py", "# hindered, hinders\n")), 2)
        self.assertEqual(self.problems("Tools/a.py", "# gives ways; a gives-way sign\n"), [])

    def test_strings_and_manual_pages_are_checked(self):
        self.assertEqual(len(self.problems("Man/a.1", ".Nd hinders\n")), 1)
        self.assertEqual(len(self.problems("Sources/A/B.swift", 'print("it gives way")\n')), 2)

    def test_documents_at_the_root_are_checked(self):
        for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"):
            found = self.problems(name, "It hinders.\n")
            self.assertEqual(found, [f"{name}:1: 'hinders': is replaced"])
            (self.package / name).unlink()

    def test_the_style_guide_may_quote_and_has_the_width_of_documents(self):
        self.assertEqual(self.all_problems(), [])
        self.write("docs/style.md", STYLE + "\n" + "word " * 21 + "\n")
        self.assertEqual(self.all_problems(), ["docs/style.md:9: 105 characters, at most 100"])

    def test_a_documentation_comment_must_not_begin_with_what(self):
        for text in ("/// What it is.\nlet a = 1\n", "let b = 1\n\n  /// What it is.\n"):
            found = self.problems("Sources/A/A.swift", text)
            self.assertEqual(len(found), 1, text)
            self.assertIn("begins with 'What'", found[0])
        self.assertEqual(
            self.problems("Sources/A/A.swift", "/// The rule.\n/// What follows is text.\n"), [])
        found = self.problems("Sources/A/A.swift", "/// A.\n/// - Parameter a: what it is\n")
        self.assertEqual(len(found), 1)

    def test_lines_of_documents_are_at_most_100_characters(self):
        long = "word " * 21 + "\n"
        self.assertEqual(len(self.problems("docs/a.md", long)), 1)
        for free in (f"| {long.strip()} |\n", f"```\n{long}```\n", f"[a]({'x' * 100})\n"):
            self.assertEqual(self.problems("docs/a.md", free), [], free)

    def test_a_readme_has_at_most_250_lines(self):
        self.assertEqual(self.problems("README.md", "line\n" * 250), [])
        self.assertEqual(len(self.problems("README.md", "line\n" * 251)), 1)

    def test_without_a_word_list_the_check_fails(self):
        self.write("docs/style.md", "# Style\n")
        errors = io.StringIO()
        with contextlib.redirect_stderr(errors):
            status = check_words.main(["check-words.py", str(self.package)])
        self.assertEqual((status, "no table" in errors.getvalue()), (2, True))

    def test_the_exit_status_reports_problems(self):
        for text, expected in (("# plain\n", 0), ("# it hinders\n", 1)):
            self.write("Tools/a.py", text)
            with contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO()):
                status = check_words.main(["check-words.py", str(self.package)])
            self.assertEqual(status, expected)


if __name__ == "__main__":
    unittest.main()
