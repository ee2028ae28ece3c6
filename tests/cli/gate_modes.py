#!/usr/bin/env python3
"""The gate's measuring modes, with executables that only seem to measure.

    gate_modes.py ROOFLASH [unittest arguments]

A seeming executable is a script: it runs ROOFLASH on a simulated device, then turns the record's rows
into measured ones with noise that depends on the seed, some kernels slower by a known factor.
"""
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import xml.etree.ElementTree as xml

ROOFLASH = os.path.abspath(sys.argv.pop(1))
SHAPE = ["--headdim", "64", "--batch-size", "1", "--nheads", "2", "--causal", "true", "--device",
         "sim:h200"]
TWO = ["--kernel", "naive,fa2", "--seqlen", "64,128", *SHAPE]
FEW = ["--rounds", "6", "--confirm-rounds", "6"]

SEEMING = r'''#!{python}
import json, os, random, signal, subprocess, sys
argv = sys.argv[1:]
settings = {settings!r}
if argv[0] == "run" and "--dry-run" not in argv and settings.get("dies"):
    os.kill(os.getpid(), signal.SIGSEGV)
if argv[0] != "run" or "--dry-run" in argv:
    sys.exit(subprocess.run([{rooflash!r}] + argv).returncode)
at = argv.index("-o") + 1
path = argv[at]
argv[at] += ".simulated.json"
done = subprocess.run([{rooflash!r}] + argv)
seed = argv[argv.index("--seed") + 1]
record = json.load(open(argv[at]))
if "schema" in settings:
    record["schema"] = settings["schema"]
for device in record["environment"]["devices"]:
    device.update(device="cuda:0", simulated=False, name=settings.get("gpu", device["name"]))
for roofs in record["ceilings"]:
    roofs.update(device="cuda:0", source="measured")
for row in record["rows"]:
    row.update(device="cuda:0", simulated=False, gpu=settings.get("gpu", row["gpu"]))
    if not row["time_us"]:
        continue
    noise = random.Random(f"{{path[-8:]}} {{seed}} {{row['case']}}").gauss(0, 1)
    factor = settings.get("slower", {{}}).get(row["kernel"], 1)
    if settings.get("drifts") and int(seed) > 6:
        factor = 1
    time = 1000 * factor * (1 + settings.get("noise", 0.002) * noise)
    row["time_us"].update(median=time, min=time, ci95=[time, time], samples=[time], timer="event")
    if row["kernel"] in settings.get("wrong", []):
        row.update(status="wrong", reason="made up", time_us=None)
    for key in row["derived"]:
        row["derived"][key] = None
        row["missing"]["derived." + key] = "made up"
if settings.get("drops"):
    record["rows"] = [row for row in record["rows"] if row["kernel"] != settings["drops"]]
json.dump(record, open(argv[at], "w"))
os.replace(argv[at], path)
sys.exit(done.returncode)
'''


class GateModes(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.environment = dict(os.environ, HOME=self.folder, XDG_STATE_HOME=self.path("state"),
                                CUDA_VISIBLE_DEVICES="-1", COLUMNS="120", TERM="dumb")
        for name in ("GITHUB_ACTIONS", "GITLAB_CI", "ROOFLASH_WORKER", "ROOFLASH_BASELINE_DIR"):
            self.environment.pop(name, None)

    def path(self, name):
        return os.path.join(self.folder, name)

    def executable(self, name, **settings):
        path = self.path(name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(SEEMING.format(python=sys.executable, rooflash=ROOFLASH,
                                      settings=settings))
        os.chmod(path, 0o755)
        return path

    def gate(self, *words, code=0, command="gate"):
        done = subprocess.run([ROOFLASH, command, *words], cwd=self.folder, env=self.environment,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=200,
                              check=False)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def verdict(self, *words, code=0):
        self.gate(*words, "--verdict", "verdict.json", code=code)
        with open(self.path("verdict.json"), encoding="utf-8") as file:
            return json.load(file)


class Paired(GateModes):
    def test_the_same_twice_passes_and_needs_no_second_stage(self):
        old, new = self.executable("old"), self.executable("new")
        verdict = self.verdict("--against-exe", old, "--exe", new, *TWO, *FEW, "-o", "out")
        self.assertEqual(verdict["counts"]["same"], 4)
        self.assertEqual(verdict["mode"], "paired")
        self.assertEqual(len(verdict["cases"][0]["time"]["base_us"]), 6)
        self.assertTrue(verdict["cases"][0]["time"]["paired"])
        # The records of both sides stay, and gate the same way offline.
        self.gate("out/old.json", "out/new.json", "--paired")
        self.assertFalse(os.path.exists(self.path("out/rounds")))

    def test_three_percent_of_one_family_are_found_and_confirmed(self):
        old, new = self.executable("old"), self.executable("new", slower={"fa2": 1.03})
        verdict = self.verdict("--against-exe", old, "--exe", new, *TWO, *FEW, code=1)
        self.assertEqual(verdict["counts"]["slower"], 2)
        self.assertEqual(verdict["counts"]["same"], 2)
        rounds = {case["kernel"]: len(case["time"]["new_us"]) for case in verdict["cases"]}
        self.assertEqual(rounds, {"fa2": 12, "naive": 6})
        families = {family["kernel"]: family["verdict"] for family in verdict["families"]}
        self.assertEqual(families, {"fa2": "slower", "naive": "same"})

    def test_what_is_gone_in_the_second_stage_is_unsure(self):
        old, new = self.executable("old"), self.executable("new", slower={"fa2": 1.10}, drifts=True)
        verdict = self.verdict("--against-exe", old, "--exe", new, *TWO, *FEW)
        self.assertEqual(verdict["counts"]["slower"], 0)
        self.assertEqual(verdict["counts"]["same"], 2)

    def test_faster_never_fails(self):
        old, new = self.executable("old", slower={"fa2": 1.5}), self.executable("new")
        verdict = self.verdict("--against-exe", old, "--exe", new, *TWO, *FEW)
        self.assertEqual(verdict["counts"]["faster"], 2)

    def test_wrong_beats_all_and_gone_is_incomplete(self):
        old = self.executable("old")
        new = self.executable("new", slower={"fa2": 1.5}, wrong=["naive"])
        self.assertEqual(self.verdict("--against-exe", old, "--exe", new, *TWO, *FEW,
                                      code=3)["counts"]["wrong"], 2)
        new = self.executable("new", drops="naive")
        self.assertEqual(self.verdict("--against-exe", old, "--exe", new, *TWO, *FEW,
                                      code=6)["counts"]["gone"], 2)

    def test_simulated_devices_need_one_round(self):
        verdict = self.verdict("--against-exe", ROOFLASH, *TWO)
        self.assertEqual(verdict["counts"]["same"], 4)
        self.assertEqual(len(verdict["cases"][0]["time"]["base_us"]), 1)

    def test_other_gpu_is_not_comparable(self):
        old, new = self.executable("old", gpu="NVIDIA H100 PCIe"), self.executable("new")
        words = ["--against-exe", old, "--exe", new, *TWO, *FEW]
        self.assertIn("GPU: base NVIDIA H100 PCIe, new NVIDIA H200", self.gate(*words, code=4))
        self.assertIn("->", self.gate(*words, "--on-mismatch", "warn", "--all"))

    def test_executables_that_are_none(self):
        self.assertIn("No such file", self.gate("--against-exe", "absent", *TWO, code=2))
        self.assertIn("is a folder", self.gate("--against-exe", self.folder, *TWO, code=2))
        with open(self.path("plain"), "w", encoding="utf-8") as file:
            file.write("text")
        self.assertIn("Permission denied", self.gate("--against-exe", "plain", *TWO, code=2))
        self.assertIn("is no rooflash", self.gate("--against-exe", "/bin/true", *TWO, code=2))
        os.chmod(self.path("plain"), 0o755)
        self.assertIn("is no rooflash", self.gate("--against-exe", "./plain", *TWO, code=2))

    def test_a_crash_of_the_executable_is_incomplete_and_keeps_the_rounds(self):
        old, new = self.executable("old"), self.executable("new", dies=True)
        text = self.gate("--against-exe", old, "--exe", new, *TWO, *FEW, "-o", "out", code=6)
        self.assertIn("the new executable gave no record: SIGSEGV", text)
        self.assertTrue(os.path.exists(self.path("out/rounds/screen/000-old.json")))

    def test_another_schema_is_refused(self):
        old = self.executable("old", schema=2)
        text = self.gate("--against-exe", old, *TWO, *FEW, code=2)
        self.assertIn("schema 2 is not one this version reads", text)

    def test_bad_flags_are_refused_before_any_round(self):
        old = self.executable("old")
        self.assertIn("--l2: 'hot' is not one of",
                      self.gate("--against-exe", old, *TWO, "--l2", "hot", "-o", "out", code=2))
        self.assertIn("--kernel", self.gate("--against-exe", old, "--kernel", "none", code=2))
        self.assertFalse(os.path.exists(self.path("out/rounds/screen")))

    def test_an_own_worker_of_the_other_executable(self):
        """ROOFLASH_WORKER is of this executable; the other one takes the worker beside it."""
        shutil.copy(os.path.join(os.path.dirname(ROOFLASH), "rooflash-worker"), self.path("mine"))
        self.environment["ROOFLASH_WORKER"] = self.path("mine")
        other = self.path("other")
        os.mkdir(other)
        shutil.copy(ROOFLASH, other)
        text = self.gate("--against-exe", "other/rooflash", *TWO, code=2)
        self.assertIn("other/rooflash-worker cannot be run", text)
        shutil.copy(os.path.join(os.path.dirname(ROOFLASH), "rooflash-worker"), other)
        self.gate("--against-exe", "other/rooflash", *TWO)

    def test_interrupted_and_resumed(self):
        old, new = self.executable("old"), self.executable("new")
        words = ["--against-exe", old, "--exe", new, *TWO, *FEW, "-o", "out"]
        running = subprocess.Popen([ROOFLASH, "gate", *words], cwd=self.folder,
                                   env=self.environment, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        second = self.path("out/rounds/screen/001-new.json")
        while not os.path.exists(second) and running.poll() is None:
            time.sleep(0.01)
        self.assertIn("another gate is measuring in out", self.gate(*words, code=2))
        running.send_signal(signal.SIGINT)
        _, text = running.communicate(timeout=60)
        self.assertEqual(running.returncode, 130, text)
        self.assertIn("--resume", text)
        # Another gate does not mix with these rounds.
        self.assertIn("were measured there", self.gate(*words, "--seed", "5", "--resume", code=2))
        kept = os.stat(second).st_mtime_ns
        with open(second, encoding="utf-8") as file:
            first = {row["case"]: row["time_us"]["median"] for row in json.load(file)["rows"]}
        self.gate(*words, "--resume")
        with open(self.path("out/new.json"), encoding="utf-8") as file:
            rows = [row for row in json.load(file)["rows"] if row["round"] == 1]
        self.assertEqual({row["case"]: row["time_us"]["median"] for row in rows}, first)
        self.assertLess(kept, time.time_ns())

    def test_rounds_of_an_unfinished_gate_are_moved_aside(self):
        old, new = self.executable("old"), self.executable("new", dies=True)
        words = ["--against-exe", old, "--exe", new, *TWO, *FEW, "-o", "out"]
        self.gate(*words, code=6)
        new = self.executable("new")
        self.assertIn("rounds.old", self.gate(*words))
        os.mkdir(self.path("out/rounds"))
        self.assertIn("is not a gate's", self.gate(*words, code=2))

    def test_the_files_for_ci(self):
        old, new = self.executable("old"), self.executable("new", slower={"fa2": 1.2})
        self.environment.update(GITHUB_ACTIONS="true", GITHUB_STEP_SUMMARY=self.path("summary"),
                                GITHUB_OUTPUT=self.path("output"))
        text = self.gate("--against-exe", old, "--exe", new, *TWO, *FEW, "--ci", "auto", "--junit",
                         "junit.xml", code=1)
        self.assertEqual(text.count("::error title="), 2)
        with open(self.path("summary"), encoding="utf-8") as file:
            self.assertIn("GATE FAILED: 2 slower, 2 same", file.read())
        with open(self.path("output"), encoding="utf-8") as file:
            self.assertEqual(file.read(), "verdict=failed\nexit_code=1\nslower=2\n")
        root = xml.parse(self.path("junit.xml")).getroot()
        self.assertEqual(root.attrib["failures"], "4")  # two cases, their family, the gate


class Stored(GateModes):
    def measure(self, name, rounds=7, **settings):
        """A record of `rounds` rounds of a seeming executable."""
        path = self.path(name + ".json")
        exe = self.executable(name, **settings)
        self.gate("--against-exe", exe, "--exe", exe, *TWO, "--rounds", str(rounds),
                  "--confirm-rounds", "0", "-o", "measured")
        shutil.move(self.path("measured/new.json"), path)
        return path

    def test_life_of_a_baseline(self):
        self.measure("base")
        self.measure("slow", slower={"fa2": 1.2})
        save = ["save", "main", "base.json"]
        self.assertIn("saved baselines/main/nvidia-h200-132-sms/flags.json: 7 rounds",
                      self.gate(*save, command="baseline"))
        self.assertIn("exists", self.gate(*save, command="baseline", code=2))
        self.assertIn("main", self.gate("list", command="baseline"))
        self.gate("--baseline", "main", "base.json")
        self.assertIn("2 slower", self.gate("--baseline", "main", "slow.json", code=1))
        self.assertIn("holds these rounds already",
                      self.gate("promote", "main", "base.json", command="baseline", code=4))
        self.gate("promote", "main", "slow.json", command="baseline")
        with open(self.path("baselines/main/nvidia-h200-132-sms/flags.json"),
                  encoding="utf-8") as file:
            rows = json.load(file)["rows"]
        self.assertEqual({row["round"] for row in rows}, set(range(10)))
        self.assertIn("10 rounds", self.gate("show", "main", command="baseline"))
        self.gate("rm", "main", command="baseline")
        self.assertFalse(os.path.exists(self.path("baselines/main")))
        self.assertIn("no baseline", self.gate("list", command="baseline"))
        self.gate("promote", "main", "base.json", "--baseline-dir", "nowhere", command="baseline", code=4)
        self.assertFalse(os.path.exists(self.path("nowhere")))

    def test_promoted_at_the_same_time(self):
        with open(self.measure("base"), encoding="utf-8") as file:
            record = json.load(file)
        rows = [row for row in record["rows"] if row["round"] == 0]
        for number in range(6):
            for row in rows:  # another measurement, not the same once more
                time = row["time_us"]["median"] + number
                row["time_us"].update(median=time, min=time, ci95=[time, time], samples=[time])
            record["rows"] = rows
            record["environment"]["date"] = f"2026-01-0{number + 1}T00:00:00Z"
            with open(self.path(f"{number}.json"), "w", encoding="utf-8") as file:
                json.dump(record, file)
        self.gate("save", "main", "0.json", command="baseline")
        promoting = [subprocess.Popen([ROOFLASH, "baseline", "promote", "main", f"{number}.json", "-q"],
                                      cwd=self.folder, env=self.environment) for number in range(1, 6)]
        self.assertEqual([process.wait(timeout=60) for process in promoting], [0] * 5)
        with open(self.path("baselines/main/nvidia-h200-132-sms/flags.json"),
                  encoding="utf-8") as file:
            rows = json.load(file)["rows"]
        self.assertEqual({row["round"] for row in rows}, set(range(6)))

    def test_measured_now(self):
        self.gate("save", "main", self.measure("base"), command="baseline")
        slow = self.executable("slow", slower={"naive": 1.2})
        # The simulated device that the flags name has no baseline; it is refused before measuring.
        text = self.gate("--baseline", "main", "--exe", slow, *TWO, code=4)
        self.assertIn("holds nothing of NVIDIA H200, 132 SMs, simulated: other GPU", text)

    def test_measured_now_on_a_simulated_device(self):
        self.gate(*TWO, "-o", "sim.json", command="run")
        self.gate("save", "main", "sim.json", command="baseline")
        self.assertIn("4 same", self.gate("--baseline", "main", *TWO))
        self.assertIn("other seed", self.gate("--baseline", "main", *TWO, "--seed", "2", code=4))


class Calibrate(GateModes):
    def test_noise_and_proposed_rules(self):
        exe = self.executable("self", noise=0.01)
        text = self.gate("--calibrate", "--exe", exe, "--kernel", "fa2", "--seqlen", "64", *SHAPE,
                         "--rounds", "8", "--save-rules", "rules.json")
        self.assertIn("found in 7/19", text)
        with open(self.path("rules.json"), encoding="utf-8") as file:
            rules = json.load(file)
        self.assertEqual(rules["defaults"]["threshold"], "2%")
        self.gate("--against-exe", ROOFLASH, *TWO, "--rules", "rules.json")


unittest.main()
