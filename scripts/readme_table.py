#!/usr/bin/env python3
"""Writes the figures of the README files from records, so that the two cannot differ.

    readme_table.py --rooflash build/rooflash [--check] [FILE...]

FILEs default to README.md, docs/measuring.md and the families' READMEs with figures. They hold pairs of
markers that name a record relative to the file; what stands between them is replaced:

    <!-- result: RECORD -->          the output of `rooflash report RECORD`
    <!-- rows: RECORD CASE... -->    a table of those rows
    <!-- grid: RECORD KERNEL -->     its TFLOPS by head dim, mask and length, and ratios to cuDNN's time; where
                                     the problems have options, KERNEL/NAME=VALUE,...
    <!-- ladder: RECORD -->          every kernel's ratios to cuDNN, by head dim and mask
    <!-- inputs: RECORD KERNELS RECORD... -->  speed on other inputs over that on the first record's
    <!-- pytorch: FILE RECORD -->    pytorch_peers.py's back ends against the record's cuDNN rows
    <!-- model: RECORD... -->        figures predicted now over those measured of suites on an H200
    <!-- repeat: RECORD RECORD -->   how far two runs of the same cases on one card are apart
    <!-- sustained: RECORD RECORD -->  time, clock, power and energy of two runs under lasting load
    <!-- rivals: RECORD -->          the same of one run, kernels of a problem beside cuDNN
    <!-- errors: RECORD DISTRIBUTION... -->  errors of rows with such inputs
    <!-- ceilings: FILE -->          roofs, as `rooflash ceilings --json` prints them
    <!-- ncu: FILE -->               counters_vs_ncu.py's
    <!-- timers: FILE -->            tests/timers/compare_timers.py's
    <!-- /generated -->

With --check nothing is written, and the exit code is 1 where a text is out of date.
"""

import argparse
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
BLOCK = re.compile(
    r"(<!-- (?P<kind>[a-z]+): (?P<record>\S+)(?P<cases>[^>]*?) -->\n)"
    r"(?P<text>.*?)(<!-- /generated -->)", re.S)


def result(rooflash, record, _):
    environment = dict(os.environ, NO_COLOR="1", COLUMNS="100")
    done = subprocess.run([rooflash, "report", str(record)], env=environment, capture_output=True,
                          text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"readme_table.py: rooflash report {record} failed:\n{done.stderr}")
    return f"```\n{done.stdout.rstrip()}\n```\n"


def load(record):
    with open(record, encoding="utf-8") as file:
        return json.load(file)


def table(header, lines):
    rows = [header, ["---"] * len(header), *lines]
    return "".join("| " + " | ".join(cells) + " |\n" for cells in rows)


def hbm_bytes(row):
    return row["counters"]["hbm_read_bytes"] + row["counters"]["hbm_write_bytes"]


def microseconds(value):
    return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"


def row_cells(row):
    time, counters = row["time_us"], row["counters"]
    median, low, high = map(microseconds, (time["median"], *time["ci95"]))
    return [f"`{row['case'].split('/', 3)[3]}`", f"{median} [{low}, {high}]",
            str(time["n"]), f"{row['derived']['tflops']:.3g}",
            f"{hbm_bytes(row) / row['model']['compulsory_bytes']:.3g}",
            f"{row['derived']['hbm_gbps']:.0f}", f"{row['derived']['roof_pct']:.0f} %",
            f"{counters['tensor_pipe_pct']:.1f} %", f"{counters['xu_pipe_pct']:.1f} %"]


def rows(_, record, cases):
    found = {row["case"]: row for row in load(record)["rows"]}
    missing = [case for case in cases if case not in found]
    if missing:
        sys.exit(f"readme_table.py: {record} has no row {', '.join(missing)}")
    return table(["row", "time, us", "n", "TFLOPS", "HBM / compulsory", "HBM, GB/s", "of the roof",
                  "tensor pipe", "exp. unit"], [row_cells(found[case]) for case in cases])


def options_of(row, separator):
    return separator.join(f"{name}={value}" for name, value in row["problem"]["options"].items())


def kernel_of(row):
    options = options_of(row, ",")
    return row["kernel"] + (f"/{options}" if options else "")


def grid_of(record):
    """Median times over the rounds of square problems, {(kernel, (head dim, mask)): {length: us}}, and
    TFLOPS in the same shape; the spread of each case's rounds; the number of rounds."""
    rounds = {}
    for row in load(record)["rows"]:
        if row["status"] == "ok":
            rounds.setdefault(row["case"], []).append(row)
    times, tflops, spreads = {}, {}, []
    for group in rounds.values():
        problem, kernel = group[0]["problem"], kernel_of(group[0])
        line = (problem["headdim"], "full" if problem["mask"] == "none" else problem["mask"])
        medians_us = [row["time_us"]["median"] for row in group]
        median = statistics.median(medians_us)
        times.setdefault((kernel, line), {})[problem["seqlen_kv"]] = median
        flops = group[0]["derived"]["tflops"] * group[0]["time_us"]["median"]
        tflops.setdefault((kernel, line), {})[problem["seqlen_kv"]] = flops / median
        spreads.append(max(medians_us) / min(medians_us) - 1)
    return times, tflops, spreads, max(map(len, rounds.values()))


def ratios_of(times, kernel, lines):
    return [times["cudnn", line][length] / time
            for line in lines for length, time in times[kernel, line].items()]


def rounds_said(spreads, rounds):
    if rounds == 1:
        return "One round: each cell is the median of a row."
    return (f"Medians of {rounds} rounds, each the median of a row; rounds of a case differ by "
            f"{100 * statistics.median(spreads):.1f} % (median), at most {100 * max(spreads):.0f} %.")


def lines_of(times):
    return sorted({line for _, line in times}, key=lambda line: (line[0], line[1] != "full"))


def grid(_, record, more):
    (kernel,) = more
    times, tflops, spreads, rounds = grid_of(record)
    lines = lines_of(times)
    lengths = sorted(times[kernel, lines[0]])

    def cell(line, length):
        ratio = times["cudnn", line][length] / times[kernel, line][length]
        return f"{tflops[kernel, line][length]:.0f} ({ratio:.2f})"

    cells = [[str(line[0]), line[1], *(cell(line, length) for length in lengths)] for line in lines]
    ratios = ratios_of(times, kernel, lines)
    return (table(["head dim", "mask", *(f"{length:,}" for length in lengths)], cells) +
            f"\nTFLOPS, and in brackets cuDNN's time over this one's in the same run; the geometric mean of "
            f"the {len(ratios)} ratios is {statistics.geometric_mean(ratios):.3f}. "
            f"{rounds_said(spreads, rounds)}\n")


def ladder(_, record, __):
    times, _, spreads, rounds = grid_of(record)
    lines = lines_of(times)

    def mean(kernel, some):
        return statistics.geometric_mean(ratios_of(times, kernel, some))

    kernels = sorted({kernel for kernel, _ in times}, key=lambda kernel: mean(kernel, lines))
    cells = [[f"`{kernel}`", *(f"{mean(kernel, [line]):.2f}" for line in lines), f"{mean(kernel, lines):.3f}"]
             for kernel in kernels]
    return (table(["kernel", *(f"d {headdim} {mask}" for headdim, mask in lines), "all"], cells) +
            f"\nGeometric means of cuDNN's time over the kernel's. {rounds_said(spreads, rounds)}\n")


def inputs(_, path, more):
    """`more`: kernels separated by commas, and the records of other inputs."""
    kernels = more[0].split(",")

    def times_of(record):
        rows = [row for row in load(record)["rows"] if row["status"] == "ok"]
        return {(row["kernel"], row["problem"]["headdim"], row["problem"]["seqlen_q"], row["problem"]["mask"]): row
                for row in rows}

    usual = times_of(path)
    shapes = sorted({key[1:] for key in usual})
    lines = []
    for record in more[1:]:
        rows = times_of(path.parent / record)
        for kernel in kernels:
            ratios = [usual[kernel, *shape]["time_us"]["median"] / rows[kernel, *shape]["time_us"]["median"]
                      for shape in shapes]
            name = next(iter(rows.values()))["problem"]["distribution"]
            lines.append([name, f"`{kernel}`", *(f"{ratio:.2f}" for ratio in ratios)])
    heads = [f"d {headdim}, {seqlen:,} {'full' if mask == 'none' else mask}" for headdim, seqlen, mask in shapes]
    return (table(["inputs", "kernel", *heads], lines) +
            "\nTime on normal inputs over time on these. One row a cell, medians of its samples.\n")


def pytorch(_, path, more):
    times, _, _, _ = grid_of(path.parent / more[0])
    data = load(path)
    ratios = {}
    for case in data["cases"]:
        ours = times["cudnn", (case["headdim"], "causal" if case["causal"] else "full")][case["seqlen"]]
        for name, back_end in case["backends"].items():
            if back_end.get("time_us") is not None:
                ratios.setdefault(name, []).append(ours / back_end["time_us"])
    lines = [[name, str(len(values)), f"{statistics.geometric_mean(values):.3f}",
              f"{min(values):.2f} to {max(values):.2f}"] for name, values in ratios.items()]
    return (table(["PyTorch's back end", "cells measured", "speed over our `cudnn` rows", "range"], lines) +
            f"\ntorch {data['torch']}, {data['gpu']}: median of up to "
            f"{data['rounds'] * data['samples_a_round']} samples a cell, cold L2; the others of the "
            f"{len(data['cases'])} cells did not fit the time given.\n")


def over(predicted, measured):
    """Of sums of figures; None where one was not measured or has no prediction."""
    return None if predicted is None or None in measured else predicted / sum(measured)


def deviation(ratios, limit):
    """"0.98 (0.87 to 1.04), 97 % within 15 %" of predicted over measured figures."""
    ratios = [ratio for ratio in ratios if ratio is not None]
    if not ratios:
        return "not measured"
    within = sum(abs(ratio - 1) <= limit for ratio in ratios) / len(ratios)
    return (f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f}), "
            f"{100 * within:.0f} % within {100 * limit:.0f} %")


def predictions(rooflash, suite):
    """Of the cases of a suite, by the model of `rooflash` as it is now."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "predicted.json"
        done = subprocess.run([rooflash, "run", "--suite", suite, "--device", "sim:h200", "--quiet", "-o",
                               str(path)], env=dict(os.environ, XDG_STATE_HOME=folder), capture_output=True,
                              text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"readme_table.py: predicting suite {suite} failed:\n{done.stderr}")
        return {row["case"]: row["model"] for row in load(path)["rows"]}


def model(rooflash, record, more):
    lines = []
    for path in [record, *(record.parent / name for name in more)]:
        measured = load(path)
        predicted_by_case = predictions(rooflash, measured["suite"])
        ratios = {}
        for row in measured["rows"]:
            if row["status"] != "ok" or row["case"] not in predicted_by_case:
                continue  # not measured, or a closed kernel that no model knows
            predicted, counters = predicted_by_case[row["case"]], row["counters"]
            figures = (over(predicted["predicted_time_us"], [row["time_us"]["median"]]),
                       over(predicted["predicted_hbm_bytes"],
                            [counters["hbm_read_bytes"], counters["hbm_write_bytes"]]),
                       over(predicted["predicted_sm_l2_bytes"],
                            [counters["sm_l2_read_bytes"], counters["sm_l2_write_bytes"]]))
            for kernel in (row["kernel"], "all"):
                ratios.setdefault(kernel, []).append(figures)
        for kernel, values in sorted(ratios.items(), key=lambda item: (item[0] == "all", item[0])):
            time, hbm, sm_l2 = zip(*values)
            lines.append([path.stem, kernel if kernel == "all" else f"`{kernel}`", str(len(values)),
                          deviation(time, 0.25), deviation(hbm, 0.15), deviation(sm_l2, 0.10)])
    return table(["record", "kernel", "rows", "time", "HBM bytes", "SM to L2 bytes"], lines)


def medians(record):
    """For each ok case: the median over the rounds of its time, cycles and clock, and the last row."""
    found = {}
    for row in load(record)["rows"]:
        if row["status"] == "ok":
            found.setdefault(row["case"], []).append(row)
    return {case: (statistics.median(row["time_us"]["median"] for row in rows),
                   statistics.median(row["cycles"]["median"] for row in rows),
                   statistics.median(row["clock_mhz"]["median"] for row in rows), rows[-1])
            for case, rows in found.items()}


def pairs_of(record, more):
    first, second = medians(record), medians(record.parent / more[0])
    return [(case, first[case], second[case]) for case in first if case in second]


def repeat(_, record, more):
    """Rows at 80 % of the measured copy rate or more are bound by HBM; the others move with the SM clock."""
    copy_gbps = load(record)["ceilings"][0]["hbm_copy_gbps"]
    groups = {}
    for _, a, b in pairs_of(record, more):
        by_hbm = a[3]["derived"]["hbm_gbps"] >= 0.8 * copy_gbps
        unsettled = any("clock_unsettled" in one[3]["flags"] for one in (a, b))
        groups.setdefault((a[3]["kernel"], by_hbm), []).append(
            (abs(b[0] / a[0] - 1), abs(b[1] / a[1] - 1), abs(b[2] / a[2] - 1), unsettled))
    lines = []
    for (kernel, by_hbm), values in sorted(groups.items()):
        times, cycles, clocks, unsettled = zip(*values)
        cells = [f"`{kernel}`, " + ("HBM-bound: time" if by_hbm else "cycles"), str(len(values))]
        for changes in (times if by_hbm else cycles, clocks, times):
            cells.append(f"{100 * statistics.median(changes):.2f} % ({100 * max(changes):.2f} %)")
        judged = times if by_hbm else cycles
        cells.insert(3, f"{sum(change <= 0.01 for change in judged)} of {len(judged)}")
        lines.append([*cells, str(sum(unsettled))])
    return table(["rows, what is compared", "n", "median difference (largest)", "within 1 %",
                  "SM clock", "time", "clock_unsettled"], lines)


def sustained(_, record, more):
    lines = []
    for case, a, b in pairs_of(record, more):
        energy = a[3].get("energy")
        lines.append([f"`{case}`", f"{microseconds(a[0])} ({100 * (b[0] / a[0] - 1):+.1f} %)",
                      f"{a[3]['derived']['tflops']:.3g}",
                      f"{a[2]:,.0f} ({100 * (b[2] / a[2] - 1):+.1f} %)", f"{a[3]['power_w']:.0f}",
                      f"{energy['pj_per_flop']:.2f}" if energy else "null"])
    return table(["case", "time, us (second run)", "TFLOPS", "SM clock, MHz (second run)", "W",
                  "pJ / FLOP"], lines)


def errors(_, record, distributions):
    """Of rows that are not right, too: they have errors. Refused ones have none."""
    lines = []
    for row in sorted(load(record)["rows"], key=lambda row: (row["problem"]["seqlen_kv"], row["case"])):
        problem, verify = row["problem"], row["verify"]
        if problem["distribution"] in distributions and verify["rel_err"] is not None:
            lines.append([problem["distribution"], f"{problem['seqlen_kv']:,}", f"`{row['kernel']}`",
                          options_of(row, ", ") or "defaults", row["status"],
                          f"{verify['rel_err']:.1e}", f"{verify['unquantized_rms_err']:.1e}"])
    lines.sort(key=lambda line: distributions.index(line[0]))
    return table(["inputs", "keys", "kernel", "options", "row", "relative error", "RMSE, unquantised inputs"], lines)


def rivals(_, record, __):
    """Kernels of one shape beside cuDNN in bf16, whatever their own type."""
    shapes = {}
    for values in medians(record).values():
        shapes.setdefault(problem_order(values[3]), {})[kernel_of(values[3])] = values
    lines = []
    for _, kernels in sorted(shapes.items()):
        for name, (time_us, _, mhz, row) in sorted(kernels.items()):
            problem = row["problem"]
            mask = "full" if problem["mask"] == "none" else problem["mask"]
            energy = row.get("energy")
            lines.append([f"d {problem['headdim']} {mask}, {problem['seqlen_q']:,}", f"`{name}`",
                          f"{row['derived']['tflops']:.0f} ({kernels['cudnn'][0] / time_us:.2f})", f"{mhz:,.0f}",
                          f"{row['power_w']:.0f}", f"{energy['pj_per_flop']:.3f}" if energy else "null"])
    return table(["shape", "kernel", "TFLOPS (cuDNN's time over its)", "SM clock, MHz", "W", "pJ / FLOP"], lines)


def problem_order(row):
    problem = row["problem"]
    return problem["headdim"], problem["mask"] != "none", problem["seqlen_q"]


def ceilings(_, record, __):
    roofs = load(record)
    roofs = roofs[0] if isinstance(roofs, list) else roofs
    lasting, units, launch = roofs["sustained"], roofs["units"], roofs["launch"]

    def line(name, burst, unit, clock, key, sustained_value):
        at = f"{units['clock_mhz'][clock]:,.0f} MHz" if clock in units["clock_mhz"] else ""
        under = ""
        if sustained_value:
            under = (f"{sustained_value:,.0f}, {lasting['clock_mhz'][key]:,.0f} MHz, "
                     f"{lasting['power_w'][key]:.0f} W")
        return [name, f"{burst:,.4g} {unit}" if burst < 100 else f"{burst:,.0f} {unit}", at, under]

    lines = [line("HBM copy", roofs["hbm_copy_gbps"], "GB/s", "", "hbm_copy", lasting["hbm_copy_gbps"]),
             line("HBM read", roofs["hbm_read_gbps"], "GB/s", "", "", None),
             line("HBM write", roofs["hbm_write_gbps"], "GB/s", "", "", None),
             line("L2 read", units["l2_read_gbps"], "GB/s", "", "", None),
             line("shared memory read", units["smem_read_gbps"], "GB/s", "", "", None)]
    for title, rates, key in (("matrix product", roofs["gemm_tflops"], "gemm"),
                              ("tensor loop", units["tensor_tflops"], "tensor")):
        for dtype, rate in sorted(rates.items()):
            lines.append(line(f"{title} {dtype}", rate, "TFLOPS", f"{key}.{dtype}", f"{key}.{dtype}",
                              lasting[f"{key}_tflops"].get(dtype)))
    for dtype, rate in sorted(units["mma_sync_tflops"].items()):
        lines.append(line(f"`mma.sync` loop {dtype}", rate, "TFLOPS", "", "", None))
    lines += [line("exponentials", units["exp_gops"], "G/s", "", "", None),
              line("fp32 multiply-adds", units["fp32_tflops"], "TFLOPS", "", "", None)]
    for name, key in (("launch: between two events", "event_us"), ("launch: next in a stream", "stream_us"),
                      ("launch: next in a graph", "graph_us"), ("launch: until the host knows", "host_us")):
        lines.append(line(name, launch[key], "us", "", "", None))
    return table(["roof", "burst", "at", "sustained"], lines)


def ncu(_, record, __):
    data = load(record)
    lines = []
    for name, title in (("hbm_read_bytes", "HBM bytes read"), ("hbm_write_bytes", "HBM bytes written"),
                        ("tensor_ops", "tensor operations")):
        groups = {}
        for case, counts in data["cases"].items():
            own, theirs = counts["own"][name], counts["ncu"][name]
            middle = statistics.median(theirs)
            apart = max((max(values) - min(values)) / statistics.median(values)
                        for values in (own, theirs))
            groups.setdefault(case.split("/")[0], []).append(
                (abs(statistics.median(own) / middle - 1), apart))
        for kernel, values in sorted(groups.items()):
            differences = [value[0] for value in values]
            worst = max(values)
            lines.append([title, f"`{kernel}`", str(len(values)),
                          f"{100 * statistics.median(differences):.3f} %",
                          f"{100 * worst[0]:.2f} % (spread there {100 * worst[1]:.2f} %)"])
    figures = table(["figure", "kernel", "cases", "median difference", "largest"], lines)
    if data["cost_seconds"] is None:
        return figures
    seconds = {name: statistics.median(values) for name, values in data["cost_seconds"].items()
               if name != "suite"}
    added = seconds["run_counters"] - seconds["run"]
    ncu_added = seconds["ncu_run_profile"] - seconds["run_profile"]
    return figures + (
        f"\nThe counters of suite `{data['cost_seconds']['suite']}` add {added:.1f} s to a run of "
        f"{seconds['run']:.1f} s ({100 * added / seconds['run']:.0f} %); Nsight Compute adds "
        f"{ncu_added:.1f} s for the same metrics of the same cases, {ncu_added / added:.1f} times as "
        "much.\n")


def timers(_, record, __):
    data = load(record)
    lines = []
    for case in data["cases"]:
        ours = statistics.median(case["rooflash"])
        cells = [case["case"], f"{ours:.4g}"]
        for timer in ("do_bench", "do_bench_reading", "events"):
            theirs = statistics.median(case[timer])
            cells.append(f"{theirs:.4g} ({100 * (theirs / ours - 1):+.1f} %)")
        lines.append(cells)
    return table(["case", "rooflash, us", "do_bench", "do_bench, reading", "plain events"], lines)


MAKERS = {"result": result, "rows": rows, "grid": grid, "ladder": ladder, "inputs": inputs,
          "pytorch": pytorch, "model": model, "repeat": repeat, "sustained": sustained,
          "ceilings": ceilings, "ncu": ncu, "timers": timers, "rivals": rivals, "errors": errors}


def default_files():
    return [ROOT / "README.md", ROOT / "docs" / "measuring.md",
            *(path for path in sorted(ROOT.glob("kernels/*/README.md"))
              if BLOCK.search(path.read_text(encoding="utf-8")))]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--rooflash", required=True, help="the driver")
    parser.add_argument("--check", action="store_true", help="compare only")
    parser.add_argument("files", nargs="*", type=pathlib.Path, metavar="FILE")
    arguments = parser.parse_args()
    stale = 0
    for path in arguments.files or default_files():
        old = path.read_text(encoding="utf-8")
        if not BLOCK.search(old):
            sys.exit(f"readme_table.py: {path} has no marker")

        def filled(match, path=path):
            if match["kind"] not in MAKERS:
                sys.exit(f"readme_table.py: {path}: no marker is called {match['kind']}")
            made = MAKERS[match["kind"]](arguments.rooflash, path.parent / match["record"],
                                         match["cases"].split())
            return f"{match[1]}\n{made}\n<!-- /generated -->"

        new = BLOCK.sub(filled, old)
        if new == old:
            continue
        stale += 1
        if arguments.check:
            print(f"{path} is out of date: run scripts/readme_table.py", file=sys.stderr)
        else:
            path.write_text(new, encoding="utf-8")
    return 1 if arguments.check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
