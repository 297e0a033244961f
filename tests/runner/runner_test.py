"""The rules of ./x test, on builds made of small scripts; and what ./x itself answers without building anything."""

import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
GTEST = """#!/bin/sh
for word in "$@"; do
  case $word in --gtest_output=xml:*) report=${word#--gtest_output=xml:} ;; --gtest_filter=*) filter=$word ;; esac
done
"""


def gtest(cases, status=0):
    """A script that behaves as a GoogleTest program with these <testcase> elements."""
    return (GTEST + f"cat >$report <<'END'\n<testsuites><testsuite name='S'>{cases}</testsuite></testsuites>\nEND\n"
            f"exit {status}\n")


PASS = "<testcase name='A' status='run' result='completed' time='0' classname='S' />"
FAIL = "<testcase name='B' status='run' result='completed' classname='S'><failure message='broken &lt;1&gt;'/></testcase>"


def skip(reason):
    return (f"<testcase name='C' status='run' result='skipped' classname='S'>"
            f"<skipped message='a.cc:1&#x0A;{reason}'/></testcase>")


class Runner(unittest.TestCase):
    def run_suites(self, suites, *options):
        """suites: (speed, kind, name, text of the script). Returns (status, lines)."""
        with tempfile.TemporaryDirectory() as folder:
            build = pathlib.Path(folder)
            rows = []
            for speed, kind, name, text in suites:
                path = build / f"{name.replace('/', '_')}{'_test.py' if kind == 'unittest' else ''}"
                path.write_text(text)
                path.chmod(0o755)
                rows.append(f"{speed}\t{kind}\t{name}\t{name}\t{path if kind == 'unittest' else path.name}\n")
            (build / "suites.tsv").write_text("".join(rows))
            done = subprocess.run([sys.executable, ROOT / "tools" / "run_tests.py", "--build-dir", build, *options],
                                  capture_output=True, text=True, timeout=120)
            self.assertEqual(done.stderr, "")
            return done.returncode, done.stdout.rstrip("\n").split("\n")

    def check(self, suites, status, last, *options):
        got, lines = self.run_suites(suites, *options)
        self.assertEqual((got, lines[-1]), (status, last), "\n".join(lines))
        return "\n".join(lines)

    def test_pass(self):
        self.check([("fast", "gtest", "base", gtest(PASS + PASS))], 0, "2 passed, 0 failed")

    def test_fail(self):
        output = self.check([("fast", "gtest", "base", gtest(PASS + FAIL, 1))], 1, "1 passed, 1 failed")
        self.assertIn("FAILED S.B\n    broken <1>", output)

    def test_empty_suite(self):
        output = self.check([("fast", "gtest", "base", gtest(""))], 1, "0 passed, 1 failed")
        self.assertIn("collected no test", output)

    def test_crash(self):
        output = self.check([("fast", "gtest", "base", "#!/bin/sh\necho last words\nkill -ABRT $$\n")], 1,
                            "0 passed, 1 failed")
        self.assertIn("died of SIGABRT\n    last words", output)

    def test_crash_after_all_passed(self):
        self.check([("fast", "gtest", "base", gtest(PASS, 134))], 1, "1 passed, 1 failed")

    def test_empty_python_suite(self):
        self.check([("fast", "unittest", "py", "import unittest\n")], 1, "0 passed, 1 failed")

    def test_hardware_skip(self):
        output = self.check([("fast", "gtest", "base", gtest(PASS + skip("hardware: no GPU")))], 0,
                            "1 passed, 0 failed, 1 skipped")
        self.assertIn("skipped S.C: hardware: no GPU", output)

    def test_other_skip(self):
        self.check([("fast", "gtest", "base", gtest(PASS + skip("later")))], 1, "1 passed, 1 failed")

    def test_disabled(self):
        case = "<testcase name='DISABLED_A' status='notrun' result='suppressed' classname='S' />"
        self.check([("fast", "gtest", "base", gtest(PASS + case))], 1, "1 passed, 1 failed")

    def test_unselected_does_not_count(self):
        case = "<testcase name='Z' status='notrun' result='suppressed' classname='S' />"
        self.check([("fast", "gtest", "base", gtest(PASS + case))], 0, "1 passed, 0 failed")

    def test_program(self):
        self.check([("fast", "program", "example", "#!/bin/sh\nexit 0\n")], 0, "1 passed, 0 failed")
        output = self.check([("fast", "program", "example", "#!/bin/sh\necho why\nexit 3\n")], 1, "0 passed, 1 failed")
        self.assertIn("exit status 3\n    why", output)

    def test_unittest(self):
        text = ("import unittest\nclass T(unittest.TestCase):\n  def test_a(self): pass\n"
                "  def test_b(self): self.fail('no')\n  @unittest.skip('hardware: none')\n  def test_c(self): pass\n"
                "  @unittest.skip('lazy')\n  def test_d(self): pass\n")
        self.check([("fast", "unittest", "py", text)], 1, "1 passed, 2 failed, 1 skipped")
        self.check([("fast", "unittest", "py", text)], 0, "1 passed, 0 failed", "--filter", "test_a")

    def test_broken_python(self):
        self.check([("fast", "unittest", "py", "raise RuntimeError('x')\n")], 1, "0 passed, 1 failed")

    def test_speeds(self):
        suites = [("fast", "gtest", "base", gtest(PASS)), ("slow", "gtest", "base_slow", gtest(FAIL, 1))]
        self.check(suites, 0, "1 passed, 0 failed")
        self.check(suites, 1, "0 passed, 1 failed", "--speeds", "slow")
        self.check(suites, 1, "1 passed, 1 failed", "--speeds", "fast slow")

    def test_filter_by_suite(self):
        suites = [("fast", "gtest", "base", gtest(PASS)), ("fast", "gtest", "base2", gtest(PASS + PASS))]
        self.check(suites, 0, "1 passed, 0 failed", "--filter", "base")
        self.check(suites, 0, "3 passed, 0 failed", "--filter", "bas")

    def test_filter_by_test(self):
        script = GTEST + "[ \"$filter\" = '--gtest_filter=*S.A*' ] || exit 9\n" + gtest(PASS)[len(GTEST):]
        self.check([("fast", "gtest", "base", script)], 0, "1 passed, 0 failed", "--filter", "S.A")

    def test_filter_without_match(self):
        output = self.check([("fast", "gtest", "base", gtest(""))], 1, "0 passed, 1 failed", "--filter", "zzz")
        self.assertIn("no test matches 'zzz'", output)

    def test_no_suites(self):
        self.check([], 1, "0 passed, 1 failed")

    def test_environment(self):
        script = ("#!/bin/sh\n[ -d \"$TMPDIR\" ] && [ -d \"$XYLEM_BUILD_DIR\" ] && [ -f \"$XYLEM_SOURCE_DIR/x\" ] && "
                  "[ \"$XYLEM_PRESET\" = asan ] && ! read line\n")
        self.check([("fast", "program", "p", script)], 0, "1 passed, 0 failed", "--preset", "asan")

    def test_hang(self):
        with tempfile.TemporaryDirectory() as folder:
            # The child of the hanging program must not survive it.
            text = f"#!/bin/sh\n(sleep 5; touch {folder}/alive) &\nsleep 100\n"
            with unittest.mock.patch.dict("os.environ", XYLEM_TEST_TIMEOUT="1"):
                output = self.check([("fast", "program", "p", text)], 1, "0 passed, 1 failed")
            self.assertIn("still running after 1 s", output)


class Script(unittest.TestCase):
    def x(self, *words):
        done = subprocess.run([ROOT / "x", *words], capture_output=True, text=True, cwd="/", timeout=60)
        return done.returncode, done.stdout, done.stderr

    def test_help(self):
        status, output, _ = self.x("--help")
        self.assertEqual(status, 0)
        for verb in ("setup", "build", "test", "demo", "bench", "format", "docs"):
            self.assertIn(f"\n  {verb} ", output)
            status, text, _ = self.x(verb, "--help")
            self.assertEqual(status, 0, verb)
            self.assertIn(f"./x {verb}", text)

    def test_usage_errors(self):
        for words in (["nonsense"], ["build", "--nonsense"], ["test", "--nonsense"], ["test", "a", "b"], ["demo", "-z"],
                      ["setup", "nonsense"], ["build", "--preset", "nonsense"], ["bench", "-z"], ["format", "x"], ["docs", "x"]):
            status, _, errors = self.x(*words)
            self.assertEqual(status, 2, words)
            self.assertTrue(errors, words)


class Packages(unittest.TestCase):
    def lines(self):
        for line in (ROOT / "tools" / "packages.txt").read_text().splitlines():
            if line and not line.startswith("#"):
                yield line

    def test_every_package_has_a_reason(self):
        groups = {"build", "test", "demo", "parity", "bench", "clang", "format"}
        for line in self.lines():
            match = re.fullmatch(r"(apt|pip) ([a-z,]+) (\S+) +# \S.*", line)
            self.assertIsNotNone(match, line)
            self.assertLessEqual(set(match.group(2).split(",")), groups, line)

    def test_locks_hold_what_is_asked_for(self):
        for line in self.lines():
            kind, groups, package = line.split()[:3]
            if kind == "pip":
                for group in groups.split(","):
                    locked = (ROOT / "tools" / f"{group}.lock").read_text().lower().splitlines()
                    self.assertTrue(any(l == package.lower() or l.startswith(package.lower() + "==") for l in locked), line)


class Texts(unittest.TestCase):
    def test_no_machine_paths(self):
        # Spelled in two halves, so that this file passes its own test.
        pattern = re.compile(r"(?<![\w.$}/-])/(wo" r"rk|ro" r"ot|home/\w+)/|py" r"pi\.org|pytho" r"nhosted")
        tracked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True)
        names = tracked.stdout.decode().split("\0") if tracked.returncode == 0 else []
        for name in filter(None, names):
            path = ROOT / name
            if path.is_file() and not path.is_symlink() and path.stat().st_size < 1_000_000 and "testdata" not in path.parts:
                match = pattern.search(path.read_text(encoding="utf-8", errors="replace"))
                self.assertIsNone(match, name)


if __name__ == "__main__":
    unittest.main()
