#!/usr/bin/env python3
"""Measures the structure of the source code.

usage: structure.py [--modules] [--spread] [--way PROGRAM] [PACKAGE]

Prints a table of the Swift files below Sources: files, lines, top-level types, lines for each
top-level type, types that are spread over more than three files, functions with three or more
unlabelled parameters, documentation comments that begin with "What", and the longest text that a
command's help has before its options. `--modules` adds a row for each module, `--spread` lists the
types over more than three files.

`--way` counts the source files through which one small file passes: those with functions that run
when a directory with the file is backed up (or restored), but not for the directory without it; and
of these, the files in which at least eight lines run, not counting lines that only return a value.
PROGRAM is a build with coverage, which `make structure` makes.
"""

import argparse
import collections
import importlib.util
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

TYPE = re.compile(
    r"^(?:@\w+(?:\([^)]*\))?\s+)*(?:(?:public|package|internal|fileprivate|private|final|indirect|"
    r"nonisolated|open)\s+)*(struct|class|enum|protocol|actor)\s+(\w+)",
    re.MULTILINE,
)
EXTENSION = re.compile(r"^(?:@\w+(?:\([^)]*\))?\s+)*(?:\w+\s+)*extension\s+([\w.]+)", re.MULTILINE)
# The first line of a documentation comment.
WHAT = re.compile(r"(?:\A|^(?![ \t]*///).*\n)[ \t]*/// What\b", re.MULTILINE)
SPREAD = 3
MANY_LINES = 8


def labels():
    """The module of check-labels.py, which counts unlabelled parameters."""
    path = pathlib.Path(__file__).with_name("check-labels.py")
    spec = importlib.util.spec_from_file_location("labels", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Measure:
    """The figures of a set of files."""

    def __init__(self):
        self.files = self.lines = self.types = self.unlabelled = self.what = 0
        self.places = collections.defaultdict(set)

    def add(self, file, text, checker):
        code = checker.without_text(text)
        self.files += 1
        self.lines += text.count("\n")
        for declaration in TYPE.finditer(code):
            self.types += 1
            self.places[declaration.group(2)].add(file)
        for extension in EXTENSION.finditer(code):
            self.places[extension.group(1).split(".")[0]].add(file)
        self.unlabelled += sum(1 for _ in checker.violations(text))
        self.what += len(WHAT.findall(text))
        return {found.group(2) for found in TYPE.finditer(code)}

    def row(self, name, own):
        spread = sum(1 for one, files in self.places.items() if one in own and len(files) > SPREAD)
        each = self.lines // max(1, self.types)
        return (name, self.files, self.lines, self.types, each, spread, self.unlabelled, self.what)


def longest_help(package):
    """The number of lines of the longest text before the options of a command's help."""
    longest = 0
    for page in sorted((package / "Tests").rglob("Snapshots/*help*")):
        lines = page.read_text(encoding="utf-8", errors="replace").splitlines()
        for number, line in enumerate(lines):
            if line.startswith("USAGE:"):
                longest = max(longest, sum(1 for one in lines[:number] if one.strip()))
    return longest


def llvm(name):
    """The path of one of LLVM's programs: that of the Swift toolchain, whose profile format the
    program uses, or the one in PATH."""
    swift = shutil.which("swift")
    own = pathlib.Path(swift).resolve().parent / name if swift else None
    return str(own) if own and own.exists() else name


def lines_run(regions):
    """The lines of a function's executed regions. Each region is [first line, column, last line,
    column, count, …], inner ones after outer ones."""
    ran = set()
    for first, _, last, _, count, *_ in regions:
        lines = set(range(first, last + 1))
        ran = ran | lines if count else ran - lines
    return ran


class Way:
    """Runs a program with coverage on a directory with one small file and on an empty one."""

    def __init__(self, program, package):
        self.program, self.sources = os.path.abspath(program), (package / "Sources").resolve()
        self.scratch = tempfile.TemporaryDirectory()
        self.root = pathlib.Path(self.scratch.name)

    def functions(self, *words):
        """Runs a command; returns the functions that ran, each with its file and its lines."""
        profile, merged = self.root / "raw", self.root / "merged"
        environment = dict(os.environ, HOME=str(self.root), LLVM_PROFILE_FILE=str(profile))
        subprocess.run([self.program, *words], check=True, env=environment, cwd=self.root,
                       stdout=subprocess.DEVNULL)
        if not profile.exists():
            raise SystemExit(f"structure: error: {self.program} writes no coverage: build it with "
                             "'make structure'")
        subprocess.run([llvm("llvm-profdata"), "merge", profile, "-o", merged], check=True)
        report = subprocess.run(
            [llvm("llvm-cov"), "export", self.program, f"-instr-profile={merged}", "-skip-expansions"],
            check=True, capture_output=True)
        functions = json.loads(report.stdout)["data"][0]["functions"]
        return {
            one["name"]: (one["filenames"][0], lines_run(one["regions"])) for one in functions
            if one["count"] and one["filenames"][0].startswith(str(self.sources))
        }

    def files(self, first, second):
        """The files of functions that ran in the first run and not in the second, with the number
        of lines of these functions that ran."""
        lines = collections.defaultdict(set)
        for name in first.keys() - second.keys():
            file, ran = first[name]
            lines[str(pathlib.Path(file).relative_to(self.sources))] |= ran
        return {file: len(ran) for file, ran in sorted(lines.items())}

    def measure(self):
        """Returns the source files on the way from a file to a pack, and from a pack to a file."""
        for name in ("full", "empty"):
            (self.root / name).mkdir()
        (self.root / "full/letter.txt").write_bytes(os.urandom(3000))
        runs = {}
        for name in ("full", "empty"):
            repository, source = self.root / f"repository-{name}", self.root / name
            self.functions("init", str(repository), "--plain", "--no-default")
            backup = self.functions(
                "backup", "--layout", "folder", "--root", str(source), "--repo", str(repository))
            restore = self.functions(
                "restore", f"latest:folders/{name}", "--to", str(self.root / f"restored-{name}"),
                "--repo", str(repository))
            runs[name] = (backup, restore)
        return [self.files(runs["full"][part], runs["empty"][part]) for part in (0, 1)]


def main():
    arguments = argparse.ArgumentParser(description="Measures the structure of the source code.")
    arguments.add_argument("--modules", action="store_true", help="a row for each module")
    arguments.add_argument("--spread", action="store_true", help="list the types over many files")
    arguments.add_argument("--way", metavar="PROGRAM", help="count the files that a file passes")
    arguments.add_argument("package", nargs="?", default=".")
    options = arguments.parse_args()
    package = pathlib.Path(options.package)
    files = sorted((package / "Sources").rglob("*.swift"))
    if not files:
        print(f"structure: error: no Swift files below {package / 'Sources'}", file=sys.stderr)
        return 2
    checker = labels()
    total, own = Measure(), set()
    modules = collections.defaultdict(Measure)
    owned = collections.defaultdict(set)
    for file in files:
        text = file.read_text(encoding="utf-8")
        module = file.relative_to(package / "Sources").parts[0]
        own |= total.add(file, text, checker)
        owned[module] |= modules[module].add(file, text, checker)
    heads = ("", "files", "lines", "types", "lines/type", "over 3 files", "unlabelled", "What")
    rows = [heads]
    if options.modules:
        rows += [one.row(name, owned[name]) for name, one in sorted(modules.items())]
    rows.append(total.row("all", own))
    for row in rows:
        print(f"{row[0]:20}" + "".join(f"{str(cell):>13}" for cell in row[1:]))
    longest = longest_help(package)
    if longest:
        print(f"longest help before its usage: {longest} lines")
    if options.way:
        ways = ("backup to a pack", "a pack to a file")
        for name, files in zip(ways, Way(options.way, package).measure()):
            many = sum(lines >= MANY_LINES for lines in files.values())
            print(f"files on the way from {name}: {len(files)}, {many} of them with at least "
                  f"{MANY_LINES} lines")
            if options.modules:
                print("".join(f"{lines:6}  {file}\n" for file, lines in files.items()), end="")
    if options.spread:
        for name in sorted(own, key=lambda one: -len(total.places[one])):
            if len(total.places[name]) > SPREAD:
                print(f"{name}: {len(total.places[name])} files")
    return 0


if __name__ == "__main__":
    sys.exit(main())
