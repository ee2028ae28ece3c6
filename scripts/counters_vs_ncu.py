#!/usr/bin/env python3
"""Holds rooflash's counters against Nsight Compute's, and weighs what both cost. Needs a GPU and ncu.

    counters_vs_ncu.py --build build [--suite counters] [--cost-suite peers-fwd|none] -o FILE.json

Both count three times, cold, with neither caches nor clocks controlled by ncu; what it costs is taken
three times too, in turns, with `--cost-suite none` not at all. For each case the file holds all six counts;
`scripts/readme_table.py` makes the table of docs/measuring.md from it. Exit code 1 where a median differs by more than 1 % (3 % for HBM writes)
and by more than either tool's own spread.
"""

import argparse
import csv
import io
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

REPEATS = 3
METRICS = {"hbm_read_bytes": ["dram__bytes_read.sum"], "hbm_write_bytes": ["dram__bytes_write.sum"],
           "tensor_ops": ["sm__ops_path_tensor_op_hmma_src_bf16_dst_fp32_sparsity_off.sum",
                          "sm__ops_path_tensor_op_hgmma_src_bf16_dst_fp32_sparsity_off.sum"]}
# All that one pass of rooflash's own collects, for the comparison of costs.
ONE_PASS = ["gpu__time_duration.sum", "sm__cycles_elapsed.avg.per_second",
            "l1tex__m_xbar2l1tex_read_sectors.sum", "lts__t_sectors_srcunit_tex_op_read.sum",
            "lts__t_sectors_srcunit_tex_op_write.sum",
            "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed",
            "sm__inst_executed_pipe_xu.avg.pct_of_peak_sustained_elapsed",
            *[name for names in METRICS.values() for name in names]]
LIMIT = {"hbm_read_bytes": 0.01, "hbm_write_bytes": 0.03, "tensor_ops": 0.01}


def run(command):
    """Standard output of `command` and the seconds it took."""
    words = [str(word) for word in command]
    begin = time.monotonic()
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"counters_vs_ncu: {' '.join(words)} ended with {done.returncode}:\n{done.stderr[-2000:]}")
    return done.stdout, time.monotonic() - begin


def own_counts(rooflash, suite, folder):
    record = folder / "own.json"
    run([rooflash, "run", "--suite", suite, "--order", "grid", "--rounds", REPEATS, "--max-time",
         "100ms", "-q", "-o", record])
    cases = {}
    for row in json.loads(record.read_text())["rows"]:
        if row["status"] != "ok":
            continue
        if row["counters"]["status"] != "ok":
            sys.exit(f"counters_vs_ncu: {row['case']}: {row['counters']['reason']}")
        case = cases.setdefault(row["case"], {"kernels": 0, "own": {name: [] for name in METRICS}})
        case["kernels"] = sum(name != "memset" for name in row["kernels_run"])
        for name in METRICS:
            case["own"][name].append(row["counters"][name])
    return cases


def ncu(rooflash, suite, metrics, output):
    """The rows of ncu's table: one a kernel, in the order of the launches."""
    text, seconds = run(
        ["ncu", "--target-processes", "all", "--profile-from-start", "off", "--cache-control", "none",
         "--clock-control", "none", "--csv", "--page", "raw", "--print-units", "base", "--metrics",
         ",".join(metrics), rooflash, "run", "--profile", "--suite", suite, "--order", "grid", "-q",
         "-o", output])
    table = text[text.index('"ID"'):]
    rows = list(csv.DictReader(io.StringIO(table)))
    return [row for row in rows if row["ID"]], seconds  # the first row holds the units


def ncu_counts(rooflash, suite, cases, folder):
    names = [name for group in METRICS.values() for name in group]
    for _ in range(REPEATS):
        kernels, _ = ncu(rooflash, suite, names, folder / "ncu.json")
        expected = sum(case["kernels"] for case in cases.values())
        if len(kernels) != expected:
            sys.exit(f"counters_vs_ncu: ncu saw {len(kernels)} kernels, rooflash {expected}")
        position = 0
        for case in cases.values():
            mine = kernels[position:position + case["kernels"]]
            position += case["kernels"]
            counts = case.setdefault("ncu", {name: [] for name in METRICS})
            for name, group in METRICS.items():
                counts[name].append(sum(float(kernel[metric].replace(",", ""))
                                        for kernel in mine for metric in group))


def cost(rooflash, suite, folder):
    """Seconds of the same cases with and without counting, by rooflash and by ncu, in turns."""
    seconds = {"suite": suite, "run_counters": [], "run": [], "run_profile": [], "ncu_run_profile": []}
    for _ in range(REPEATS):
        for name, flags in (("run_counters", []), ("run", ["--counters", "none"]),
                            ("run_profile", ["--profile"])):
            _, spent = run([rooflash, "run", "--suite", suite, "-q", "-o", folder / "cost.json", *flags])
            seconds[name].append(spent)
        _, spent = ncu(rooflash, suite, ONE_PASS, folder / "cost.json")
        seconds["ncu_run_profile"].append(spent)
    return seconds


def spread(values):
    middle = statistics.median(values)
    return (max(values) - min(values)) / middle if middle else 0.0


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--suite", default="counters")
    parser.add_argument("--cost-suite", default="peers-fwd")
    parser.add_argument("-o", type=pathlib.Path, required=True)
    options = parser.parse_args()
    rooflash = options.build / "rooflash"
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        cases = own_counts(rooflash, options.suite, folder)
        ncu_counts(rooflash, options.suite, cases, folder)
        record = json.loads((folder / "own.json").read_text())
        result = {"tool": record["tool"], "gpu": record["environment"]["devices"][0]["name"],
                  "driver": record["environment"]["driver"], "suite": options.suite, "cases": cases,
                  "cost_seconds": (None if options.cost_suite == "none"
                                   else cost(rooflash, options.cost_suite, folder))}
    options.o.write_text(json.dumps(result, indent=1) + "\n")

    faults = 0
    for case, counts in cases.items():
        for name, limit in LIMIT.items():
            own, theirs = counts["own"][name], counts["ncu"][name]
            difference = abs(statistics.median(own) / statistics.median(theirs) - 1)
            if difference > max(limit, spread(own), spread(theirs)):
                faults += 1
                print(f"{case}: {name}: {own} and ncu's {theirs}")
    if result["cost_seconds"] is None:
        return 1 if faults else 0
    seconds = {name: statistics.median(values) for name, values in result["cost_seconds"].items()
               if name != "suite"}
    added = seconds["run_counters"] - seconds["run"]
    ncu_added = seconds["ncu_run_profile"] - seconds["run_profile"]
    print(f"{len(cases)} cases, {faults} figures apart; counters add {added:.1f} s to "
          f"{seconds['run']:.1f} s, ncu {ncu_added:.1f} s to {seconds['run_profile']:.1f} s")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
