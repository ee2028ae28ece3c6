#!/usr/bin/env python3
"""Times the back ends of PyTorch's scaled_dot_product_attention over the grid of suite peers-fwd.

    pytorch_peers.py [--budget SECONDS] [-o peers.json]

bf16, 16,384 tokens, hidden size 2,048, no grouped heads, tensors b s h d, no gradients asked for (so
PyTorch has cuDNN write no LSE). Each sample is one call between two CUDA events behind a flush of the L2 that reads, so that no
dirty line is written back during the call; the stream is held by a sleeping kernel until all is queued.
The back ends take each case in turn, in rounds, and the median over all samples is shown with its spread
(first to last quartile). Cases are shuffled; what the budget does not reach is null.
"""

import argparse
import json
import math
import pathlib
import random
import statistics
import subprocess
import time

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

BACKENDS = {"math": SDPBackend.MATH, "efficient": SDPBackend.EFFICIENT_ATTENTION,
            "flash": SDPBackend.FLASH_ATTENTION, "cudnn": SDPBackend.CUDNN_ATTENTION}
TOKENS, HIDDEN = 16384, 2048
HEADDIMS = (64, 128, 256)
SEQLENS = (512, 1024, 2048, 4096, 8192, 16384)
ROUNDS, SAMPLES, SLOW_SAMPLES = 3, 10, 3  # samples a round; of cases that take over 20 ms
WARMUP_S = 0.15
HOLD_CYCLES = 2_000_000  # about a millisecond: longer than it takes to queue one sample


def flop(batch, heads, seqlen, headdim, causal):
    pairs = seqlen * (seqlen + 1) // 2 if causal else seqlen * seqlen
    return 4 * batch * heads * pairs * headdim


def one_sample_us(launch, flush):
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda._sleep(HOLD_CYCLES)
    flush.max()
    begin.record()
    launch()
    end.record()
    end.synchronize()
    return 1e3 * begin.elapsed_time(end)


def warm_up(launch):
    start = time.monotonic()
    while time.monotonic() - start < WARMUP_S:
        launch()
        torch.cuda.synchronize()


def time_case(case, flush, deadline):
    """The samples of each back end, or the reason why there are none."""
    seqlen, headdim, causal = case["seqlen"], case["headdim"], case["causal"]
    shape = (case["batch"], seqlen, case["heads"], headdim)
    q, k, v = (torch.randn(shape, device="cuda", dtype=torch.bfloat16).transpose(1, 2) for _ in range(3))
    samples, reasons = {name: [] for name in BACKENDS}, {}
    for _ in range(ROUNDS):
        for name, backend in BACKENDS.items():
            if name in reasons:
                continue
            if time.monotonic() > deadline:
                reasons.setdefault(name, "the budget was spent")
                continue

            def launch():
                return scaled_dot_product_attention(q, k, v, is_causal=causal)

            try:
                with sdpa_kernel(backend):
                    warm_up(launch)
                    first = one_sample_us(launch, flush)
                    more = (SAMPLES if first < 20e3 else SLOW_SAMPLES) - 1
                    samples[name] += [first] + [one_sample_us(launch, flush) for _ in range(more)]
            except RuntimeError as error:  # no such back end for this case, or no memory
                reasons[name] = str(error).split("\n", 1)[0]
                torch.cuda.empty_cache()
    return samples, reasons


def figures(case, samples, reasons):
    """Median, spread and TFLOPS of each back end; null with the reason where it was not timed."""
    result = {}
    for name, times in samples.items():
        if len(times) < 2:
            result[name] = {"time_us": None, "reason": reasons.get(name, "not timed")}
            continue
        low, median, high = statistics.quantiles(times, n=4)
        result[name] = {"time_us": median, "quartiles_us": [low, high], "min_us": min(times),
                        "n": len(times), "samples_us": times, "tflops": case["flop"] / median * 1e-6}
    return result


def driver_version():
    command = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split("\n")[0]
    except (OSError, subprocess.CalledProcessError):
        return None


def ratio_to_cudnn(case, name):
    ours, theirs = (case["backends"][one]["time_us"] for one in (name, "cudnn"))
    return theirs / ours if ours and theirs else None


def print_tables(cases):
    """TFLOPS of each back end, in brackets its speed over cuDNN's in the same case."""
    by_key = {(case["headdim"], case["causal"], case["seqlen"]): case for case in cases}
    for name in BACKENDS:
        print(f"\n{name}: TFLOPS (ratio to cudnn)\n\n| d | mask | " + " | ".join(map(str, SEQLENS)) + " |")
        print("|---" * (2 + len(SEQLENS)) + "|")
        ratios = []
        for headdim in HEADDIMS:
            for causal in (False, True):
                cells = []
                for seqlen in SEQLENS:
                    case = by_key[headdim, causal, seqlen]
                    timed, ratio = case["backends"][name], ratio_to_cudnn(case, name)
                    text = f"{timed['tflops']:.4g}" if timed["time_us"] else "null"
                    cells.append(text if ratio is None else f"{text} ({ratio:.3f})")
                    ratios += [] if ratio is None else [ratio]
                print(f"| {headdim} | {'causal' if causal else 'full'} | {' | '.join(cells)} |")
        if ratios:
            mean = math.exp(statistics.fmean(map(math.log, ratios)))
            print(f"\ngeometric mean over cudnn: {mean:.3f} of {len(ratios)} cases")
    spreads = [(high - low) / timed["time_us"] for case in cases for timed in case["backends"].values()
               if timed["time_us"] for low, high in [timed["quartiles_us"]]]
    if spreads:
        print(f"\nspread between quartiles: median {100 * statistics.median(spreads):.2f} %, at most "
              f"{100 * max(spreads):.2f} %; up to {ROUNDS * SAMPLES} samples each, cold L2")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--budget", type=float, default=300, help="seconds, then it stops (default 300)")
    parser.add_argument("--seed", type=int, default=0, help="of the inputs and the order of cases")
    parser.add_argument("-o", type=pathlib.Path, help="all figures as JSON")
    options = parser.parse_args()
    deadline = time.monotonic() + options.budget

    torch.manual_seed(options.seed)
    properties = torch.cuda.get_device_properties(0)
    flush = torch.zeros(max(2 * properties.L2_cache_size, 256 << 20), dtype=torch.uint8,
                        device="cuda")
    cases = [{"batch": TOKENS // seqlen, "heads": HIDDEN // headdim, "seqlen": seqlen, "headdim": headdim,
              "causal": causal, "flop": flop(TOKENS // seqlen, HIDDEN // headdim, seqlen, headdim, causal)}
             for headdim in HEADDIMS for causal in (False, True) for seqlen in SEQLENS]
    order = list(cases)
    random.Random(options.seed).shuffle(order)
    for case in order:
        case["backends"] = figures(case, *time_case(case, flush, deadline))

    about = {"gpu": properties.name, "driver": driver_version(), "torch": torch.__version__,
             "cuda": torch.version.cuda, "cudnn": torch.backends.cudnn.version(), "dtype": "bf16",
             "l2": "cold, flushed by reading", "rounds": ROUNDS, "samples_a_round": SAMPLES,
             "seed": options.seed}
    if options.o:
        options.o.parent.mkdir(parents=True, exist_ok=True)
        options.o.write_text(json.dumps({**about, "cases": cases}, indent=1) + "\n")
    print(", ".join(f"{key} {value}" for key, value in about.items()))
    print_tables(cases)


if __name__ == "__main__":
    main()
