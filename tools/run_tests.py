#!/usr/bin/env python3
"""Runs the suites that the build wrote into suites.tsv; called by ./x test.

Counts come from GoogleTest's and pytest's XML and from tools/run_unittest.py, never from scraped text. A suite
that collects no test fails, and so does a skip whose reason does not begin with "hardware:".
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import time
import xml.etree.ElementTree as ElementTree

ROOT = pathlib.Path(__file__).resolve().parent.parent
HARDWARE = "hardware:"
TIMEOUT_SECONDS = {"fast": 900, "slow": 3600, "parity": 3600, "soak": 6 * 3600}


class Suite:
    def __init__(self, line):
        self.speed, self.kind, self.name, self.target, self.path = line.rstrip("\n").split("\t")


class Outcome:
    def __init__(self, suite):
        self.suite = suite
        self.passed = 0
        self.failed = []   # (test, message)
        self.skipped = []  # (test, reason), hardware only
        self.filtered = 0  # tests that the filter left out
        self.seconds = 0.0
        self.output = ""

    def add_skip(self, test, reason):
        if reason.strip().startswith(HARDWARE):
            self.skipped.append((test, reason.strip()))
        else:
            self.failed.append((test, f"skipped, and not for absent hardware: {reason.strip() or 'no reason given'}"))


def read_suites(build_dir):
    lines = (build_dir / "suites.tsv").read_text().splitlines()
    return [Suite(line) for line in lines if line]


def choose(suites, speeds, text):
    """The suites to run, and the filter to hand to them: none where a suite's own name was meant."""
    suites = [s for s in suites if s.speed in speeds]
    if not text:
        return suites, None
    exact = [s for s in suites if text in (s.name, s.target)]
    if exact:
        return exact, None
    named = [s for s in suites if text in s.name]
    if named:
        return named, None
    return suites, text


def environment(build_dir, preset, scratch):
    env = dict(os.environ)
    env["XYLEM_BUILD_DIR"] = str(build_dir)
    env["XYLEM_SOURCE_DIR"] = str(ROOT)
    env["XYLEM_PRESET"] = preset
    env["TMPDIR"] = str(scratch)
    env["PYTHONPATH"] = os.pathsep.join([str(ROOT / "tests" / "support"), env.get("PYTHONPATH", "")]).rstrip(os.pathsep)
    env["PYTHONDONTWRITEBYTECODE"] = "1"
    env.setdefault("JAX_PLATFORMS", "cpu")
    # libxylem_jit.so holds its own copies of base and ir on purpose; to the sanitizer they look like clashing definitions.
    asan = "detect_odr_violation=0:detect_stack_use_after_return=1:strict_string_checks=1"
    env["ASAN_OPTIONS"] = ":".join(filter(None, [asan, env.get("ASAN_OPTIONS")]))
    env.setdefault("UBSAN_OPTIONS", "print_stacktrace=1")
    env.setdefault("TSAN_OPTIONS", "halt_on_error=0:second_deadlock_stack=1")
    return env


running = set()
running_lock = threading.Lock()


def execute(command, env, timeout):
    """Runs a command in a process group of its own, so that a hanging test leaves nothing behind."""
    start = time.monotonic()
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(command, cwd=ROOT, env=env, stdin=subprocess.DEVNULL, stdout=log,
                                   stderr=subprocess.STDOUT, start_new_session=True)
        with running_lock:
            running.add(process)
        try:
            status = process.wait(timeout)
        except subprocess.TimeoutExpired:
            status = None
        finally:
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            process.wait()
            with running_lock:
                running.discard(process)
        log.seek(0)
        output = log.read().decode("utf-8", "replace")
    return status, output, time.monotonic() - start


def describe(status, timeout):
    if status is None:
        return f"still running after {timeout} s, killed"
    if status < 0:
        try:
            return f"died of {signal.Signals(-status).name}"
        except ValueError:
            return f"died of signal {-status}"
    return f"exit status {status}"


def read_gtest(outcome, report):
    # The XML form, because GoogleTest 1.12's JSON leaves out why a test was skipped.
    for case in ElementTree.parse(report).iter("testcase"):
        name = f"{case.get('classname')}.{case.get('name')}"
        if case.get("status") == "notrun":
            if case.get("result") == "suppressed" and "DISABLED_" in name:
                outcome.failed.append((name, "disabled"))
            continue
        failures = case.findall("failure")
        skips = case.findall("skipped")
        if failures:
            outcome.failed.append((name, "\n".join(f.text or f.get("message", "") for f in failures)))
        elif skips:
            message = skips[0].get("message", "")
            outcome.add_skip(name, message.split("\n", 1)[1] if "\n" in message else message)
        else:
            outcome.passed += 1


def read_junit(outcome, report):
    for case in ElementTree.parse(report).iter("testcase"):
        name = f"{case.get('classname', '')}.{case.get('name', '')}"
        problems = [child for child in case if child.tag in ("failure", "error")]
        skips = [child for child in case if child.tag == "skipped"]
        if problems:
            outcome.failed.append((name, "\n".join(p.text or p.get("message", "") for p in problems)))
        elif skips:
            outcome.add_skip(name, skips[0].get("message", ""))
        else:
            outcome.passed += 1


def run_suite(suite, build_dir, env, text, scratch):
    outcome = Outcome(suite)
    timeout = int(os.environ.get("XYLEM_TEST_TIMEOUT", TIMEOUT_SECONDS[suite.speed]))
    report = pathlib.Path(tempfile.mkdtemp(dir=scratch)) / "report"
    if suite.kind == "gtest":
        command = [str(build_dir / suite.path), f"--gtest_output=xml:{report}", "--gtest_color=no"]
        if text:
            command.append(f"--gtest_filter=*{text}*")
    elif suite.kind == "program":
        command = [str(build_dir / suite.path)]
        if text and text not in suite.name:
            return outcome
    elif suite.kind == "unittest":
        command = [sys.executable, str(ROOT / "tools" / "run_unittest.py"), suite.path, str(report)]
        if text:
            command.append(text)
    else:
        python = ROOT / "build" / "venv" / "bin" / "python"
        command = [str(python), "-m", "pytest", "-q", "-rN", "-p", "no:cacheprovider", f"--junitxml={report}",
                   "--rootdir", str(ROOT / "tests"), suite.path]
        if text:
            command += ["-k", text]
    if not pathlib.Path(command[0]).exists():
        outcome.failed.append((suite.name, f"{command[0]} does not exist"))
        return outcome

    status, outcome.output, outcome.seconds = execute(command, env, timeout)

    if suite.kind == "program":
        if status == 0:
            outcome.passed = 1
        else:
            outcome.failed.append((suite.name, describe(status, timeout) + "\n" + outcome.output[-8000:]))
        return outcome
    try:
        if suite.kind == "gtest":
            read_gtest(outcome, report)
        elif suite.kind == "pytest":
            read_junit(outcome, report)
        else:
            data = json.loads(report.read_text())
            outcome.passed = data["passed"]
            outcome.failed += [tuple(f) for f in data["failed"]]
            for test, reason in data["skipped"]:
                outcome.add_skip(test, reason)
    except (OSError, ValueError, KeyError, ElementTree.ParseError):
        pass  # The status below says it.
    nothing_selected = suite.kind == "pytest" and status == 5 and text
    if status != 0 and not outcome.failed and not nothing_selected:
        outcome.failed.append((suite.name, describe(status, timeout) + "\n" + outcome.output[-8000:]))
    if outcome.passed + len(outcome.failed) + len(outcome.skipped) == 0 and not text:
        outcome.failed.append((suite.name, "the suite collected no test"))
    return outcome


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build-dir", required=True, type=pathlib.Path)
    parser.add_argument("--preset", default="release")
    parser.add_argument("--speeds", default="fast")
    parser.add_argument("--filter")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--targets", action="store_true", help="print the build targets that the chosen suites need")
    options = parser.parse_args()
    build_dir = options.build_dir.resolve()
    suites, text = choose(read_suites(build_dir), options.speeds.split(), options.filter)

    if options.list:
        for suite in suites:
            print(f"{suite.speed:7} {suite.kind:9} {suite.name}")
        return 0
    if options.targets:
        # Python suites use what the build makes, so they need all of it; a filter that matched names wants no more than those.
        if text or not options.filter or any(s.target == "-" for s in suites):
            print("all")
        else:
            print(" ".join(s.target for s in suites))
        return 0

    outcomes = []
    begin = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="xylem-test-") as scratch:
        env = environment(build_dir, options.preset, scratch)
        with concurrent.futures.ThreadPoolExecutor(max_workers=2) as pool:
            try:
                futures = [pool.submit(run_suite, s, build_dir, env, text, scratch) for s in suites]
                for done in concurrent.futures.as_completed(futures):
                    outcome = done.result()
                    outcomes.append(outcome)
                    ran = outcome.passed + len(outcome.failed) + len(outcome.skipped)
                    if text and ran == 0:
                        continue
                    parts = [f"{outcome.passed} passed"]
                    if outcome.failed:
                        parts.append(f"{len(outcome.failed)} FAILED")
                    if outcome.skipped:
                        parts.append(f"{len(outcome.skipped)} skipped")
                    width = len(str(len(suites)))
                    print(f"[{len(outcomes):{width}}/{len(suites)}] {outcome.suite.name:28} {', '.join(parts)}"
                          f"  {outcome.seconds:.1f} s", flush=True)
                    for test, message in outcome.failed:
                        body = "\n".join("    " + line for line in message.rstrip().splitlines())
                        print(f"  FAILED {test}\n{body}", flush=True)
            except KeyboardInterrupt:
                with running_lock:
                    for process in running:
                        try:
                            os.killpg(process.pid, signal.SIGKILL)
                        except ProcessLookupError:
                            pass
                pool.shutdown(cancel_futures=True)
                raise

    passed = sum(o.passed for o in outcomes)
    failed = sum(len(o.failed) for o in outcomes)
    skipped = sum(len(o.skipped) for o in outcomes)
    if passed + failed + skipped == 0:
        print(f"no test matches '{options.filter}'" if options.filter else "there are no such suites")
        failed = 1
    again = [(o.suite.name, test) for o in outcomes for test, _ in o.failed]
    if len(outcomes) > 1 and again:
        print("failed:")
        for name, test in again:
            print(f"  {name}: {test}")
    for outcome in outcomes:
        for test, reason in outcome.skipped:
            print(f"  skipped {test}: {reason}")
    print(f"{time.monotonic() - begin:.1f} s")
    print(f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""))
    return 1 if failed else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
