#!/usr/bin/env bash
# The tour that the README shows, on a sample device in a temporary directory.
# usage: tour.sh PROGRAM
set -euo pipefail

program=$(realpath "${1:?usage: tour.sh PROGRAM}")
here=$(mktemp -d)
trap 'rm -rf "$here"' EXIT
# A separate home: none of the user's files are read or written.
export HOME="$here"
unset SANDBOXCTL_REPOSITORY XDG_CACHE_HOME XDG_CONFIG_HOME XDG_DATA_HOME
cd "$here"

step() { printf '\n\033[1m%s\033[0m\n' "$1"; }
show() { printf '$ %s\n' "$*"; }
run() { show sandboxctl "$@"; "$program" "$@"; }
[ -t 1 ] || step() { printf '\n%s\n' "$1"; }

step "A sample device and its apps"
run sample device
run apps --root device

step "Data classes, and the reason for a decision"
run classify --root device --summary
run explain --root device notebook/Library/Caches

step "A repository and a first backup"
run init repo --plain
run backup --root device

step "A day of changes and a second backup: only new data is stored"
run sample device --day 1
run backup --root device
run snapshots

step "The changes of the day"
run diff latest~1 latest

step "The entries of a snapshot, and a file of the day before"
run ls latest:notebook/Documents
run restore "latest~1:notebook/Documents/Drafts" --to drafts
show ls drafts
ls drafts

step "An app's data is lost and restored"
container=$(find device -path '*/Documents/Notes' -printf '%h\n')
container=${container%/Documents}
show mv "$container" lost
mv "$container" lost
run restore latest:notebook --to restored
show diff --brief --recursive --no-dereference lost restored
diff --brief --recursive --no-dereference lost restored || [ $? -eq 1 ]

step "An audit of the apps' data, and a test of its life cycle"
run audit --root device
run scenario run update-keeps-documents-and-library

step "An update of an app, and its rollback"
bundle=$(find device -name Reader.app)
show cp -r "$bundle" .
cp -r "$bundle" .
show "sed -i 's/12\.0/12.1/' Reader.app/Info.plist"
LC_ALL=C sed -i 's/12\.0/12.1/' Reader.app/Info.plist
run update Reader.app --root device
run rollback reader --root device

step "A profile of an old machine's Debian package moves into the Flatpak of a new one"
profile=old/.mozilla/firefox/you.default
mkdir -p "$profile" new
head -c 1048576 /dev/zero > "$profile/places.sqlite"
: > "$profile/lock"
printf '[Profile0]\nName=you\nIsRelative=0\nPath=%s\n' "$here/$profile" \
  > old/.mozilla/firefox/profiles.ini
show cat old/.mozilla/firefox/profiles.ini
cat old/.mozilla/firefox/profiles.ini
run migrate --from deb:old --to flatpak:new --app firefox
show cat new/.var/app/org.mozilla.firefox/.mozilla/firefox/profiles.ini
cat new/.var/app/org.mozilla.firefox/.mozilla/firefox/profiles.ini

step "Packs are standard archives"
pack=$(find repo/packs -name '*.tar.zst' -printf '%s %p\n' | sort -n | tail -n 1 | cut -d ' ' -f 2)
show "zstd -dc ${pack:0:28}… | tar -t | grep Documents/"
zstd -dc "$pack" | tar -t | grep Documents/ | sed -n 1,5p
show "b2sum -l 256 ${pack:0:28}…"
b2sum -l 256 "$pack"

# A separate mount namespace for the volume of these commands, and a separate PID namespace:
# processes of a user that a user namespace hides would count as running apps.
fill_and_purge() {
  mkdir disk
  mount -t tmpfs -o size=4m tmpfs disk
  show mount -t tmpfs -o size=4m tmpfs disk
  run sample disk/device
  show "find disk -path '*/Documents/*' -type f -exec b2sum {} + > documents"
  find disk -path '*/Documents/*' -type f -exec b2sum {} + > documents
  local left=$(($(df --output=avail --block-size=1K disk | tail -n 1) - 48))
  show fallocate --length "${left}KiB" disk/film.mov
  fallocate --length "${left}KiB" disk/film.mov
  run purge --root disk/device --query
  run purge --root disk/device --level critical --yes
  show b2sum --check --quiet documents "&& echo documents are unchanged"
  b2sum --check --quiet documents && echo documents are unchanged
  local caches
  caches=$(find disk -path '*/Documents/Notes' -printf '%h/../Library/Caches\n')
  caches=$(realpath --relative-to . "$caches")
  show ls -A "$caches"
  ls -A "$caches"
}

own=(unshare --mount --pid --fork --mount-proc)
[ "$(id -u)" = 0 ] || own+=(--map-root-user)
step "A volume fills up, and a purge frees space"
if "${own[@]}" mount -t tmpfs tmpfs drafts 2> /dev/null; then
  export program
  export -f show run fill_and_purge
  "${own[@]}" bash -euo pipefail -c fill_and_purge
else
  echo "skipped: volumes cannot be mounted here"
fi
