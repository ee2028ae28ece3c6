#!/usr/bin/env bash
# Everything that needs a GPU, in one command: builds if needed, runs the GPU tests, the small kernel
# tests under each compute-sanitizer tool, doctor and the quickstart. Ends with a short table.
# ROOFLASH_OUT names the folder for logs, the record and the report (default: out/gpu_check).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

PATH="$PATH:/usr/local/cuda/bin:/usr/local/cuda/compute-sanitizer"
out=${ROOFLASH_OUT:-out/gpu_check}
mkdir -p "$out"

if ! nvidia-smi -L 2> /dev/null | grep -q '^GPU'; then
  echo "gpu_check: no GPU is visible" >&2
  exit 77
fi
nvidia-smi --query-gpu=name,driver_version,compute_cap --format=csv,noheader

if ! build/rooflash-worker --devices > /dev/null 2>&1; then
  cmake -S . -B build -G Ninja -DROOFLASH_CUDA=ON > "$out/configure.log" 2>&1 ||
    { cat "$out/configure.log" >&2; exit 1; }
  ninja -C build > "$out/build.log" 2>&1 || { tail -50 "$out/build.log" >&2; exit 1; }
fi

table=()
failures=0

# step NAME LIMIT_S COMMAND...: runs it with its output in $out/NAME.log, shows the end of that on a
# fault, goes on.
step() {
  local name=$1 limit=$2 start=$SECONDS outcome=ok code=0
  shift 2
  timeout "$limit" "$@" > "$out/$name.log" 2>&1 || code=$?
  if [ "$code" -ne 0 ]; then
    outcome="FAILED ($code)"
    failures=$((failures + 1))
    echo "==> $name: the end of $out/$name.log"
    tail -40 "$out/$name.log"
  fi
  table+=("$(printf '%-20s %-13s %4d s  %s' "$name" "$outcome" $((SECONDS - start)) \
    "$(tail -1 "$out/$name.log" | cut -c1-70)")")
}

sanitize() {
  compute-sanitizer --tool "$1" --error-exitcode 9 build/test_gpu_kernels '--gtest_filter=*Small*'
}

# A build folder that was copied here names the test programs by the paths of where it was made.
if grep -q "^CMAKE_HOME_DIRECTORY:INTERNAL=$PWD\$" build/CMakeCache.txt 2> /dev/null; then
  step tests 420 ctest --test-dir build -L gpu --no-tests=error --output-on-failure
else
  for test in build/test_gpu_*; do
    step "$(basename "$test")" 420 "$test" --gtest_brief=1
  done
fi
export -f sanitize
for tool in memcheck racecheck initcheck synccheck; do
  step "$tool" 240 bash -c "sanitize $tool"
done
step doctor 60 build/rooflash doctor
step quickstart 180 build/rooflash run --suite quickstart -o "$out/quickstart.json"
step report 60 build/rooflash report "$out/quickstart.json" -o "$out/quickstart.html"

echo
printf '%s\n' "${table[@]}"
if [ "$failures" -gt 0 ]; then
  echo "$failures failed"
  exit 1
fi
echo "all passed; record and report in $out"
