#!/usr/bin/env python3
"""Writes the program's man pages from its own help: sandboxctl.1 and one page for each command.

usage: make-man.py PROGRAM FOLDER

The program is asked with --experimental-dump-help, so that a page says what --help says. The pages
are mdoc(7). What they say besides (exit status, environment, files) is in this file.
"""

import json
import pathlib
import subprocess
import sys

NAME = "sandboxctl"
DATE = "November 21, 2026"

EXIT_STATUS = [
    ("0", "done; warnings may have been told"),
    ("1", "failed"),
    ("2", "wrong usage"),
    ("3", "done in part: something that the policy keeps could not be read, or not be restored"),
    ("4", "nothing changed, and --fail-if-unchanged was given"),
    ("5", "a goal was not met: of a purge, a policy with a mistake, an example that fails"),
    ("10", "there is no repository"),
    ("11", "another run is going on"),
    ("13", "damaged data was found"),
    ("130", "interrupted"),
]
ENVIRONMENT = [
    ("HOME", "where this user's own apps, and what is named below, are looked for"),
    ("SANDBOXCTL_REPOSITORY", "the repository where no --repo is given; it goes before the "
                              "configuration's"),
    ("XDG_DATA_HOME", "where the user's own repository lies, sandboxctl/repository below it; "
                      "~/.local/share if it is not set"),
    ("XDG_CONFIG_HOME", "where the configuration and the user's own policies lie, "
                        "sandboxctl/config.yaml and sandboxctl/policies below it; ~/.config if it "
                        "is not set"),
    ("XDG_CACHE_HOME", "where what makes the next backup quick lies, sandboxctl below it; ~/.cache "
                       "if it is not set"),
]
FILES = [
    ("~/.config/sandboxctl/config.yaml", "options that hold unless the command line says "
                                         "otherwise: sandboxctl-config(5)"),
    ("~/.local/share/sandboxctl/repository", "the user's own repository, which the first backup "
                                             "makes where no other is named"),
    ("~/.cache/sandboxctl", "what makes the next backup quick; it can be removed"),
]


def escaped(text):
    """The text with what roff would take for its own: backslashes, minus signs, and controls."""
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("~", "\\(ti").replace("^", "\\(ha")
    return "\\&" + text if text[:1] in (".", "'") else text


def word(text):
    """A word as an argument of a macro."""
    text = escaped(text)
    return f'"{text}"' if " " in text else text


def sentences(paragraph):
    """The lines of a paragraph: a new one for each sentence, none over 78 columns."""
    line = ""
    for item in paragraph.split():
        item = escaped(item)
        if line and (len(line) + 1 + len(item) > 78 or line[-1] in ".?!"):
            yield line
            line = ""
        line = f"{line} {item}" if line else item
    if line:
        yield line


def discussion(text):
    """The paragraphs of a discussion and its example commands."""
    text, _, examples = text.partition("EXAMPLES:\n")
    paragraphs = [part for part in text.strip().split("\n\n") if part]
    commands = [line.strip()[2:] for line in examples.splitlines() if line.strip().startswith("$ ")]
    return paragraphs, commands


def flags(argument):
    """The names of an option as macros, long ones last."""
    names = sorted(argument["names"], key=lambda name: name["kind"] == "long")
    macros = [("Fl " if name["kind"] == "short" else "Fl \\-") + escaped(name["name"])
              for name in names]
    value = f" Ar {word(argument['valueName'])}" if argument["kind"] == "option" else ""
    return " , ".join(macros) + value


def synopsis(command):
    """One line of the synopsis for each argument."""
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
    """The arguments of a command but those that every command has."""
    return [argument for argument in command.get("arguments", [])
            if argument["shouldDisplay"]
            and (argument["valueName"] not in ("version", "help")
                 or argument["kind"] == "option")]


def tagged(rows, macro):
    """A list of words and what they mean."""
    yield ".Bl -tag -width Ds"
    for name, meaning in rows:
        yield f".It {macro} {name}"
        yield from sentences(meaning)
    yield ".El"


def options(command):
    """The list of arguments with their meaning."""
    rows = []
    for argument in shown(command):
        positional = argument["kind"] == "positional"
        name = f"Ar {word(argument['valueName'])}" if positional else flags(argument)
        rows.append((name, argument.get("abstract", "")))
    if rows:
        yield ".Pp"
        yield "The arguments are:"
        yield ".Bl -tag -width Ds"
        for name, meaning in rows:
            yield f".It {name}"
            yield from sentences(meaning)
        yield ".El"


def page_name(path):
    return "-".join(path)


def page(command, path):
    """The lines of a command's page."""
    title = page_name(path)
    paragraphs, commands = discussion(command.get("discussion", ""))
    yield f'.\\" Generated by Tools/make-man.py from the program\'s own help.'
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
    yield from options(command)
    yield from children(command, path)
    if len(path) == 1:
        yield ".Sh ENVIRONMENT"
        yield from tagged(ENVIRONMENT, "Ev")
        yield ".Sh FILES"
        yield from tagged([(escaped(name), meaning) for name, meaning in FILES], "Pa")
    yield ".Sh EXIT STATUS"
    if len(path) == 1:
        yield from tagged(EXIT_STATUS, "")
    else:
        yield "See"
        yield f".Xr {NAME} 1 ."
    if len(path) == 1:
        yield from cron()
    if commands:
        yield ".Sh EXAMPLES"
        yield ".Bd -literal"
        yield from (escaped(line) for line in commands)
        yield ".Ed"
    yield ".Sh SEE ALSO"
    yield from see_also(command, path)


def cron():
    """The section on what runs without a person."""
    yield ".Sh FROM CRON AND SYSTEMD"
    yield from sentences(
        "Without a terminal nothing is ever asked: what needs an answer ends with exit status 2 and "
        "names the flag to give. With --quiet a backup that went well says nothing.")
    yield ".Xr sandboxctl-schedule-install 1"
    yield "writes what follows; by hand a line of a crontab is enough:"
    yield ".Bd -literal"
    yield escaped("30 2 * * *  sandboxctl backup --quiet --scheduled --lock-wait 10m")
    yield ".Ed"
    yield ".Pp"
    yield "A service of this user for systemd, and its timer:"
    yield ".Bd -literal"
    for line in ("[Service]", "Type=oneshot",
                 "ExecStart=sandboxctl backup --quiet --scheduled", "Nice=10",
                 "IOSchedulingClass=idle", "", "[Timer]", "OnCalendar=daily", "Persistent=true",
                 "", "[Install]", "WantedBy=timers.target"):
        yield escaped(line)
    yield ".Ed"
    yield ".Pp"
    yield from sentences(
        "A second run on the same source ends with exit status 11 at once; --lock-wait waits for "
        "the first. SIGTERM and SIGHUP end a run as Ctrl-C does.")


def children(command, path):
    """The commands below a command."""
    below = subcommands(command)
    if below:
        yield ".Pp"
        yield "The commands are:"
        yield ".Bl -tag -width Ds"
        for child in below:
            yield f".It Xr {page_name(path + [child['commandName']])} 1"
            yield escaped(child["abstract"]) + "."
        yield ".El"


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


def write(command, path, folder):
    target = folder / f"{page_name(path)}.1"
    target.write_text("\n".join(page(command, path)) + "\n")
    for child in subcommands(command):
        write(child, path + [child["commandName"]], folder)


def main():
    if len(sys.argv) != 3:
        sys.exit("usage: make-man.py PROGRAM FOLDER")
    program, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    dump = subprocess.run([program, "--experimental-dump-help"], check=True, capture_output=True)
    folder.mkdir(parents=True, exist_ok=True)
    write(json.loads(dump.stdout)["command"], [NAME], folder)


if __name__ == "__main__":
    main()
