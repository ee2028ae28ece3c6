#!/usr/bin/env python3
"""Checks and times variants of the Hopper pipeline beside cuDNN, in one process on one GPU.

    hopper_lab.py --library build/libhopper_lab.so [--only NAME,...] [--splits N,...] [--settled] [--no-grid]
                  [-o FILE.json]

For trying ideas: the variants are the table of hopper_lab.cu, the figures are no record. Needs PyTorch, and a
GPU of compute capability 9.0. Every variant is first held against fp64 on small odd shapes with all masks,
poisoned outputs and three repeats, also with scores 6 and 40 times as large and one key that outgrows all;
one that fails is not timed. Then each cell of the grid (16,384 tokens, hidden size 2,048) is timed with cold
L2: by turns, so that all run at one clock, or with --settled each alone after a fifth of a second, at the
clock that the power cap leaves to it. Cells are TFLOPS and, in brackets, cuDNN's time over the variant's.
Variants that split keys are held against fp64 with several numbers of parts, and left out of the grid. Where
there are some, short queries on long keys of few heads are timed too, with as many parts as the schedule asks for (0)
and as --splits says; these cells are microseconds. Exit code 1 where a variant is wrong.
"""

import argparse
import ctypes
import json
import math
import pathlib
import statistics
import sys
import time

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

TOKENS, HIDDEN = 16384, 2048
SEQLENS = (512, 1024, 2048, 4096, 8192, 16384)
DECODE_SEQLENS_Q, DECODE_SEQLENS = (1, 16, 128), (4096, 16384, 65536, 131072)
DECODE_HEADS = ((1, 1), (8, 8), (32, 32), (8, 1), (32, 4), (64, 1))  # of Q, of K and V
ROUNDS, SAMPLES = 3, 6
SETTLE_S = 0.2
FLUSH_BYTES = 256 << 20
# batch, seqlen_q, seqlen_kv, heads_q, heads_kv
SHAPES = [(2, 77, 77, 2, 2), (1, 300, 300, 4, 2), (2, 512, 512, 3, 1), (1, 1024, 1024, 2, 1),
          (1, 1537, 1537, 1, 1), (1, 128, 2500, 2, 1), (1, 2500, 128, 2, 1), (3, 1, 777, 4, 1),
          (1, 113, 203, 2, 2), (1, 799, 3, 2, 2), (2, 64, 129, 8, 2), (150, 40, 40, 4, 4),
          (1, 16, 4100, 2, 2), (1, 1, 700, 64, 1), (2, 33, 129, 16, 1), (1, 70, 70, 32, 1)]
# kind (0 none, 1 causal, 2 window), top-left, left, right
MASKS = [(0, 0, -1, -1), (1, 0, -1, -1), (1, 1, -1, -1), (2, 0, 100, 0), (2, 1, 31, 64), (2, 0, -1, 5)]
SPLITS = (0, 1, 2, 3, 7, 128)  # 0: as the schedule asks for
MOST_ERROR, MOST_LSE_ERROR = 6e-3, 1e-4  # relative Frobenius norm; of 1 + |LSE|


class Lab:
    def __init__(self, path):
        self.library = ctypes.CDLL(str(path))
        self.library.lab_name.restype = ctypes.c_char_p
        self.library.lab_prepare.restype = ctypes.c_void_p
        self.library.lab_launch.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
        self.library.lab_free.argtypes = [ctypes.c_void_p]
        self.library.lab_launch.restype = self.library.lab_free.restype = None
        self.names = [self.library.lab_name(i).decode() for i in range(self.library.lab_count())]

    def headdim(self, i):
        return self.library.lab_headdim(i)

    def dtype(self, i):
        return torch.float16 if self.library.lab_fp16(i) else torch.bfloat16

    def splits(self, i):
        return self.library.lab_split(i) != 0

    def prepare(self, i, q, k, v, o, lse, mask, splits=0):
        pointers = [ctypes.c_void_p(tensor.data_ptr()) for tensor in (q, k, v, o, lse)]
        batch, seqlen_q, heads_q, headdim = q.shape
        _, seqlen_kv, heads_kv, headdim_v = v.shape
        prepared = self.library.lab_prepare(i, *pointers, batch, seqlen_q, seqlen_kv, heads_q, heads_kv,
                                            headdim, headdim_v, *mask, splits)
        if not prepared:
            sys.exit(f"hopper_lab: {self.names[i]} cannot be launched")
        return prepared

    def launch(self, prepared):
        self.library.lab_launch(prepared, torch.cuda.current_stream().cuda_stream)


def inputs(shape, headdim, headdim_v, dtype, seed, scale=1.0):
    batch, seqlen_q, seqlen_kv, heads_q, heads_kv = shape
    generator = torch.Generator(device="cuda")
    generator.manual_seed(seed)

    def normal(*size):
        return torch.randn(*size, device="cuda", generator=generator)

    return ((normal(batch, seqlen_q, heads_q, headdim) * scale).to(dtype),
            normal(batch, seqlen_kv, heads_kv, headdim).to(dtype),
            normal(batch, seqlen_kv, heads_kv, headdim_v).to(dtype))


def visible(seqlen_q, seqlen_kv, mask):
    kind, top_left, left, right = mask
    place = torch.arange(seqlen_q, device="cuda")[:, None] + (0 if top_left else seqlen_kv - seqlen_q)
    key = torch.arange(seqlen_kv, device="cuda")[None]
    seen = torch.ones(seqlen_q, seqlen_kv, dtype=torch.bool, device="cuda")
    if kind == 1 or (kind == 2 and right >= 0):
        seen &= key <= place + max(right, 0)
    if kind == 2 and left >= 0:
        seen &= key >= place - left
    return seen


def reference(q, k, v, seen):
    group = q.shape[2] // k.shape[2]
    q = q.double().transpose(1, 2)
    k, v = (x.double().transpose(1, 2).repeat_interleave(group, 1) for x in (k, v))
    scores = ((q @ k.transpose(-1, -2)) / math.sqrt(q.shape[3])).masked_fill(~seen, -math.inf)
    lse = torch.logsumexp(scores, -1)
    weights = torch.where(seen.any(-1)[:, None], torch.exp(scores - lse[..., None]), 0.0)
    return (weights @ v).transpose(1, 2), lse


def wrong_case(lab, i, tensors, want, want_lse, mask, splits):
    """What the variant gets wrong, "" where nothing."""
    q, _, v = tensors
    o = torch.full((*q.shape[:3], v.shape[3]), math.nan, device="cuda", dtype=q.dtype)
    lse = torch.full((q.shape[0], q.shape[2], q.shape[1]), math.nan, device="cuda")
    prepared = lab.prepare(i, *tensors, o, lse, mask, splits)
    lab.launch(prepared)
    torch.cuda.synchronize()
    error = ((o.double() - want).norm() / want.norm().clamp(min=1e-9)).item()
    finite = torch.isfinite(want_lse)
    apart = ((lse.double() - want_lse).abs() / (1 + want_lse.abs()))[finite]
    lse_error = apart.max().item() if apart.numel() else 0.0
    empty_right = torch.equal(torch.isneginf(lse), ~finite)
    first = o.clone()
    o.fill_(math.nan)
    for _ in range(3):
        lab.launch(prepared)
    torch.cuda.synchronize()
    repeats = torch.equal(o.view(torch.int16), first.view(torch.int16))
    lab.library.lab_free(prepared)
    if error < MOST_ERROR and lse_error < MOST_LSE_ERROR and empty_right and repeats:
        return ""
    return (f"error {error:.1e}, LSE {lse_error:.1e}, rows without keys {'right' if empty_right else 'wrong'}, "
            f"repeats {'equal' if repeats else 'differ'}")


def wrong_cases(lab, i):
    """What the variant gets wrong, as lines of text."""
    headdim, dtype = lab.headdim(i), lab.dtype(i)
    lines = []
    for scale in (1.0, 6.0, 40.0):
        for number, shape in enumerate(SHAPES):
            for mask in MASKS:
                if scale != 1.0 and (shape[1] < 500 or mask[0] == 2):
                    continue
                dims = (headdim, headdim) if number % 2 == 0 else (headdim - 8, headdim - 24)
                tensors = inputs(shape, *dims, dtype, number, scale)
                if scale == 40.0:
                    tensors[1][:, shape[2] // 3] *= 8
                want, want_lse = reference(*tensors, visible(shape[1], shape[2], mask))
                for splits in SPLITS if lab.splits(i) else (1,):
                    wrong = wrong_case(lab, i, tensors, want, want_lse, mask, splits)
                    if wrong:
                        lines.append(f"{shape} mask {mask} head dims {dims} scores x {scale:g} parts {splits}: {wrong}")
    return lines


def grid_cell(lab, variants, headdim, causal, seqlen, dtype, settled, flush):
    """Median times in milliseconds, by name, of the variants and of cuDNN."""
    heads = HIDDEN // headdim
    tensors = inputs((TOKENS // seqlen, seqlen, seqlen, heads, heads), headdim, headdim, dtype, 0)
    return times_of(lab, {lab.names[i]: (i, 0) for i in variants}, tensors, causal, settled, flush)


def decode_cell(lab, variants, counts, headdim, seqlen_q, seqlen_kv, heads_q, heads_kv, dtype, settled, flush):
    """The same for short queries; variants that split keys with each of `counts` parts."""
    tensors = inputs((1, seqlen_q, seqlen_kv, heads_q, heads_kv), headdim, headdim, dtype, 0)
    named = {}
    for i in variants:
        if lab.splits(i):
            named |= {f"{lab.names[i]}/{count}": (i, count) for count in counts}
        else:
            named[lab.names[i]] = (i, 0)
    return times_of(lab, named, tensors, False, settled, flush)


def times_of(lab, named, tensors, causal, settled, flush):
    """`named`: variants and their numbers of parts. Without cuDNN where PyTorch has none for the case."""
    q, _, v = tensors
    o = torch.empty(*q.shape[:3], v.shape[3], device="cuda", dtype=q.dtype)
    lse = torch.empty(q.shape[0], q.shape[2], q.shape[1], device="cuda")
    swapped = [x.transpose(1, 2) for x in tensors]

    def cudnn():
        with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
            torch.nn.functional.scaled_dot_product_attention(*swapped, is_causal=causal,
                                                             enable_gqa=q.shape[2] != v.shape[2])

    prepared = {name: lab.prepare(i, *tensors, o, lse, (int(causal), 0, -1, -1), splits)
                for name, (i, splits) in named.items()}
    runs = {"cudnn": cudnn, **{name: lambda p=p: lab.launch(p) for name, p in prepared.items()}}
    try:
        cudnn()
    except RuntimeError:
        del runs["cudnn"]
    times = {name: [] for name in runs}
    for name, run in runs.items():
        run()
    for _ in range(ROUNDS):
        events = []
        for name, run in runs.items():
            begin = time.monotonic()
            while settled and time.monotonic() - begin < SETTLE_S:
                for _ in range(10):
                    flush.zero_()
                    run()
                torch.cuda.synchronize()
            for _ in range(SAMPLES):
                flush.zero_()
                pair = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
                pair[0].record()
                run()
                pair[1].record()
                events.append((name, pair))
        torch.cuda.synchronize()
        for name, (first, last) in events:
            times[name].append(first.elapsed_time(last))
    for p in prepared.values():
        lab.library.lab_free(p)
    return {name: statistics.median(values) for name, values in times.items()}


def print_grid(lab, variants, headdim, dtype, settled, flush):
    """The lines of results that it prints."""
    results = []
    for causal in (False, True):
        by_seqlen = {seqlen: grid_cell(lab, variants, headdim, causal, seqlen, dtype, settled, flush)
                     for seqlen in SEQLENS}
        print(f"\nhead dim {headdim} {str(dtype)[6:]} {'causal' if causal else 'full'}: lengths {SEQLENS}")
        for name in by_seqlen[SEQLENS[0]]:
            words, ratios = [], []
            for seqlen, times in by_seqlen.items():
                flops = 4 * TOKENS * seqlen * HIDDEN * (0.5 if causal else 1)
                ratios.append(times.get("cudnn", math.nan) / times[name])
                words.append(f"{flops / times[name] / 1e9:5.0f} ({ratios[-1]:.2f})")
                results.append({"name": name, "headdim": headdim, "dtype": str(dtype)[6:], "causal": causal,
                                "seqlen": seqlen, "time_ms": times[name], "settled": settled})
            print(f"{name:28}" + " ".join(words) + f"   {math.exp(statistics.fmean(map(math.log, ratios))):.3f}")
    return results


def print_decode(lab, variants, counts, headdim, dtype, settled, flush):
    """The same for short queries on long keys, in microseconds."""
    results = []
    for heads_q, heads_kv in DECODE_HEADS:
        for seqlen_q in DECODE_SEQLENS_Q:
            by_seqlen = {seqlen: decode_cell(lab, variants, counts, headdim, seqlen_q, seqlen, heads_q, heads_kv, dtype,
                                             settled, flush)
                         for seqlen in DECODE_SEQLENS}
            print(f"\nhead dim {headdim} {str(dtype)[6:]}, {heads_q} heads on {heads_kv}, {seqlen_q} queries: "
                  f"keys {DECODE_SEQLENS}")
            for name in by_seqlen[DECODE_SEQLENS[0]]:
                words = []
                for seqlen, times in by_seqlen.items():
                    if name not in times:
                        continue
                    words.append(f"{1e3 * times[name]:7.1f} ({times.get('cudnn', math.nan) / times[name]:.2f})")
                    results.append({"name": name, "headdim": headdim, "dtype": str(dtype)[6:], "heads_q": heads_q,
                                    "heads_kv": heads_kv, "seqlen_q": seqlen_q, "seqlen": seqlen,
                                    "time_ms": times[name], "settled": settled})
                print(f"{name:36}" + " ".join(words))
    return results


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", type=pathlib.Path, required=True)
    parser.add_argument("--only", default="", help="variants, separated by commas")
    parser.add_argument("--splits", default="", help="numbers of parts to time besides the schedule's, with commas")
    parser.add_argument("--settled", action="store_true")
    parser.add_argument("--no-grid", action="store_true", help="times short queries alone")
    parser.add_argument("-o", "--output", type=pathlib.Path)
    arguments = parser.parse_args()
    lab = Lab(arguments.library.resolve())
    counts = [0, *(int(count) for count in arguments.splits.split(",") if count)]
    only = [name for name in arguments.only.split(",") if name]
    for name in only:
        if name not in lab.names:
            sys.exit(f"hopper_lab: there is no variant {name}; there are {', '.join(lab.names)}")
    right, failed = [], False
    for i, name in enumerate(lab.names):
        if only and name not in only:
            continue
        lines = wrong_cases(lab, i)
        print(f"{name}: {'right' if not lines else f'wrong in {len(lines)} cases, the first {lines[0]}'}", flush=True)
        failed = failed or bool(lines)
        if not lines:
            right.append(i)
    flush = torch.empty(FLUSH_BYTES, dtype=torch.uint8, device="cuda")
    results = []
    for headdim, dtype in sorted({(lab.headdim(i), lab.dtype(i)) for i in right}, key=str):
        variants = [i for i in right if (lab.headdim(i), lab.dtype(i)) == (headdim, dtype)]
        whole = [i for i in variants if not lab.splits(i)]
        if whole and not arguments.no_grid:
            results += print_grid(lab, whole, headdim, dtype, arguments.settled, flush)
        if any(lab.splits(i) for i in variants):
            results += print_decode(lab, variants, counts, headdim, dtype, arguments.settled, flush)
    if arguments.output:
        arguments.output.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
