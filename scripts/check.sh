#!/usr/bin/env bash
# Include rules: which part may see which. Prints each line that breaks one; exit code 1 if any does.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

faults=0

# forbid RULE PATTERN PATHS...: no file under PATHS may hold a line that matches PATTERN.
forbid() {
  local rule=$1 pattern=$2 found
  shift 2
  local paths=()
  for path in "$@"; do
    if [ -e "$path" ]; then paths+=("$path"); fi
  done
  if [ ${#paths[@]} -eq 0 ]; then return; fi
  found=$(grep -rnP --include='*.[ch]pp' --include='*.cu' --include='*.cuh' "$pattern" "${paths[@]}") ||
    return 0
  echo "$rule:"
  echo "$found" | cut -c1-160 | sed 's/^/  /'
  faults=$((faults + 1))
}

families=()
for folder in kernels/*/; do
  family=$(basename "$folder")
  if [ "$family" != common ]; then families+=("$family"); fi
done
any_family=$(IFS='|'; echo "${families[*]}")
modules=()
for folder in src/*/; do modules+=("$(basename "$folder")"); done
not_core=$(printf '%s\n' "${modules[@]}" | grep -vx core | paste -sd'|')
not_core_record=$(printf '%s\n' "${modules[@]}" | grep -vxE 'core|record|report' | paste -sd'|')
not_core_record_gate=$(printf '%s\n' "${modules[@]}" | grep -vxE 'core|record|gate|measure' | paste -sd'|')

forbid "src/ sees no kernel family" "#include \"($any_family)/" src
forbid "kernels/ sees of src/ only core/" "#include \"($not_core)/" kernels
forbid "report/ sees only core/ and record/" "#include \"(($not_core_record)/|kernel\.hpp|registry\.hpp)" src/report
forbid "gate/ sees only core/, record/ and the statistics" \
  "#include \"(($not_core_record_gate)/|measure/(?!statistics)|kernel\.hpp|registry\.hpp)" src/gate
forbid "history/ sees only core/, record/, the statistics and what makes two rows the same case" \
  "#include \"(?!(core|record|history)/|measure/statistics|gate/match)" src/history
forbid "export/ sees only core/, record/, report/, history/ and what makes two rows the same case" \
  "#include \"(?!(core|record|report|history|export)/|gate/match)" src/export
forbid "profile/ sees only core/, record/ and the metric names" \
  "#include \"(?!(core|record|profile)/|measure/metrics)" src/profile
forbid "core/ sees only core/" "#include \"(?!core/).*/" src/core

for family in "${families[@]}"; do
  others=$(printf '%s\n' "${families[@]}" | grep -vx "$family" | paste -sd'|')
  if [ -n "$others" ]; then
    forbid "no family includes another" "#include \"(\.\./)?($others)/" "kernels/$family"
  fi
done

driver=(src/main.cpp src/core src/cli src/sweep src/model src/record src/report src/gate src/history src/export
        src/profile src/worker/driver src/worker/loop src/worker/doctor kernels/kernel.cpp kernels/kernel.hpp kernels/registry.cpp
        kernels/registry.hpp)
for host in kernels/*/host.cpp kernels/*/variants.hpp; do driver+=("$host"); done
forbid "the driver sees no CUDA header" \
  '#include <(cuda|cublas|cupti|nvml|nvtx|nvrtc|cudnn|cooperative_groups)' "${driver[@]}"
forbid "the driver sees no CUDA source" '#include ".*\.cuh?"' "${driver[@]}"

ptx_hits=$(grep -rnE --include='*.cu' --include='*.cuh' --include='*.[ch]pp' '\basm( volatile)? *\(' \
  kernels src | grep -v '^kernels/common/ptx/' || true)
if [ -n "$ptx_hits" ]; then
  echo "inline PTX only in kernels/common/ptx/:"
  printf "  %s\n" "${ptx_hits//$'\n'/$'\n'  }"
  faults=$((faults + 1))
fi

cu_hits=$(find src \( -name '*.cu' -o -name '*.cuh' \) |
  grep -vE '^src/(gpu|measure|verify|worker)/' || true)
if [ -n "$cu_hits" ]; then
  echo "CUDA sources only in gpu/, measure/, verify/, worker/ and kernels/:"
  printf "  %s\n" "${cu_hits//$'\n'/$'\n'  }"
  faults=$((faults + 1))
fi

if [ "$faults" -gt 0 ]; then
  echo "include rules: $faults broken"
  exit 1
fi
echo "include rules: kept"
