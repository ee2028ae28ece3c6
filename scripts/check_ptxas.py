#!/usr/bin/env python3
"""Reads the log of a CUDA build (ptxas -v) and prints registers, shared memory and spills of each
kernel, and with --worker the size of its code. Fails on spills in the families named with --no-spills and
on ptxas notes C75xx, and with --against on kernels that take more than in another build, by the rules of
docs/ci.md."""

import argparse
import json
import re
import subprocess
import sys

ENTRY = re.compile(r"Compiling entry function '(\w+)' for '(\w+)'")
SPILLS = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
USED = re.compile(r"Used (\d+) registers")
SMEM = re.compile(r"(\d+) bytes smem")
NOTE = re.compile(r"\(C75\d\d\)|\bC75\d\d\b")


def parse(lines):
    """The kernels of the log as dicts, and its lines with a C75xx note."""
    kernels, notes, current = [], [], None
    for line in lines:
        if NOTE.search(line):
            notes.append(line.strip())
        if match := ENTRY.search(line):
            current = {"symbol": match[1], "sm": match[2], "spills": 0, "registers": None, "smem": 0}
            kernels.append(current)
        elif current and (match := SPILLS.search(line)) and current["registers"] is None:
            current["spills"] = int(match[2]) + int(match[3])
        elif current and (match := USED.search(line)):
            current["registers"] = int(match[1])
            smem = SMEM.search(line)
            current["smem"] = int(smem[1]) if smem else 0
            current = None
    return kernels, notes


def demangled(symbols):
    text = subprocess.run(["c++filt"], input="\n".join(symbols), capture_output=True, text=True,
                          check=True).stdout
    # The parameter list tells nothing; the namespaces are the same everywhere.
    return [re.sub(r"^void |rooflash::|\(anonymous namespace\)::|\(rooflash.*$|\([^()]*\)$", "", name)
            for name in text.splitlines()]


# What a kernel may take more without a change on the card: registers are handed out by eights, shared
# memory by 128 bytes. Of code a share.
ALLOWED = {"registers": 7, "spills": 0, "smem": 127}
ALLOWED_CODE = 0.05


def code_sizes(worker):
    """Bytes by symbol and architecture, of the kernels in a rooflash-worker."""
    done = subprocess.run([worker, "--code-sizes"], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"check_ptxas: {worker} --code-sizes ended with {done.returncode}:\n{done.stderr}")
    kernels = [json.loads(line) for line in done.stdout.splitlines()]
    return {(kernel["symbol"], kernel["sm"]): kernel["code_bytes"] for kernel in kernels}


def read(path, worker):
    with open(path, encoding="utf-8", errors="replace") as log:
        kernels, notes = parse(log)
    if not kernels:
        sys.exit(f"check_ptxas: {path} holds no ptxas output: it is not the log of a full build")
    sizes = code_sizes(worker) if worker else {}
    for kernel in kernels:
        kernel["code"] = sizes.get((kernel["symbol"], int(re.sub(r"\D", "", kernel["sm"]))))
    return kernels, notes


def grown(kernels, base):
    """Lines about the kernels that take more than in `base`, and how many kernels both have."""
    before = {(kernel["symbol"], kernel["sm"]): kernel for kernel in base}
    both = [kernel for kernel in kernels if (kernel["symbol"], kernel["sm"]) in before]
    lines = []
    for kernel, name in zip(both, demangled([k["symbol"] for k in both])):
        old = before[kernel["symbol"], kernel["sm"]]
        for figure, allowed in ALLOWED.items():
            if (kernel[figure] or 0) > (old[figure] or 0) + allowed:
                lines.append(f"{kernel['sm']} {name[:90]}: {figure} {old[figure]} to {kernel[figure]}")
        if kernel["code"] and old["code"] and kernel["code"] > old["code"] * (1 + ALLOWED_CODE):
            lines.append(f"{kernel['sm']} {name[:90]}: code {old['code']} to {kernel['code']} bytes")
    return lines, len(both)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("log")
    parser.add_argument("--no-spills", default="sdpa,fa1,fa2,fa3,rf,fp8", metavar="FAMILY,...",
                        help="families that may not spill (default: %(default)s)")
    parser.add_argument("--worker", help="rooflash-worker of this build, for the size of its code")
    parser.add_argument("--against", metavar="LOG", help="of the build to hold against")
    parser.add_argument("--against-worker", metavar="WORKER", help="rooflash-worker of that build")
    options = parser.parse_args()

    kernels, notes = read(options.log, options.worker)

    guarded = re.compile("|".join(re.escape(f) for f in options.no_spills.split(",")))
    failed = bool(notes)
    print(f"{'sm':8} {'regs':>4} {'smem':>7} {'spills':>6} {'code':>6}  kernel")
    for kernel, name in zip(kernels, demangled([k["symbol"] for k in kernels])):
        bad = kernel["spills"] > 0 and guarded.search(kernel["symbol"])
        failed = failed or bool(bad)
        print(f"{kernel['sm']:8} {kernel['registers'] or '?':>4} {kernel['smem']:>7} {kernel['spills']:>6} "
              f"{kernel['code'] or '?':>6}  {name[:90]}{'   <- spills' if bad else ''}")
    for note in notes:
        print(f"note: {note}")
    unread = sum(kernel["code"] is None for kernel in kernels) if options.worker else 0
    if unread:
        failed = True
        print(f"{unread} kernels of the log have no code in {options.worker}")
    if options.against:
        more, both = grown(kernels, read(options.against, options.against_worker)[0])
        failed = failed or bool(more) or both == 0
        print(f"{both} kernels in both builds, {len(more)} figures grown")
        for line in more:
            print(f"grown: {line}")
    print(f"{len(kernels)} kernels: " + ("FAILED" if failed else "no fault"))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
