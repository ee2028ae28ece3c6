#!/usr/bin/env bash
# Installs what the build needs; with --tests, what scripts/test.sh needs too. Debian or Ubuntu.
# Without root it names what is missing, and fails only if something is.
# --cudnn fetches cudnn-frontend, and cuDNN's headers where there are none, into build-deps/cudnn. They
# are Python packages (pip downloads them); nothing is installed.
set -euo pipefail

# fetch PACKAGE==VERSION FOLDER: the files of the package that lie in FOLDER, as build-deps/cudnn/include.
fetch() {
  local package=$1 folder=$2 wheels
  wheels=$(mktemp -d)
  python3 -m pip download -q --no-deps --only-binary=:all: -d "$wheels" "$package"
  python3 - "$wheels" "$folder/" build-deps/cudnn/include << 'END'
import pathlib, sys, zipfile

wheels, folder, target = sys.argv[1:]
for wheel in pathlib.Path(wheels).glob("*.whl"):
    with zipfile.ZipFile(wheel) as files:
        for name in files.namelist():
            if name.startswith(folder) and not name.endswith("/"):
                path = pathlib.Path(target, name.removeprefix(folder))
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(files.read(name))
END
  rm -r "$wheels"
}

fetch_cudnn() {
  cd "$(dirname "${BASH_SOURCE[0]}")/.."
  if [ ! -e build-deps/cudnn/include/cudnn_frontend.h ]; then
    fetch nvidia-cudnn-frontend==1.32.0 include
  fi
  local header
  for header in {/usr,/usr/local/cuda,build-deps/cudnn}/include/cudnn_graph.h; do
    if [ -e "$header" ]; then
      echo "setup: cudnn-frontend is in build-deps/cudnn, cuDNN's headers in ${header%/*}"
      return
    fi
  done
  fetch nvidia-cudnn-cu13==9.19.0.56 nvidia/cudnn/include
  echo "setup: cudnn-frontend and cuDNN's headers are in build-deps/cudnn"
}

packages=(g++ cmake ninja-build ccache git libcli11-dev libfmt-dev nlohmann-json3-dev libgtest-dev
          node-d3 zlib1g-dev)
case "${1:-}" in
  "") ;;
  --cudnn)
    fetch_cudnn
    exit
    ;;
  --tests) packages+=(clang clang-format clang-tidy libclang-rt-dev chromium python3) ;;
  *)
    echo "usage: scripts/setup.sh [--tests | --cudnn]" >&2
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
