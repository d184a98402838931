#!/bin/sh
# Runs the tests of a bundle in three processes, so that tests that wait for a program, a lock or a
# clock leave no processor idle: a process runs as many tests at once as there are processors.
#
# usage: test.sh BUNDLE
#
# Prints the output of each process when all have ended. The exit status is 1 if a test failed.
set -eu

bundle=$1
logs=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null || :; rm -rf "$logs"' EXIT
trap 'exit 130' INT TERM

run() {
  name=$1
  shift
  if "$bundle" --testing-library swift-testing "$@" >"$logs/$name" 2>&1; then
    : >"$logs/$name.passed"
  fi
}

# Each test belongs to exactly one: the second has what the first lacks of the commands' tests.
run commands-1 --filter '^CommandTests\.[A-M]' &
run commands-2 --filter '^CommandTests\.' --skip '^CommandTests\.[A-M]' &
run modules --skip '^CommandTests\.' &
wait

cat "$logs/commands-1" "$logs/commands-2" "$logs/modules"
for name in commands-1 commands-2 modules; do
  [ -e "$logs/$name.passed" ] || exit 1
done
