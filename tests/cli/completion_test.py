#!/usr/bin/env python3
"""rooflash completion: shells are asked for words, and these are those of --help.

    completion_test.py ROOFLASH [unittest arguments]

bash answers here; zsh and fish read their scripts where they are installed.
"""
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOFLASH = os.path.abspath(sys.argv.pop(1))


def output(*command, **options):
    return subprocess.run(command, capture_output=True, text=True, check=True, **options).stdout


def help_of(*command):
    """The commands and flags that --help of a command lists."""
    text = output(ROOFLASH, *command, "--help")
    commands = re.search(r"\nSubcommands:\n((?:  .*\n)*)", text)
    commands = re.findall(r"^  ([a-z-]+)", commands.group(1), re.M) if commands else []
    flags = []
    for line in re.findall(r"^  (-.*)", text, re.M):
        flags += re.findall(r"(?:^|,)(--?[a-zA-Z0-9][a-zA-Z0-9-]*)", line.split("  ")[0])
    return commands, flags


def all_commands():
    paths = [()]
    for path in paths:
        paths += [path + (command,) for command in help_of(*path)[0]]
    return paths


class Bash(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.script = output(ROOFLASH, "completion", "bash")

    def complete(self, *words):
        """What bash offers for the last of `words`."""
        words = ("rooflash",) + words
        program = (self.script + f"\nCOMP_WORDS=({' '.join(map(shlex.quote, words))})\n"
                   f"COMP_CWORD={len(words) - 1}\n_rooflash\n" 'printf "%s\\n" "${COMPREPLY[@]}"\n')
        done = subprocess.run(["bash", "--norc", "-u", "-c", program], capture_output=True,
                              text=True, check=True)
        self.assertEqual(done.stderr, "")
        return done.stdout.split()

    def test_commands_and_flags_are_those_of_help(self):
        paths = all_commands()
        self.assertIn(("run",), paths)
        self.assertIn(("list", "cases"), paths)
        self.assertIn(("completion", "fish"), paths)
        for path in paths:
            commands, flags = help_of(*path)
            self.assertEqual(sorted(self.complete(*path, "")), sorted(commands), path)
            self.assertEqual(sorted(self.complete(*path, "-")), sorted(flags), path)

    def test_beginnings_of_words(self):
        self.assertEqual(self.complete("hist"), ["history"])
        self.assertEqual(self.complete("--color", "never", "hist"), ["history"])
        self.assertEqual(self.complete("export", "a.json", "--form"), ["--format"])
        self.assertEqual(self.complete("list", "ca"), ["cases"])
        self.assertIn("--seqlen", self.complete("list", "cases", "--seq"))

    def test_values(self):
        self.assertEqual(self.complete("export", "a.json", "--format", "o"),
                         ["openmetrics", "otava-csv"])
        self.assertEqual(self.complete("export", "--format", "=", "ju"), ["junit"])
        self.assertEqual(self.complete("export", "--format", "="),
                         self.complete("export", "--format", ""))
        self.assertEqual(self.complete("history", "--color", "a"), ["auto", "always"])
        self.assertEqual(self.complete("run", "--l2", ""), ["cold", "warm"])
        # Any text may stand here: bash goes on with files.
        self.assertEqual(self.complete("run", "-o", ""), [])
        self.assertEqual(self.complete("report", "a"), [])

    def test_loaded_as_the_footer_says(self):
        text = output("bash", "--norc", "-c",
                      f'PATH={os.path.dirname(ROOFLASH)}:$PATH; eval "$(rooflash completion bash)"; '
                      "complete -p rooflash")
        self.assertEqual(text, "complete -o default -F _rooflash rooflash\n")


class OtherShells(unittest.TestCase):
    def test_zsh(self):
        script = output(ROOFLASH, "completion", "zsh")
        self.assertTrue(script.startswith("#compdef rooflash\n"))
        functions = re.findall(r"^(_rooflash\S*)\(\) \{$", script, re.M)
        self.assertEqual(functions,
                         ["_".join(("_rooflash",) + path) for path in self.depth_first()])
        # What stands for a function is one, and quotes are closed on every line.
        self.assertLessEqual(set(re.findall(r"\) (_rooflash_\S+) ;;", script)), set(functions))
        for line in script.splitlines():
            self.assertEqual(line.replace("'\\''", "").count("'") % 2, 0, line)
        for path in all_commands():
            body = script[script.index("\n" + "_".join(("_rooflash",) + path) + "() {"):]
            body = body[:body.index("\n}\n")]
            for flag in help_of(*path)[1]:
                self.assertIn(f"'*{flag}[", body)
        if shutil.which("zsh"):
            with tempfile.NamedTemporaryFile("w", suffix=".zsh") as file:
                file.write(script)
                file.flush()
                output("zsh", "-fn", file.name)

    def depth_first(self, path=()):
        return [path] + [below for command in help_of(*path)[0]
                         for below in self.depth_first(path + (command,))]

    def test_fish(self):
        script = output(ROOFLASH, "completion", "fish")
        lines = [line for line in script.splitlines() if not line.startswith("#")]
        known = {"-c": 1, "-n": 1, "-l": 1, "-s": 1, "-a": 1, "-d": 1, "-r": 0, "-x": 0, "-f": 0}
        long_flags, commands = [], []
        for line in lines:
            # Where fish escapes with a backslash inside quotes, POSIX words cannot follow.
            words = shlex.split(line.replace("\\'", "").replace("\\\\", ""))
            self.assertEqual(words[:3], ["complete", "-c", "rooflash"])
            rest = words[1:]
            while rest:
                self.assertIn(rest[0], known, line)
                if rest[0] == "-l":
                    long_flags.append(rest[1])
                if rest[0] == "-a" and "-f" in words:
                    commands.append(rest[1])
                rest = rest[1 + known[rest[0]]:]
        expected = [flag[2:] for path in all_commands() for flag in help_of(*path)[1]
                    if flag.startswith("--")]
        self.assertEqual(sorted(long_flags), sorted(expected))
        self.assertEqual(sorted(commands), sorted(path[-1] for path in all_commands() if path))
        if shutil.which("fish"):
            with tempfile.NamedTemporaryFile("w", suffix=".fish") as file:
                file.write(script)
                file.flush()
                output("fish", "--no-execute", file.name)
                offered = output("fish", "--no-config", "-c",
                                 f"source {file.name}; complete -C 'rooflash export --format o'")
                self.assertEqual([line.split("\t")[0] for line in offered.splitlines()],
                                 ["openmetrics", "otava-csv"])


unittest.main()
