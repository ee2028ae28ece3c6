#!/usr/bin/env python3
"""Proves the paired gate on a card: no false alarm, and known slow-downs found.

    gate_study.py measure ROOFLASH -o docs/gate_study.json     interleaved rounds of four arms
    gate_study.py table docs/gate_study.json ROOFLASH          gates drawn from them, as a table
    gate_study.py selftest ROOFLASH                            the same on made-up noise, no GPU

`measure` needs a build with -DROOFLASH_SLOWDOWN=ON. Its arms are one executable: twice as it is, and with
3 % and 5 % added to the time of one family. All arms launch the same kernels, so that they differ in
nothing but the wait. It is stopped after --seconds and keeps the rounds that are whole; --resume adds
more. The file holds a median and its cycles a case, arm and round; no samples.

`table` draws rounds at random, without repeats inside a gate: 7 screen, 12 confirm, as `rooflash gate
--against-exe` does, and hands them to `rooflash gate --paired`. Two gates of a draw share no round.
--docs writes the table into a file. --check fails where a gate without a change says slower, where 5 % is
missed, or 3 % in over one of ten, and where the table in that file is another.
"""
import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import textwrap
import time

ARMS = {"base": 0.0, "same": 0.0, "slow3": 0.03, "slow5": 0.05}
SHAPES = ["--headdim", "64,128", "--causal", "both", "--seqlen", "512,2k,8k"]
SCREEN, CONFIRM = 7, 12
HEADING = "## How well it tells"


def save(study, path):
    with open(path + ".new", "w", encoding="utf-8") as file:
        json.dump(study, file, separators=(",", ":"))
        file.write("\n")
    os.replace(path + ".new", path)


def run(rooflash, words, environment=None, codes=(0,)):
    done = subprocess.run([rooflash, *words], env=environment, capture_output=True, text=True,
                          check=False)
    if done.returncode not in codes:
        sys.exit(f"gate_study: {' '.join(words[:3])} ... ended with {done.returncode}\n{done.stderr}")
    return done


def measure(options):
    words = ["--kernel", options.kernel, *SHAPES]
    study = {"words": words, "kernel": options.kernel, "arms": {arm: {} for arm in ARMS}}
    if options.resume and os.path.exists(options.output):
        with open(options.output, encoding="utf-8") as file:
            study = json.load(file)
        if study["words"] != words:
            sys.exit(f"gate_study: {options.output} holds other cases")
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        for number in range(rounds_of(study), options.rounds):
            order = random.Random(number).sample(list(ARMS), len(ARMS))
            whole = {}
            for arm in order:
                path = os.path.join(folder, "a.json")
                # One seed a round: all arms meet the cases in one order, with the same inputs.
                run(options.rooflash,
                    ["run", *words, "--device", options.device, "--seed", str(number + 1), "--counters",
                     "none", "--verify", "on" if number == 0 else "off", "--max-time", "30ms", "-o", path,
                     "--quiet"],
                    dict(os.environ, XDG_STATE_HOME=folder,
                         ROOFLASH_SLOWDOWN=f"{options.kernel}={ARMS[arm]}"))
                with open(path, encoding="utf-8") as file:
                    whole[arm] = json.load(file)
            add_round(study, whole)
            save(study, options.output)
            spent = time.monotonic() - start
            print(f"round {number + 1} of {options.rounds}, {spent:.0f} s", file=sys.stderr)
            if spent > options.seconds:
                break
    check_slowdown(study)


def add_round(study, records):
    for arm, record in records.items():
        study.setdefault("gpu", record["rows"][0]["gpu"])
        study.setdefault("driver", record["environment"]["driver"])
        study.setdefault("commit", record["tool"]["commit"])
        for row in record["rows"]:
            if row["status"] != "ok" or not row["time_us"]:
                sys.exit(f"gate_study: {row['case']} in arm {arm}: {row['status']} {row['reason']}")
            kept = study["arms"][arm].setdefault(row["case"], {"time_us": [], "cycles": []})
            kept["time_us"].append(float(f"{row['time_us']['median']:.6g}"))
            cycles = row["cycles"]["median"]
            kept["cycles"].append(None if cycles is None else float(f"{cycles:.7g}"))


def rounds_of(study):
    cases = study["arms"]["base"].values()
    return len(next(iter(cases))["time_us"]) if cases else 0


def ratio_of(study, arm):
    ratios = []
    for case, base in study["arms"]["base"].items():
        pairs = zip(base["time_us"], study["arms"][arm][case]["time_us"])
        ratios.append(statistics.median(new / old for old, new in pairs))
    return statistics.geometric_mean(ratios)


def check_slowdown(study):
    """A build without the slow-down would make a study of nothing."""
    if abs(ratio_of(study, "slow5") - 1.05) > 0.015:
        sys.exit(f"gate_study: the 5 % arm took {ratio_of(study, 'slow5'):.3f} times as long: is ROOFLASH "
                 "built with -DROOFLASH_SLOWDOWN=ON?")


def template(rooflash, study, folder):
    """A record with a row for each case, to be filled with the study's times."""
    path = os.path.join(folder, "template.json")
    run(rooflash, ["run", *study["words"], "--device", "sim:h200", "--counters", "none", "-o", path, "--quiet"])
    with open(path, encoding="utf-8") as file:
        record = json.load(file)
    for device in record["environment"]["devices"]:
        device.update(device="cuda:0", simulated=False, name=study["gpu"])
    record["ceilings"] = []
    for row in record["rows"]:
        row.update(device="cuda:0", simulated=False, gpu=study["gpu"])
        for key in row["derived"]:
            row["derived"][key] = None
            row["missing"]["derived." + key] = "a study keeps times alone"
    return record


def write_record(record, times, rounds, path):
    rows = []
    for row in record["rows"]:
        kept = times[row["case"]]
        for number, drawn in enumerate(rounds):
            value = kept["time_us"][drawn]
            rows.append(dict(row, round=number, cycles={"median": kept["cycles"][drawn]}, time_us=dict(
                row["time_us"], median=value, min=value, ci95=[value, value], samples=[value], n=1,
                timer="event", stopped_by="ci")))
    with open(path, "w", encoding="utf-8") as file:
        json.dump(dict(record, rows=rows), file)


def gate(rooflash, record, study, arms, rounds, folder):
    paths = []
    for arm in arms:
        paths.append(os.path.join(folder, f"{len(paths)}.json"))
        write_record(record, study["arms"][arm], rounds, paths[-1])
    verdict = os.path.join(folder, "verdict.json")
    run(rooflash, ["gate", *paths, "--paired", "--rounds", str(SCREEN), "--verdict", verdict], codes=(0, 1))
    with open(verdict, encoding="utf-8") as file:
        return json.load(file)


def noise(study):
    """Standard deviation, per case, of the log ratio between the two equal arms."""
    spread = []
    for case, base in study["arms"]["base"].items():
        same = study["arms"]["same"][case]["time_us"]
        spread.append(statistics.stdev(new / old for old, new in zip(base["time_us"], same)))
    return spread


COMPARISONS = {"the same executable": ("base", "same"), "the same, swapped": ("same", "base"),
               "3 % slower": ("base", "slow3"), "5 % slower": ("base", "slow5"),
               "3 % faster": ("slow3", "base")}


def draw_gates(options, study):
    """The verdicts of all gates drawn, by comparison."""
    count = rounds_of(study)
    per_draw = count // (SCREEN + CONFIRM)
    if per_draw == 0:
        sys.exit(f"gate_study: {count} rounds are fewer than a gate's {SCREEN + CONFIRM}")
    found = {name: [] for name in COMPARISONS}
    with tempfile.TemporaryDirectory() as folder:
        record = template(options.rooflash, study, folder)
        for draw in range(options.draws):
            order = random.Random(draw).sample(range(count), count)
            for part in range(per_draw):
                rounds = order[part * (SCREEN + CONFIRM):(part + 1) * (SCREEN + CONFIRM)]
                for name, arms in COMPARISONS.items():
                    found[name].append(gate(options.rooflash, record, study, arms, rounds, folder))
    return found


def render(study, found):
    spread = sorted(noise(study))
    cases = len(study["arms"]["base"])
    lines = [HEADING, "", textwrap.fill(
             f"Measured on {study['gpu']}, driver {study['driver']}: {rounds_of(study)} interleaved rounds of "
             f"{cases} cases of {study['kernel']} by one executable, as it is and with a wait added to the "
             f"family's kernels. From one pair of rounds to the next the ratio of two equal runs varies by "
             f"{spread[0] * 100:.2f} % to {spread[-1] * 100:.2f} % (standard deviation, by case; median "
             f"{statistics.median(spread) * 100:.2f} %). Gates of {SCREEN} + {CONFIRM} rounds drawn from these "
             f"at random, none with a round twice (`scripts/gate_study.py`, `docs/gate_study.json`):", 105), "",
             "| compared | gates | failed | cases slower | cases unsure | family slower |",
             "|---|---:|---:|---:|---:|---:|"]
    for name, verdicts in found.items():
        def mean(key, verdicts=verdicts):
            return statistics.mean(verdict["counts"][key] for verdict in verdicts)
        family = sum(one["verdict"] == "slower" for verdict in verdicts for one in verdict["families"])
        lines.append(f"| {name} | {len(verdicts)} | {sum(v['exit_code'] == 1 for v in verdicts)} | "
                     f"{mean('slower'):.1f} of {cases} | {mean('unsure'):.1f} | {family} |")
    return "\n".join(lines) + "\n"


def failures(found):
    failed = {name: sum(verdict["exit_code"] == 1 for verdict in verdicts) for name, verdicts in found.items()}
    total = len(found["3 % slower"])
    said = []
    for name in ("the same executable", "the same, swapped", "3 % faster"):
        if failed[name]:
            said.append(f"{name}: {failed[name]} of {total} gates failed")
    if failed["5 % slower"] < total:
        said.append(f"5 % slower: found in {failed['5 % slower']} of {total} gates")
    if failed["3 % slower"] < 0.9 * total:
        said.append(f"3 % slower: found in {failed['3 % slower']} of {total} gates")
    return said


def table(options, study):
    found = draw_gates(options, study)
    text = render(study, found)
    print(text)
    said = failures(found)
    if options.docs:
        with open(options.docs, encoding="utf-8") as file:
            old = file.read()
        new = old.split("\n" + HEADING)[0].rstrip("\n") + "\n\n" + text
        if not options.check:
            with open(options.docs, "w", encoding="utf-8") as file:
                file.write(new)
        elif new != old:
            said.append(f"{options.docs} is out of date: run `table` without --check")
    if options.check and said:
        sys.exit("gate_study: " + "; ".join(said))


def synthetic(rooflash, rounds, spread):
    """A study of made-up times: a drift that all arms share, noise of their own, rare late rounds."""
    draw = random.Random(1)
    words = ["--kernel", "fa2", *SHAPES]
    listed = run(rooflash, ["list", "cases", *words, "--device", "sim:h200"]).stdout
    cases = [line.split()[0] for line in listed.splitlines()]
    study = {"words": words, "kernel": "fa2", "gpu": "NVIDIA H200", "driver": "made up", "commit": "",
             "arms": {arm: {case: {"time_us": [], "cycles": []} for case in cases} for arm in ARMS}}
    drift = 0.0
    for _ in range(rounds):
        drift = 0.9 * drift + draw.gauss(0, 0.005)
        for arm, slower in ARMS.items():
            for number, case in enumerate(cases):
                late = draw.expovariate(1 / 0.03) if draw.random() < 0.03 else 0
                value = 500 * (1 + number) * (1 + slower) * (1 + drift + draw.gauss(0, spread) + late)
                study["arms"][arm][case]["time_us"].append(round(value, 3))
                study["arms"][arm][case]["cycles"].append(round(value * 1755, 1))
    return study


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    modes = parser.add_subparsers(dest="mode", required=True)
    one = modes.add_parser("measure")
    one.add_argument("rooflash")
    one.add_argument("-o", "--output", required=True)
    one.add_argument("--kernel", default="fa2", help="the family that is slowed down (default: %(default)s)")
    one.add_argument("--rounds", type=int, default=40)
    one.add_argument("--device", default="cuda:0")
    one.add_argument("--seconds", type=float, default=450, help="begin no round after this (default: %(default)s)")
    one.add_argument("--resume", action="store_true")
    one = modes.add_parser("table")
    one.add_argument("study")
    one.add_argument("rooflash")
    one.add_argument("--draws", type=int, default=50)
    one.add_argument("--docs", help="a Markdown file that gets the table as its last section")
    one.add_argument("--check", action="store_true")
    one = modes.add_parser("selftest")
    one.add_argument("rooflash")
    one.add_argument("--draws", type=int, default=4)
    options = parser.parse_args()
    options.rooflash = os.path.abspath(options.rooflash)
    if options.mode == "measure":
        measure(options)
    elif options.mode == "table":
        with open(options.study, encoding="utf-8") as file:
            table(options, json.load(file))
    else:
        options.docs, options.check = None, True
        table(options, synthetic(options.rooflash, 40, 0.005))


main()
