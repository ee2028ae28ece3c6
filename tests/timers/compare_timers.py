#!/usr/bin/env python3
"""Times the same kernels by rooflash, by Triton's do_bench and by plain CUDA events, on one GPU.

    compare_timers.py --build build [-o timers.json]

Needs PyTorch and Triton. Each round takes the timers in turn, case by case; the table shows the medians
over the rounds. do_bench flushes by writing, and what it leaves dirty in L2 is written back during the
kernel; so it is asked a second time with a flush that reads. Exit code 1 where that or plain events differ
from rooflash by over 2 % in a case of 50 us or more.
"""

import argparse
import ctypes
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import unittest.mock

import torch
import triton.testing

ROUNDS = 3
# kernel, batch, heads, seqlen, headdim, causal
CASES = [("fa2", 1, 2, 512, 64, 0), ("fa2", 1, 4, 1024, 128, 1), ("fa2", 1, 8, 2048, 64, 0),
         ("fa2", 32, 16, 512, 128, 1), ("fa2", 16, 32, 1024, 64, 0), ("fa2", 8, 16, 2048, 128, 0),
         ("fa2", 2, 16, 8192, 128, 1), ("naive", 4, 16, 1024, 128, 0), ("naive", 8, 32, 2048, 64, 0)]
FLUSH_BYTES = 256 << 20


def rooflash_us(build, case, folder):
    kernel, batch, heads, seqlen, headdim, causal = case
    record = folder / "timers.json"
    command = [build / "rooflash", "run", "--kernel", kernel, "--dtype", "bf16", "--batch-size", str(batch),
               "--nheads", str(heads), "--seqlen", str(seqlen), "--headdim", str(headdim),
               "--causal", "true" if causal else "false", "--counters", "none",
               "--min-samples", "30x", "-q", "-o", record]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"compare_timers: rooflash failed:\n{done.stderr}")
    row = json.loads(record.read_text())["rows"][0]
    if row["status"] != "ok":
        sys.exit(f"compare_timers: {row['case']}: {row['status']}: {row['reason']}")
    return row["time_us"]["median"], row["clock_mhz"]["median"]


def events_us(launch, flush, samples=50):
    """A flush, an event, the launch, an event; nothing else."""
    for _ in range(5):
        launch()
    times = []
    for _ in range(samples):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        flush.zero_()
        begin.record()
        launch()
        end.record()
        end.synchronize()
        times.append(1e3 * begin.elapsed_time(end))
    return statistics.median(times)


def do_bench_us(launch):
    return 1e3 * triton.testing.do_bench(launch, warmup=100, rep=300, return_mode="median")


def reading_flush():
    """While it is open, do_bench reads its flush buffer in place of writing it."""
    return unittest.mock.patch.object(triton.runtime.driver.active, "clear_cache", lambda cache: cache.max())


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("-o", type=pathlib.Path, help="all figures as JSON")
    options = parser.parse_args()

    library = ctypes.CDLL(str((options.build / "librooflash_launch.so").resolve()))
    library.rooflash_prepare.restype = ctypes.c_void_p
    library.rooflash_prepare.argtypes = [ctypes.c_char_p] + [ctypes.c_long] * 4 + [ctypes.c_int]
    library.rooflash_launch.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
    library.rooflash_release.argtypes = [ctypes.c_void_p]
    flush = torch.empty(FLUSH_BYTES, dtype=torch.uint8, device="cuda")
    results = []
    with tempfile.TemporaryDirectory() as folder:
        for case in CASES:
            prepared = library.rooflash_prepare(case[0].encode(), *case[1:])
            if not prepared:
                sys.exit(1)

            def launch(handle=prepared):
                stream = torch.cuda.current_stream().cuda_stream
                if library.rooflash_launch(handle, stream) != 0:
                    sys.exit(1)

            rounds = {"rooflash": [], "do_bench": [], "do_bench_reading": [], "events": [],
                      "clock_mhz": []}
            for _ in range(ROUNDS):
                time, clock = rooflash_us(options.build, case, pathlib.Path(folder))
                rounds["rooflash"].append(time)
                rounds["clock_mhz"].append(clock)
                rounds["do_bench"].append(do_bench_us(launch))
                with reading_flush():
                    rounds["do_bench_reading"].append(do_bench_us(launch))
                rounds["events"].append(events_us(launch, flush))
            torch.cuda.synchronize()
            library.rooflash_release(prepared)
            kernel, batch, heads, seqlen, headdim, causal = case
            name = f"{kernel} b{batch} h{heads} s{seqlen} d{headdim}" + (" causal" if causal else "")
            results.append({"case": name, **rounds})

    if options.o:
        options.o.write_text(json.dumps({"gpu": torch.cuda.get_device_name(), "rounds": ROUNDS,
                                         "torch": torch.__version__, "triton": triton.__version__,
                                         "cases": results}, indent=1) + "\n")
    faults = 0
    print("| case | rooflash, us | do_bench | do_bench, reading | plain events |\n|---|---|---|---|---|")
    for result in results:
        ours = statistics.median(result["rooflash"])
        cells = []
        for timer in ("do_bench", "do_bench_reading", "events"):
            theirs = statistics.median(result[timer])
            cells.append(f"{theirs:.4g} ({100 * (theirs / ours - 1):+.1f} %)")
            faults += timer != "do_bench" and ours >= 50 and abs(theirs / ours - 1) > 0.02
        print(f"| {result['case']} | {ours:.4g} | {' | '.join(cells)} |")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
