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
wanted=$("$python" --version && cat "$list")

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
# Last: an interrupted installation is repeated.
echo "$wanted" >"$target/installed"
