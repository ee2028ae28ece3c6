#!/usr/bin/env python3
"""rooflash export and history, read back by strict parsers.

    export_test.py ROOFLASH SAMPLES [unittest arguments]

SAMPLES is the folder of committed records. Every format is checked on a measured record, on a
simulated one and on one whose texts are hostile.
"""
import base64
import copy
import csv
import io
import json
import math
import os
import re
import subprocess
import sys
import tempfile
import unittest
import zlib
import xml.etree.ElementTree as xml

ROOFLASH = os.path.abspath(sys.argv.pop(1))
SAMPLES = os.path.abspath(sys.argv.pop(1))
HOSTILE = "</script><img src=x>\"'&,;{}#\\n\\\n\r\t\x01\x1b[31m\u2028\u202e\u200b|`%:: =1+1\U0001f600"
FORMATS = ["csv", "md", "junit", "openmetrics", "bencher", "github-action-benchmark", "otava-csv",
           "chrome-trace"]


def refuse_constant(text):
    raise ValueError(f"{text} is not JSON")


def strict_json(text):
    def unique(pairs):
        keys = [key for key, _ in pairs]
        if len(set(keys)) != len(keys):
            raise ValueError("a key stands twice")
        return dict(pairs)
    return json.loads(text, parse_constant=refuse_constant, object_pairs_hook=unique)


def strict_csv(text):
    rows = list(csv.reader(io.StringIO(text, newline=""), strict=True))
    if not text.endswith("\r\n") or any(len(row) != len(rows[0]) for row in rows):
        raise ValueError("ragged")
    if "\n" in text.replace("\r\n", ""):
        raise ValueError("a line end that is not CRLF")
    return rows


class OpenMetrics:
    """The text format of OpenMetrics 1.0.0 as far as gauges and info metrics go."""

    NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
    LABEL = r'[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\["\\n])*"'
    SAMPLE = re.compile(rf"({NAME})(?:\{{({LABEL}(?:,{LABEL})*)?\}})? ([^ ]+)")
    NUMBER = re.compile(r"-?[0-9]+|-?[0-9]+\.[0-9]+(?:e[-+]?[0-9]+)?|-?[0-9]+e[-+]?[0-9]+")

    def __init__(self, text):
        self.families = {}  # name -> {"type", "unit", "samples": {label text: value}}
        if not text.endswith("# EOF\n"):
            raise ValueError("does not end with # EOF")
        lines = text.split("\n")[:-2]
        current = None
        for line in lines:
            if line.startswith("# "):
                _, kind, name, value = line.split(" ", 3)
                if not re.fullmatch(self.NAME, name):
                    raise ValueError(f"a bad name: {line}")
                if kind == "TYPE":
                    if name in self.families:
                        raise ValueError(f"{name} is interleaved or stands twice")
                    current = self.families[name] = {"type": value, "samples": {}}
                    self.current_name = name
                elif name != self.current_name or kind.lower() in current:
                    raise ValueError(f"metadata out of place: {line}")
                else:
                    current[kind.lower()] = value
                if kind == "UNIT" and not name.endswith("_" + value):
                    raise ValueError(f"the unit is not a suffix: {line}")
            else:
                self.add_sample(line, current)

    def add_sample(self, line, family):
        match = self.SAMPLE.fullmatch(line)
        if not match:
            raise ValueError(f"not a sample: {line!r}")
        name, labels, value = match.groups()
        expected = self.current_name + ("_info" if family["type"] == "info" else "")
        if name != expected or family["type"] not in ("gauge", "info"):
            raise ValueError(f"{name} under {self.current_name}")
        names = re.findall(r'(?:^|(?<=",))([a-zA-Z_][a-zA-Z0-9_]*)="', labels or "")
        if len(set(names)) != len(names):
            raise ValueError(f"a label stands twice: {line}")
        if labels in family["samples"]:
            raise ValueError(f"a sample stands twice: {line}")
        if not self.NUMBER.fullmatch(value) or not math.isfinite(float(value)):
            raise ValueError(f"not a number: {line}")
        family["samples"][labels] = float(value)


def hostile_record(record):
    """A record of which every free text is hostile, and that rooflash still accepts."""
    bad = copy.deepcopy(record)
    # One row a problem: all kernels get the same name.
    problems = {row["case"].split("/", 1)[1]: row for row in bad["rows"]}
    bad["rows"] = list(problems.values())[:3]
    for row in bad["rows"]:
        row["kernel"] = HOSTILE
        row["case"] = HOSTILE + row["case"][row["case"].index("/"):]
        row["device"] = bad["environment"]["devices"][0]["device"] = "cuda:" + HOSTILE
        for key in ("provider", "gpu", "repro"):
            row[key] = HOSTILE
        row["flags"] = row["throttle"] = row["kernels_run"] = [HOSTILE]
        row["verify"]["worst"] = row["verify"]["rows_checked"] = HOSTILE
        row["missing"][HOSTILE] = HOSTILE
        row["model"]["convention"] = HOSTILE
        row["trace"] = {"start_unix_us": 5, "sample_start_us": [], "power_w": [],
                        "phases": [{"name": HOSTILE, "start_us": 0, "end_us": 1}]}
    failed = bad["rows"][2]
    failed.update(status="failed", reason=HOSTILE, time_us=None, clock_mhz=None)
    failed["cycles"]["median"] = None
    failed["derived"] = dict.fromkeys(failed["derived"])
    bad["suite"] = HOSTILE
    for key in ("version", "commit", "build"):
        bad["tool"][key] = HOSTILE
    for key in ("driver", "cuda", "cudnn"):
        bad["environment"][key] = HOSTILE
    bad["environment"]["devices"][0]["name"] = HOSTILE
    return bad


class Records(unittest.TestCase):
    """Records in a folder of their own."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.sample = os.path.join(SAMPLES, "h200-quickstart.json")
        with open(cls.sample, encoding="utf-8") as file:
            cls.record = json.load(file)
        cls.sim = cls.path("sim.json")
        subprocess.run([ROOFLASH, "run", "-q", "--device", "sim:h200,sim:a100", "--kernel",
                        "fa2,naive", "--seqlen", "128,256", "--headdim", "64,80", "--causal", "both",
                        "--batch-size", "1", "--nheads", "2", "--dtype", "bf16,fp32", "--rounds",
                        "2", "-o", cls.sim], check=True, stdout=subprocess.DEVNULL)
        with open(cls.sim, encoding="utf-8") as file:
            cls.sim_record = json.load(file)
        cls.hostile = cls.write("hostile.json", hostile_record(cls.record))

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    @classmethod
    def path(cls, name):
        return os.path.join(cls.folder.name, name)

    @classmethod
    def write(cls, name, record):
        with open(cls.path(name), "w", encoding="utf-8") as file:
            json.dump(record, file)
        return cls.path(name)

    def run_command(self, *arguments):
        done = subprocess.run([ROOFLASH, *arguments], capture_output=True, check=False)
        return done.returncode, done.stdout.decode(), done.stderr.decode()


class Export(Records):
    def export(self, form, *records):
        code, out, err = self.run_command("export", *records, "--format", form)
        self.assertEqual(code, 0, err)
        return out, err

    def test_a_file_holds_what_stdout_does(self):
        for form in FORMATS:
            if form == "chrome-trace":
                continue
            out = self.path("made/" + form)
            code, printed, err = self.run_command("export", self.sample, "--format", form, "-o", out)
            self.assertEqual((code, printed), (0, ""), err)
            with open(out, encoding="utf-8", newline="") as file:
                self.assertEqual(file.read(), self.export(form, self.sample)[0])

    def test_nothing_unsafe_is_shown(self):
        for form in FORMATS:
            out, err = self.export(form, self.hostile)
            for text in (out, err):
                for mark in "\x01\x1b\u2028\u202e\u200b":
                    self.assertNotIn(mark, text, form)

    def test_csv(self):
        for path, record in ((self.sample, self.record), (self.sim, self.sim_record)):
            rows = strict_csv(self.export("csv", path)[0])
            self.assertEqual(len(rows), 1 + len(record["rows"]))
        strict_csv(self.export("csv", self.hostile)[0])

    def test_junit(self):
        out, _ = self.export("junit", self.sample, self.sim)
        root = xml.fromstring(out)
        cases = root.findall(".//testcase")
        self.assertEqual(len(cases), len(self.record["rows"]) + len(self.sim_record["rows"]))
        unsupported = [row for row in self.sim_record["rows"] if row["status"] == "unsupported"]
        self.assertGreater(len(unsupported), 0)
        self.assertEqual(len(root.findall(".//skipped")), len(unsupported))
        times = {case.get("name"): case.get("time") for case in root[0].iter("testcase")}
        row = self.record["rows"][0]
        self.assertAlmostEqual(float(times[row["case"]]), row["time_us"]["median"] * 1e-6, places=6)
        hostile = xml.fromstring(self.export("junit", self.hostile)[0])
        self.assertEqual(len(hostile.findall(".//testcase")), 3)
        self.assertEqual(len(hostile.findall(".//error")), 1)

    def test_openmetrics(self):
        for path, record in ((self.sample, self.record), (self.sim, self.sim_record)):
            out, err = self.export("openmetrics", path)
            families = OpenMetrics(out).families
            usable = [row for row in record["rows"] if row["status"] == "ok"]
            self.assertEqual(len(families["rooflash_row"]["samples"]), len(record["rows"]))
            medians = families["rooflash_time_median_seconds"]
            self.assertEqual(medians["unit"], "seconds")
            self.assertEqual(len(medians["samples"]), len(usable))
            self.assertAlmostEqual(sum(medians["samples"].values()),
                                   sum(row["time_us"]["median"] for row in usable) * 1e-6)
            self.assertEqual("left out" in err, len(usable) < len(record["rows"]))
            for name, family in families.items():
                self.assertTrue(family["type"] == "info" or "unit" in family or
                                name == "rooflash_error_max", name)
        self.assertNotIn("rooflash_hbm_read_bytes", families)  # simulated: not counted
        families = OpenMetrics(self.export("openmetrics", self.hostile)[0]).families
        self.assertEqual(len(families["rooflash_row"]["samples"]), 3)
        self.assertEqual(len(families["rooflash_time_median_seconds"]["samples"]), 2)

    def test_bencher(self):
        out, _ = self.export("bencher", self.sample)
        metrics = strict_json(out)
        row = self.record["rows"][0]
        time = metrics[row["case"] + " @ NVIDIA H200, 132 SMs"]["time_us"]
        self.assertEqual(time["value"], row["time_us"]["median"])
        self.assertEqual([time["lower_value"], time["upper_value"]], row["time_us"]["ci95"])
        self.assertEqual(len(metrics), len(self.record["rows"]))
        # Both rounds are one case; rows that are not ok have none.
        metrics = strict_json(self.export("bencher", self.sim)[0])
        ok = [row for row in self.sim_record["rows"] if row["status"] == "ok"]
        self.assertEqual(len(metrics), len(ok) // 2)
        for name, measures in strict_json(self.export("bencher", self.hostile)[0]).items():
            self.assertLessEqual(len(name.encode()), 1024)
            for measure, metric in measures.items():
                self.assertLessEqual(len(measure), 64)
                self.assertLessEqual(set(metric), {"value", "lower_value", "upper_value"})
                for value in metric.values():
                    self.assertIsInstance(value, (int, float))

    def test_github_action_benchmark(self):
        for path in (self.sample, self.sim, self.hostile):
            entries = strict_json(self.export("github-action-benchmark", path)[0])
            self.assertEqual(len({entry["name"] for entry in entries}), len(entries))
            for entry in entries:
                self.assertLessEqual(set(entry), {"name", "unit", "value", "range", "extra"})
                self.assertTrue(entry["name"].endswith((" time_us", " hbm_bytes")))
                self.assertIsInstance(entry["value"], (int, float))
                self.assertGreater(entry["value"], 0)

    def test_otava_csv(self):
        later = copy.deepcopy(self.record)
        later["environment"]["date"] = "2099-01-01T00:00:00Z"
        gone = later["rows"].pop()
        rows, err = self.export("otava-csv", self.write("later.json", later), self.sample)
        rows = strict_csv(rows)
        self.assertEqual(rows[0][:2], ["time", "commit"])
        self.assertEqual([row[0] for row in rows[1:]],
                         [self.record["environment"]["date"], "2099-01-01T00:00:00Z"])
        self.assertEqual(len(rows[0]), 2 + len(later["rows"]))
        self.assertIn("left out: " + gone["case"], err)
        for row in rows[1:]:
            for value in row[2:]:
                self.assertGreater(float(value), 0)
        self.assertEqual(len(strict_csv(self.export("otava-csv", self.hostile)[0])), 2)

    # The keys of each phase of the Trace Event Format that is used, with their types.
    TRACE_KEYS = {
        "M": {"ph": str, "name": str, "pid": int, "tid": int, "args": dict},
        "X": {"ph": str, "name": str, "cat": str, "pid": int, "tid": int, "ts": (int, float),
              "dur": (int, float), "args": dict},
        "C": {"ph": str, "name": str, "pid": int, "tid": int, "ts": (int, float), "args": dict}}

    def nanoseconds(self, us):
        """Times are microseconds, and whole nanoseconds, which is what viewers keep."""
        self.assertNotIsInstance(us, bool)
        self.assertGreaterEqual(us, 0)
        self.assertEqual(us, round(us, 3))
        return round(us * 1000)

    def check_trace(self, text):
        trace = strict_json(text)
        self.assertEqual(set(trace), {"displayTimeUnit", "otherData", "traceEvents"})
        self.assertIn(trace["displayTimeUnit"], ("ms", "ns"))
        self.assertRegex(trace["otherData"]["start_unix_us"], r"^\d+$")
        slices, names, counters, last, longest = {}, {}, [], 0, {}
        for event in trace["traceEvents"]:
            keys = dict(self.TRACE_KEYS[event["ph"]])
            if event["name"] == "process_name":
                del keys["tid"]
            self.assertEqual(set(event), set(keys))
            for key, kind in keys.items():
                self.assertIsInstance(event[key], kind)
            if event["ph"] == "M":
                self.assertIn(event["name"], ("process_name", "thread_name"))
                self.assertEqual(set(event["args"]), {"name"})
                self.assertIsInstance(event["args"]["name"], str)
                self.assertEqual((last, slices), (0, {}), "names come first")
                self.assertNotIn((event["pid"], event.get("tid")), names)
                names[event["pid"], event.get("tid")] = event["args"]["name"]
                continue
            start = self.nanoseconds(event["ts"])
            self.assertGreaterEqual(start, last, "events are in the order of time")
            last = start
            self.assertIn((event["pid"], None), names)
            self.assertIn((event["pid"], event["tid"]), names)
            if event["ph"] == "X":
                end = start + self.nanoseconds(event["dur"])
                # Slices of a thread nest or follow each other; else a viewer drops them.
                open_ends = longest.setdefault((event["pid"], event["tid"]), [])
                while open_ends and open_ends[-1] <= start:
                    open_ends.pop()
                if open_ends:
                    self.assertLessEqual(end, open_ends[-1])
                open_ends.append(end)
                slices.setdefault((event["pid"], event["tid"]), []).append(event)
            else:
                (value,) = event["args"].values()
                self.assertIsInstance(value, (int, float))
                self.assertNotIsInstance(value, bool)
                counters.append(event)
        return slices, names, counters

    def test_chrome_trace_of_a_simulated_run(self):
        text, err = self.export("chrome-trace", self.sim)
        # What a kernel does not support never reaches a worker.
        ran = [row for row in self.sim_record["rows"] if row["status"] != "unsupported"]
        missing = len(self.sim_record["rows"]) - len(ran)
        self.assertIn(f"left out: {missing} of the {missing + len(ran)} rows", err)
        slices, names, counters = self.check_trace(text)
        self.assertEqual(sorted(names[pid, None] for pid in (1, 2)),
                         ["sim:a100 NVIDIA A100-SXM4-80GB", "sim:h200 NVIDIA H200"])
        self.assertEqual(counters, [])
        cases = [event for track in slices.values() for event in track if event["cat"] == "case"]
        self.assertEqual(len(cases), len(ran))
        phases = {event["name"] for track in slices.values() for event in track
                  if event["cat"] == "phase"}
        self.assertEqual(phases, {"setup", "verify", "timed"})
        self.assertFalse([1 for track in slices.values() for event in track
                          if event["cat"] == "launch"])

    def test_chrome_trace_of_the_sample(self):
        text, err = self.export("chrome-trace", self.sample)
        self.assertEqual(err, "")
        slices, _, counters = self.check_trace(text)
        timed = [event for event in slices[1, 1] if event["name"] == "timed"]
        launches = iter(slices[1, 2])
        for row, phase in zip(self.record["rows"], sorted(timed, key=lambda event: event["ts"])):
            for _ in row["time_us"]["samples"]:
                launch = next(launches)
                self.assertGreaterEqual(launch["ts"], phase["ts"])
                self.assertLessEqual(launch["ts"] + launch["dur"],
                                     phase["ts"] + phase["dur"] + 1e-6)
        self.assertEqual(sum(event["name"] == "power" for event in counters),
                         2 * len(self.record["rows"]))

    def untraced(self):
        """The measured record without the times of its phases, as older versions wrote it."""
        record = copy.deepcopy(self.record)
        for row in record["rows"]:
            row.pop("trace", None)
        return record

    def test_chrome_trace_of_a_measured_run(self):
        record = self.untraced()
        start = 1_796_000_000_000_000
        for row in record["rows"][:2]:
            samples, at = [], 100.5
            for time_us in row["time_us"]["samples"]:
                samples.append(at)
                at += time_us + 50
            row["trace"] = {
                "start_unix_us": start, "sample_start_us": samples,
                "phases": [{"name": "setup", "start_us": 0.5, "end_us": 90},
                           {"name": "timed", "start_us": 90, "end_us": at}],
                "power_w": [{"at_us": 80, "value": 300}, {"at_us": at, "value": 560.5}]}
            start += int(at) + 100
        path = self.write("traced.json", record)
        text, err = self.export("chrome-trace", path)
        self.assertIn(f"{len(record['rows']) - 2} of the {len(record['rows'])} rows", err)
        slices, names, counters = self.check_trace(text)
        launches = [event for event in slices[1, 2] if event["cat"] == "launch"]
        taken = sum(len(row["time_us"]["samples"]) for row in record["rows"][:2])
        self.assertEqual(len(launches), taken)
        self.assertEqual(launches[0]["ts"], 100.5)
        self.assertAlmostEqual(launches[0]["dur"], record["rows"][0]["time_us"]["samples"][0],
                               delta=1e-3)
        self.assertEqual(names[1, None], "cuda:0 NVIDIA H200")
        self.assertEqual(sum(event["name"] == "power" for event in counters), 4)
        self.assertEqual(sum(event["name"] == "SM clock" for event in counters), taken)
        # Of two records, each has processes of its own.
        _, names, _ = self.check_trace(self.export("chrome-trace", path, self.sim)[0])
        self.assertEqual(len([key for key in names if key[1] is None]), 3)
        self.check_trace(self.export("chrome-trace", self.hostile)[0])

    def test_refusals(self):
        untraced = self.write("untraced.json", self.untraced())
        for arguments, message in (
                ((untraced, "--format", "chrome-trace"), "no row tells when it ran"),
                ((self.sample, self.sim, "--format", "csv"), "takes one record, not 2"),
                ((self.sample, self.sample, "--format", "junit"), "is given twice"),
                ((self.sample, "--format", "junitt"), "did you mean 'junit'?"),
                ((self.sim, "--format", "csv", "-o", self.sim), "this record is an input"),
                ((self.sim,), "--format is required")):
            code, out, err = self.run_command("export", *arguments)
            self.assertEqual((code, out), (2, ""), err)
            self.assertIn(message, err)


class History(Records):
    """The sample record, twelve times: slower from the ninth on in one case."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.records = cls.path("history")
        os.makedirs(os.path.join(cls.records, "more"))
        cls.moved = cls.record["rows"][5]["case"]
        for day in range(1, 13):
            record = copy.deepcopy(cls.record)
            record["environment"]["date"] = f"2026-02-{day:02}T00:00:00Z"
            record["tool"].update(commit=f"{day:012}", dirty=False)
            del record["rows"][12:]
            for index, row in enumerate(record["rows"]):
                factor = 1 + 0.001 * ((day * 7 + index) % 5)
                factor *= 1.08 if row["case"] == cls.moved and day >= 9 else 1
                cls.scale(row, factor)
            cls.write(f"history/{'more/' if day % 2 else ''}{day}.json", record)

    @staticmethod
    def scale(row, factor):
        time = row["time_us"]
        time.update(median=time["median"] * factor, min=time["min"] * factor,
                    ci95=[value * factor for value in time["ci95"]],
                    samples=[value * factor for value in time["samples"]])
        row["derived"].update(tflops=None, hardware_tflops=None, hbm_gbps=None)

    def test_table_names_the_change_alone(self):
        code, out, err = self.run_command("history", self.records)
        self.assertEqual((code, err), (0, ""))
        self.assertIn(self.moved + "\n  NVIDIA H200, 132 SMs, cold L2, burst power: 12 records, "
                      "2026-02-01T00:00:00Z to 2026-02-12T00:00:00Z", out)
        self.assertRegex(out, r"2026-02-09T00:00:00Z 000000000009  slower  .* \+[78]\.\d%  "
                              r"\(8 records before, 4 after\)")
        self.assertIn("1 change of 2% or more, in 1 of 12 series. Advisory", out)
        self.assertEqual(out.count("fa2/") + out.count("naive/"), 1)
        _, out, _ = self.run_command("history", self.records, "--all")
        self.assertEqual(out.count("12 records, "), 12)
        _, out, _ = self.run_command("history", self.records, "--threshold", "20%")
        self.assertIn("0 changes of 20% or more", out)

    def test_csv_and_json_hold_every_point(self):
        _, out, _ = self.run_command("history", self.records, "--format", "csv")
        rows = [dict(zip(strict_csv(out)[0], row)) for row in strict_csv(out)[1:]]
        self.assertEqual(len(rows), 144)
        changed = [row for row in rows if row["change"]]
        self.assertEqual([(row["case"], row["date"], row["change"]) for row in changed],
                         [(self.moved, "2026-02-09T00:00:00Z", "slower")])
        _, out, _ = self.run_command("history", self.records, "--format", "json", "-f",
                                     "kernel:" + self.moved.split("/")[0])
        history = strict_json(out)
        self.assertLess(len(history["series"]), 12)
        series = [one for one in history["series"] if one["case"] == self.moved][0]
        self.assertEqual([point["date"] for point in series["points"]],
                         [f"2026-02-{day:02}T00:00:00Z" for day in range(1, 13)])
        self.assertEqual(series["changes"][0]["records_before"], 8)

    def test_the_report_shows_the_same_changes(self):
        page = self.path("history.html")
        records = [f"{self.records}/{'more/' if day % 2 else ''}{day}.json" for day in range(1, 13)]
        records[0] = "first=" + records[0]
        code, _, err = self.run_command("report", *records, "-q", "-o", page)
        self.assertEqual((code, err), (0, ""))
        with open(page, encoding="utf-8") as file:
            html = file.read()
        block = re.search(r'<script type="text/plain" id="data">(.*?)</script>', html, re.S)
        shown = json.loads(zlib.decompress(base64.b64decode(block.group(1))))["history"]
        _, out, _ = self.run_command("history", self.records, "--format", "json")
        series = {one["case"]: one for one in strict_json(out)["series"]}
        self.assertEqual(len(shown), len(series))
        self.assertEqual(shown[0]["case"], self.moved)  # what changed comes first
        for one in shown:
            told = series[one["case"]]
            self.assertEqual([point["time_us"] for point in one["points"]],
                             [point["time_us"] for point in told["points"]])
            changes = [point for point in one["points"] if point["change"] is not None]
            self.assertEqual([(point["date"], point["change"]) for point in changes],
                             [(change["date"], change["ratio"]) for change in told["changes"]])
            self.assertEqual([point["level_us"] for point in changes],
                             [change["after_us"] for change in told["changes"]])
        self.assertEqual([point["run"] for point in shown[0]["points"]][:2], ["first", "run 2"])
        self.assertIn("1 change of 2 % or more in 12 cases.", html)
        # One record that has no date: no history, and a reason.
        undated = copy.deepcopy(self.record)
        undated["environment"]["date"] = "yesterday"
        undated = self.write("undated-report.json", undated)
        code, _, err = self.run_command("report", *records[1:3], undated, "-q", "-o", page)
        self.assertEqual((code, err), (0, ""))
        with open(page, encoding="utf-8") as file:
            self.assertIn("No history: run 3: environment.date: &quot;yesterday&quot;", file.read())

    def test_broken_files_are_named_and_skipped(self):
        broken = self.path("broken.json")
        with open(broken, "w", encoding="utf-8") as file:
            file.write('{"schema": 1, "rows": [')
        undated = copy.deepcopy(self.record)
        undated["environment"]["date"] = "yesterday"
        undated = self.write("undated.json", undated)
        code, out, err = self.run_command("history", self.records, broken, undated, "--format",
                                          "json")
        self.assertEqual(code, 6)
        self.assertIn("skipped: " + broken + ": not valid JSON", err)
        history = strict_json(out)
        self.assertEqual([file["file"] for file in history["skipped"]], [broken, undated])
        self.assertEqual(len(history["series"]), 12)

    def test_a_file_counts_once(self):
        _, out, _ = self.run_command("history", self.records, self.records + "/2.json")
        self.assertIn("12 records", out)

    def test_exit_codes(self):
        os.makedirs(self.path("empty"), exist_ok=True)
        for arguments, expected in (((self.path("empty"),), 7), ((self.path("missing"),), 2),
                                    ((self.records, "--threshold", "0%"), 2),
                                    ((self.records, "--format", "xml"), 2),
                                    ((self.records, "-f", "kernle:fa2"), 2),
                                    ((self.records, "-o", self.records + "/2.json"), 2),
                                    ((self.hostile,), 0)):
            code, out, err = self.run_command("history", *arguments)
            self.assertEqual(code, expected, err)
            self.assertNotIn("\x1b", out + err)


unittest.main()
