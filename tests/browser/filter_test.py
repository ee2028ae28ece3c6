#!/usr/bin/env python3
"""Holds the report's filter (reports/js/filter.js) equal to the program's.

    filter_test.py FILTER_CASES [--out FOLDER]

FILTER_CASES prints what the program makes of many expressions. Exit 77 where there is no Chromium.
"""

import json
import pathlib
import re
import subprocess
import sys
import unittest

import chromium

SCRIPTS = pathlib.Path(__file__).resolve().parents[2] / "reports" / "js"


class FilterTest(unittest.TestCase):
    def test_same_rows_and_same_faults(self):
        oracle = json.loads(subprocess.run([CASES], check=True, capture_output=True).stdout)
        page = chromium.Page(CHROMIUM)
        try:
            text = "".join((SCRIPTS / name).read_text() for name in ("format.js", "filter.js"))
            found = page.evaluate(
                f"(() => {{ {text}\nconst {{rows, cases}} = {json.dumps(oracle)};"
                "return cases.map(({text}) => { try { const passes = parseFilter(text);"
                "return {matches: rows.map(passes)}; } catch (error) {"
                "return {error: error.message}; } }); })()")
        finally:
            page.close()
        self.assertGreater(sum("matches" in case for case in oracle["cases"]), 60)
        self.assertGreater(sum("error" in case for case in oracle["cases"]), 60)
        for case, mine in zip(oracle["cases"], found):
            with self.subTest(text=case["text"]):
                self.assertEqual(mine.get("matches"), case.get("matches"), mine.get("error"))
                column = re.search(r" at column (\d+) of ", case.get("error", ""))
                if column:
                    self.assertIn(f" at column {column.group(1)}", mine["error"])


if __name__ == "__main__":
    CASES = sys.argv[1]
    CHROMIUM = chromium.find()
    if not CHROMIUM:
        print("skipped: no Chromium (apt-get install chromium)")
        sys.exit(77)
    sys.exit(0 if unittest.main(argv=sys.argv[:1], exit=False).result.wasSuccessful() else 1)
