#!/usr/bin/env bash
# The tour: what the README shows, on a sample device in a temporary folder that goes at the end.
# usage: tour.sh PROGRAM
set -euo pipefail

program=$(realpath "${1:?usage: tour.sh PROGRAM}")
here=$(mktemp -d)
trap 'rm -rf "$here"' EXIT
cd "$here"
export SANDBOXCTL_REPOSITORY=repo

step() { printf '\n\033[1m%s\033[0m\n' "$1"; }
show() { printf '$ %s\n' "$*"; }
run() { show sandboxctl "$@"; "$program" "$@"; }
[ -t 1 ] || step() { printf '\n%s\n' "$1"; }

step "A device to try everything on, and what is on it"
run sample device
run apps --root device

step "What is precious and what is not, and why"
run classify --root device --summary
run explain --root device notebook/Library/Caches

step "A repository, and a first backup"
run init repo --plain
run backup --root device

step "A day of use, and a second backup: only what is new is stored"
run sample device --day 1
run backup --root device
run snapshots

step "What a snapshot holds, and one app's documents back"
run ls latest:apps/org.example.notebook/data/Documents
run restore latest:apps/org.example.notebook/data/Documents --to documents
run restore latest~1 --to yesterday
show ls documents
ls documents

step "It is an ordinary archive"
pack=$(find repo/packs -name '*.tar.zst' -printf '%s %p\n' | sort -n | tail -n 1 | cut -d ' ' -f 2)
show "zstd -dc ${pack:0:28}… | tar -t | grep Documents/"
zstd -dc "$pack" | tar -t | grep Documents/ | sed -n 1,5p
show "b2sum -l 256 ${pack:0:28}…"
b2sum -l 256 "$pack"
