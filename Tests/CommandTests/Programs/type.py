"""Runs a program on a terminal of its own and types answers: type.py PROGRAM [ARGUMENT …] < answers

Standard input is a JSON array of [question, answer]: an answer is typed, with a newline, once its
question is shown. Prints what the terminal showed; the exit status is that of the program.
"""

import json
import os
import pty
import select
import signal
import sys
import time


def main():
    answers = json.load(sys.stdin)
    child, terminal = pty.fork()
    if child == 0:
        os.execvp(sys.argv[1], sys.argv[1:])
    shown, seen, end = b"", 0, time.monotonic() + 300
    while time.monotonic() < end:
        if not select.select([terminal], [], [], 1)[0]:
            continue
        try:
            more = os.read(terminal, 65536)
        except OSError:  # The program has ended.
            more = b""
        if not more:
            break
        shown += more
        if answers and answers[0][0].encode() in shown[seen:]:
            seen = len(shown)
            os.write(terminal, answers.pop(0)[1].encode() + b"\n")
    else:
        os.kill(child, signal.SIGKILL)
    sys.stdout.buffer.write(shown)
    sys.stdout.flush()
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status) % 256


sys.exit(main())
