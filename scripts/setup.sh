#!/usr/bin/env bash
# Installs what the build needs; with --tests, what scripts/test.sh needs too. Debian or Ubuntu.
# Without root it names what is missing, and fails only if something is.
set -euo pipefail

packages=(g++ cmake ninja-build ccache git libcli11-dev libfmt-dev nlohmann-json3-dev libgtest-dev
          node-d3 zlib1g-dev)
case "${1:-}" in
  "") ;;
  --tests) packages+=(clang clang-format clang-tidy libclang-rt-dev chromium python3) ;;
  *)
    echo "usage: scripts/setup.sh [--tests]" >&2
    exit 2
    ;;
esac

if ! command -v dpkg-query > /dev/null; then
  echo "setup: not a Debian or Ubuntu machine; the packages are: ${packages[*]}" >&2
  exit 0
fi

installed() {
  local status
  status=$(dpkg-query -W -f='${db:Status-Status}' "$1" 2> /dev/null) && [ "$status" = installed ]
}

# Ubuntu's chromium is a snap that its package only points at; any Chromium or Chrome will do.
have() {
  installed "$1" && return
  case "$1" in
    chromium) command -v chromium chromium-browser google-chrome > /dev/null ;;
    python3 | git | cmake | ccache | clang | clang-format | clang-tidy | g++) command -v "$1" > /dev/null ;;
    ninja-build) command -v ninja > /dev/null ;;
    *) return 1 ;;
  esac
}

missing=()
for package in "${packages[@]}"; do
  have "$package" || missing+=("$package")
done
if [ ${#missing[@]} -eq 0 ]; then
  echo "setup: all packages are installed"
  exit 0
fi

if [ "$(id -u)" -eq 0 ]; then
  apt-get update -q
  DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "${missing[@]}"
else
  echo "setup: missing packages; install them as root:" >&2
  echo "  sudo apt-get install ${missing[*]}" >&2
  exit 1
fi
