#!/usr/bin/env python3
"""Runs a small `rooflash run` under each profiler found, on a GPU, and checks that it stands down:
rows ok and timed, counters left to the tool, which the rows name.

    check_tools.py BUILD OUT     OUT: folder for records and logs

Exit code 1 where one of them fails, 77 where none is found.
"""
import json
import os
import shutil
import subprocess
import sys

CASE = ["--device", "0", "--kernel", "naive", "--dtype", "fp16", "--headdim", "64", "--seqlen", "256",
        "--batch-size", "1", "--nheads", "2", "--causal", "false", "--min-samples", "3x",
        "--max-time", "50ms", "--timeout", "120s"]
# One launch profiled is enough: what matters is that the tool is attached.
TOOLS = {
    "ncu": ("Nsight Compute", lambda out: ["ncu", "--target-processes", "all", "--launch-count", "1",
                                           "--metrics", "gpu__time_duration.sum"]),
    "nsys": ("Nsight Systems", lambda out: ["nsys", "profile", "--trace", "cuda,nvtx", "--force-overwrite",
                                            "true", "--output", os.path.join(out, "nsys")]),
    "compute-sanitizer": ("compute-sanitizer", lambda out: ["compute-sanitizer", "--target-processes",
                                                            "all"]),
}
NOT_HERE = "Device not supported"  # compute-sanitizer in some virtual machines


def faults_of(path, name):
    """What is wrong with the record of a run under the tool `name`."""
    with open(path, encoding="utf-8") as file:
        record = json.load(file)
    faults = [] if record["rows"] else ["no row"]
    for row in record["rows"]:
        counters = row["counters"]
        if row["status"] != "ok":
            faults.append(f"{row['case']}: {row['status']}: {row['reason']}")
        elif row["time_us"] is None:
            faults.append(f"{row['case']}: no time")
        elif counters["status"] != "other_tool" or name not in counters["reason"]:
            faults.append(f"{row['case']}: counters {counters['status']}: {counters['reason']}")
    return faults


def check(build, out, command, name):
    record = os.path.join(out, command[0] + ".json")
    if os.path.exists(record):
        os.remove(record)
    done = subprocess.run([*command, os.path.join(build, "rooflash"), "run", *CASE, "-o", record],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    with open(os.path.join(out, command[0] + ".log"), "w", encoding="utf-8") as file:
        file.write(done.stdout)
    if NOT_HERE in done.stdout:
        return "skipped", [NOT_HERE]
    if not os.path.exists(record):
        return "FAILED", [f"exit code {done.returncode}, no record", done.stdout[-2000:]]
    faults = faults_of(record, name)
    if "warning: no hardware counters (other_tool)" not in done.stdout:
        faults.append("no warning on the terminal")
    return ("FAILED" if faults else "ok"), faults


def main():
    build, out = sys.argv[1:]
    os.makedirs(out, exist_ok=True)
    results = {}
    for tool, (name, command) in TOOLS.items():
        if shutil.which(tool) is None:
            continue
        results[tool], notes = check(build, out, command(out), name)
        for note in notes:
            print(f"{tool}: {note}")
    print(", ".join(f"{tool} {result}" for tool, result in results.items()) or "no tool is installed")
    if "FAILED" in results.values():
        return 1
    return 0 if "ok" in results.values() else 77


sys.exit(main())
