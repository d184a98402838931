#!/bin/sh
# Installs those of the named Debian packages that are missing. Without apt it prints their names
# and fails.
set -eu

if ! command -v apt-get >/dev/null 2>&1; then
  echo "deps: error: there is no apt-get here" >&2
  echo "deps: hint: install what your system has for these Debian packages:" >&2
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
      echo "deps: error: not root, and there is no sudo: cannot install$missing" >&2
      exit 1
    fi
    as_root=sudo
  fi
  echo "deps: installing$missing"
  # The list of packages may be old or absent: then fetch it and try again.
  # shellcheck disable=SC2086 # one word a package is meant
  install() { $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -qy \
    --no-install-recommends $missing; }
  install || { $as_root apt-get update -q && install; }
fi

if ! command -v swift >/dev/null 2>&1; then
  echo "deps: error: there is no swift in PATH" >&2
  echo "deps: hint: install Swift 6.2 or later: https://www.swift.org/install/linux/" >&2
  exit 1
fi
