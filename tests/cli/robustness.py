#!/usr/bin/env python3
"""What may die and what must survive: workers and the driver are killed at random points.

    robustness.py ROOFLASH [unittest arguments]

Finished rows stay byte-identical, none is rerun or lost, and no process is left behind.
ROOFLASH_TEST_DEVICE names the device (default sim:h200); cuda:0 kills real workers.
"""
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import uuid

ROOFLASH = os.path.abspath(sys.argv.pop(1))
DEVICE = os.environ.get("ROOFLASH_TEST_DEVICE", "sim:h200")
SIMULATED = DEVICE.startswith("sim:")
SHAPE = ["--dtype", "fp16", "--headdim", "64", "--batch-size", "1", "--nheads", "1", "--causal",
         "false"]
# What the caller of this script ignores, rooflash would leave ignored.
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, signal.SIG_DFL)
# Eight cases of 0.3 s.
SLOW = SHAPE + ["--kernel", "test_slow", "--seqlen", "16:128:16"]
SLOW_CASES = 8
# Long enough for the first launch in a fresh CUDA context.
TIMEOUT, HANG = (("500ms", "no result after 0.9 s, in phase verify") if SIMULATED else
                 ("5s", "no result after 5.4 s, in phase verify"))
# A worker that dies or hangs in the phase "counters", which the simulated device does not have.
COUNTING_WORKER = """#!/usr/bin/env python3
import json, os, subprocess, sys, time
real = subprocess.Popen([os.environ["REAL_WORKER"]], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                        text=True, bufsize=1)
for line in sys.stdin:
    request = json.loads(line)
    real.stdin.write(line)
    while True:
        reply = real.stdout.readline()
        kind = json.loads(reply)["type"]
        if kind == "row" and request["request"]["options"]["counters"] != "none":
            print(json.dumps({"type": "phase", "index": request["request"]["index"],
                              "phase": "counters"}), flush=True)
            %s
        print(reply, end="", flush=True)
        if kind != "phase":
            break
"""


def rows_of(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)["rows"]


def row_lines(path):
    """The rows of a record or journal as text, keyed by case and device."""
    lines = {}
    with open(path, encoding="utf-8") as file:
        for line in file:
            text = line.strip().rstrip(",")
            if text.startswith('{"case":') and text.endswith("}"):
                row = json.loads(text)
                lines[row["case"], row["device"]] = text
    return lines


class Robustness(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.state = tempfile.mkdtemp()  # the roofs of a real device are measured once

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.state, ignore_errors=True)

    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.mark = "ROOFLASH_TEST_MARK=" + uuid.uuid4().hex
        self.environment = dict(os.environ, HOME=self.folder, XDG_STATE_HOME=self.state)
        if SIMULATED:
            self.environment["CUDA_VISIBLE_DEVICES"] = "-1"
        name, value = self.mark.split("=")
        self.environment[name] = value
        self.out = os.path.join(self.folder, "out", "a.json")
        self.journal = self.out + ".journal"
        self.random = random.Random(self.id())

    def tearDown(self):
        deadline = time.monotonic() + 3
        while self.marked_processes() and time.monotonic() < deadline:
            time.sleep(0.02)
        self.assertEqual(self.marked_processes(), [], "processes were left behind")

    def marked_processes(self):
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/environ", "rb") as file:
                    if self.mark.encode() in file.read():
                        found.append(int(pid))
            except OSError:
                pass
        return found

    def workers(self):
        found = []
        for pid in self.marked_processes():
            try:
                if os.readlink(f"/proc/{pid}/exe").endswith("rooflash-worker"):
                    found.append(pid)
            except OSError:
                pass
        return found

    def start(self, *arguments):
        return subprocess.Popen([ROOFLASH, "run", "--device", DEVICE, *arguments],
                                env=self.environment, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True)

    def run_to_end(self, *arguments):
        process = self.start(*arguments)
        out, err = process.communicate(timeout=120)
        return process.returncode, out, err

    def wait_for_rows(self, count):
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            if os.path.exists(self.journal) and len(row_lines(self.journal)) >= count:
                return
            time.sleep(0.01)
        self.fail(f"no {count} rows in the journal")

    def check_resumed(self, before, *arguments):
        """Resumes, and checks that the rows of `before` are in the record as they were."""
        code, _, err = self.run_to_end(*arguments, "-o", self.out, "--resume")
        self.assertEqual(code, 0, err)
        if before:
            self.assertIn(f"resuming: {len(before)} of {SLOW_CASES} cases are done", err)
        after = row_lines(self.out)
        self.assertEqual(len(after), SLOW_CASES)
        for key, text in before.items():
            self.assertEqual(after[key], text)
        self.assertFalse(os.path.exists(self.journal))

    def test_driver_killed_at_random_points(self):
        for _ in range(3):
            shutil.rmtree(os.path.dirname(self.out), ignore_errors=True)
            process = self.start(*SLOW, "-o", self.out)
            self.wait_for_rows(self.random.randrange(0, 5))
            time.sleep(self.random.uniform(0, 0.3))
            process.kill()
            process.communicate()
            self.assertFalse(os.path.exists(self.out))
            self.check_resumed(row_lines(self.journal), *SLOW)

    def test_interrupt_and_resume(self):
        for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)):
            shutil.rmtree(os.path.dirname(self.out), ignore_errors=True)
            process = self.start(*SLOW, "-o", self.out)
            self.wait_for_rows(2)
            time.sleep(self.random.uniform(0, 0.3))
            process.send_signal(number)
            _, err = process.communicate(timeout=10)
            self.assertEqual(process.returncode, code, err)
            self.assertIn("--resume", err)
            with open(self.out, encoding="utf-8") as file:
                record = json.load(file)
            self.assertFalse(record["complete"])
            self.assertEqual(len(record["rows"]), SLOW_CASES)
            self.assertEqual({row["status"] for row in record["rows"]}, {"ok", "not_run"})
            self.check_resumed(row_lines(self.journal), *SLOW)

    def test_the_run_before_is_kept_whatever_ends_this_one(self):
        self.environment["XDG_STATE_HOME"] = self.folder
        runs = os.path.join(self.folder, "rooflash", "runs")
        self.journal = os.path.join(runs, "last.json.journal")

        def kept():
            found = []
            for name in ("last.json", "last-1.json", "last-2.json", "last-3.json"):
                path = os.path.join(runs, name)
                if os.path.exists(path):
                    with open(path, encoding="utf-8") as file:
                        record = json.load(file)
                    found.append((len(record["rows"]), record["complete"]))
            return found

        self.assertEqual(self.run_to_end(*SHAPE, "--kernel", "naive", "--seqlen", "16")[0], 0)
        self.assertEqual(kept(), [(1, True)])
        process = self.start(*SLOW)
        self.wait_for_rows(2)
        process.kill()
        process.communicate()
        self.assertEqual(kept(), [(1, True)])
        self.assertEqual(self.run_to_end(*SLOW, "--resume")[0], 0)
        self.assertEqual(kept(), [(SLOW_CASES, True), (1, True)])
        process = self.start(*SLOW)
        self.wait_for_rows(2)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=10)
        self.assertEqual(kept(), [(SLOW_CASES, False), (SLOW_CASES, True), (1, True)])
        # The record of an interrupted run gives way to that of the same run.
        self.assertEqual(self.run_to_end(*SLOW, "--resume")[0], 0)
        self.assertEqual(kept(), [(SLOW_CASES, True), (SLOW_CASES, True), (1, True)])

    def test_ignored_signals_stay_ignored(self):
        """nohup ignores SIGHUP, and a shell without job control the SIGINT of what it puts in the
        background."""
        process = subprocess.Popen(["bash", "-c", 'trap "" HUP INT; exec "$@"', "bash", ROOFLASH,
                                    "run", "--device", DEVICE, *SLOW, "-o", self.out],
                                   env=self.environment, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        self.wait_for_rows(1)
        process.send_signal(signal.SIGHUP)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0, err)
        self.assertEqual([row["status"] for row in rows_of(self.out)], ["ok"] * SLOW_CASES)

    def test_closed_standard_descriptors(self):
        """What is printed must not land in the journal, which would get their numbers."""
        process = subprocess.Popen(["bash", "-c", 'exec "$@" <&- >&- 2>&-', "bash", ROOFLASH, "run",
                                    "--device", DEVICE, *SLOW, "-o", self.out],
                                   env=self.environment)
        self.wait_for_rows(6)  # progress is told by then, on stderr
        with open(self.journal, encoding="utf-8") as file:
            for line in file.readlines():
                if line.endswith("\n"):
                    json.loads(line)
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=10)
        self.assertEqual(process.returncode, 143)
        self.check_resumed(row_lines(self.journal), *SLOW)

    def test_closed_standard_descriptors_of_a_worker(self):
        worker = os.path.join(os.path.dirname(ROOFLASH), "rooflash-worker")
        done = subprocess.run(["bash", "-c", 'exec "$1" 2>&-', "bash", worker], text=True,
                              env=self.environment, input="", capture_output=True, timeout=10,
                              check=False)
        self.assertEqual(done.returncode, 0)

    def test_second_interrupt_ends_at_once(self):
        process = self.start(*SLOW, "-o", self.out)
        self.wait_for_rows(1)
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=2)
        self.assertEqual(process.returncode, 130)

    def test_interrupt_of_what_has_no_worker(self):
        for command in ("report", "history"):
            process = subprocess.Popen([ROOFLASH, command, "-"], env=self.environment,
                                       stdin=subprocess.PIPE)
            time.sleep(0.2)  # it waits for its input
            process.send_signal(signal.SIGINT)
            self.assertEqual(process.wait(timeout=10), -signal.SIGINT)
            process.stdin.close()

    def test_worker_killed_costs_one_row(self):
        process = self.start(*SLOW, "-o", self.out)
        self.wait_for_rows(2)
        time.sleep(0.1)
        for pid in self.workers():
            os.kill(pid, signal.SIGKILL)
        process.communicate(timeout=60)
        statuses = sorted(row["status"] for row in rows_of(self.out))
        # Between two cases the kill costs none: the next case goes to a fresh worker.
        self.assertIn(statuses, (["crashed"] + ["ok"] * 7, ["ok"] * 8))
        self.assertEqual(process.returncode, 6 if "crashed" in statuses else 0)

    def test_every_way_to_die_costs_one_row(self):
        code, _, _ = self.run_to_end(*SHAPE, "--kernel", "fa2,test_crash,test_hang,test_illegal",
                                     "--seqlen", "64,128", "--timeout", TIMEOUT, "-o", self.out)
        self.assertEqual(code, 6)
        found = {}
        for row in rows_of(self.out):
            found.setdefault(row["kernel"], set()).add((row["status"], row["reason"]))
        self.assertEqual(found["fa2"], {("ok", "")})
        self.assertEqual(found["test_crash"], {("crashed", "SIGSEGV in phase verify")})
        illegal = {status for status, _ in found["test_illegal"]}
        self.assertEqual(illegal, {"crashed" if SIMULATED else "failed"})
        self.assertEqual(found["test_hang"], {("timeout", HANG)})

    def test_cut_last_line_is_dropped(self):
        process = self.start(*SLOW, "-o", self.out)
        self.wait_for_rows(3)
        process.kill()
        process.communicate()
        before = row_lines(self.journal)
        with open(self.journal, "a", encoding="utf-8") as file:
            file.write('{"case":"test_slow/fwd')
        self.check_resumed(before, *SLOW)

    def test_journal_of_another_run_is_refused(self):
        process = self.start(*SLOW, "-o", self.out)
        self.wait_for_rows(1)
        process.kill()
        process.communicate()
        with open(self.journal, "rb") as file:
            before = file.read()
        code, _, err = self.run_to_end(*SLOW, "-o", self.out, "--resume", "--seed", "2")
        self.assertEqual(code, 2)
        self.assertIn("seed 1 there, 2 here", err)
        code, _, err = self.run_to_end(*SLOW, "-o", self.out, "--resume", "--l2", "warm")
        self.assertEqual(code, 2)
        self.assertIn("options", err)
        with open(self.journal, "rb") as file:
            self.assertEqual(file.read(), before)

    def test_doctored_journal_is_refused(self):
        process = self.start(*SLOW, "-o", self.out)
        self.wait_for_rows(2)
        process.kill()
        process.communicate()
        with open(self.journal, encoding="utf-8") as file:
            whole = file.read()
        cut = whole.replace('"heads_q":1', '"heads_q":2', 1)
        for text, what in ((cut, "heads"), (whole + "nonsense\n", "damaged")):
            with open(self.journal, "w", encoding="utf-8") as file:
                file.write(text)
            code, _, err = self.run_to_end(*SLOW, "-o", self.out, "--resume")
            self.assertEqual(code, 2, what)
            self.assertIn("run without --resume to start anew", err)

    def test_unfinished_journal_is_kept(self):
        process = self.start(*SLOW, "-o", self.out)
        self.wait_for_rows(2)
        process.kill()
        process.communicate()
        before = row_lines(self.journal)
        code, _, err = self.run_to_end(*SLOW, "-o", self.out)
        self.assertEqual(code, 0)
        self.assertIn("was moved to", err)
        self.assertEqual(row_lines(self.journal + ".old"), before)
        os.replace(self.journal + ".old", self.journal)
        self.check_resumed(before, *SLOW)

    def test_two_runs_on_one_output(self):
        first = self.start(*SLOW, "-o", self.out)
        self.wait_for_rows(1)
        code, _, err = self.run_to_end(*SLOW, "-o", self.out)
        self.assertEqual(code, 2)
        self.assertIn("another run is writing", err)
        first.communicate(timeout=60)
        self.assertEqual(first.returncode, 0)
        self.assertEqual(len(rows_of(self.out)), SLOW_CASES)

    def test_removed_output_folder(self):
        process = self.start(*SLOW, "-o", self.out)
        self.wait_for_rows(2)
        shutil.rmtree(os.path.dirname(self.out))
        _, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0, err)
        self.assertEqual([row["status"] for row in rows_of(self.out)], ["ok"] * SLOW_CASES)

    def test_full_disk(self):
        """A file size limit stands for the full disk: both make write() fail part-way."""
        with open(os.path.join(self.folder, "old.json"), "w", encoding="utf-8") as file:
            file.write("old")
        out = os.path.join(self.folder, "old.json")
        command = ["bash", "-c", 'trap "" XFSZ; ulimit -f 8; exec "$@"', "bash", ROOFLASH, "run",
                   "--device", DEVICE, *SLOW, "-o", out]
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True,
                              timeout=60, check=False)
        self.assertEqual(done.returncode, 6, done.stderr)
        self.assertIn("cannot write", done.stderr)
        self.assertIn("--resume", done.stderr)
        with open(out, encoding="utf-8") as file:
            self.assertEqual(file.read(), "old")
        before = row_lines(out + ".journal")
        self.assertTrue(0 < len(before) < SLOW_CASES)
        self.out, self.journal = out, out + ".journal"
        self.check_resumed(before, *SLOW)

    def test_full_stdout(self):
        with open("/dev/full", "w", encoding="utf-8") as full:
            done = subprocess.run([ROOFLASH, "list", "gpus"], env=self.environment, stdout=full,
                                  stderr=subprocess.PIPE, text=True, timeout=10, check=False)
        self.assertEqual(done.returncode, 6)
        self.assertIn("cannot write the result to stdout", done.stderr)

    def test_several_devices_side_by_side(self):
        process = self.start(*SLOW, "--device", "sim:a100,sim:h100", "-o", self.out)
        self.wait_for_rows(3)
        self.assertEqual(len(self.workers()), 3)
        _, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0, err)
        devices = [row["device"] for row in rows_of(self.out)]
        self.assertEqual({device: devices.count(device) for device in devices},
                         {DEVICE: 8, "sim:h100": 8, "sim:a100": 8})

    def test_missing_worker(self):
        self.environment["ROOFLASH_WORKER"] = os.path.join(self.folder, "no-worker")
        code, _, err = self.run_to_end(*SLOW, "-o", self.out)
        self.assertEqual(code, 2)
        self.assertIn("cannot be run", err)
        self.assertIn("ROOFLASH_WORKER", err)

    @unittest.skipUnless(SIMULATED, "the stand-in speaks for the simulated device")
    def test_worker_that_talks_nonsense(self):
        worker = os.path.join(self.folder, "worker")
        with open(worker, "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\necho '{\"type\":'\nexec sleep 100\n")
        os.chmod(worker, 0o755)
        self.environment["ROOFLASH_WORKER"] = worker
        code, _, err = self.run_to_end(*SLOW, "-o", self.out)
        self.assertEqual(code, 6)
        self.assertIn("reply of the sim:h200 worker", err)

    @unittest.skipUnless(SIMULATED, "the stand-in speaks for the simulated device")
    def test_worker_that_breaks_off_mid_case(self):
        real = os.path.join(os.path.dirname(ROOFLASH), "rooflash-worker")
        worker = os.path.join(self.folder, "worker")
        with open(worker, "w", encoding="utf-8") as file:
            file.write(f'#!/bin/sh\nread start\n(echo "$start"; sleep 0.3) | {real}\n'
                       "read request\necho nonsense\n")
        os.chmod(worker, 0o755)
        self.environment["ROOFLASH_WORKER"] = worker
        code, _, err = self.run_to_end(*SHAPE, "--kernel", "fa2", "--seqlen", "64,128", "-o",
                                       self.out)
        self.assertEqual(code, 6, err)
        for row in rows_of(self.out):
            self.assertEqual(row["status"], "failed")
            self.assertIn("reply of the sim:h200 worker: not valid JSON", row["reason"])

    @unittest.skipUnless(SIMULATED, "the stand-in speaks for the simulated device")
    def test_counters_that_take_the_worker_down(self):
        """A crash or a hang in CUPTI costs no row and no time: the case is run again without."""
        for fault, why in (("os.kill(os.getpid(), 11)", "SIGSEGV in phase counters"),
                           ("time.sleep(100)", "no result after 1.4 s, in phase counters")):
            worker = os.path.join(self.folder, "worker")
            with open(worker, "w", encoding="utf-8") as file:
                file.write(COUNTING_WORKER % fault)
            os.chmod(worker, 0o755)
            self.environment["ROOFLASH_WORKER"] = worker
            self.environment["REAL_WORKER"] = os.path.join(os.path.dirname(ROOFLASH),
                                                           "rooflash-worker")
            code, _, err = self.run_to_end(*SHAPE, "--kernel", "fa2,naive", "--seqlen", "64,128",
                                           "--timeout", "1s", "-o", self.out)
            self.assertEqual(code, 0, err)
            rows = rows_of(self.out)
            self.assertEqual([row["status"] for row in rows], ["ok"] * 4)
            for row in rows:
                self.assertIsNotNone(row["time_us"])
                self.assertEqual(row["counters"]["status"], "unavailable")
                self.assertIn("took the worker down (" + why, row["counters"]["reason"])
                self.assertIn("--counters none", row["counters"]["reason"])
                self.assertIsNone(row["counters"]["hbm_read_bytes"])

    def test_driver_links_no_gpu_library(self):
        linked = subprocess.run(["ldd", ROOFLASH], capture_output=True, text=True, check=True).stdout
        for library in ("cuda", "cublas", "cudnn", "cupti", "nvidia"):
            self.assertNotIn(library, linked)


unittest.main()
