#!/usr/bin/env bash
# Everything that needs a GPU, in one command: builds if needed, runs every GPU test, the small ones
# under each compute-sanitizer tool, doctor and the quickstart. Ends with a short table.
#
#   scripts/gpu_check.sh [STEP...]   with names of steps, only those
#
# Where the libraries to build with are missing, a build folder brought from another machine is used
# as it is. ROOFLASH_OUT names the folder for logs, the record and the report (out/gpu_check).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

PATH="$PATH:/usr/local/cuda/bin:/usr/local/cuda/compute-sanitizer"
# Where the toolkit has its profilers apart.
for folder in /opt/nvidia/nsight-compute/* /opt/nvidia/nsight-systems/*/bin /usr/local/cuda/nsight-*/; do
  if [ -d "$folder" ]; then PATH="$PATH:$folder"; fi
done
out=${ROOFLASH_OUT:-out/gpu_check}
all_steps="measuring tests verify huge memcheck racecheck initcheck synccheck robustness doctor profile tools quickstart report"
steps=" ${*:-$all_steps} "
for name in "$@"; do
  if [[ " $all_steps " != *" $name "* ]]; then
    echo "gpu_check: there is no step $name; steps: $all_steps" >&2
    exit 2
  fi
done
mkdir -p "$out"

if ! nvidia-smi -L 2> /dev/null | grep -q '^GPU'; then
  echo "gpu_check: no GPU is visible" >&2
  exit 77
fi
nvidia-smi --query-gpu=name,driver_version,compute_cap --format=csv,noheader

table=()
failures=0
skips=0

# What is in build/ can run here: a folder from elsewhere may hold less.
usable() {
  [ -x build/rooflash ] && [ -x build/test_gpu_kernels ] &&
    build/rooflash-worker --devices >> "$out/configure.log" 2>&1
}

if cmake -S . -B build -G Ninja -DROOFLASH_CUDA=ON -DROOFLASH_TESTS=ON > "$out/configure.log" 2>&1; then
  ninja -C build > "$out/build.log" 2>&1 || { tail -50 "$out/build.log" >&2; exit 1; }
elif usable; then
  reason=$(grep -m 1 -E 'is missing|is different|not find' "$out/configure.log" || true)
  table+=("$(printf '%-12s %-12s %s' build "as it was" "cannot configure here:${reason:- see $out/configure.log}")")
else
  cat "$out/configure.log" >&2
  exit 1
fi

# step NAME LIMIT_S COMMAND...: runs it with its output in $out/NAME.log, shows the end of that on a
# fault, goes on.
step() {
  local name=$1 limit=$2 start=$SECONDS outcome=ok code=0 log
  shift 2
  if [[ $steps != *" $name "* ]]; then return; fi
  log=$out/$name.log
  timeout "$limit" "$@" > "$log" 2>&1 || code=$?
  if [ "$name" = doctor ] && [ "$code" -eq 8 ]; then
    outcome="not fit"  # to measure on: it tells why, and the kernels may be right all the same
  elif [ "$name" = tools ] && [ "$code" -eq 77 ]; then
    outcome=skipped  # none is installed, or none works here
    skips=$((skips + 1))
  elif [ "$code" -ne 0 ] && grep -q 'Error: Device not supported' "$log"; then
    outcome=skipped  # by compute-sanitizer, as in some virtual machines
    skips=$((skips + 1))
  elif [ "$code" -ne 0 ]; then
    outcome="FAILED ($code)"
    failures=$((failures + 1))
    echo "==> $name: the end of $log"
    tail -40 "$log"
  fi
  table+=("$(printf '%-12s %-12s %4d s  %s' "$name" "$outcome" $((SECONDS - start)) \
    "$(tail -1 "$log" | cut -c1-70)")")
}

# The kernel tests wait for their reference on the CPU: several processes share them, as many as cores
# and GPU memory allow.
memory_mib=$(nvidia-smi --query-gpu=memory.total --format=csv,noheader,nounits | sort -n | head -1)
processes=$((memory_mib / 16000))
if [ "$processes" -gt "$(($(nproc) / 2))" ]; then processes=$(($(nproc) / 2)); fi
if [ "$processes" -lt 1 ]; then processes=1; fi

# shared COMMAND...: the command in each of the processes, which share its tests.
shared() {
  local code=0 index pids=()
  for ((index = 0; index < processes; ++index)); do
    GTEST_TOTAL_SHARDS=$processes GTEST_SHARD_INDEX=$index "$@" &
    pids+=("$!")
  done
  for index in "${pids[@]}"; do wait "$index" || code=$?; done
  return "$code"
}
export -f shared
export processes

# sanitize TOOL FILTER OPTIONS...: the tests that match FILTER.
sanitize() {
  local tool=$1 filter=$2
  shift 2
  # Every CUDA call is checked by its caller; libraries make calls that may fail.
  step "$tool" 240 bash -c 'shared "$@"' bash \
    compute-sanitizer --tool "$tool" --error-exitcode 9 --report-api-errors no "$@" \
    build/test_gpu_kernels --gtest_brief=1 "--gtest_filter=$filter"
}

# Tests that time or count want the GPU for themselves.
alone='HbmCounters*:*Roofs*:Timers*:BlockStreams*:*MakeWholeRows*'
step measuring 240 build/test_gpu_kernels --gtest_brief=1 "--gtest_filter=$alone"
step tests 420 bash -c 'shared "$@"' bash build/test_gpu_kernels --gtest_brief=1 "--gtest_filter=-$alone"
# What a user runs to know that results are right.
step verify 120 build/rooflash verify -q
step huge 120 build/rooflash verify -q --suite huge
# memcheck and racecheck look at cuBLAS's kernels too: racecheck 13.0 loses the context on one of them
# if told to leave it out. The others look at our kernels alone.
own_kernels=(--kernel-name kns=rooflash)
sanitize memcheck '*Small*'
sanitize racecheck '*SmallRace*'
sanitize initcheck '*Small*' "${own_kernels[@]}"
sanitize synccheck '*Small*' "${own_kernels[@]}"
# Real workers killed, hung and interrupted; the other tests of that file need no GPU.
robustness=(test_driver_killed_at_random_points test_interrupt_and_resume
  test_worker_killed_costs_one_row test_every_way_to_die_costs_one_row test_full_disk
  test_removed_output_folder)
step robustness 240 env ROOFLASH_TEST_DEVICE=cuda:0 \
  python3 tests/cli/robustness.py build/rooflash "${robustness[@]/#/Robustness.}"
step doctor 60 bash -c 'build/rooflash doctor --json > "$1"; build/rooflash doctor' bash \
  "$out/doctor.json"
step tools 400 python3 scripts/check_tools.py build "$out/tools"
step profile 240 python3 scripts/check_profile.py build/rooflash "$out/profile"
step quickstart 180 build/rooflash run --suite quickstart -o "$out/quickstart.json"
step report 60 build/rooflash report "$out/quickstart.json" -o "$out/quickstart.html"

echo
printf '%s\n' "${table[@]}"
if [ "$failures" -gt 0 ]; then
  echo "$failures failed"
  exit 1
fi
echo "all passed, $skips skipped; logs, record and report in $out"
