#!/usr/bin/env python3
"""Checks that no function takes three or more unlabelled parameters.

usage: check-labels.py [PACKAGE]

A call such as `read(index, directory, .plain)` does not show which argument is which. Functions,
initializers and subscripts of the Swift files below Sources, Tools and policies are checked; two
unlabelled parameters are allowed (docs/style.md, "Names"). Each violation is printed with file and
line; the exit status is 1 if there is one.
"""

import pathlib
import re
import sys

LIMIT = 2
DECLARATION = re.compile(r"\b(?:func\s+(?:`?\w+`?|[-+*/<>=!&|^~%.]+)|init[?!]?|subscript)\s*(?=[<(])")
OPENING, CLOSING = "([{", ")]}"


def without_text(source):
    """The source with comments and string literals blanked, line for line."""

    def blank(match):
        return re.sub(r"[^\n]", " ", match.group())

    pattern = r'"""(?:.|\n)*?"""|"(?:\\.|[^"\\\n])*"|/\*(?:.|\n)*?\*/|//[^\n]*'
    return re.sub(pattern, blank, source)


def parameters(source, position):
    """The parameters of the list that begins at a position, each as text."""
    depth, start, found = 0, position + 1, []
    for index in range(position, len(source)):
        character = source[index]
        if character in OPENING:
            depth += 1
        elif character in CLOSING:
            depth -= 1
            if depth == 0:
                return found + [source[start:index]]
        elif character == "," and depth == 1:
            found.append(source[start:index])
            start = index + 1
    return found


def begin_of_list(source, position):
    """The opening parenthesis after a declaration's name and its generic parameters."""
    if source[position] == "<":
        depth = 0
        for index in range(position, len(source)):
            if source[index] == "<":
                depth += 1
            elif source[index] == ">" and source[index - 1] != "-":
                depth -= 1
                if depth == 0:
                    position = index + 1
                    break
    return source.find("(", position)


def violations(text):
    """Each declaration with too many unlabelled parameters: its line, its name, their number."""
    source = without_text(text)
    for declaration in DECLARATION.finditer(source):
        start = begin_of_list(source, declaration.end())
        count = sum(1 for one in parameters(source, start) if re.match(r"\s*_\s+`?\w+`?\s*:", one))
        if count > LIMIT:
            line = source.count("\n", 0, declaration.start()) + 1
            yield line, " ".join(declaration.group().split()), count


def files(package):
    for tree in ("Sources", "Tools", "policies"):
        yield from sorted((package / tree).rglob("*.swift"))


def main(arguments):
    package = pathlib.Path(arguments[1] if len(arguments) > 1 else ".")
    count, failed = 0, False
    for file in files(package):
        count += 1
        for line, name, unlabelled in violations(file.read_text(encoding="utf-8")):
            failed = True
            print(f"{file.relative_to(package)}:{line}: {name} takes {unlabelled} unlabelled "
                  f"parameters, at most {LIMIT}", file=sys.stderr)
    if count == 0:
        print(f"check-labels: error: no Swift files below {package}", file=sys.stderr)
        return 2
    if not failed:
        print(f"check-labels: {count} files")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
