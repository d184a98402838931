#!/bin/sh
# Installs missing Debian packages. Without apt it prints their names and fails.
set -eu

if ! command -v apt-get >/dev/null 2>&1; then
  echo "deps: error: apt-get not found" >&2
  echo "deps: hint: install your system's equivalents of these Debian packages:" >&2
  for package in "$@"; do echo "  $package" >&2; done
  exit 1
fi

missing=
for package in "$@"; do
  state=$(dpkg-query -W -f='${db:Status-Abbrev}' "$package" 2>/dev/null || :)
  case "$state" in
    ii*) ;;
    *) missing="$missing $package" ;;
  esac
done

if [ -n "$missing" ]; then
  as_root=
  if [ "$(id -u)" -ne 0 ]; then
    if ! command -v sudo >/dev/null 2>&1; then
      echo "deps: error: cannot install$missing: not root, and sudo not found" >&2
      exit 1
    fi
    as_root=sudo
  fi
  echo "deps: installing$missing"
  # The package list may be outdated or missing: update it and try again.
  # shellcheck disable=SC2086 # one word for each package is intended
  install() { $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -qy \
    --no-install-recommends $missing; }
  install || { $as_root apt-get update -q && install; }
fi

if ! command -v swift >/dev/null 2>&1; then
  echo "deps: error: no swift in PATH" >&2
  echo "deps: hint: install Swift 6.2 or later: https://www.swift.org/install/linux/" >&2
  exit 1
fi
