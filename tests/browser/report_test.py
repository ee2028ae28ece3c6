#!/usr/bin/env python3
"""Opens reports of made-up records from disk in headless Chromium and checks what is drawn.

    report_test.py MAKE_REPORT [--out FOLDER]

Screenshots stay in FOLDER. Exit 77 (skipped) where there is no Chromium.
"""

import argparse
import base64
import csv
import io
import json
import math
import pathlib
import re
import shutil
import subprocess
import sys
import time
import unittest
import zlib

import chromium

OPTIONS = argparse.Namespace()
PARTS = ("header", ".controls", "#summary", "#roofline", "#throughput", "#speedup", "#memory",
         "#accuracy", "#advice", "#noise", "#model", "#comparison", "#cases", "#environment",
         "#method")


def embedded_data(html):
    block = re.search(r'<script type="text/plain" id="data">(.*?)</script>', html, re.S)
    return json.loads(zlib.decompress(base64.b64decode(block.group(1))))


def embedded_records(html):
    return embedded_data(html)["records"]


def hbm_bytes(row):
    counters = row["counters"]
    if counters["hbm_read_bytes"] is not None:
        return counters["hbm_read_bytes"] + counters["hbm_write_bytes"]
    return row["model"]["predicted_hbm_bytes"] if row["simulated"] else None


def timed_rows(html):
    return [row for record in embedded_records(html) for row in record["rows"]
            if row["status"] == "ok"]


class ReportTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.page = chromium.Page(OPTIONS.chromium, width=1280)

    @classmethod
    def tearDownClass(cls):
        cls.page.close()

    def setUp(self):
        self.page.media()
        self.page.viewport(1280, 900)
        self.page.messages.clear()
        self.page.requests.clear()

    def make(self, kind, suffix="html"):
        path = OPTIONS.out / f"{kind}.{suffix}"
        subprocess.run([OPTIONS.make_report, kind, str(path)], check=True)
        return path

    def open(self, path, fragment=""):
        self.url = path.resolve().as_uri()
        self.page.open("about:blank")
        self.page.requests.clear()
        self.page.open(self.url + fragment)
        self.wait_for("document.documentElement.dataset.drawn === 'all'")

    def load(self, kind, fragment=""):
        path = self.make(kind)
        self.open(path, fragment)
        return path.read_text(encoding="utf-8")

    def wait_for(self, condition, seconds=60):
        end = time.monotonic() + seconds
        while not self.page.evaluate(condition):
            self.assertEqual(self.page.messages, [])
            self.assertLess(time.monotonic(), end, condition)
            time.sleep(0.02)

    def settle(self):
        """Until the page has taken in what was typed, and drawn all of it."""
        self.page.evaluate("new Promise((done) => setTimeout(done, 400))")
        self.wait_for("document.documentElement.dataset.drawn === 'all'")

    def check_quiet(self):
        self.assertEqual(self.page.messages, [])
        foreign = [url for url in self.page.requests
                   if url.split("#")[0] != self.url and not url.startswith(("data:", "blob:"))]
        self.assertEqual(foreign, [])

    def count(self, selector):
        return self.page.evaluate(f"document.querySelectorAll({json.dumps(selector)}).length")

    def marks(self, chart, part=".mark"):
        return self.page.evaluate(
            f"d3.sum(document.querySelectorAll('[data-chart={chart}] figure:not([hidden]) svg "
            f"> g g:not(.key) > {part}, [data-chart={chart}] figure:not([hidden]) svg > g > g "
            f"> g > {part}'), (mark) => Number(mark.dataset.n || 0))")

    def open_tables(self):
        self.page.evaluate(
            "document.querySelectorAll('details').forEach((d) => { d.open = true; });"
            "new Promise((done) => setTimeout(done, 300))")

    def table_rows(self, table):
        return self.page.evaluate(
            f"[...document.getElementById('{table}').tBodies[0].rows].filter((row) => !row.hidden)"
            ".length")

    def type_filter(self, text):
        self.page.evaluate(
            f"const box = document.getElementById('filter'); box.value = {json.dumps(text)};"
            "box.dispatchEvent(new Event('input'))")
        self.settle()

    def press(self, key):
        for kind in ("keyDown", "keyUp"):
            self.page.call("Input.dispatchKeyEvent", type=kind, key=key, code=key)

    def test_charts_hold_every_ok_row_and_no_other(self):
        html = self.load("sweep")
        rows, timed = embedded_records(html)[0]["rows"], timed_rows(html)
        self.assertLess(len(timed), len(rows))
        moved = [row for row in timed if hbm_bytes(row)]
        self.assertEqual(self.marks("roofline"), len(moved))
        self.assertEqual(self.marks("roofline", ".compulsory"), len(moved))
        self.assertEqual(self.marks("throughput"), len(timed))
        self.assertEqual(self.count("[data-chart=bytes] .bar"), len(moved))
        self.assertEqual(self.marks("memory"), len(timed))
        self.assertEqual(self.count("[data-chart=memory] .cross"), 1)
        measured = sum(not row["simulated"] for row in timed)
        self.assertEqual(self.marks("noise-0"), measured)
        self.assertEqual(self.marks("model-0"), measured)
        self.assertEqual(self.marks("accuracy-0"), len(timed))
        # A kernel is told by its shape and its dash as well as by its colour.
        for attribute, selector in (("d", "#legend .mark"), ("stroke-dasharray", "#legend .series")):
            told = self.page.evaluate(
                f"new Set([...document.querySelectorAll('{selector}')].map((mark) => "
                f"mark.getAttribute('{attribute}'))).size")
            self.assertEqual(told, len({row["kernel"] for row in rows}))
        simulated = {row["kernel"] for row in timed if row["simulated"]}
        self.assertGreaterEqual(self.count("[data-chart=throughput] .sim .core"), len(simulated))
        dtypes = {(row["device"], row["problem"]["dtype"]) for row in timed}
        self.assertEqual(self.count("[data-chart=roofline] svg"), len(dtypes))
        self.assertEqual(self.count("[data-chart=roofline] .datasheet"), len(dtypes))
        self.assertEqual(self.count("[data-chart=roofline] .ridge"), len(dtypes))
        self.assertEqual(self.count("[data-chart=roofline] .iso"), 3 * len(dtypes))
        self.check_quiet()

    def test_tables_of_the_script_equal_those_of_the_program(self):
        cells = ("Object.fromEntries([...document.querySelectorAll('table')].map((t) => [t.id, "
                 "[...t.tBodies[0].rows].map((r) => [...r.cells].map((c) => c.textContent))]))")
        for kind in ("sweep", "showcase", "two", "history", "hostile", "extreme"):
            with self.subTest(kind=kind):
                path = self.make(kind)
                self.page.call("Emulation.setScriptExecutionDisabled", value=True)
                try:
                    self.url = path.resolve().as_uri()
                    self.page.open(self.url)
                    static = self.page.evaluate(cells)
                finally:
                    self.page.call("Emulation.setScriptExecutionDisabled", value=False)
                self.open(path)
                self.open_tables()
                made = self.page.evaluate(cells)
                self.assertEqual(made.keys(), static.keys())
                for table, rows in static.items():
                    self.assertGreater(len(rows), 0, table)
                    self.assertEqual(made[table], rows, table)

    def test_every_chart_is_named_and_reachable_by_keyboard(self):
        self.load("sweep")
        unnamed = self.page.evaluate(
            "[...document.querySelectorAll('.chart svg')].filter((svg) => "
            "svg.getAttribute('role') !== 'img' || !svg.getAttribute('aria-labelledby').split(' ')"
            ".every((id) => document.getElementById(id).textContent)).length")
        self.assertEqual(unnamed, 0)
        # Every section with a chart has a table too.
        self.assertEqual(self.page.evaluate(
            "[...document.querySelectorAll('section:has(.chart)')]"
            ".filter((s) => !s.querySelector('table')).length"), 0)
        self.page.evaluate("document.getElementById('save-json').focus()")
        self.page.evaluate("document.querySelector('[data-chart=throughput] svg').focus()")
        tip = "document.getElementById('tooltip').textContent"
        self.press("ArrowRight")
        first = self.page.evaluate(tip)
        self.assertIn("TFLOPS", first)
        self.press("ArrowRight")
        self.assertNotEqual(self.page.evaluate(tip), first)
        self.press("Enter")
        self.assertFalse(self.page.evaluate("document.getElementById('case').hidden"))
        self.assertIn("rooflash run --kernel", self.page.evaluate(
            "document.getElementById('case').innerText"))
        self.check_quiet()

    def test_axes_are_titled_with_their_units(self):
        self.load("showcase")
        titles = set(self.page.evaluate(
            "[...document.querySelectorAll('.axis-title')].map((t) => t.textContent)"))
        for title in ("Arithmetic intensity, FLOP per HBM byte", "Throughput, TFLOPS", "TFLOPS",
                      "Sequence length (keys)", "HBM / compulsory bytes", "SM clock, MHz",
                      "Power, W", "Median time, us", "Measured time, us"):
            self.assertIn(title, titles)
        self.check_quiet()

    def test_no_text_of_a_chart_lies_on_another(self):
        overlaps = """(() => {
          const found = [];
          for (const svg of document.querySelectorAll('.chart figure:not([hidden]) svg')) {
            const frame = svg.getBoundingClientRect();
            const texts = [...svg.querySelectorAll('text')].filter((t) =>
                !(t.getAttribute('transform') || '').includes('rotate(-'));
            const boxes = texts.map((t) => t.getBoundingClientRect());
            for (let i = 0; i < boxes.length; i++) {
              const a = boxes[i];
              if (a.left < frame.left - 2 || a.right > frame.right + 2 || a.top < frame.top - 2 ||
                  a.bottom > frame.bottom + 2) found.push(['outside', texts[i].textContent]);
              for (let j = 0; j < i; j++) {
                const b = boxes[j];
                if (Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1.5 &&
                    Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 4) {
                  found.push([svg.querySelector('title').textContent, texts[i].textContent,
                              texts[j].textContent]);
                }
              }
            }
          }
          return found;
        })()"""
        for width in (1280, 390):
            self.page.viewport(width, 900)
            for kind in ("sweep", "showcase", "two", "history", "extreme"):
                self.load(kind)
                with self.subTest(kind=kind, width=width):
                    self.assertEqual(self.page.evaluate(overlaps), [])
                    self.assertLessEqual(self.page.evaluate(
                        "document.documentElement.scrollWidth"), width)

    def test_colours_stand_out_from_the_background(self):
        self.load("sweep")

        def luminance(colour):
            channels = [int(colour[i:i + 2], 16) / 255 for i in (1, 3, 5)]
            linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4
                      for c in channels]
            return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

        for scheme in ("light", "dark"):
            self.page.media(scheme=scheme)
            names = [f"k{i}" for i in range(7)] + ["line", "text", "muted", "link", "warn", "bad",
                                                   "good", "accent", "background", "surface"]
            colours = dict(zip(names, self.page.evaluate(
                f"{json.dumps(names)}.map((name) => getComputedStyle(document.documentElement)"
                ".getPropertyValue('--' + name).trim())")))
            for ground in ("background", "surface"):
                for name in names[:-2]:
                    a, b = sorted((luminance(colours[name]), luminance(colours[ground])))
                    least = 3 if name.startswith("k") or name in ("line", "accent") else 4.5
                    self.assertGreaterEqual((b + 0.05) / (a + 0.05), least,
                                            f"--{name} on --{ground}, {scheme}")

    def test_a_roofline_keeps_its_frame_and_spans_all_points(self):
        ticks = ("[...document.querySelectorAll('[data-chart=roofline] svg')].filter((svg) => "
                 "svg.querySelector('title').textContent.startsWith('bf16'))[0]"
                 ".querySelectorAll('.axis .tick text')")
        texts = f"[...{ticks}].map((t) => t.textContent)"
        self.load("sweep")
        plain = self.page.evaluate(texts)
        self.load("showcase")
        self.assertEqual(self.page.evaluate(texts), plain)
        html = self.load("extreme")
        self.assertEqual(self.marks("roofline"), len(timed_rows(html)))
        wide = self.page.evaluate(texts)
        self.assertTrue(set(plain) <= set(wide) and len(wide) >= len(plain), (plain, wide))
        self.assertIn("widened", self.page.evaluate(
            "document.querySelector('[data-chart=roofline] .offframe').textContent"))
        # The ridge stands at peak over bandwidth.
        self.assertIn(f"ridge {780e3 / 4284:.0f} FLOP/byte", self.page.evaluate(
            "document.querySelector('[data-chart=roofline] svg').textContent"))
        self.check_quiet()

    def test_zoom_changes_the_scales_and_not_the_text(self):
        self.load("sweep")
        svg = "document.querySelector('[data-chart=roofline] svg')"
        ticks = f"[...{svg}.querySelectorAll('.axis .tick text')].map((t) => t.textContent)"
        size = f"{svg}.querySelector('.axis .tick text').getBoundingClientRect().height"
        before, height = self.page.evaluate(ticks), self.page.evaluate(size)
        x, y = self.page.evaluate(
            f"(() => {{ {svg}.scrollIntoView({{block: 'center'}}); const b = "
            f"{svg}.getBoundingClientRect(); return [b.x + b.width * .6, b.y + b.height / 3]; }})()")
        wheel = {"type": "mouseWheel", "x": x, "y": y, "deltaX": 0, "deltaY": -600}
        self.page.call("Input.dispatchMouseEvent", **wheel)
        self.settle()
        self.assertEqual(self.page.evaluate(ticks), before)  # a plain wheel scrolls the page
        self.page.evaluate(f"{svg}.scrollIntoView({{block: 'center'}})")
        self.page.call("Input.dispatchMouseEvent", **wheel, modifiers=2)
        self.settle()
        self.assertNotEqual(self.page.evaluate(ticks), before)
        self.assertAlmostEqual(self.page.evaluate(size), height, delta=0.5)
        self.page.evaluate(
            f"{svg}.parentNode.querySelector('[title=\"Reset the zoom\"]').click()")
        self.assertEqual(self.page.evaluate(ticks), before)
        self.check_quiet()

    def test_hover_names_the_nearest_point(self):
        self.load("sweep")
        x, y = self.page.evaluate(
            "(() => { const svg = document.querySelector('[data-chart=throughput] svg');"
            "svg.scrollIntoView({block: 'center'}); const box = svg.getBoundingClientRect();"
            "const [, px, py] = /M([0-9.]+),([0-9.]+)/.exec("
            "svg.querySelector('.mark').getAttribute('d')); const k = box.width / "
            "svg.viewBox.baseVal.width; return [box.x + px * k + 6, box.y + py * k + 4]; })()")
        self.page.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
        self.assertIn("TFLOPS", self.page.evaluate("document.getElementById('tooltip').innerText"))
        self.assertEqual(self.count("[data-chart=throughput] .ring[visibility=visible]"), 1)
        self.check_quiet()

    def test_legend_and_filter_act_on_charts_and_tables_and_the_address(self):
        html = self.load("sweep")
        rows, timed = embedded_records(html)[0]["rows"], timed_rows(html)
        fa2 = sum(row["kernel"] == "fa2" for row in timed)
        naive = "document.querySelector('#legend input[data-kernel=naive]').click()"
        self.open_tables()
        self.page.evaluate(naive)
        self.settle()
        self.assertEqual(self.marks("throughput"), fa2)
        self.assertEqual(self.marks("roofline"), fa2)
        self.assertEqual(self.table_rows("table-detail"),
                         sum(row["kernel"] == "fa2" for row in rows))
        self.assertIn("hide=naive", self.page.evaluate("location.hash"))
        self.page.evaluate(naive)
        self.type_filter("headdim:128 causal:true dtype:(bf16 OR fp32) -seqlen:<1k")
        wanted = sum(p["headdim"] == 128 and p["mask"] == "causal" and p["dtype"] == "bf16" and
                     p["seqlen_kv"] >= 1024 for p in (row["problem"] for row in timed))
        self.assertGreater(wanted, 0)
        self.assertEqual(self.marks("throughput"), wanted)
        self.assertEqual(self.table_rows("table-throughput"), wanted)
        # The address opens the same view.
        fragment = self.page.evaluate("location.hash")
        self.load("sweep", fragment)
        self.assertEqual(self.marks("throughput"), wanted)
        self.assertIn("headdim:128", self.page.evaluate("document.getElementById('filter').value"))
        # A filter that cannot be read says where, and changes nothing.
        self.type_filter("headdim:128 oops")
        self.assertIn("expected KEY:VALUE at column 13", self.page.evaluate(
            "document.getElementById('filter-note').textContent"))
        self.assertTrue(self.page.evaluate("document.getElementById('filter').ariaInvalid === '' ||"
                                           "document.getElementById('filter').matches('.invalid')"))
        self.assertEqual(self.marks("throughput"), wanted)
        self.page.evaluate("document.getElementById('reset').click()")
        self.settle()
        self.assertEqual(self.marks("throughput"), len(timed))
        self.assertEqual(self.page.evaluate("location.hash"), "")
        self.check_quiet()

    def test_the_baseline_of_the_speed_up_can_be_chosen(self):
        self.load("sweep")
        cell = "document.querySelector('[data-chart=speedup] .cell-text').textContent"
        before = self.page.evaluate(cell)
        self.assertGreater(float(before.rstrip("x")), 1)
        self.page.evaluate(
            "const box = document.getElementById('baseline'); box.value = 'fa2';"
            "box.dispatchEvent(new Event('change'))")
        self.settle()
        after = self.page.evaluate(cell)
        self.assertAlmostEqual(float(before.rstrip("x")) * float(after.rstrip("x")), 1, delta=0.01)
        self.assertIn("baseline=fa2", self.page.evaluate("location.hash"))
        self.check_quiet()

    def test_tables_sort_and_links_open_the_case(self):
        html = self.load("sweep")
        self.open_tables()
        column = ("[...document.getElementById('table-throughput').tBodies[0].rows]"
                  ".map((row) => Number(row.cells[6].dataset.v))")
        click = "document.querySelectorAll('#table-throughput th button')[6].click()"
        self.page.evaluate(click)
        values = self.page.evaluate(column)
        self.assertEqual(values, sorted(values))
        self.page.evaluate(click)
        self.assertEqual(self.page.evaluate(column), sorted(values, reverse=True))
        fastest = max(timed_rows(html), key=lambda row: row["derived"]["tflops"])
        self.page.evaluate("document.querySelector('#table-throughput tbody a').click()")
        self.settle()
        panel = self.page.evaluate("document.getElementById('case').innerText")
        self.assertIn(fastest["case"], panel)
        self.assertIn(fastest["repro"], panel)
        for tool in ("", " --tool ncu", " --tool nsys"):
            self.assertIn(f"rooflash profile {fastest['case']} --device {fastest['device']}{tool}",
                          panel)
        self.assertIn("case=", self.page.evaluate("location.hash"))
        self.page.screenshot(OPTIONS.out / "case.png", "#case")
        self.check_quiet()

    def test_a_link_made_without_scripts_opens_the_case(self):
        html = self.load("sweep")
        anchor = re.search(r'<td><a href="(#case-[^"]+)"', html).group(1)
        self.load("sweep", anchor)
        self.assertFalse(self.page.evaluate("document.getElementById('case').hidden"))
        self.check_quiet()

    def test_downloads_hold_the_data(self):
        html = self.load("sweep")
        self.page.evaluate(
            "window.saved = []; const make = URL.createObjectURL;"
            "URL.createObjectURL = (blob) => { saved.push(blob); return make(blob); };"
            "HTMLAnchorElement.prototype.click = () => {};"
            "for (const id of ['save-json', 'save-csv']) document.getElementById(id).click();"
            "for (const b of document.querySelectorAll('figcaption [title=\"Save as SVG\"]')) "
            "{ b.click(); break; }")
        record, table, drawing = self.page.evaluate("Promise.all(saved.map((b) => b.text()))")
        self.assertEqual(json.loads(record), embedded_records(html)[0])
        mine = list(csv.reader(io.StringIO(table, newline="")))
        theirs = list(csv.reader(io.StringIO(self.make("csv", "csv").read_text(encoding="utf-8"),
                                             newline="")))
        self.assertEqual(mine[0], theirs[0])
        self.assertEqual(len(mine), len(theirs))
        for left, right in zip(mine[1:], theirs[1:]):
            for name, a, b in zip(mine[0], left, right):
                same = a == b or math.isclose(float(a), float(b), rel_tol=1e-15)
                self.assertTrue(same, f"{name}: {a} and {b}")
        self.assertIn("<svg", drawing)
        self.assertIn("--k0:", drawing)
        self.page.evaluate(
            "document.querySelector('figcaption [title=\"Save as PNG\"]').click()")
        self.wait_for("saved.length === 4")
        head, size = self.page.evaluate(
            "saved[3].arrayBuffer().then((b) => [[...new Uint8Array(b.slice(0, 4))], b.byteLength])")
        self.assertEqual(bytes(head), b"\x89PNG")
        self.assertGreater(size, 10_000)
        self.check_quiet()

    def test_hostile_text_is_harmless(self):
        html = self.load("hostile")
        self.assertIsNone(self.page.evaluate("window.hacked === undefined ? null : 'run'"))
        self.assertEqual(self.count("script"), len(re.findall(r"<script", html)))
        self.assertEqual(self.count("img"), 0)
        self.open_tables()
        self.assertIn("</script>", self.page.evaluate("document.body.innerText"))
        for index in range(self.count("#table-detail tbody a")):
            self.page.evaluate(f"document.querySelectorAll('#table-detail tbody a')[{index}].click()")
            self.settle()
            self.assertEqual(self.count("#case script, #case img"), 0)
        self.page.evaluate("document.querySelectorAll('.chart svg').forEach((s) => s.focus())")
        self.assertEqual(self.count("#tooltip *"), 0)
        self.assertIsNone(self.page.evaluate("window.hacked === undefined ? null : 'run'"))
        self.page.screenshot(OPTIONS.out / "hostile.png")
        # Its own address, full of hostile text, opens it again.
        fragment = self.page.evaluate("location.hash")
        self.load("hostile", fragment)
        self.assertFalse(self.page.evaluate("document.getElementById('case').hidden"))
        self.check_quiet()

    def test_hostile_addresses_are_harmless(self):
        for fragment in ("#filter=%3Cimg%20src%3Dx%3E", "#hide=nobody&baseline=%22%3E%3Cscript%3E",
                         "#case=no@9:9", "#case=@", "#theme=%22%3E", "#case-%", "#%", "#=", "#&&&",
                         "#filter=" + "(" * 5000):
            self.load("sweep", fragment)
            self.assertEqual(self.count("img"), 0)
            self.assertGreater(self.marks("throughput"), 0, fragment)
            self.check_quiet()

    def test_marks_that_turn_text_around_are_not_shown(self):
        html = self.load("hostile")
        self.open_tables()
        self.page.evaluate("document.querySelectorAll('#table-detail tbody a')[1].click()")
        self.settle()
        shown = self.page.evaluate(
            "[document.body.innerText, document.title, document.documentElement.outerHTML].join()")
        self.assertNotRegex(shown, "[\u200b\u202e\x01\x1b\x85]")
        self.assertIn("\u202e", json.dumps(embedded_records(html), ensure_ascii=False))
        self.page.evaluate(
            "window.saved = []; const make = URL.createObjectURL;"
            "URL.createObjectURL = (blob) => { saved.push(blob.text()); return make(blob); };"
            "HTMLAnchorElement.prototype.click = () => {};"
            "document.getElementById('save-json').click()")
        self.assertEqual(json.loads(self.page.evaluate("saved[0]")), embedded_records(html)[0])
        self.check_quiet()

    def test_long_names_do_not_widen_the_page(self):
        for kind in ("long", "huge"):
            html = self.load(kind)
            self.assertLess(len(html), 2_000_000)
            self.assertGreater(self.marks("throughput"), 0)
            self.open_tables()
            width, view = self.page.evaluate(
                "[document.documentElement.scrollWidth, document.documentElement.clientWidth]")
            self.assertLessEqual(width, view)
            self.assertLess(self.page.evaluate("Math.max(...[...document.querySelectorAll("
                                               "'table')].map((t) => t.scrollWidth))"), 5000)
            self.assertLess(self.page.evaluate("document.body.innerText.length"), 200_000)
            self.page.evaluate("document.querySelector('#table-detail tbody a').click()")
            self.settle()
            self.page.screenshot(OPTIONS.out / f"{kind}.png", "#case")
            self.check_quiet()

    def test_reads_without_scripts(self):
        self.page.call("Emulation.setScriptExecutionDisabled", value=True)
        try:
            path = self.make("sweep")
            self.page.open(path.resolve().as_uri())
            self.page.screenshot(OPTIONS.out / "no-scripts.png")
        finally:
            self.page.call("Emulation.setScriptExecutionDisabled", value=False)
        self.assertEqual(self.count(".chart svg"), 0)
        self.assertEqual(self.count("details:not([open])"), 0)
        rows = embedded_records(path.read_text(encoding="utf-8"))[0]["rows"]
        self.assertEqual(self.table_rows("table-detail"), len(rows))
        self.assertEqual(self.count(".controls:not([hidden])"), 0)

    def test_a_report_of_two_records_draws_both_and_their_comparison(self):
        html = self.load("two")
        self.assertEqual(self.marks("throughput"), len(timed_rows(html)))
        cases = self.count("#table-comparison-1 tbody tr")
        drawn = self.count("[data-chart=comparison-1] .forest")
        self.assertGreater(drawn, 20)
        self.assertLessEqual(drawn, cases)
        self.assertEqual(self.count("[data-chart=comparison-1] .forest .whisker"), drawn)
        # The verdict stands beside the mark in words.
        self.assertIn("slower +8.0 %", self.page.evaluate(
            "document.querySelector('[data-chart=comparison-1] svg').textContent"))
        self.type_filter("kernel:fa2 dtype:bf16")
        self.assertLess(self.count("[data-chart=comparison-1] .forest"), drawn)
        self.check_quiet()

    def test_lines_of_equal_efficiency_are_shares_of_the_roof(self):
        self.load("sweep")
        # The flat parts of the lines, in pixels of a logarithmic axis: 100, 50, 25, 10 %.
        heights = self.page.evaluate(
            "(() => { const svg = document.querySelector('[data-chart=roofline] svg');"
            "return ['.roof', '.iso:nth-child(1)', '.iso:nth-child(2)', '.iso:nth-child(3)'].map("
            "(s) => Number(svg.querySelector(s).getAttribute('d').split(',').pop())); })()")
        decade = (heights[3] - heights[0])
        for height, share in zip(heights[1:], (0.5, 0.25, 0.1)):
            self.assertAlmostEqual((height - heights[0]) / decade, -math.log10(share), delta=1e-3)
        labels = self.page.evaluate(
            "[...document.querySelector('[data-chart=roofline] svg').querySelectorAll('.minor')]"
            ".map((t) => t.textContent)")
        self.assertEqual(labels, ["50 %", "25 %", "10 %"])

    def test_a_history_draws_every_record_and_its_changes(self):
        html = self.load("history")
        data = embedded_data(html)
        cases = data["history"]
        changes = [point["change"] for one in cases for point in one["points"] if point["change"]]
        self.assertGreater(len(changes), 10)
        self.page.evaluate(
            "for (let b; (b = document.querySelector('#history .more-figures:not([hidden])'));) "
            "b.click()")
        self.settle()
        self.assertEqual(self.count("[data-chart=history] svg"), len(cases))
        self.assertEqual(self.marks("history"), sum(len(one["points"]) for one in cases))
        self.assertEqual(self.count("[data-chart=history] .rule"), len(changes))
        texts = self.page.evaluate("document.querySelector('[data-chart=history]').textContent")
        self.assertEqual(texts.count("slower +8.0 %"), sum(c > 1 for c in changes))
        self.assertEqual(texts.count("faster -7.4 %"), sum(c < 1 for c in changes))
        # The filter and the legend act on it, and so they do on its table.
        self.type_filter("kernel:fa2 dtype:bf16")
        wanted = [one for one in cases
                  if one["kernel"] == "fa2" and one["problem"]["dtype"] == "bf16"]
        self.assertEqual(self.count("[data-chart=history] figure:not([hidden])"), len(wanted))
        self.open_tables()
        self.assertEqual(self.table_rows("table-history"),
                         min(500, sum(len(one["points"]) for one in wanted)))
        self.check_quiet()

    def test_a_page_of_some_sections_holds_these_alone(self):
        html = self.load("parts")
        self.assertEqual(self.page.evaluate(
            "[...document.querySelectorAll('section')].map((s) => s.id)"), ["roofline", "noise"])
        self.assertEqual(self.page.evaluate(
            "[...document.querySelectorAll('nav a')].map((a) => a.textContent)"),
            ["Roofline", "Noise"])
        self.assertEqual(self.marks("roofline"),
                         sum(bool(hbm_bytes(row)) for row in timed_rows(html)))
        # No link leads nowhere, with scripts or without.
        ids = set(re.findall(r'id="([^"]+)"', html))
        self.assertEqual([a for a in re.findall(r'href="#([^"]+)"', html) if a not in ids], [])
        self.open_tables()
        self.assertEqual(self.count("#table-noise tbody a"), 0)
        # Marks are named all the same; there is no case to open.
        self.page.evaluate("document.querySelector('[data-chart=roofline] svg').focus()")
        self.press("ArrowRight")
        self.press("Enter")
        self.type_filter("kernel:fa2")
        self.page.evaluate("document.getElementById('reset').click()")
        self.settle()
        self.load("parts", "#case=x@0:0&baseline=fa2&filter=kernel%3Afa2")
        self.check_quiet()

    def test_thinned_charts_say_so_and_keep_their_extremes(self):
        ends = ("(() => { const at = [...document.querySelectorAll('[data-chart=roofline] figure')]"
                ".map((f) => [...f.querySelectorAll('svg > g:not(.key) .mark')].flatMap((m) => "
                "[...m.getAttribute('d').matchAll(/M([0-9.]+),([0-9.]+)/g)].map((p) => "
                "[Number(p[1]), Number(p[2])]))); return at.map((p) => [d3.extent(p, (q) => q[0]), "
                "d3.extent(p, (q) => q[1])]); })()")
        self.load("many")
        whole = self.page.evaluate(ends)
        html = self.load("thinned")
        timed = timed_rows(html)
        self.assertEqual(self.page.evaluate(ends), whole)
        groups = {}
        for row in timed:
            groups.setdefault((row["device"], row["problem"]["dtype"]), []).append(row)
        figures = "document.querySelectorAll('[data-chart=roofline] figure')"
        self.assertEqual(self.page.evaluate(f"{figures}.length"), len(groups))
        drawn = self.page.evaluate(
            f"[...{figures}].map((f) => d3.sum(f.querySelectorAll('.mark'), "
            "(m) => Number(m.dataset.n || 0)))")
        notes = self.page.evaluate(
            f"[...{figures}].map((f) => f.querySelector('.offframe').textContent)")
        sizes = sorted(len(rows) for rows in groups.values())
        self.assertGreater(sizes[-1], 50)
        self.assertLessEqual(max(drawn), 50)
        self.assertEqual(sum("--max-points" in note for note in notes),
                         sum(size > 50 for size in sizes))
        self.open_tables()
        self.page.evaluate(
            "[...document.getElementById('table-roofline').closest('details')"
            ".querySelectorAll('.more button')].find((b) => b.textContent === 'Show all').click()")
        self.assertEqual(self.table_rows("table-roofline"), len(timed))
        self.check_quiet()

    def test_ten_thousand_rows_open_and_filter_fast(self):
        path = self.make("large")
        self.assertLess(path.stat().st_size, 8_000_000)
        # Main-thread processor time, so that a busy machine does not fail it.
        page = chromium.Page(OPTIONS.chromium, width=1280)
        try:
            page.call("Performance.enable", timeDomain="threadTicks")

            def busy():
                return next(m["value"] for m in page.call("Performance.getMetrics")["metrics"]
                            if m["name"] == "TaskDuration")

            seconds = []
            for _ in range(3):
                page.open("about:blank")
                before = busy()
                page.open(path.resolve().as_uri())
                while page.evaluate("document.documentElement.dataset.ready") != "yes":
                    time.sleep(0.01)
                seconds.append(busy() - before)
            self.assertLess(min(seconds), 2)
            while page.evaluate("document.documentElement.dataset.drawn") != "all":
                time.sleep(0.02)
            page.evaluate("document.getElementById('table-throughput').closest('details').open = true")
            page.evaluate("const later = window.setTimeout; window.setTimeout = (f, ms) => "
                          "ms === 80 ? f() : later.call(window, f, ms); 0")
            for text in ("seqlen:>=4k", "dtype:bf16 -kernel:kernel1*"):
                times = []
                for typed in (text, "", text, "", text, ""):
                    times.append(page.evaluate(
                        "(() => { const box = document.getElementById('filter'); "
                        f"box.value = {json.dumps(typed)}; const start = performance.now(); "
                        "box.dispatchEvent(new Event('input')); "
                        "return performance.now() - start; })()"))
                    while page.evaluate("document.documentElement.dataset.drawn") != "all":
                        time.sleep(0.05)
                # The best of three: the machine may be busy.
                self.assertLess(min(times[::2]), 100, text)
                self.assertLess(min(times[1::2]), 100, "no filter")
            self.assertEqual(page.messages, [])
        finally:
            page.close()

    def test_tables_of_many_rows_grow_on_demand(self):
        self.load("large")
        self.open_tables()
        self.assertEqual(self.table_rows("table-throughput"), 500)
        button = ("[...document.getElementById('table-throughput').closest('details')"
                  ".querySelectorAll('.more button')].find((b) => b.textContent === '{}').click()")
        self.page.evaluate(button.format("Show 500 more"))
        self.assertEqual(self.table_rows("table-throughput"), 1000)
        self.page.evaluate(button.format("Show all"))
        self.assertEqual(self.table_rows("table-throughput"), 10_000)
        self.check_quiet()

    def test_pictures_in_light_dark_print_and_on_a_phone(self):
        for kind in ("sweep", "showcase", "two"):
            self.load(kind)
            for scheme in ("light", "dark"):
                self.page.media(scheme=scheme)
                for part in PARTS:
                    name = f"{kind}-{scheme}-{part.lstrip('#.')}.png"
                    self.page.screenshot(OPTIONS.out / name, part)
        self.page.media()
        self.page.viewport(390, 844)
        self.load("showcase")
        self.page.screenshot(OPTIONS.out / "phone.png")
        self.page.viewport(1280, 900)
        colours = []
        for scheme in ("light", "dark"):
            self.page.media(scheme=scheme)
            colours.append(self.page.evaluate("getComputedStyle(document.body).backgroundColor"))
        self.assertNotEqual(*colours)
        self.page.media(media="print", scheme="dark")
        self.assertEqual(self.page.evaluate("getComputedStyle(document.body).backgroundColor"),
                         "rgb(255, 255, 255)")
        self.page.media()
        is_open = "document.getElementById('table-detail').closest('details').open"
        for event, printing in (("beforeprint", True), ("afterprint", False)):
            self.page.evaluate(f"dispatchEvent(new Event('{event}'))")
            self.assertEqual(self.page.evaluate(is_open), printing)
            self.assertGreater(self.table_rows("table-detail"), 0)
        pdf = OPTIONS.out / "report.pdf"
        self.page.pdf(pdf)
        content = pdf.read_bytes()
        self.assertTrue(content.startswith(b"%PDF"))
        self.assertNotIn(b"/Subtype /Image", content)  # charts are vectors
        pages = content.count(b"/Type /Page\n") + content.count(b"/Type /Page ")
        self.assertLess(pages, 20 + self.table_rows("table-detail") / 20)
        if shutil.which("pdftoppm"):
            subprocess.run(["pdftoppm", "-r", "60", "-png", str(pdf), str(OPTIONS.out / "pdf")],
                           check=True)
        self.check_quiet()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("make_report")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("browser-out"))
    arguments, rest = parser.parse_known_args()
    OPTIONS.make_report, OPTIONS.out = arguments.make_report, arguments.out
    OPTIONS.chromium = chromium.find()
    if not OPTIONS.chromium:
        print("skipped: no Chromium (apt-get install chromium)")
        return 77
    OPTIONS.out.mkdir(parents=True, exist_ok=True)
    return 0 if unittest.main(argv=[sys.argv[0]] + rest, exit=False).result.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())
