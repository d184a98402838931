#!/usr/bin/env python3
"""Checks the language of the project: the word list and the rules of docs/style.md.

usage: check-words.py [PACKAGE]

Refused, with file and line:
- a phrase of the first column of the table "Words" in docs/style.md, in any source file, test, tool,
  policy or document, also across a line break;
- a documentation comment that begins with "What";
- a line of a document with more than 100 characters, unless it is a table, a code block or a link;
- a README of more than 250 lines.

The exit status is 1 if something is refused, and 2 if the word list cannot be read.
"""

import bisect
import pathlib
import re
import string
import sys

STYLE = "docs/style.md"
# Texts that quote the words themselves.
QUOTING = {STYLE, "Tools/check-words.py", "Tests/ToolTests/test_words.py"}
TREES = ("Sources", "Tests", "Tools", "Benchmarks", "Fuzzers", "policies", "docs", "Man")
FILES = (
    "README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "Makefile", "Package.swift",
    ".ci/run",
)
ENDINGS = {
    ".swift", ".py", ".sh", ".c", ".h", ".md", ".yaml", ".yml", ".json",
    ".1", ".5", ".7", ".mdoc",
}
# Files that others wrote, or that are stored as bytes.
EXCLUDED = ("Tests/Vectors/", "Fuzzers/Corpus/", "Fuzzers/.build/")
WIDTH, README_LINES = 100, 250
# Converts only ASCII to lower case, so that positions stay: the phrases have no other letters.
LOWER = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)

# The end of a line, with the comment marker of the next line, where a phrase may continue.
BREAK = re.compile(r"[ \t]*\n[ \t]*(?:///?|\#|\*|\.\\\")?[ \t]*")
BULLET_WHAT = re.compile(r"^[ \t]*/// - (?:Parameter \w+|Returns|Throws): [Ww]hat\b", re.M)


class StyleError(Exception):
    pass


def phrases(style):
    """The phrases of the table "Words", each with its replacement."""
    _, heading, words = style.partition("\n## Words\n")
    found = []
    for row in re.findall(r"^\|(.*)\|(.*)\|$", words, re.M):
        found += [(phrase, row[1].strip()) for phrase in re.findall(r"`([^`]+)`", row[0])]
    if not heading or not found:
        raise StyleError(f"{STYLE} has no table under 'Words'")
    return found


def texts(package):
    """Each file that is checked, by its path below the package."""
    candidates = [package / name for name in FILES]
    for tree in TREES:
        candidates += sorted((package / tree).rglob("*"))
    for file in candidates:
        name = file.relative_to(package).as_posix()
        if name.startswith(EXCLUDED) or "/.build" in name:
            continue
        if file.is_file() and (name in FILES or file.suffix in ENDINGS):
            yield name, file.read_text(encoding="utf-8", errors="replace")


def line_of(text, position):
    return text.count("\n", 0, position) + 1


def occurrences(text, phrase):
    """The positions at which a phrase begins and ends in a lower-case text."""
    literal, is_prefix = phrase.rstrip("*").lower(), phrase.endswith("*")
    start = text.find(literal)
    while start >= 0:
        end = start + len(literal)
        while is_prefix and end < len(text) and (text[end].isalnum() or text[end] == "_"):
            end += 1
        around = text[start - 1:start] + text[end:end + 1]
        if not any(character.isalnum() or character in "_-" for character in around):
            yield start, end
        start = text.find(literal, end)


def refused_words(name, text, table):
    # Each line break becomes one space, so that phrases are found across it.
    parts, lines, line = [], [], 1
    for part in BREAK.split(text):
        parts.append(part)
        lines.append(line)
        line += 1
    flat, begins, position = " ".join(parts), [], 0
    for part in parts:
        begins.append(position)
        position += len(part) + 1
    lower = flat.translate(LOWER)
    found = [(start, end, replacement) for phrase, replacement in table
             for start, end in occurrences(lower, phrase)]
    for start, end, replacement in sorted(found):
        line = lines[bisect.bisect_right(begins, start) - 1]
        yield f"{name}:{line}: '{flat[start:end]}': {replacement}"


def refused_comments(name, text):
    previous = ""
    for number, line in enumerate(text.split("\n"), start=1):
        begins = not previous.startswith("///") or previous == "///"
        if begins and re.match(r"\s*/// What\b", line):
            yield f"{name}:{number}: a documentation comment begins with 'What'"
        previous = line.strip()
    for found in BULLET_WHAT.finditer(text):
        yield f"{name}:{line_of(text, found.start())}: a description begins with 'what'"


def refused_lines(name, text):
    in_code = False
    for number, line in enumerate(text.split("\n"), start=1):
        if line.lstrip().startswith("```"):
            in_code = not in_code
        is_free = in_code or line.lstrip().startswith(("|", "    ")) or "](" in line
        if len(line) > WIDTH and not is_free and " " in line.strip():
            yield f"{name}:{number}: {len(line)} characters, at most {WIDTH}"
    if name == "README.md" and text.count("\n") > README_LINES:
        yield f"{name}:{README_LINES + 1}: {text.count(chr(10))} lines, at most {README_LINES}"


def problems(checked, table):
    """Each mistake in some texts as one line."""
    for name, text in checked:
        if name not in QUOTING:
            yield from refused_words(name, text, table)
        if name.endswith(".swift"):
            yield from refused_comments(name, text)
        if name.endswith(".md"):
            yield from refused_lines(name, text)


def main(arguments):
    package = pathlib.Path(arguments[1] if len(arguments) > 1 else ".")
    try:
        table = phrases((package / STYLE).read_text(encoding="utf-8"))
        checked = list(texts(package))
    except (OSError, StyleError) as error:
        print(f"check-words: error: {error}", file=sys.stderr)
        return 2
    found = list(problems(checked, table))
    for problem in found:
        print(problem, file=sys.stderr)
    if not found:
        print(f"check-words: {len(checked)} files keep to {STYLE}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
