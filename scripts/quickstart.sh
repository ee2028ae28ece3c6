#!/usr/bin/env bash
# From a fresh clone to a report: installs what is missing, builds, sweeps the quickstart suite and
# writes out/quickstart.json and out/quickstart.html. Without a GPU it builds the host part alone and
# the sweep runs on the simulated device.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

scripts/setup.sh

PATH="$PATH:/usr/local/cuda/bin"
options=(-DCMAKE_BUILD_TYPE=Release -DROOFLASH_TESTS=OFF)
if nvidia-smi -L 2> /dev/null | grep -q '^GPU'; then
  if ! command -v nvcc > /dev/null; then
    echo "quickstart: there is a GPU but no nvcc: install the CUDA toolkit (12.8 or newer)" >&2
    exit 1
  fi
  options+=(-DROOFLASH_CUDA=ON)
else
  echo "quickstart: no GPU is visible: building without CUDA, to run on the simulated device"
  options+=(-DROOFLASH_CUDA=OFF)
fi
cmake -S . -B build -G Ninja "${options[@]}" > /dev/null
ninja -C build

mkdir -p out
build/rooflash run --suite quickstart -o out/quickstart.json
build/rooflash report out/quickstart.json -o out/quickstart.html
echo
echo "record  $PWD/out/quickstart.json"
echo "report  $PWD/out/quickstart.html   (opens offline in any browser)"
