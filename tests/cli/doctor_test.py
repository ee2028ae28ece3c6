#!/usr/bin/env python3
"""`rooflash doctor` against stand-ins of the worker: what it prints, exits with, and survives.

    doctor_test.py ROOFLASH [unittest arguments]
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOFLASH = os.path.abspath(sys.argv.pop(1))
WORKER = os.path.join(os.path.dirname(ROOFLASH), "rooflash-worker")
DEVICE = {"device": "cuda:0", "name": "NVIDIA H200", "uuid_hash": "0123456789abcdef",
          "simulated": False, "sm_count": 132, "compute_capability": 90, "sm_clock_max_mhz": 1980,
          "memory_clock_max_mhz": 3201, "memory_bytes": 1 << 37, "l2_bytes": 62914560,
          "power_limit_w": 700, "ecc": True, "mig": False, "other_processes": 0}
HELLO = {"type": "hello", "protocol": 1, "device": DEVICE,
         "environment": {"host_hash": "", "argv": [], "date": "", "driver": "580.95.05",
                         "cuda": "13.0", "cudnn": "", "visible_devices": "", "devices": []}}
# Answers each request by type with what REPLIES holds; a text is run as a command in its place.
STAND_IN = """#!/usr/bin/env python3
import json, os, sys, time
replies = json.loads(os.environ["REPLIES"])
if "--devices" in sys.argv:
    print(json.dumps(replies["devices"]))
    sys.exit(0)
for line in sys.stdin:
    reply = replies[json.loads(line)["type"]]
    if isinstance(reply, str):
        exec(reply)
    print(json.dumps(reply), flush=True)
"""


def check(name, status="ok", detail="as it should be", fix=""):
    return {"id": name, "status": status, "detail": detail, "fix": fix}


class Doctor(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.environment = dict(os.environ, HOME=self.folder, XDG_STATE_HOME=self.folder,
                                CUDA_MPS_PIPE_DIRECTORY=self.folder)
        for trace in [name for name in self.environment if name.startswith(("NV_", "NSYS_"))]:
            del self.environment[trace]
        self.replies = {"devices": [DEVICE], "start": HELLO,
                        "doctor": {"type": "doctor", "checks": [check("gpu"), check("clocks")]},
                        "proof": {"type": "proof", "checks": [check("counters")]}}

    def stand_in(self):
        path = os.path.join(self.folder, "worker")
        with open(path, "w", encoding="utf-8") as file:
            file.write(STAND_IN)
        os.chmod(path, 0o755)
        self.environment["ROOFLASH_WORKER"] = path
        self.environment["REPLIES"] = json.dumps(self.replies)

    def doctor(self, *arguments, timeout=30):
        return subprocess.run([ROOFLASH, "doctor", *arguments], env=self.environment, text=True,
                              capture_output=True, timeout=timeout, check=False, cwd=self.folder)

    def document(self, *arguments):
        done = self.doctor("--json", *arguments)
        document = json.loads(done.stdout)
        self.assertEqual(list(document), ["doctor", "fit", "exit_code", "tool", "checks"])
        self.assertEqual(list(document["tool"]), ["version", "commit", "dirty", "build"])
        self.assertEqual(document["doctor"], 1)
        self.assertEqual(document["exit_code"], done.returncode)
        self.assertEqual(document["fit"], done.returncode == 0)
        for one in document["checks"]:
            self.assertEqual(list(one), ["device", "id", "status", "detail", "fix"])
            self.assertEqual(one["fix"] is None, one["status"] == "ok", one)
        return document

    def test_fit(self):
        self.stand_in()
        done = self.doctor()
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(done.stdout.splitlines()[-1], "fit to measure")
        document = self.document()
        found = [(one["device"], one["id"]) for one in document["checks"]]
        self.assertEqual(found, [(None, "build"), (None, "worker"), (None, "tool"),
                                 (None, "runs_folder"),
                                 (None, "current_folder"), (None, "mps"), ("cuda:0", "gpu"),
                                 ("cuda:0", "clocks"), ("cuda:0", "counters")])

    def test_fail_is_8_and_warn_is_0(self):
        self.replies["doctor"]["checks"].append(check("persistence", "warn", "off", "turn it on"))
        self.stand_in()
        done = self.doctor()
        self.assertEqual(done.returncode, 0)
        self.assertIn("WARN  persistence      off\n      fix: turn it on\n", done.stdout)
        self.replies["proof"]["checks"] = [check("counters", "fail", "no_permission: 35", "ask")]
        self.stand_in()
        done = self.doctor()
        self.assertEqual(done.returncode, 8)
        self.assertIn("FAIL  counters         no_permission: 35\n      fix: ask\n", done.stdout)
        self.assertEqual(done.stdout.splitlines()[-1], "not fit to measure: counters")
        self.assertEqual(self.document()["checks"][-1]["fix"], "ask")

    def test_counters_are_not_proved_where_they_are_not_wanted(self):
        self.replies["proof"] = "sys.exit(3)"
        self.stand_in()
        self.assertEqual(self.doctor("--counters", "none").returncode, 0)
        done = self.doctor("--counters", "full")
        self.assertEqual(done.returncode, 2)
        self.assertIn("--counters: 'full'", done.stderr)

    def test_worker_that_dies_over_the_counters(self):
        self.replies["proof"] = "os.kill(os.getpid(), 11)"
        self.stand_in()
        document = self.document()
        self.assertEqual(document["exit_code"], 8)
        last = document["checks"][-1]
        self.assertEqual((last["device"], last["id"], last["status"]),
                         ("cuda:0", "counters", "fail"))
        self.assertIn("SIGSEGV", last["detail"])
        self.assertIn("--counters none", last["fix"])

    def test_worker_that_hangs_over_the_counters(self):
        self.replies["proof"] = "time.sleep(100)"
        self.stand_in()
        last = self.document("--timeout", "300ms")["checks"][-1]
        self.assertEqual((last["id"], last["status"]), ("counters", "fail"))
        self.assertIn("gave no proof in 0.3 s", last["detail"])

    def test_worker_that_dies_over_its_start(self):
        self.replies["start"] = "sys.exit('cannot make a context')"
        self.stand_in()
        document = self.document()
        self.assertEqual(document["exit_code"], 8)
        ids = [one["id"] for one in document["checks"] if one["status"] == "fail"]
        self.assertEqual(ids, ["device", "counters"])
        self.assertIn("cannot make a context", document["checks"][-1]["detail"])

    def test_hostile_text_is_shown_as_text(self):
        self.replies["doctor"]["checks"] = [check("gpu", "warn", "a\x1b[2J\nOK    b", "\x07")]
        self.stand_in()
        done = self.doctor()
        self.assertNotIn("\x1b", done.stdout)
        self.assertNotIn("\nOK    b", done.stdout)
        self.assertEqual(self.document()["checks"][6]["detail"], "a\x1b[2J\nOK    b")

    def test_no_gpu(self):
        self.environment["ROOFLASH_WORKER"] = WORKER
        self.environment["CUDA_VISIBLE_DEVICES"] = "-1"
        for arguments in ([], ["--device", "0"], ["--device", "all"]):
            document = self.document(*arguments)
            self.assertEqual(document["exit_code"], 77)
            last = document["checks"][-1]
            self.assertEqual((last["id"], last["status"]), ("gpu", "fail"))
            self.assertNotEqual(last["fix"], "")
        self.assertEqual(self.doctor().returncode, 77)

    @unittest.skipUnless("ROOFLASH_TEST_DRIVER" in os.environ, "this build has no CUDA runtime")
    def test_driver_older_than_the_toolkit(self):
        self.environment["ROOFLASH_WORKER"] = WORKER
        paths = [os.environ["ROOFLASH_TEST_DRIVER"], os.environ.get("LD_LIBRARY_PATH", "")]
        self.environment["LD_LIBRARY_PATH"] = ":".join(filter(None, paths))
        document = self.document()
        self.assertEqual(document["exit_code"], 77)
        last = document["checks"][-1]
        self.assertRegex(last["detail"], r"supports CUDA 11\.4 at most, and rooflash was built with "
                                         r"CUDA 1\d\.")
        self.assertIn("install a newer driver", last["fix"])

    def test_missing_worker(self):
        self.environment["ROOFLASH_WORKER"] = "/nonexistent/worker"
        document = self.document()
        self.assertEqual(document["exit_code"], 8)
        failed = [one for one in document["checks"] if one["status"] == "fail"]
        self.assertEqual([one["id"] for one in failed], ["worker"])
        self.assertIn("/nonexistent/worker", failed[0]["detail"])

    def test_worker_without_cublas(self):
        path = os.path.join(self.folder, "worker")
        with open(path, "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\necho 'error while loading shared libraries: libcublas.so.13: "
                       "cannot open shared object file' >&2\nexit 127\n")
        os.chmod(path, 0o755)
        self.environment["ROOFLASH_WORKER"] = path
        document = self.document()
        self.assertEqual(document["exit_code"], 8)
        self.assertIn("libcublas.so.13", document["checks"][-1]["detail"])
        self.assertIn("LD_LIBRARY_PATH", document["checks"][-1]["fix"])

    def host_check(self, name):
        (found,) = [one for one in self.document()["checks"] if one["id"] == name]
        return found

    def test_tool(self):
        self.stand_in()
        self.environment["NV_COMPUTE_PROFILER_PERFWORKS_DIR"] = "/opt/ncu"
        found = self.host_check("tool")
        self.assertEqual(found["status"], "fail")
        self.assertIn("Nsight Compute", found["detail"])

    def test_mps(self):
        self.stand_in()
        self.assertEqual(self.host_check("mps")["status"], "ok")
        with open(os.path.join(self.folder, "control"), "w", encoding="utf-8"):
            pass
        found = self.host_check("mps")
        self.assertEqual(found["status"], "fail")
        self.assertIn("nvidia-cuda-mps-control", found["fix"])

    def test_folders(self):
        self.stand_in()
        self.assertIn("GiB free", self.host_check("runs_folder")["detail"])
        self.environment["XDG_STATE_HOME"] = "/proc/nothing"
        found = self.host_check("runs_folder")
        self.assertEqual(found["status"], "fail")  # not writable; to root, a disk without room
        self.assertIn("/proc", found["detail"])
        del self.environment["XDG_STATE_HOME"], self.environment["HOME"]
        found = self.host_check("runs_folder")
        self.assertEqual(found["status"], "warn")
        self.assertIn("-o", found["fix"])


unittest.main()
