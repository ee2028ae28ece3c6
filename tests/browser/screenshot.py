#!/usr/bin/env python3
"""A picture of a report, or of one part of it, made by headless Chromium.

    screenshot.py REPORT.html OUT.png [--part '#roofline'] [--scheme dark] [--width 1300]
"""

import argparse
import pathlib
import sys
import time

import chromium


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("report", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--part", help="CSS selector of the element; default: the whole page")
    parser.add_argument("--scheme", choices=("light", "dark"), default="light")
    parser.add_argument("--width", type=int, default=1300)
    arguments = parser.parse_args()
    browser = chromium.find()
    if not browser:
        sys.exit("screenshot.py: no Chromium (apt-get install chromium)")
    page = chromium.Page(browser, width=arguments.width)
    try:
        page.media(scheme=arguments.scheme)
        page.open(arguments.report.resolve().as_uri())
        while page.evaluate("document.documentElement.dataset.drawn") != "all":
            time.sleep(0.02)
        page.screenshot(arguments.out, arguments.part)
    finally:
        page.close()


if __name__ == "__main__":
    main()
