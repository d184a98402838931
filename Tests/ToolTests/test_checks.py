"""The checks in Tools/, tested with intentionally wrong packages."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

PACKAGE = pathlib.Path(__file__).resolve().parents[2]
TOOLS = PACKAGE / "Tools"


class Checks(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.addCleanup(self.scratch.cleanup)
        self.root = pathlib.Path(self.scratch.name)

    def write(self, path, text):
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")

    def check(self, tool):
        return subprocess.run(
            [sys.executable, str(TOOLS / tool), str(self.root)],
            capture_output=True, text=True, check=False)


class CheckImports(Checks):
    def refused(self, path, text, *expected):
        self.write(path, text)
        result = self.check("check-imports.py")
        self.assertEqual(result.returncode, 1, result)
        for words in expected:
            self.assertIn(words, result.stderr)

    def accepted(self):
        result = self.check("check-imports.py")
        self.assertEqual((result.returncode, result.stderr), (0, ""))

    def test_allowed_imports_are_accepted(self):
        self.write("Sources/SystemIO/A.swift", "internal import CLinux\nimport Glibc\n")
        self.write("Sources/Codecs/A.swift", "internal import CZstd\n")
        self.write("Sources/ArchiveStore/Pack/A.swift", "package import SystemIO\nimport Codecs\n")
        self.write("Sources/SandboxCommands/A.swift", "import ArgumentParser; import Restore\n")
        self.write("Sources/CZstd/shim.h", "#include <zstd.h>\n")
        self.accepted()

    def test_an_import_against_the_dependencies_is_refused(self):
        self.refused(
            "Sources/ArchiveStore/A.swift", "import Codecs\nimport PolicyEngine\n",
            "Sources/ArchiveStore/A.swift:2: ArchiveStore must not import PolicyEngine",
            "it may import: Codecs, RecoverScript, Swift, Synchronization, SystemIO")

    def test_every_form_of_import_is_found(self):
        for line in (
            "import Foundation", "  import Foundation", "public import Foundation",
            "internal import Foundation", "@_exported import Foundation",
            "@preconcurrency public import Foundation", "@_spi(X) import Foundation",
            "public @preconcurrency import Foundation", "import struct Foundation.URL",
            "import Foundation.NSObject", "import Codecs; import Foundation",
            "/* a */ import Foundation", "import `Foundation`", "import\tFoundation",
        ):
            with self.subTest(line):
                self.refused(
                    "Sources/PolicyEngine/A.swift", "\n" + line + "\n",
                    "A.swift:2: PolicyEngine must not import Foundation")

    def test_text_that_resembles_an_import_is_ignored(self):
        self.write(
            "Sources/PolicyEngine/A.swift",
            "// import Foundation\n/*\nimport Foundation\n*/\n/// import Glibc\n"
            'let text = """\nimport Foundation\n"""\nlet important = 1\n'
            '#if canImport(Foundation)\n#endif\nlet word = "; import Foundation"\n')
        self.accepted()

    def test_only_systemio_imports_libc(self):
        self.refused("Sources/SandboxModel/A.swift", "import Glibc\n", "must not import Glibc")

    def test_libc_symbols_are_refused(self):
        self.refused(
            "Sources/SandboxModel/A.swift",
            '@_silgen_name("open") func open() -> Int32\n', "A.swift:1: SandboxModel must not call")

    def test_only_codecs_imports_c_libraries(self):
        self.refused("Sources/ArchiveStore/A.swift", "import CZstd\n", "must not import CZstd")

    def test_foundation_is_refused(self):
        self.refused(
            "Sources/SandboxCommands/A.swift", "import Foundation\n", "FoundationEssentials")

    def test_a_module_missing_in_the_table_is_refused(self):
        self.refused("Sources/Utils/A.swift", "", "the module Utils is not in the table")

    def test_directories_in_a_cycle_are_refused(self):
        self.write("Sources/SystemIO/File/A.swift", "struct File { var lock: Lock? }\n")
        self.write("Sources/SystemIO/Lock/B.swift", "package struct Lock { let path: Path }\n")
        self.write("Sources/SystemIO/Path.swift", "/// Like a File.\nstruct Path {}\n")
        self.accepted()
        self.refused(
            "Sources/SystemIO/Path.swift", "struct Path { let file: File }\n",
            "Sources/SystemIO/Path.swift:1: a cycle of directories in SystemIO: '.' refers to 'File' (File)",
            "'File' refers to 'Lock' (Lock)", "'Lock' refers to '.' (Path)")

    def test_a_cycle_of_types_of_any_access_is_refused(self):
        for access in ("public", "open", "package", "public final", "public indirect", "internal"):
            with self.subTest(access):
                kind = "enum" if "indirect" in access else "class"
                self.write("Sources/Codecs/A/A.swift", f"{access} {kind} First {{ var x: Second }}\n")
                self.refused(
                    "Sources/Codecs/B/B.swift", f"{access} {kind} Second {{ var x: First }}\n",
                    "'A' refers to 'B' (Second)", "'B' refers to 'A' (First)")

    def test_policies_are_checked_as_a_module(self):
        self.write("Sources/SystemIO/A.swift", "")
        self.refused("policies/Builtin.swift", "import SystemIO\n", "BuiltinPolicies must not")

    def test_a_package_without_sources_is_an_error(self):
        self.assertEqual(self.check("check-imports.py").returncode, 2)


class CheckSizes(Checks):
    def test_files_have_at_most_400_lines(self):
        self.write("Sources/A/A.swift", "//\n" * 400)
        self.assertEqual(self.check("check-sizes.py").returncode, 0)
        self.write("Sources/A/B.swift", "//\n" * 401)
        result = self.check("check-sizes.py")
        self.assertEqual(result.returncode, 1)
        self.assertIn("B.swift:401: 401 lines, at most 400", result.stderr)

    def test_comments_wrap_at_100_characters(self):
        self.write("Sources/A/A.swift", f"// {'é' * 97}\n// | {'x' * 99}\nlet a = \"{'x' * 99}\"\n")
        self.assertEqual(self.check("check-sizes.py").returncode, 0)
        self.write("Tests/ATests/A.swift", f"func a() {{\n  /// {'x' * 95}\n}}\n")
        result = self.check("check-sizes.py")
        self.assertEqual(result.returncode, 1)
        self.assertIn("A.swift:2: a comment of more than 100 characters", result.stderr)

    def test_nothing_to_check_is_an_error(self):
        self.assertEqual(self.check("check-sizes.py").returncode, 2)


class CheckMan(Checks):
    page = (
        ".Dd November 21, 2026\n.Dt {title} 1\n.Os\n.Sh NAME\n.Nm {name}\n.Nd a page\n"
        ".Sh DESCRIPTION\n{text}\n.Sh SEE ALSO\n.Xr {other} 1\n")

    def lint(self, *texts):
        pages = []
        for name, other, text in texts:
            self.write(f"{name}.1", self.page.format(
                name=name, title=name.upper(), other=other, text=text))
            pages.append(str(self.root / f"{name}.1"))
        return subprocess.run(
            [str(TOOLS / "check-man.sh"), *pages], capture_output=True, text=True, check=False)

    def test_good_pages_may_refer_to_each_other(self):
        result = self.lint(("one", "two", "Text."), ("two", "one", "Text."))
        self.assertEqual(result.returncode, 0, result)

    def test_a_mistake_is_found(self):
        result = self.lint(("one", "one", ".Ql unclosed\n.Bl -tag\ntext"))
        self.assertEqual(result.returncode, 1, result)


class Dependencies(Checks):
    def test_without_apt_the_names_are_printed(self):
        environment = dict(os.environ, PATH=str(self.root))
        result = subprocess.run(
            ["/bin/sh", str(TOOLS / "deps.sh"), "libone-dev", "two"],
            capture_output=True, text=True, env=environment, check=False)
        self.assertEqual(result.returncode, 1)
        self.assertIn("  libone-dev\n  two\n", result.stderr)

    def test_installs_only_missing_packages(self):
        self.program("dpkg-query", 'case "$*" in *there*) echo "ii " ;; *) exit 1 ;; esac')
        self.program("apt-get", f'echo "$*" >> "{self.root}/calls"')
        self.program("swift", ":")
        self.program("sudo", '"$@"')
        environment = dict(os.environ, PATH=f"{self.root}:{os.environ['PATH']}")
        subprocess.run(
            ["/bin/sh", str(TOOLS / "deps.sh"), "there", "absent"],
            capture_output=True, env=environment, check=True)
        calls = (self.root / "calls").read_text(encoding="utf-8")
        self.assertEqual(calls, "install -qy --no-install-recommends absent\n")

    def program(self, name, text):
        self.write(name, f"#!/bin/sh\n{text}\n")
        (self.root / name).chmod(0o755)


class Manifest(unittest.TestCase):
    """Each build warns of files in a target's directory that are neither sources nor excluded."""

    def test_the_tools_are_excluded_from_the_target_in_their_directory(self):
        manifest = (PACKAGE / "Package.swift").read_text(encoding="utf-8")
        for tool in TOOLS.iterdir():
            if tool.is_file() and tool.suffix != ".swift":
                self.assertIn(f'"{tool.name}"', manifest)


if __name__ == "__main__":
    unittest.main()
