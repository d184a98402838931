"""Validates a report in JUnit XML against the schema that Jenkins' xUnit plugin uses.

usage: validate_junit.py SCHEMA < REPORT

Run by an interpreter that has the package xmlschema (Tools/peers.txt). Prints one line for each
error, or the number of test cases of each outcome.
"""

import collections
import hashlib
import pathlib
import sys
from xml.etree import ElementTree

import xmlschema

# Of the file junit-10.xsd, "Copyright (c) 2014, Gregory Boissinot", in pytest's source package.
SHA256 = "a1a816f58d1bf95ebabf371994df0b9246dee66ea9572fbec4f9296f1b2c0ff6"

data = pathlib.Path(sys.argv[1]).read_bytes()
if hashlib.sha256(data).hexdigest() != SHA256:
    sys.exit(f"{sys.argv[1]} is not the expected schema")
report = ElementTree.fromstring(sys.stdin.buffer.read())
errors = list(xmlschema.XMLSchema10(data.decode()).iter_errors(report))
for error in errors:
    print(f"{error.path}: {' '.join(error.reason.split())[:300]}")
if not errors:
    found = collections.Counter(
        case[0].tag if len(case) else "passed" for case in report.iter("testcase"))
    print(" ".join(f"{tag}={count}" for tag, count in sorted(found.items())))
