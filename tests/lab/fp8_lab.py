#!/usr/bin/env python3
"""Checks and times the fp8 kernels' tiles beside cuDNN's bf16, in one process on one GPU.

    fp8_lab.py --library build/libfp8_lab.so [--only NAME,...] [--parts trace,check,biased,time] [-o FILE.json]

For trying ideas: the variants are the table of fp8_lab.cu, the figures are no record. Needs PyTorch 2.1 or newer and a
GPU of compute capability 9.0. Inputs are quantised with scales of their own for every head and block, V with a power
of two for every block besides, and everything is held against fp64 of what the elements then stand for.
  trace   one tile, in which each query sees one key: names the key and the channel that stand where others belong
  check   small odd shapes with all masks, poisoned outputs, three repeats, several kinds of inputs
  biased  V of mean 2, up to 16,384 keys: what sums that are not kept in fp32 lose
  time    the grid (16,384 tokens, hidden size 2,048) with cold L2, by turns; cells are TFLOPS and, in brackets,
          cuDNN's time over the variant's
A variant that fails one part goes no further. A launch that does not end ends the program after half a minute; the
case that it was in stands in the last line. Exit code 1 where a variant is wrong.
"""

import argparse
import ctypes
import json
import math
import pathlib
import signal
import statistics
import sys

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

DEVICE = "cuda"
E4M3 = torch.float8_e4m3fn
TOKENS, HIDDEN = 16384, 2048
SEQLENS = (512, 1024, 2048, 4096, 8192, 16384)
ROUNDS, SAMPLES = 3, 6
FLUSH_BYTES = 256 << 20
HANG_S = 30
# batch, seqlen_q, seqlen_kv, heads_q, heads_kv
SHAPES = [(1, 64, 64, 1, 1), (1, 192, 192, 1, 1), (2, 77, 77, 2, 2), (1, 300, 300, 4, 2), (2, 512, 512, 3, 1),
          (1, 1024, 1024, 2, 1), (1, 1537, 1537, 1, 1), (1, 128, 2500, 2, 1), (1, 2500, 128, 2, 1),
          (3, 1, 777, 4, 1), (1, 113, 203, 2, 2), (1, 799, 3, 2, 2), (2, 64, 129, 8, 2), (150, 40, 40, 4, 4),
          (1, 1, 1, 1, 1)]
# kind (0 none, 1 causal, 2 window), top-left, left, right
MASKS = [(0, 0, -1, -1), (1, 0, -1, -1), (1, 1, -1, -1), (2, 0, 100, 0), (2, 1, 31, 64), (2, 0, -1, 5)]
# Most relative error (Frobenius norm) of each kind of inputs. Weights are rounded to e4m3, which alone is 2.7e-2;
# where a row sees one key its weight is a power of two, and O in bf16 is all that is rounded.
MOST_ERROR = {"normal": 3.3e-2, "x3": 3.3e-2, "x10": 3.3e-2, "negative": 3.3e-2, "outlier": 3.3e-2, "one-hot": 6e-3}
MOST_BIASED_ERROR = 8e-3
# Of 1 + |LSE|, for each channel: scores are summed by the tensor cores too, and of terms of one sign each may lose
# half a unit of the thirteenth bit behind the sum's leading one.
MOST_LSE_ERROR = 2**-14
BIASED = [(512, False), (2048, False), (2048, True), (16384, False), (16384, True)]


class Lab:
    def __init__(self, path):
        self.library = ctypes.CDLL(str(path))
        self.library.lab_name.restype = ctypes.c_char_p
        self.library.lab_prepare.restype = ctypes.c_void_p
        self.library.lab_launch.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
        self.library.lab_free.argtypes = [ctypes.c_void_p]
        self.names = [self.library.lab_name(i).decode() for i in range(self.library.lab_count())]
        self.scale_rows, self.scale_keys = self.library.lab_scale_rows(), self.library.lab_scale_keys()

    def headdim(self, i):
        return self.library.lab_headdim(i)

    def exact(self, i):
        return bool(self.library.lab_exact(i))

    def prepare(self, i, x, o, lse, mask):
        tensors = (x.q, x.k, x.v, o, lse, x.q_scale, x.k_scale, x.v_scale, x.v_log2, x.v_mean)
        pointers = [ctypes.c_void_p(None if t is None else t.data_ptr()) for t in tensors]
        batch, seqlen_q, heads_q, headdim = x.q.shape
        _, seqlen_kv, heads_kv, _ = x.k.shape
        prepared = self.library.lab_prepare(i, *pointers, batch, seqlen_q, seqlen_kv, heads_q, heads_kv, headdim,
                                            *mask)
        if not prepared:
            sys.exit(f"fp8_lab: {self.names[i]} cannot be launched")
        return prepared

    def launch(self, prepared):
        stream = torch.cuda.current_stream().cuda_stream
        self.library.lab_launch(prepared, stream)

    def run(self, i, x, mask, repeats=0):
        """O, LSE and whether `repeats` further launches give the same bits."""
        o = torch.full(x.q.shape, math.nan, device=DEVICE, dtype=torch.bfloat16)
        lse = torch.full((x.q.shape[0], x.q.shape[2], x.q.shape[1]), math.nan, device=DEVICE)
        prepared = self.prepare(i, x, o, lse, mask)
        self.launch(prepared)
        wait()
        first = o.clone(), lse.clone()
        for _ in range(repeats):
            o.fill_(math.nan)
            lse.fill_(math.nan)
            self.launch(prepared)
        wait()
        self.library.lab_free(prepared)
        same = all(torch.equal(a.view(torch.uint8), b.view(torch.uint8)) for a, b in zip((o, lse), first))
        return o, lse, same


def wait():
    # The default action ends the process, also while it waits in the driver.
    signal.alarm(HANG_S)
    torch.cuda.synchronize()
    signal.alarm(0)


# ---- inputs


class Inputs:
    """Elements of e4m3 and their scales, as fp8/arguments.cuh has them."""

    def __init__(self, q, k, v, scale_rows, scale_keys, random, v_log2=None, v_mean=None):
        """Quantises q, k and v. `random`: a generator for scales larger than need be, or None. `v_log2`: whole
        numbers; V of those blocks is that much smaller than v."""
        self.scale_keys = scale_keys
        self.q, self.q_scale = quantised(q, scale_rows, random)
        self.k, self.k_scale = quantised(k, scale_keys, random)
        self.v, scale = quantised(v, v.shape[1], random)
        self.v_scale = scale[..., 0].contiguous()
        self.v_log2 = torch.zeros_like(self.k_scale) if v_log2 is None else v_log2
        self.v_mean = v_mean
        self.scale_rows = scale_rows

    def real(self):
        """Q, K and V that these stand for, in fp64."""
        scales = self.v_scale[..., None].double() * torch.exp2(self.v_log2.double())
        return (dequantised(self.q, self.q_scale, self.scale_rows),
                dequantised(self.k, self.k_scale, self.scale_keys), dequantised(self.v, scales, self.scale_keys))


def by_row(scales, rows, seqlen):
    """[batch, heads, blocks] to [batch, seqlen, heads, 1]."""
    return scales.repeat_interleave(rows, 2)[..., :seqlen].transpose(1, 2)[..., None]


def quantised(x, rows, random):
    batch, seqlen, heads, headdim = x.shape
    blocks = (seqlen + rows - 1) // rows
    padded = torch.nn.functional.pad(x, (0, 0, 0, 0, 0, blocks * rows - seqlen))
    most = padded.abs().view(batch, blocks, rows, heads, headdim).amax((2, 4)).transpose(1, 2)
    scale = most.clamp(min=1e-6) / 448
    if random is not None:
        scale = scale * (1 + torch.rand(scale.shape, device=DEVICE, generator=random))
    scale = scale.float().contiguous()
    # PyTorch's conversion makes NaN of what is too large.
    return (x / by_row(scale, rows, seqlen)).clamp(-448, 448).to(E4M3), scale


def dequantised(x, scale, rows):
    return x.float().double() * by_row(scale.double(), rows, x.shape[1])


def generator_of(seed):
    generator = torch.Generator(device=DEVICE)
    generator.manual_seed(seed)
    return generator


def inputs(lab, shape, headdim, kind, seed):
    batch, seqlen_q, seqlen_kv, heads_q, heads_kv = shape
    random = generator_of(seed)

    def normal(*size):
        return torch.randn(*size, device=DEVICE, generator=random)

    q, k, v = (normal(batch, seqlen, heads, headdim)
               for seqlen, heads in ((seqlen_q, heads_q), (seqlen_kv, heads_kv), (seqlen_kv, heads_kv)))
    v_log2 = -torch.randint(0, 4, (batch, heads_kv, (seqlen_kv - 1) // lab.scale_keys + 1), device=DEVICE,
                            generator=random).float()
    if kind == "x3":
        q = q * 3
    elif kind == "x10":
        q = q * 10
    elif kind == "outlier":
        q = q * 10
        k[:, seqlen_kv // 3] *= 8
    elif kind == "negative":
        q, k = q.abs(), -k.abs()
    elif kind == "biased":
        v, v_log2 = v + 2, None
    elif kind == "one-hot":
        # Queries are keys, so that each has a score above all others by more than 2^128, which a lazy softmax
        # notices.
        k = k.sign()
        chosen = torch.randint(0, seqlen_kv, (seqlen_q,), device=DEVICE, generator=random)
        q = 64 * k[:, chosen].repeat_interleave(heads_q // heads_kv, 2)
    # About as large as O, whose error would else be that of a rounded mean.
    v_mean = 0.03 * normal(batch, heads_kv, headdim) if seed % 2 else None
    return Inputs(q, k, v, lab.scale_rows, lab.scale_keys, random, v_log2, v_mean)


# ---- what is right


def visible(rows, seqlen_q, seqlen_kv, mask):
    kind, top_left, left, right = mask
    place = rows[:, None] + (0 if top_left else seqlen_kv - seqlen_q)
    key = torch.arange(seqlen_kv, device=DEVICE)[None]
    seen = torch.ones(len(rows), seqlen_kv, dtype=torch.bool, device=DEVICE)
    if kind == 1 or (kind == 2 and right >= 0):
        seen &= key <= place + max(right, 0)
    if kind == 2 and left >= 0:
        seen &= key >= place - left
    return seen


def reference(x, mask, rows_at_once=2048):
    """O and LSE in fp64."""
    q, k, v = (t.transpose(1, 2) for t in x.real())
    group = q.shape[1] // k.shape[1]
    k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
    outputs, sums = [], []
    for first in range(0, q.shape[2], rows_at_once):
        some = q[:, :, first:first + rows_at_once]
        rows = torch.arange(first, first + some.shape[2], device=DEVICE)
        seen = visible(rows, q.shape[2], k.shape[2], mask)
        scores = ((some @ k.transpose(-1, -2)) / math.sqrt(q.shape[3])).masked_fill(~seen, -math.inf)
        lse = torch.logsumexp(scores, -1)
        sees = seen.any(-1)[:, None]
        o = torch.where(sees, torch.exp(scores - lse[..., None]), 0.0) @ v
        if x.v_mean is not None:
            o = o + torch.where(sees, x.v_mean.double().repeat_interleave(group, 1)[:, :, None], 0.0)
        outputs.append(o)
        sums.append(lse)
    return torch.cat(outputs, 2).transpose(1, 2), torch.cat(sums, 2)


def error_of(o, want):
    return ((o.double() - want).norm() / want.norm().clamp(min=1e-9)).item()


# ---- parts: each gives lines on what is wrong, by variant


def trace(lab, i):
    """Each query sees one key. V holds a digit of the key's or of the channel's number at a time."""
    headdim, keys, rows = lab.headdim(i), lab.scale_keys, 192
    print(f"  trace {lab.names[i]}", flush=True)
    random = generator_of(1)
    k = torch.randn(1, keys, 1, headdim, device=DEVICE, generator=random).sign()
    chosen = torch.randperm(keys, device=DEVICE, generator=random)[:rows]
    read = []
    for number in (torch.arange(keys, device=DEVICE)[:, None].expand(keys, headdim),
                   torch.arange(headdim, device=DEVICE)[None].expand(keys, headdim)):
        digits = []
        for digit in (number % 16, number // 16):
            x = Inputs(64 * k[:, chosen], k, digit[None, :, None].float(), lab.scale_rows, lab.scale_keys, None)
            # Scales are powers of two, so that digits are told exactly.
            x.v, x.v_scale = digit[None, :, None].float().to(E4M3), torch.ones_like(x.v_scale)
            o, lse, _ = lab.run(i, x, (0, 0, -1, -1))
            digits.append(o[0, :, 0].float())
        read.append(digits[0] + 16 * digits[1])
    want = (chosen[:, None].expand(rows, headdim), torch.arange(headdim, device=DEVICE)[None].expand(rows, headdim))
    wrong = ~(((read[0] - want[0]).abs() < 0.1) & ((read[1] - want[1]).abs() < 0.1))  # NaN is wrong
    lse_error = (lse[0, 0] - 64 * math.sqrt(headdim)).abs().max().item()
    lines = []
    if wrong.any():
        places = wrong.nonzero()[:6].tolist()
        found = ", ".join(f"row {r} channel {c} holds key {read[0][r, c].item():g} channel {read[1][r, c].item():g} "
                          f"for key {chosen[r].item()}" for r, c in places)
        lines.append(f"trace: {int(wrong.sum())} of {wrong.numel()} elements are others: {found}")
    if not lse_error < 1e-3 * 64 * math.sqrt(headdim):
        lines.append(f"trace: LSE is off by up to {lse_error:.2g} of {64 * math.sqrt(headdim):g}")
    return lines


def cases():
    for kind in MOST_ERROR:
        for number, shape in enumerate(SHAPES):
            for mask in MASKS:
                if kind != "normal" and (shape[1] < 500 or mask[0] == 2):
                    continue
                if kind == "one-hot" and (mask[0] != 0 or shape[2] < 100):
                    continue  # the key must be seen
                yield kind, number, shape, mask


def check(lab, variants, headdim):
    lines = {i: [] for i in variants}
    most = {i: {} for i in variants}
    for kind, number, shape, mask in cases():
        width = headdim if number % 2 == 0 or kind == "one-hot" else headdim - (16 if number % 4 == 1 else 48)
        x = inputs(lab, shape, max(width, 16), kind, number)
        want, want_lse = reference(x, mask)
        finite = torch.isfinite(want_lse)
        for i in variants:
            case = f"{kind} {shape} mask {mask} head dim {x.q.shape[3]}"
            if len(lines[i]) > 4:
                continue
            print(f"  {lab.names[i]} {case}", end="\r", flush=True)
            o, lse, same = lab.run(i, x, mask, 3)
            error = error_of(o, want)
            apart = ((lse.double() - want_lse).abs() / (1 + want_lse.abs()))[finite]
            lse_error = apart.max().item() if apart.numel() else 0.0
            empty_right = torch.equal(torch.isneginf(lse), ~finite)
            most[i][kind] = max(most[i].get(kind, 0.0), error)
            if not (error < MOST_ERROR[kind] and lse_error < MOST_LSE_ERROR * x.q.shape[3] and empty_right and same):
                lines[i].append(f"{case}: error {error:.1e}, LSE {lse_error:.1e}, rows without keys "
                                f"{'right' if empty_right else 'wrong'}, repeats {'equal' if same else 'differ'}")
    print(" " * 110, end="\r")
    for i in variants:
        print(f"  {lab.names[i]}: most error {', '.join(f'{kind} {error:.1e}' for kind, error in most[i].items())}")
    return lines


def biased(lab, variants, headdim):
    lines = {i: [] for i in variants}
    for seqlen, causal in BIASED:
        mask = (int(causal), 0, -1, -1)
        x = inputs(lab, (1, seqlen, seqlen, 1, 1), headdim, "biased", 2)
        want, _ = reference(x, mask)
        words = []
        for i in variants:
            o, _, _ = lab.run(i, x, mask)
            error = error_of(o, want)
            words.append(f"{lab.names[i]} {error:.1e}")
            if lab.exact(i) and not error < MOST_BIASED_ERROR:
                lines[i].append(f"biased, {seqlen} keys{' causal' if causal else ''}: error {error:.1e}")
        print(f"  biased {seqlen}{' causal' if causal else ''}: {', '.join(words)}", flush=True)
    return lines


# ---- times


def cell(lab, variants, headdim, causal, seqlen, flush):
    """Median times in milliseconds, by name, of the variants and of cuDNN in bf16."""
    heads = HIDDEN // headdim
    random = generator_of(0)
    q, k, v = (torch.randn(TOKENS // seqlen, seqlen, heads, headdim, device=DEVICE, generator=random)
               for _ in range(3))
    x = Inputs(q, k, v, lab.scale_rows, lab.scale_keys, None)
    swapped = [t.bfloat16().transpose(1, 2) for t in (q, k, v)]
    o = torch.empty(q.shape, device=DEVICE, dtype=torch.bfloat16)
    lse = torch.empty(q.shape[0], heads, seqlen, device=DEVICE)

    def cudnn():
        with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
            torch.nn.functional.scaled_dot_product_attention(*swapped, is_causal=causal)

    prepared = {lab.names[i]: lab.prepare(i, x, o, lse, (int(causal), 0, -1, -1)) for i in variants}
    runs = {"cudnn bf16": cudnn, **{name: lambda p=p: lab.launch(p) for name, p in prepared.items()}}
    times = {name: [] for name in runs}
    for run in runs.values():
        run()
    for _ in range(ROUNDS):
        events = []
        for name, run in runs.items():
            for _ in range(SAMPLES):
                flush.zero_()
                pair = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
                pair[0].record()
                run()
                pair[1].record()
                events.append((name, pair))
        wait()
        for name, (first, last) in events:
            times[name].append(first.elapsed_time(last))
    for p in prepared.values():
        lab.library.lab_free(p)
    return {name: statistics.median(values) for name, values in times.items()}


def time_all(lab, variants, headdim, flush):
    results = []
    for causal in (False, True):
        by_seqlen = {seqlen: cell(lab, variants, headdim, causal, seqlen, flush) for seqlen in SEQLENS}
        print(f"\nhead dim {headdim} {'causal' if causal else 'full'}: lengths {SEQLENS}")
        for name in by_seqlen[SEQLENS[0]]:
            words, ratios = [], []
            for seqlen, times in by_seqlen.items():
                flops = 4 * TOKENS * seqlen * HIDDEN * (0.5 if causal else 1)
                ratios.append(times["cudnn bf16"] / times[name])
                words.append(f"{flops / times[name] / 1e9:5.0f} ({ratios[-1]:.2f})")
                results.append({"variant": name, "headdim": headdim, "causal": causal, "seqlen": seqlen,
                                "ms": times[name]})
            print(f"  {name:24} {'  '.join(words)}   mean {statistics.geometric_mean(ratios):.3f}", flush=True)
    return results


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", type=pathlib.Path, required=True)
    parser.add_argument("--only", default="", help="variants, separated by commas")
    parser.add_argument("--parts", default="trace,check,biased,time")
    parser.add_argument("-o", "--output", type=pathlib.Path)
    arguments = parser.parse_args()
    lab = Lab(arguments.library.resolve())
    only = [name for name in arguments.only.split(",") if name]
    for name in only:
        if name not in lab.names:
            sys.exit(f"fp8_lab: there is no variant {name}; there are {', '.join(lab.names)}")
    parts = arguments.parts.split(",")
    chosen = [i for i, name in enumerate(lab.names) if not only or name in only]
    failed, results = False, []
    for headdim in sorted({lab.headdim(i) for i in chosen}):
        right = [i for i in chosen if lab.headdim(i) == headdim]
        for part, run in (("trace", lambda: {i: trace(lab, i) for i in right}),
                          ("check", lambda: check(lab, right, headdim)),
                          ("biased", lambda: biased(lab, right, headdim))):
            if part not in parts or not right:
                continue
            wrong = {i: lines for i, lines in run().items() if lines}
            for i, lines in wrong.items():
                print(f"{lab.names[i]}: {part} is wrong\n    " + "\n    ".join(lines))
            failed = failed or bool(wrong)
            right = [i for i in right if i not in wrong]
            print(f"head dim {headdim}, {part}: {', '.join(lab.names[i] for i in right) or 'none'} right", flush=True)
        if "time" in parts and right:
            results += time_all(lab, right, headdim, torch.empty(FLUSH_BYTES, dtype=torch.uint8, device=DEVICE))
    if arguments.output:
        arguments.output.write_text(json.dumps(results, indent=1) + "\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
