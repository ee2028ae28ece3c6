#!/usr/bin/env python3
"""Opens reports of made-up records from disk in headless Chromium and checks what is drawn.

    report_test.py MAKE_REPORT [--out FOLDER]

Screenshots stay in FOLDER. Exit 77 (skipped) where there is no Chromium.
"""

import argparse
import json
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

import chromium

OPTIONS = argparse.Namespace()


def embedded_records(html):
    block = re.search(r'<script type="application/json" id="records">(.*?)</script>', html, re.S)
    return json.loads(block.group(1))


def hbm_bytes(row):
    counters = row["counters"]
    if counters["hbm_read_bytes"] is not None:
        return counters["hbm_read_bytes"] + counters["hbm_write_bytes"]
    return row["model"]["predicted_hbm_bytes"] if row["simulated"] else None


class ReportTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.page = chromium.Page(OPTIONS.chromium)

    @classmethod
    def tearDownClass(cls):
        cls.page.close()

    def setUp(self):
        self.page.media()
        self.page.messages.clear()
        self.page.requests.clear()

    def load(self, kind):
        path = OPTIONS.out / f"{kind}.html"
        subprocess.run([OPTIONS.make_report, kind, str(path)], check=True)
        self.url = path.resolve().as_uri()
        self.page.open("about:blank")
        self.page.requests.clear()
        self.seconds = self.page.open(self.url)
        return path.read_text(encoding="utf-8")

    def check_quiet(self):
        self.assertEqual(self.page.messages, [])
        foreign = [url for url in self.page.requests
                   if url.split("#")[0] != self.url and not url.startswith(("data:", "blob:"))]
        self.assertEqual(foreign, [])

    def count(self, selector):
        return self.page.evaluate(f"document.querySelectorAll({json.dumps(selector)}).length")

    def shown_rows(self, table):
        return self.page.evaluate(
            f"[...document.getElementById('{table}').tBodies[0].rows]"
            ".filter((row) => !row.hidden).length")

    def test_charts_hold_every_ok_row_and_no_other(self):
        rows = embedded_records(self.load("sweep"))[0]["rows"]
        timed = [row for row in rows if row["status"] == "ok"]
        self.assertLess(len(timed), len(rows))
        moved = [row for row in timed if hbm_bytes(row)]
        off_frame = self.page.evaluate(
            "[...document.querySelectorAll('.offframe')].map((p) => p.textContent).join(' ')")
        listed = sum(row["case"] in off_frame for row in moved)
        self.assertEqual(self.count("[data-chart=roofline] .point"), len(moved) - listed)
        self.assertEqual(self.count("[data-chart=roofline] .compulsory"), len(moved) - listed)
        self.assertEqual(self.count("[data-chart=throughput] .point"), len(timed))
        self.assertEqual(self.count("[data-chart=bytes] .bar"), len(moved))
        # A kernel is told by its shape as well as by its colour.
        shapes = self.page.evaluate(
            "new Set([...document.querySelectorAll('[data-chart=throughput] .mark')]"
            ".map((mark) => mark.getAttribute('d'))).size")
        self.assertEqual(shapes, len({row["kernel"] for row in timed}))
        simulated = sum(row["simulated"] for row in timed)
        self.assertEqual(self.count("[data-chart=throughput] .point.sim"), simulated)
        dtypes = {(row["device"], row["problem"]["dtype"]) for row in timed}
        self.assertEqual(self.count("[data-chart=roofline] svg"), len(dtypes))
        self.assertEqual(self.count("[data-chart=roofline] .datasheet"), len(dtypes))
        self.check_quiet()

    def test_every_chart_is_named_and_reachable_by_keyboard(self):
        self.load("sweep")
        unnamed = self.page.evaluate(
            "[...document.querySelectorAll('.chart svg')].filter((svg) => "
            "svg.getAttribute('role') !== 'img' || !svg.getAttribute('aria-labelledby').split(' ')"
            ".every((id) => document.getElementById(id).textContent)).length")
        self.assertEqual(unnamed, 0)
        self.page.evaluate("document.querySelector('[data-chart=throughput] .point').focus()")
        tip = "document.getElementById('tooltip').textContent"
        first = self.page.evaluate(tip)
        self.assertIn("TFLOPS", first)
        for kind in ("keyDown", "keyUp"):
            self.page.call("Input.dispatchKeyEvent", type=kind, key="ArrowRight",
                           code="ArrowRight")
        self.assertNotEqual(self.page.evaluate(tip), first)
        self.check_quiet()

    def test_legend_and_filter_act_on_charts_and_tables(self):
        rows = embedded_records(self.load("sweep"))[0]["rows"]
        timed = [row for row in rows if row["status"] == "ok"]
        fa2 = sum(row["kernel"] == "fa2" for row in timed)
        naive_label = ("[...document.querySelectorAll('#legend label')]"
                       ".find((label) => label.textContent === 'naive')")
        self.page.evaluate(f"{naive_label}.click()")
        self.assertEqual(self.count("[data-chart=throughput] .point"), fa2)
        self.assertEqual(self.shown_rows("table-detail"),
                         sum(row["kernel"] == "fa2" for row in rows))
        self.page.evaluate(f"{naive_label}.click()")
        self.page.evaluate(
            "const box = document.getElementById('filter'); box.value = 'D128/causal bf16';"
            "box.dispatchEvent(new Event('input')); new Promise((done) => setTimeout(done, 400))")
        wanted = sum("d128/causal" in row["case"] and "bf16" in row["case"] for row in timed)
        self.assertGreater(wanted, 0)
        self.assertEqual(self.count("[data-chart=throughput] .point"), wanted)
        self.assertEqual(self.shown_rows("table-throughput"), wanted)
        self.check_quiet()

    def test_tables_sort_and_links_open_the_case(self):
        self.load("sweep")
        column = ("[...document.getElementById('table-throughput').tBodies[0].rows]"
                  ".map((row) => Number(row.cells[6].dataset.v))")
        click = "document.querySelectorAll('#table-throughput th button')[6].click()"
        self.page.evaluate(click)
        values = self.page.evaluate(column)
        self.assertEqual(values, sorted(values))
        self.page.evaluate(click)
        self.assertEqual(self.page.evaluate(column), sorted(values, reverse=True))
        self.page.evaluate("document.querySelector('#table-throughput a').click();"
                           "new Promise((done) => setTimeout(done, 200))")
        self.assertTrue(self.page.evaluate(
            "document.getElementById('table-detail').closest('details').open && "
            "document.querySelector('tr:target') !== null"))
        self.check_quiet()

    def test_downloads_hold_the_data(self):
        html = self.load("sweep")
        self.page.evaluate(
            "window.saved = []; const make = URL.createObjectURL;"
            "URL.createObjectURL = (blob) => { saved.push(blob.text()); return make(blob); };"
            "HTMLAnchorElement.prototype.click = () => {};"
            "for (const id of ['save-json', 'save-csv']) document.getElementById(id).click();"
            "document.querySelector('figcaption button').click()")
        record, table, drawing = self.page.evaluate("Promise.all(saved)")
        self.assertEqual(json.loads(record), embedded_records(html)[0])
        self.assertEqual(len(table.strip().split("\r\n")), 1 + len(json.loads(record)["rows"]))
        self.assertIn("<svg", drawing)
        self.assertIn("--k0:", drawing)
        self.check_quiet()

    def test_hostile_text_is_harmless(self):
        html = self.load("hostile")
        self.assertIsNone(self.page.evaluate("window.hacked === undefined ? null : 'run'"))
        self.assertEqual(self.count("script"), len(re.findall(r"<script", html)))
        self.assertEqual(self.count("img"), 0)
        self.assertIn("</script>", self.page.evaluate("document.body.innerText"))
        self.page.evaluate(
            "document.querySelectorAll('details').forEach((d) => { d.open = true; });"
            "document.querySelectorAll('.point').forEach((p) => p.focus())")
        self.assertEqual(self.count("#tooltip *"), 0)
        self.page.screenshot(OPTIONS.out / "hostile.png")
        self.check_quiet()

    def test_marks_that_turn_text_around_are_not_shown(self):
        html = self.load("hostile")
        shown = self.page.evaluate(
            "document.querySelectorAll('details').forEach((d) => { d.open = true; });"
            "document.querySelectorAll('.point').forEach((p) => p.focus());"
            "[document.body.innerText, document.title,"
            " ...[...document.querySelectorAll('svg')].map((svg) => svg.textContent)].join()")
        self.assertNotRegex(shown, "[\u200b\u202e]")
        self.assertIn("\u202e", json.dumps(embedded_records(html), ensure_ascii=False))
        self.page.evaluate(
            "window.saved = []; const make = URL.createObjectURL;"
            "URL.createObjectURL = (blob) => { saved.push(blob.text()); return make(blob); };"
            "HTMLAnchorElement.prototype.click = () => {};"
            "document.getElementById('save-json').click()")
        self.assertEqual(json.loads(self.page.evaluate("saved[0]")), embedded_records(html)[0])
        self.check_quiet()

    def test_long_names_do_not_widen_the_page(self):
        self.load("long")
        self.assertGreater(self.count("[data-chart=throughput] .point"), 0)
        self.page.evaluate(
            "document.querySelectorAll('details').forEach((d) => { d.open = true; })")
        width, view = self.page.evaluate(
            "[document.documentElement.scrollWidth, document.documentElement.clientWidth]")
        self.assertLessEqual(width, view)
        self.assertLess(self.page.evaluate(
            "Math.max(...[...document.querySelectorAll('table')].map((t) => t.scrollWidth))"), 5000)
        self.page.screenshot(OPTIONS.out / "long.png", "header")
        self.check_quiet()

    def test_reads_without_scripts(self):
        self.page.call("Emulation.setScriptExecutionDisabled", value=True)
        try:
            html = self.load("sweep")
            self.page.screenshot(OPTIONS.out / "no-scripts.png")
        finally:
            self.page.call("Emulation.setScriptExecutionDisabled", value=False)
        self.assertEqual(self.count(".chart svg"), 0)
        self.assertEqual(self.count("details[open] table"), 4)
        self.assertEqual(self.shown_rows("table-detail"), len(embedded_records(html)[0]["rows"]))

    def test_a_report_of_two_records_draws_both(self):
        records = embedded_records(self.load("two"))
        timed = sum(row["status"] == "ok" for record in records for row in record["rows"])
        self.assertEqual(self.count("[data-chart=throughput] .point"), timed)
        self.check_quiet()

    def test_ten_thousand_rows_open_and_the_rest_of_a_table_is_made_on_demand(self):
        self.load("large")
        self.assertLess(self.seconds, 15)
        self.assertEqual(self.shown_rows("table-throughput"), 500)
        self.page.evaluate(
            "document.getElementById('table-throughput').closest('details').open = true;"
            "new Promise((done) => setTimeout(done, 300))")
        self.assertEqual(self.shown_rows("table-throughput"), 10_000)
        self.check_quiet()

    def test_pictures_in_light_dark_and_print(self):
        self.load("sweep")
        for scheme in ("light", "dark"):
            self.page.media(scheme=scheme)
            for part in ("header", "#summary", "#roofline", "#throughput", "#bytes", "#cases",
                         "#environment", "#method"):
                name = f"{scheme}-{part.lstrip('#')}.png"
                self.page.screenshot(OPTIONS.out / name, part)
        colours = []
        for scheme in ("light", "dark"):
            self.page.media(scheme=scheme)
            colours.append(self.page.evaluate("getComputedStyle(document.body).backgroundColor"))
        self.assertNotEqual(*colours)
        self.page.media(media="print", scheme="dark")
        self.assertEqual(self.page.evaluate("getComputedStyle(document.body).backgroundColor"),
                         "rgb(255, 255, 255)")
        self.page.screenshot(OPTIONS.out / "print-media.png")
        self.page.media()
        pdf = OPTIONS.out / "report.pdf"
        self.page.pdf(pdf)
        self.assertTrue(pdf.read_bytes().startswith(b"%PDF"))
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
