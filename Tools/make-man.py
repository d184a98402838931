#!/usr/bin/env python3
"""Generates the man pages of the commands: sandboxctl.1 and one page for each subcommand.

usage: make-man.py PROGRAM DIR

A page consists of the command's help, from --experimental-dump-help of PROGRAM, and of the file
Man/sections/PAGE.mdoc if it exists. Its text before the first section belongs to DESCRIPTION; its
sections follow DESCRIPTION.
"""

import json
import pathlib
import re
import subprocess
import sys

NAME = "sandboxctl"
DATE = "November 21, 2026"
SECTIONS = pathlib.Path(__file__).resolve().parent.parent / "Man" / "sections"
REFERENCE = re.compile(r"(sandboxctl[a-z-]*)\((\d)\)([.,;:]?)")


def escaped(text):
    """Escapes characters that are special to roff: backslashes, minus signs, and controls."""
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("~", "\\(ti").replace("^", "\\(ha")
    return "\\&" + text if text[:1] in (".", "'") else text


def word(text):
    """Formats a word as a macro argument."""
    text = escaped(text)
    return f'"{text}"' if " " in text else text


def sentences(paragraph):
    """Yields the lines of a paragraph, at most 78 columns. Sentences and references begin a line."""
    line = ""
    for item in paragraph.split():
        reference = REFERENCE.fullmatch(item)
        item = f".Xr {' '.join(reference.groups())}".rstrip() if reference else escaped(item)
        is_full = len(line) + 1 + len(item) > 78 or line[-1:] in (".", "?", "!")
        if line and (is_full or reference or line.startswith(".Xr ")):
            yield line
            line = ""
        line = f"{line} {item}" if line else item
    if line:
        yield line


def discussion(text, title):
    """Splits a discussion into paragraphs, without references to the page itself, and examples."""
    text, _, examples = text.partition("EXAMPLES:\n")
    text = re.sub(rf"\bSee {re.escape(title)}\(1\)[^.]*\.", "", text)
    paragraphs = [part for part in text.split("\n\n") if part.strip()]
    commands = [line.strip()[2:] for line in examples.splitlines() if line.strip().startswith("$ ")]
    return paragraphs, commands


def flags(argument):
    """Formats the names of an option as macros, long ones last."""
    names = sorted(argument["names"], key=lambda name: name["kind"] == "long")
    macros = [("Fl " if name["kind"] == "short" else "Fl \\-") + escaped(name["name"])
              for name in names]
    value = f" Ar {word(argument['valueName'])}" if argument["kind"] == "option" else ""
    return " , ".join(macros) + value


def synopsis(command):
    """Yields one line of the synopsis for each argument."""
    for argument in shown(command):
        if argument["kind"] == "positional":
            macro = f"Ar {word(argument['valueName'])}"
        else:
            name = argument["preferredName"]
            dash = "" if name["kind"] == "short" else "\\-"
            macro = f"Fl {dash}{escaped(name['name'])}"
            if argument["kind"] == "option":
                macro += f" Ar {word(argument['valueName'])}"
        if argument["isRepeating"]:
            macro += " ..."
        yield f".{macro}" if not argument["isOptional"] else f".Op {macro}"
    if command.get("subcommands"):
        yield ".Ar command"


def shown(command):
    """Returns the arguments of a command without those that every command has."""
    return [argument for argument in command.get("arguments", [])
            if argument["shouldDisplay"]
            and (argument["valueName"] not in ("version", "help")
                 or argument["kind"] == "option")]


def options(command):
    """Yields the list of arguments with their help."""
    arguments = shown(command)
    if arguments:
        yield ".Pp"
        yield "The arguments are:"
        yield ".Bl -tag -width Ds"
        for argument in arguments:
            positional = argument["kind"] == "positional"
            yield f".It {'Ar ' + word(argument['valueName']) if positional else flags(argument)}"
            yield from sentences(argument.get("abstract", ""))
        yield ".El"


def children(command, path):
    """Yields the list of subcommands."""
    below = subcommands(command)
    if below:
        yield ".Pp"
        yield "The commands are:"
        yield ".Bl -tag -width Ds"
        for child in below:
            yield f".It Xr {page_name(path + [child['commandName']])} 1"
            yield escaped(child["abstract"]) + "."
        yield ".El"


def page_name(path):
    return "-".join(path)


def section_file(title):
    """Reads a page's section file: the lines before its first section, and the others."""
    file = SECTIONS / f"{title}.mdoc"
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    first = next((at for at, line in enumerate(lines) if line.startswith(".Sh ")), len(lines))
    return lines[:first], lines[first:]


def page(command, path):
    """Yields the lines of a command's page."""
    title = page_name(path)
    paragraphs, commands = discussion(command.get("discussion", ""), title)
    details, sections = section_file(title)
    yield '.\\" Generated by Tools/make-man.py from the program\'s help and Man/sections.'
    yield f".Dd {DATE}"
    yield f".Dt {title.upper()} 1"
    yield ".Os"
    yield ".Sh NAME"
    yield f".Nm {escaped(title)}"
    yield f".Nd {escaped(command['abstract'][0].lower() + command['abstract'][1:])}"
    yield ".Sh SYNOPSIS"
    yield f".Nm {' '.join(path)}"
    yield from synopsis(command)
    yield ".Sh DESCRIPTION"
    for index, paragraph in enumerate(paragraphs or [command["abstract"] + "."]):
        if index:
            yield ".Pp"
        yield from sentences(paragraph)
    if details:
        yield ".Pp"
        yield from details
    yield from options(command)
    yield from children(command, path)
    yield from sections
    if ".Sh EXIT STATUS" not in sections:
        yield ".Sh EXIT STATUS"
        yield "See"
        yield f".Xr {NAME} 1 ."
    if commands:
        yield ".Sh EXAMPLES"
        yield ".Bd -literal"
        yield from (escaped(line) for line in commands)
        yield ".Ed"
    yield ".Sh SEE ALSO"
    yield from see_also(command, path)


def see_also(command, path):
    names = [(NAME, "1")] if len(path) > 1 else []
    names += [(page_name(path + [child["commandName"]]), "1") for child in subcommands(command)]
    names = sorted(names, key=lambda name: (name[1], name[0]))
    names += [
        ("sandboxctl-config", "5"), ("sandboxctl-policy", "5"), ("sandboxctl-repository", "5"),
        ("sandboxctl-lifecycle", "7"),
    ]
    for index, (name, section) in enumerate(names):
        yield f".Xr {name} {section}" + (" ," if index + 1 < len(names) else "")


def subcommands(command):
    return [child for child in command.get("subcommands") or []
            if child["commandName"] != "help" and child.get("shouldDisplay", True)]


def pages(command, path):
    """Yields the name and the lines of each page."""
    yield page_name(path), page(command, path)
    for child in subcommands(command):
        yield from pages(child, path + [child["commandName"]])


def main():
    if len(sys.argv) != 3:
        sys.exit("usage: make-man.py PROGRAM DIR")
    program, directory = sys.argv[1], pathlib.Path(sys.argv[2])
    dump = subprocess.run([program, "--experimental-dump-help"], check=True, capture_output=True)
    directory.mkdir(parents=True, exist_ok=True)
    unused = {file.stem for file in SECTIONS.glob("*.mdoc")}
    for name, lines in pages(json.loads(dump.stdout)["command"], [NAME]):
        (directory / f"{name}.1").write_text("\n".join(lines) + "\n")
        unused.discard(name)
    if unused:
        sys.exit(f"make-man.py: no command for the sections of {', '.join(sorted(unused))}")


if __name__ == "__main__":
    main()
