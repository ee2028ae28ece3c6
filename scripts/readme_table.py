#!/usr/bin/env python3
"""Writes the figures of the README files from records, so that the two cannot differ.

    readme_table.py --rooflash build/rooflash [--check] [FILE...]

FILEs default to README.md, docs/measuring.md and each family's README. They hold pairs of markers that
name a record relative to the file; what stands between them is replaced:

    <!-- result: RECORD -->          the output of `rooflash report RECORD`
    <!-- rows: RECORD CASE... -->    a table of those rows
    <!-- model: RECORD -->           predicted over measured figures of each kernel
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

ROOT = pathlib.Path(__file__).resolve().parent.parent
BLOCK = re.compile(
    r"(<!-- (?P<kind>result|rows|model): (?P<record>\S+)(?P<cases>[^>]*?) -->\n)"
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


def model(_, record, __):
    ratios = {}
    for row in load(record)["rows"]:
        if row["status"] != "ok":
            continue
        predicted, counters = row["model"], row["counters"]
        ratios.setdefault(row["kernel"], []).append((
            predicted["predicted_time_us"] / row["time_us"]["median"],
            predicted["predicted_hbm_bytes"] / hbm_bytes(row),
            predicted["predicted_sm_l2_bytes"] /
            (counters["sm_l2_read_bytes"] + counters["sm_l2_write_bytes"])))
    lines = []
    for kernel, values in sorted(ratios.items()):
        lines.append([f"`{kernel}`", str(len(values))] +
                     [f"{statistics.median(column):.2f} ({min(column):.2f} to {max(column):.2f})"
                      for column in zip(*values)])
    return table(["kernel", "rows", "time: median (range)", "HBM bytes", "SM to L2 bytes"], lines)


MAKERS = {"result": result, "rows": rows, "model": model}


def default_files():
    return [ROOT / "README.md", ROOT / "docs" / "measuring.md",
            *sorted(ROOT.glob("kernels/*/README.md"))]


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
