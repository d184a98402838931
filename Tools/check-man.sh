#!/bin/sh
# Checks man pages with `mandoc -Tlint`, which must report nothing. It runs in each page's
# directory, where mandoc finds the other pages that the page refers to.
set -eu

if [ $# -eq 0 ]; then
  echo "check-man: no man pages given"
  exit 0
fi
bad=0
for page in "$@"; do
  (cd "$(dirname "$page")" && mandoc -Tlint "$(basename "$page")") || bad=1
done
[ "$bad" -ne 0 ] || echo "check-man: $# pages without problems"
exit "$bad"
