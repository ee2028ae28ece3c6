#!/usr/bin/env bash
# Every test this machine can run: checks, host build, the same under sanitizers, a minute of fuzzing,
# and, where a CUDA toolkit is found, the CUDA build with its spill check and (where a GPU is visible)
# its GPU tests. With CI=true a missing toolkit is a failure. Ends with "N passed, N failed, N skipped".
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

scripts/setup.sh --tests
PATH="$PATH:/usr/local/cuda/bin"
jobs=$(nproc)
results=build-test-results
rm -rf "$results"
mkdir -p "$results"

summary=()
failures=0

# step NAME COMMAND...: runs it, remembers the outcome and its time, goes on.
step() {
  local name=$1 start=$SECONDS outcome=ok
  shift
  echo "==> $name"
  if ! "$@"; then
    outcome=FAILED
    failures=$((failures + 1))
  fi
  summary+=("$(printf '%-24s %-8s %4d s' "$name" "$outcome" $((SECONDS - start)))")
  [ "$outcome" = ok ]
}

check_format() {
  git ls-files -z '*.cpp' '*.hpp' '*.cu' '*.cuh' | xargs -0 -r clang-format --dry-run -Werror
}

# Every source that the host build compiles.
check_tidy() {
  git ls-files 'src/*.cpp' 'kernels/*.cpp' |
    while read -r file; do
      if grep -q "\"$PWD/$file\"" build-test-host/compile_commands.json; then echo "$file"; fi
    done |
    xargs -n 1 -P "$jobs" clang-tidy --quiet -p build-test-host 2> "$results/tidy.err"
}

# build FOLDER OPTIONS...: configures and builds; the log stays in FOLDER/build.log.
build() {
  local folder=$1
  shift
  cmake -S . -B "$folder" -G Ninja "$@" > "$folder.configure.log" 2>&1 ||
    { cat "$folder.configure.log"; return 1; }
  rm "$folder.configure.log"
  ninja -C "$folder" -j "$jobs" > "$folder/build.log" 2>&1 ||
    { grep -vE '^\[[0-9]+/[0-9]+\]|ptxas info|bytes stack frame' "$folder/build.log" | tail -80; return 1; }
}

# tests FOLDER CTEST-OPTIONS...: its results are named after the step.
tests() {
  local folder=$1
  shift
  ctest --test-dir "$folder" --output-on-failure -j "$jobs" \
    --output-junit "$PWD/$results/$name.xml" "$@"
}

build_cuda() {
  # From nothing, so that the log is whole; the compiler cache replays what has not changed.
  rm -rf build-test-cuda
  build build-test-cuda -DROOFLASH_CUDA=ON
}

# Each target searches for a bounded time, from the committed corpus; what it finds stays in $results.
fuzz() {
  local target name
  for target in build-test-fuzz/fuzz_*; do
    name=$(basename "$target")
    mkdir -p "$results/$name"
    "$target" -max_total_time=12 -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 \
      -artifact_prefix="$results/$name-" "$results/$name" "tests/fuzz/corpus/${name#fuzz_}" \
      > "$results/$name.log" 2>&1 || { tail -30 "$results/$name.log"; return 1; }
    echo "$name: $(sed -n 's/^stat::number_of_executed_units: *//p' "$results/$name.log") inputs"
  done
}

step "include rules" scripts/check.sh || true
step "format" check_format || true
if step "host build" build build-test-host -DROOFLASH_CUDA=OFF; then
  step "host tests" tests build-test-host -LE gpu || true
  step "clang-tidy" check_tidy || true
fi
if step "sanitizer build" build build-test-asan -DROOFLASH_CUDA=OFF -DROOFLASH_SANITIZE=ON \
  -DCMAKE_BUILD_TYPE=Debug "-DCMAKE_CXX_FLAGS_DEBUG=-O1 -g1"; then
  step "sanitizer tests" tests build-test-asan -L 'unit|cli' || true
fi

if step "fuzz build" build build-test-fuzz -DROOFLASH_CUDA=OFF -DROOFLASH_FUZZ=ON \
  -DCMAKE_CXX_COMPILER=clang++ -DCMAKE_BUILD_TYPE=Debug "-DCMAKE_CXX_FLAGS_DEBUG=-O1 -g1"; then
  step "fuzz" fuzz || true
fi

if command -v nvcc > /dev/null; then
  # Without them the build leaves cudnn out.
  scripts/setup.sh --cudnn || summary+=("$(printf '%-24s %s' "cudnn" "not built: its headers were not fetched")")
  if step "CUDA build" build_cuda; then
    step "spills" python3 scripts/check_ptxas.py build-test-cuda/build.log --worker build-test-cuda/rooflash-worker ||
      true
    if [ -x build-test-cuda/unit_cudnn ]; then
      step "cudnn provider" build-test-cuda/unit_cudnn --gtest_brief=1 || true
    fi
    step "emulated kernels" tests build-test-cuda -L emulated || true
    if nvidia-smi -L 2> /dev/null | grep -q '^GPU'; then
      step "GPU tests" tests build-test-cuda -L gpu || true
    else
      summary+=("$(printf '%-24s %s' "GPU tests" "skipped: no GPU is visible")")
    fi
  fi
elif [ "${CI:-}" = true ]; then
  echo "test: no nvcc in PATH or /usr/local/cuda/bin" >&2
  summary+=("$(printf '%-24s %s' "CUDA build" "FAILED: no nvcc")")
  failures=$((failures + 1))
else
  summary+=("$(printf '%-24s %s' "CUDA build" "skipped: no nvcc")")
fi

echo
printf '%s\n' "${summary[@]}"
python3 - "$results" << 'END'
import pathlib, sys, xml.etree.ElementTree as xml

total = {"tests": 0, "failures": 0, "skipped": 0, "disabled": 0}
for path in pathlib.Path(sys.argv[1]).glob("*.xml"):
    suite = xml.parse(path).getroot()
    for key in total:
        total[key] += int(suite.get(key, 0))
skipped = total["skipped"] + total["disabled"]
print(f"{total['tests'] - total['failures'] - skipped} passed, "
      f"{total['failures']} failed, {skipped} skipped")
END
if [ "$failures" -gt 0 ]; then
  echo "$failures of the steps above failed"
  exit 1
fi
