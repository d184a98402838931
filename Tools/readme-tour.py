#!/usr/bin/env python3
"""Checks the README's tour against the output of the tour, or updates it.

usage: readme-tour.py [--check] PROGRAM README

The blocks of the README that begin with `$ sandboxctl` show commands of Tools/tour.sh with their
output. Values that differ between runs are masked before the comparison: ids, times, durations,
stored sizes, the directory, the user and the host, the order of files in a pack, and the width of
columns. A line `…` stands for omitted lines; such output is checked, but not updated. With --check
nothing is written, and the exit status is 1 if something differs. If the tour ends with `skipped:`,
for example because it cannot mount, the remaining commands of the README are left unchanged.
"""

import pathlib
import re
import subprocess
import sys

TOUR = pathlib.Path(__file__).with_name("tour.sh")
SHOWN_FOLDER = "/home/you"
SHOWN_USER = "you@box"
ELISION = "…"

MASKS = [
    (re.compile(r"/[^ ]*/tmp\.\w+|" + re.escape(SHOWN_FOLDER)), "<folder>"),
    (re.compile(r"\b[\w.-]+@[\w.-]+:"), "<user>:"),
    (re.compile(r"\b[0-9a-f]{2}/[0-9a-f]{12,64}(…|\b)"), "<pack>"),
    (re.compile(r"\b[0-9a-f]{64}\b"), "<id>"),
    (re.compile(r"\b[0-9A-F]{8}(-[0-9A-F]{4}){3}-[0-9A-F]{12}\b"), "<container>"),
    (re.compile(r"\b\d{8}T\d{6}-[0-9a-f]{8}\b"), "<operation>"),
    (re.compile(r"\b[0-9a-f]{8}\b"), "<id>"),
    (re.compile(r"\d{4}-\d{2}-\d{2} \d{2}:\d{2}"), "<time>"),
    (re.compile(r"in ((under )?\d+(\.\d+)? (ms|s)|\d+ (min \d+ s|h \d+ min))\b"), "in <duration>"),
    (re.compile(r"-> [\d.]+ [KM]?i?B stored"), "-> <size> stored"),
    (re.compile(r"(<id> +<time> .* )[\d.]+ [KMG]?i?B *$"), r"\1<size>"),
    (re.compile(r"--length \d+KiB"), "--length <size>"),
    (re.compile(r" {2,}"), " "),
]
# The order of files in a pack depends on the number of threads.
IN_PACK = re.compile(r"^apps/.*/Documents/.*$")


def masked(line, command):
    """Returns a line with values that differ between runs masked."""
    for pattern, text in MASKS:
        line = pattern.sub(text, line)
    if command.startswith("$ zstd"):
        line = IN_PACK.sub("<file>", line)
    return line.rstrip()


def tour(program):
    """Returns the commands of the tour in order, each with its output, and whether the end of the
    tour was skipped."""
    text = TOUR.read_text()
    titles = set(re.findall(r'^step "(.*)"$', text, re.MULTILINE))
    done = subprocess.run(["bash", str(TOUR), program], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"readme-tour: the tour exited with status {done.returncode}: {done.stderr}")
    steps, is_skipped = [], False
    lines = done.stdout.split("\n")
    for number, line in enumerate(lines):
        if line.startswith("$ "):
            steps.append((line, []))
        elif line in titles or (line == "" and lines[number + 1 : number + 2] in
                                [[title] for title in titles]):
            continue
        elif line.startswith("skipped: "):
            is_skipped = True
        elif steps:
            steps[-1][1].append(line)
    if steps and steps[-1][1][-1:] == [""]:
        steps[-1][1].pop()
    return steps, is_skipped


def blocks(lines):
    """Returns the commands that a README shows: the line of each command, and those of its
    output."""
    inside, shown = False, []
    for number, line in enumerate(lines):
        if line.startswith("```"):
            inside = not inside
        elif inside and line.startswith("$ "):
            shown.append((number, []))
        elif inside and shown and (shown[-1][1] or [shown[-1][0]])[-1] == number - 1:
            shown[-1][1].append(number)
    return shown


def matches(shown, printed):
    """Whether shown lines match the printed ones, except for elisions."""
    if not shown:
        return not printed
    if shown[0] == ELISION:
        # Blank lines around an elision belong to it.
        rest = shown[1:]
        return any(matches(rest, printed[start:]) for start in range(len(printed) + 1))
    return bool(printed) and shown[0] == printed[0] and matches(shown[1:], printed[1:])


def as_shown(line):
    """Returns a printed line for the README, with a generic directory, user and host."""
    line = re.sub(r"/[^ ]*/tmp\.\w+", SHOWN_FOLDER, line)
    return re.sub(r"\b[\w.-]+@[\w.-]+:(?=/)", SHOWN_USER + ":", line)


def main(arguments):
    is_check = arguments[:1] == ["--check"]
    program, readme = arguments[1:] if is_check else arguments
    path = pathlib.Path(readme)
    lines = path.read_text().split("\n")
    steps, is_skipped = tour(program)
    position, wrong, changes = 0, [], []
    if not blocks(lines):
        wrong.append(f"{readme}: contains no tour")
    for number, output in blocks(lines):
        command = lines[number]
        wanted = masked(command, command)
        while position < len(steps) and masked(steps[position][0], command) != wanted:
            position += 1
        if position == len(steps) and is_skipped:
            break
        if position == len(steps):
            wrong.append(f"{readme}:{number + 1}: the tour has no further '{command}'")
            break
        printed = steps[position][1]
        shown = [lines[line] for line in output]
        if not matches([masked(line, command) for line in shown],
                       [masked(line, command) for line in printed]):
            wrong.append(f"{readme}:{number + 1}: the tour prints something else for '{command}':\n"
                         + "\n".join("  " + as_shown(line) for line in printed))
        if ELISION not in shown:
            changes.append((number, output, [as_shown(steps[position][0])]
                            + [as_shown(line) for line in printed]))
        position += 1
    if is_check:
        print("\n".join(wrong), end="\n" if wrong else "")
        return 1 if wrong else 0
    for number, output, text in reversed(changes):
        lines[number : number + 1 + len(output)] = text
    path.write_text("\n".join(lines))
    return 0


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__.split("\n\n")[1])
    sys.exit(main(sys.argv[1:]))
