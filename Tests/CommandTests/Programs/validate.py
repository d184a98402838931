"""Validates lines of JSON against schemas: validate.py DIRECTORY < answers

Standard input is an array of objects: `schema`, the name of a file DIRECTORY/<schema>.schema.json;
`line`; and `run`, the command that printed the line. Prints one line for each error; an invalid schema
is an error.
"""

import json
import pathlib
import sys
import warnings

warnings.simplefilter("ignore")
import jsonschema  # Debian's python3-jsonschema


def validators(directory):
    """A validator for each schema of a directory; schemas may refer to one another."""
    schemas = {file.name: json.loads(file.read_text()) for file in directory.glob("*.schema.json")}
    store = {(directory / name).as_uri(): schema for name, schema in schemas.items()}
    made = {}
    for name, schema in schemas.items():
        jsonschema.Draft202012Validator.check_schema(schema)
        resolver = jsonschema.RefResolver((directory / name).as_uri(), schema, store=store)
        made[name.removesuffix(".schema.json")] = jsonschema.Draft202012Validator(
            schema, resolver=resolver)
    return made


def fault(validator, line):
    """A short description of the error in a line, or None."""
    try:
        value = json.loads(line)
    except ValueError as error:
        return f"invalid JSON: {error}"
    found = jsonschema.exceptions.best_match(validator.iter_errors(value))
    if found is None:
        return None
    place = "/".join(str(part) for part in found.absolute_path)
    return f"{place or 'the whole line'}: {found.message[:400]}"


def main():
    known = validators(pathlib.Path(sys.argv[1]).resolve())
    for answer in json.load(sys.stdin):
        wrong = fault(known[answer["schema"]], answer["line"])
        if wrong:
            print(f"{answer['run']}: {answer['schema']}: {wrong}: {answer['line'][:300]}")


main()
