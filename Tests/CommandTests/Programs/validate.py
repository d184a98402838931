"""Holds lines of JSON against schemas: validate.py FOLDER < answers

Standard input is an array of objects: `schema`, a name of a file FOLDER/<schema>.schema.json, `line`,
and `run`, whence the line came. A line is written for each fault; schemas that are none are faults.
"""

import json
import pathlib
import sys
import warnings

warnings.simplefilter("ignore")
import jsonschema  # Debian's python3-jsonschema


def validators(folder):
    """A validator for each schema of a folder, which may refer to one another."""
    schemas = {file.name: json.loads(file.read_text()) for file in folder.glob("*.schema.json")}
    store = {(folder / name).as_uri(): schema for name, schema in schemas.items()}
    made = {}
    for name, schema in schemas.items():
        jsonschema.Draft202012Validator.check_schema(schema)
        resolver = jsonschema.RefResolver((folder / name).as_uri(), schema, store=store)
        made[name.removesuffix(".schema.json")] = jsonschema.Draft202012Validator(
            schema, resolver=resolver)
    return made


def fault(validator, line):
    """What is wrong with a line, in a few words."""
    try:
        value = json.loads(line)
    except ValueError as error:
        return f"no JSON: {error}"
    found = jsonschema.exceptions.best_match(validator.iter_errors(value))
    if found is None:
        return None
    place = "/".join(str(part) for part in found.absolute_path)
    return f"{place or 'all of it'}: {found.message[:400]}"


def main():
    known = validators(pathlib.Path(sys.argv[1]).resolve())
    for answer in json.load(sys.stdin):
        wrong = fault(known[answer["schema"]], answer["line"])
        if wrong:
            print(f"{answer['run']}: {answer['schema']}: {wrong}: {answer['line'][:300]}")


main()
