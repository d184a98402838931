#!/bin/sh
# Checks man pages by `mandoc -Tlint`, which must find nothing. It runs in each page's own folder,
# where mandoc finds the pages beside it that it refers to.
set -eu

if [ $# -eq 0 ]; then
  echo "check-man: there are no man pages yet"
  exit 0
fi
bad=0
for page in "$@"; do
  (cd "$(dirname "$page")" && mandoc -Tlint "$(basename "$page")") || bad=1
done
[ "$bad" -ne 0 ] || echo "check-man: $# pages, nothing found"
exit "$bad"
