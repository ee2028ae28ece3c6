#!/usr/bin/env python3
"""Writes the README's result from a record, so that the two cannot differ.

    readme_table.py --rooflash build/rooflash [--readme README.md] [--check]

The README holds a pair of markers that name the record, relative to the README:

    <!-- result: reports/samples/h200-quickstart.json -->
    <!-- /result -->

What stands between them is replaced by the output of `rooflash report RECORD`, in a
code block. With --check nothing is written, and the exit code is 1 where the text is out of date.
"""

import argparse
import os
import pathlib
import re
import subprocess
import sys

BLOCK = re.compile(r"(<!-- result: (?P<record>\S+) -->\n)(?P<text>.*?)(<!-- /result -->)", re.S)


def table(rooflash, record):
    environment = dict(os.environ, NO_COLOR="1", COLUMNS="100")
    result = subprocess.run([rooflash, "report", str(record)],
                            env=environment, capture_output=True, text=True)
    if result.returncode != 0:
        sys.exit(f"readme_table.py: rooflash report {record} failed:\n{result.stderr}")
    return f"\n```\n{result.stdout.rstrip()}\n```\n\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--rooflash", required=True, help="the driver")
    parser.add_argument("--readme", type=pathlib.Path, default=pathlib.Path("README.md"))
    parser.add_argument("--check", action="store_true", help="compare only")
    arguments = parser.parse_args()
    old = arguments.readme.read_text(encoding="utf-8")
    if not BLOCK.search(old):
        sys.exit(f"readme_table.py: {arguments.readme} has no <!-- result: RECORD --> marker")

    def filled(match):
        record = arguments.readme.parent / match["record"]
        return match[1] + table(arguments.rooflash, record) + match[4]

    new = BLOCK.sub(filled, old)
    if new == old:
        return 0
    if arguments.check:
        print(f"{arguments.readme} is out of date: run scripts/readme_table.py", file=sys.stderr)
        return 1
    arguments.readme.write_text(new, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
