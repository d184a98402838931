#!/usr/bin/env python3
"""Runs `mutate_corpus.py`, which changes a corpus as a day of use does, from the directory in the
first argument, but never edits property lists at random.

That would make some of them invalid, and the changes of a later day read them. The harness itself runs
the first day; a list that this day made invalid counts as empty, as for an app that resets its
settings."""

import plistlib
import sys
import types
from xml.parsers.expat import ExpatError

sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv.pop(1))
import mutate_corpus  # noqa: E402  (in that directory)


class Changes(mutate_corpus.Mut):
    def files(self, pred=lambda rel, st: True):
        return super().files(lambda rel, st: not rel.endswith(".plist") and pred(rel, st))


def load(file):
    """Returns a property list of either format, or an empty one."""
    try:
        return plistlib.load(file)
    except (plistlib.InvalidFileException, ExpatError, ValueError, KeyError, IndexError):
        return {}


mutate_corpus.Mut = Changes
mutate_corpus.plistlib = types.SimpleNamespace(**vars(plistlib) | {"load": load})
if __name__ == "__main__":
    mutate_corpus.main()
