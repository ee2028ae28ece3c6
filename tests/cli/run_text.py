#!/usr/bin/env python3
"""Runs the text tests: commands of `rooflash`, their exit code and their exact output.

    run_text.py ROOFLASH FILE...            compares
    run_text.py --update ROOFLASH FILE...   rewrites the files with what the commands printed now

A file holds lines of four kinds, in this order for each command:
    # comment
    $ command line         words as in a shell; run in a fresh folder that all commands of a file share
    > line of stdout       "> ..." alone stands for any number of lines
    ! line of stderr       likewise
    = exit code            0 where left out
A command "write NAME TEXT" makes a file; it stands for input files of a test.
"""
import os
import re
import shlex
import subprocess
import sys
import tempfile

PROGRESS = re.compile(r"rooflash: \[ *\d+/\d+\] \d+:\d\d elapsed, ETA \d+:\d\d")

class Step:
    def __init__(self, line_number, command):
        self.line_number = line_number
        self.command = command
        self.out, self.err, self.code = [], [], 0


def parse(path):
    """The file as a list of comment lines and steps."""
    items = []
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file.read().splitlines(), 1):
            if line.startswith("$ "):
                items.append(Step(number, line[2:]))
            elif line.startswith("#") or not line:
                items.append(line)
            elif line[:1] in ">!=" and items and isinstance(items[-1], Step):
                step, text = items[-1], line[2:]
                if line[0] == "=":
                    step.code = int(text)
                else:
                    (step.out if line[0] == ">" else step.err).append(text)
            else:
                sys.exit(f"{path}:{number}: a line of no known kind: {line}")
    return items


def matches(expected, actual):
    pattern = "".join(r"(?:[^\n]*\n)*" if line == "..." else re.escape(line) + "\n"
                      for line in expected)
    return re.fullmatch(pattern, "".join(line + "\n" for line in actual)) is not None


def execute(step, rooflash, folder, environment):
    words = shlex.split(step.command)
    if words[0] == "write":
        with open(os.path.join(folder, words[1]), "w", encoding="utf-8") as file:
            file.write(words[2])
        return [], [], 0
    if words[0] == "rooflash":
        words[0] = rooflash
    done = subprocess.run(words, cwd=folder, env=environment, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=120, check=False)
    # Progress is told once a second, so how often depends on the machine.
    told = [line for line in done.stderr.splitlines() if not PROGRESS.fullmatch(line)]
    return done.stdout.splitlines(), told, done.returncode


def rendered(step):
    lines = ["$ " + step.command]
    lines += ["> " + line if line else ">" for line in step.out]
    lines += ["! " + line if line else "!" for line in step.err]
    if step.code:
        lines.append(f"= {step.code}")
    return lines


def run_file(path, rooflash, update):
    """The number of commands that did not do what the file says."""
    failures = 0
    items = parse(path)
    with tempfile.TemporaryDirectory() as folder:
        # On PATH, for commands that start it by way of another: env COLUMNS=30 rooflash ...
        path_list = os.path.dirname(rooflash) + os.pathsep + os.environ["PATH"]
        environment = {"PATH": path_list, "HOME": folder, "COLUMNS": "100", "TERM": "dumb",
                       "CUDA_VISIBLE_DEVICES": "-1"}
        for step in (item for item in items if isinstance(item, Step)):
            out, err, code = execute(step, rooflash, folder, environment)
            if matches(step.out, out) and matches(step.err, err) and step.code == code:
                continue
            failures += 1
            if update:
                step.out, step.err, step.code = out, err, code
                continue
            actual = Step(step.line_number, step.command)
            actual.out, actual.err, actual.code = out, err, code
            print(f"{path}:{step.line_number}: expected\n  " + "\n  ".join(rendered(step)))
            print("but got\n  " + "\n  ".join(rendered(actual)) + "\n")
    if update:
        lines = []
        for item in items:
            lines += rendered(item) if isinstance(item, Step) else [item]
        with open(path, "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")
        return 0
    return failures


def main():
    arguments = sys.argv[1:]
    update = arguments[:1] == ["--update"]
    rooflash, *files = arguments[update:]
    failures = sum(run_file(path, os.path.abspath(rooflash), update) for path in files)
    if failures:
        sys.exit(f"{failures} commands failed")


main()
