#!/usr/bin/env python3
"""Profiling on a GPU, from end to end: `rooflash profile` with every set and by names, `run --profile`,
and the command that `profile --tool ncu --print` prints.

    check_profile.py ROOFLASH [FOLDER]      FOLDER keeps what they write

Prints one line a check; exit code 1 where one failed. A tool that is missing or not permitted here is
told and skipped.
"""
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

FA2 = "fa2/fwd/bf16/b2.h8.kv8/q2048.k2048/d128/causal"
NAIVE = "naive/fwd/fp16/b1.h4.kv4/q1024.k1024/d64/full"
DEVICE = ["--device", "cuda:0"]
PASSES_ON_GH100 = {"memory": 8, "compute": 4, "stalls": 7, "smem": 3}

failures = 0


def check(what, good, detail=""):
    global failures
    print(f"{'ok  ' if good else 'FAIL'}  {what}{': ' + str(detail) if detail or not good else ''}", flush=True)
    failures += not good
    return good


def run(*words, shell=False):
    done = subprocess.run(words[0] if shell else words, shell=shell, capture_output=True, text=True,
                          timeout=180, check=False)
    return done.returncode, done.stdout, done.stderr


def profile_of(rooflash, folder, case, *flags):
    path = folder / "profile.json"
    code, out, err = run(rooflash, "profile", case, *DEVICE, "-o", str(path), *flags)
    if not check(f"profile {case} {' '.join(flags)} ends with 0", code == 0, err.strip()[-400:] if code else ""):
        return None
    print("\n".join("      " + line for line in out.splitlines()))
    return json.loads(path.read_text())


def values_of(profile):
    """By (set, id), those that were counted."""
    return {(one["set"], metric["id"]): metric["value"]
            for one in profile["sets"] for metric in one["metrics"] if metric["value"] is not None}


def check_profile(rooflash, folder):
    profile = profile_of(rooflash, folder, FA2)
    if profile is None:
        return
    passes = {one["set"]: one["passes"] for one in profile["sets"]}
    if profile["chip"] == "GH100":
        check("passes of each set on GH100", passes == PASSES_ON_GH100, passes)
    missing = [metric["name"] for one in profile["sets"] for metric in one["metrics"]
               if metric["value"] is None]
    check("every metric of every set has a value", not missing, ", ".join(missing))
    value = values_of(profile)
    row = profile["row"]
    percents = {key: one for key, one in value.items() if key[1].endswith("_pct")}
    check("no share is outside 0 to 100", all(0 <= one <= 101 for one in percents.values()),
          {key: one for key, one in percents.items() if not 0 <= one <= 101})
    ops = sum(one for key, one in value.items() if key[1].startswith("tensor_ops_bf16"))
    check("tensor operations are 1 to 1.6 of the formula's", 1 <= ops / row["model"]["flops"] <= 1.6,
          f"{ops / row['model']['flops']:.4f}")
    other = sum(one for key, one in value.items()
                if key[1].startswith("tensor_ops_") and "bf16" not in key[1])
    check("no tensor operations of another type", other == 0, other)
    read = value[("memory", "hbm_read_bytes")]
    inputs = 0.75 * row["model"]["compulsory_bytes"]
    check("cold: HBM bytes read are 0.9 to 2 of the inputs", 0.9 <= read / inputs <= 2, f"{read / inputs:.3f}")
    check("the tensor cores were busy", value[("compute", "tensor_pipe_pct")] > 5)
    stalls = sum(one for key, one in value.items() if key[1].startswith("stall_"))
    total = value[("stalls", "warps_per_issue")]
    check("the stall reasons add up to the cycles per instruction within 10 %",
          abs(stalls / total - 1) < 0.1, f"{stalls:.2f} of {total:.2f}")
    conflicts = value[("smem", "smem_conflicts")]
    check("bank conflicts are part of the wavefronts", conflicts <= value[("smem", "smem_wavefronts")])
    occupancy = profile["occupancy"]
    least = min(occupancy[key] for key in ("by_registers", "by_shared_memory", "by_warps", "by_blocks"))
    check("theoretical occupancy agrees with the CUDA runtime", least == occupancy["blocks_per_sm"], occupancy)
    check("achieved occupancy is at most the theoretical",
          value[("compute", "occupancy_pct")] <= occupancy["theoretical_pct"] * 1.02)
    check("there are findings, each with a next step",
          profile["findings"] and all(one["next_step"] for one in profile["findings"]))
    check("the row carries no time, and says why",
          row["time_us"] is None and "time_us" in row["missing"])

    warm = profile_of(rooflash, folder, FA2, "--l2", "warm", "--set", "memory")
    if warm:
        check("warm: far fewer HBM bytes are read", values_of(warm)[("memory", "hbm_read_bytes")] < 0.2 * read)
    path = folder / "run.json"
    code, _, err = run(rooflash, "run", "--kernel", "fa2", *DEVICE, "--dtype", "bf16", "--batch-size", "2",
                       "--nheads", "8", "--seqlen", "2048", "--headdim", "128", "--causal", "true", "-q",
                       "-o", str(path))
    if check("the same case under run ends with 0", code == 0, err.strip()[-400:]):
        counted = json.loads(path.read_text())["rows"][0]["counters"]
        check("run and profile count the same tensor operations", counted["tensor_ops"] == ops)
        check("run and profile count the same HBM bytes within 5 %",
              abs(counted["hbm_read_bytes"] / read - 1) < 0.05, f"{counted['hbm_read_bytes'] / read:.4f}")

    naive = profile_of(rooflash, folder, NAIVE, "--set", "compute")
    if naive:
        check("a launch of several kernels is counted as one", len(naive["row"]["kernels_run"]) > 1)


def check_names(rooflash, folder):
    named = profile_of(rooflash, folder, FA2, "--metrics",
                       "dram__bytes_read.sum,sm__cycles_elapsed.max,sm__inst_executed.sum")
    if named:
        check("three names, three values", len(values_of(named)) == 3)
    code, out, err = run(rooflash, "profile", FA2, *DEVICE, "--metrics",
                         "dram__bytes_read.sum,dram__bytes_reed.sum,sm__cycles_elapsed.summ")
    check("two wrong names: exit code 2, nothing on stdout", code == 2 and not out, code)
    check("a misspelt name is told with the one meant",
          "dram__bytes_reed.sum" in err and "did you mean 'dram__bytes_read" in err, err.strip())
    check("a wrong last part is told", "sm__cycles_elapsed takes .sum" in err)


def check_run_profile(rooflash, folder):
    path = folder / "run_profile.json"
    code, _, err = run(rooflash, "run", "--profile", "--kernel", "naive,fa2", *DEVICE, "--seqlen", "1k",
                       "--batch-size", "1", "--nheads", "4", "-o", str(path))
    if not check("run --profile ends with 0", code == 0, err.strip()[-400:] if code else ""):
        return
    for row in json.loads(path.read_text())["rows"]:
        check(f"{row['case']}: ok, not timed, not counted, with reasons",
              row["status"] == "ok" and row["time_us"] is None and row["missing"].get("time_us")
              and row["counters"]["status"] == "not_requested" and row["kernels_run"],
              row["reason"])


def check_ncu(rooflash, folder):
    report = folder / "case"
    code, line, err = run(rooflash, "profile", FA2, *DEVICE, "--tool", "ncu", "--print", "--metrics",
                          "dram__bytes_read.sum", "-o", str(report))
    if not check("profile --tool ncu --print ends with 0", code == 0, err.strip()):
        return
    print("      " + line.strip())
    if shutil.which(line.split()[0]) is None:
        print("skip  ncu is not on this machine")
        return
    code, out, err = run(line, shell=True)
    told = out + err
    if re.search("ERR_NVGPUCTRPERM|LibraryNotLoaded|not supported", told):
        print("skip  ncu may not count here: " + told.strip()[-300:])
        return
    if check("the printed command ends with 0", code == 0, told.strip()[-600:] if code else ""):
        profiled = re.findall(r"==PROF== Profiling", told)
        check("the filter catches the one launch of the case", len(profiled) == 1,
              f"{len(profiled)} kernels profiled")
        check("ncu wrote its report", report.with_suffix(".ncu-rep").exists())


def main():
    rooflash = str(pathlib.Path(sys.argv[1]).resolve())
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else temporary)
        folder.mkdir(parents=True, exist_ok=True)
        for part in (check_profile, check_names, check_run_profile, check_ncu):
            part(rooflash, folder)
    print(f"{failures} failed" if failures else "profile: all as expected")
    sys.exit(1 if failures else 0)


main()
