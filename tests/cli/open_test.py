#!/usr/bin/env python3
"""rooflash report --open on a terminal, with a stand-in for the desktop's program.

    open_test.py ROOFLASH SAMPLES
"""
import os
import pty
import subprocess
import sys
import tempfile
import unittest

ROOFLASH = os.path.abspath(sys.argv.pop(1))
SAMPLE = os.path.join(os.path.abspath(sys.argv.pop(1)), "h200-quickstart.json")
OPENER = """#!/bin/sh
echo "$1" > opened
echo noise of a browser
echo noise of a browser >&2
exit {code}
"""


class Open(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def report(self, code=None):
        """What the command prints on a terminal where the opener ends with `code`; None: has none."""
        os.makedirs(self.path("bin"))
        if code is not None:
            with open(self.path("bin/xdg-open"), "w", encoding="utf-8") as file:
                file.write(OPENER.format(code=code))
            os.chmod(self.path("bin/xdg-open"), 0o755)
        ours, theirs = pty.openpty()
        done = subprocess.run([ROOFLASH, "report", SAMPLE, "-o", "page; $x.html", "--open"],
                              env={"PATH": self.path("bin"), "HOME": self.folder}, stdout=theirs,
                              stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, cwd=self.folder,
                              text=True, check=False)
        os.close(theirs)
        os.close(ours)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(os.path.exists(self.path("page; $x.html")))
        return done.stderr

    def test_the_page_is_handed_to_the_desktop(self):
        self.assertEqual(self.report(0), "rooflash: saved page; $x.html\n")
        with open(self.path("opened"), encoding="utf-8") as file:
            opened = file.read().rstrip("\n")
        self.assertEqual(os.path.realpath(opened), os.path.realpath(self.path("page; $x.html")))

    def test_a_desktop_that_cannot_costs_one_line(self):
        err = self.report(3)
        self.assertIn("--open: xdg-open could not show it; open ", err)
        self.assertIn("page; $x.html in a browser", err)

    def test_no_desktop_costs_one_line(self):
        self.assertIn("--open: there is no xdg-open here; open ", self.report())


unittest.main()
