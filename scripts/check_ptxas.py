#!/usr/bin/env python3
"""Reads the log of a CUDA build (ptxas -v) and prints registers, shared memory and spills of each
kernel. Fails on spills in the families named with --no-spills and on ptxas notes C75xx."""

import argparse
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


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("log")
    parser.add_argument("--no-spills", default="fa2,fa3,rf,fp8", metavar="FAMILY,...",
                        help="families that may not spill (default: %(default)s)")
    options = parser.parse_args()

    with open(options.log, encoding="utf-8", errors="replace") as log:
        kernels, notes = parse(log)
    if not kernels:
        sys.exit(f"check_ptxas: {options.log} holds no ptxas output: it is not the log of a full build")

    guarded = re.compile("|".join(re.escape(f) for f in options.no_spills.split(",")))
    failed = bool(notes)
    print(f"{'sm':8} {'regs':>4} {'smem':>7} {'spills':>6}  kernel")
    for kernel, name in zip(kernels, demangled([k["symbol"] for k in kernels])):
        bad = kernel["spills"] > 0 and guarded.search(kernel["symbol"])
        failed = failed or bool(bad)
        print(f"{kernel['sm']:8} {kernel['registers'] or '?':>4} {kernel['smem']:>7} "
              f"{kernel['spills']:>6}  {name[:90]}{'   <- spills' if bad else ''}")
    for note in notes:
        print(f"note: {note}")
    print(f"{len(kernels)} kernels: " + ("FAILED" if failed else "no spill where none is allowed, no C75xx"))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
