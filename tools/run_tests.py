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
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import xml.etree.ElementTree as ElementTree

ROOT = pathlib.Path(__file__).resolve().parent.parent
HARDWARE = "hardware:"
TIMEOUT_SECONDS = {"fast": 900, "slow": 3600, "parity": 3600, "soak": 6 * 3600, "fuzz": 6 * 3600}


class Suite:
    def __init__(self, line):
        self.speed, self.kind, self.name, self.target, self.path = line.rstrip("\n").split("\t")


class Job:
    """One process to start: a suite, or one of the shards of a long one, in one build and environment."""

    def __init__(self, suite, build_dir, preset, pattern=None, text=None, env=None, shard=0, shards=1, line=None):
        self.suite = suite
        self.build_dir = build_dir
        self.preset = preset
        self.pattern = pattern  # GoogleTest filter, from tools/soak.txt
        self.text = text        # what the user asked for
        self.env = env or {}
        self.shard = shard
        self.shards = shards
        self.line = line        # of tools/soak.txt

    @property
    def name(self):
        name = self.suite.name
        if self.preset != "release":
            name += f" [{self.preset}]"
        if self.env:
            name += " [" + " ".join(f"{k}={v}" for k, v in self.env.items()) + "]"
        if self.shards > 1:
            name += f" ({self.shard + 1}/{self.shards})"
        return name

    @property
    def key(self):
        return f"{self.preset} {self.suite.name} {' '.join(self.env)}".strip()


class Outcome:
    def __init__(self, job):
        self.job = job
        self.passed = 0
        self.failed = []   # (test, message)
        self.skipped = []  # (test, reason), hardware only
        self.times = []    # (seconds, test)
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


def soak_lines():
    """(line, preset, suites, pattern, environment) of each line of tools/soak.txt."""
    for line in (ROOT / "tools" / "soak.txt").read_text().splitlines():
        words = line.split("#")[0].split()
        if words:
            yield " ".join(words), words[0], words[1].split(","), words[2], dict(w.split("=", 1) for w in words[3:])


def soak_jobs(build_dirs, text):
    jobs = []
    for line, preset, names, pattern, env in soak_lines():
        suites = read_suites(build_dirs[preset])
        if names == ["@soak"]:
            chosen = [s for s in suites if s.speed == "soak"]
        elif names == ["@fuzz"]:
            chosen = [s for s in suites if s.speed == "fuzz"]
        else:
            chosen = [s for s in suites if s.speed == "fast" and s.name in names]
        chosen = [s for s in chosen if not text or text in s.name]
        pattern = None if pattern == "*" else pattern
        jobs += [Job(s, build_dirs[preset], preset, pattern, None, env, line=line) for s in chosen]
    return jobs


def with_shards(jobs, times):
    """Longest first, as far as the last run knows, and a long GoogleTest suite cut in two, so that both cores end together."""
    cut = []
    for job in jobs:
        if job.suite.kind == "gtest" and times.get(job.key, 0) > 15 and not job.text:
            for shard in range(2):
                cut.append(Job(job.suite, job.build_dir, job.preset, job.pattern, job.text, job.env, shard, 2, job.line))
        else:
            cut.append(job)
    return sorted(cut, key=lambda job: -times.get(job.key, 1.0))


def environment(job, scratch):
    env = dict(os.environ)
    env["XYLEM_BUILD_DIR"] = str(job.build_dir)
    env["XYLEM_SOURCE_DIR"] = str(ROOT)
    env["XYLEM_PRESET"] = job.preset
    if job.shards > 1:
        env["GTEST_SHARD_INDEX"] = str(job.shard)
        env["GTEST_TOTAL_SHARDS"] = str(job.shards)
    env["TMPDIR"] = str(scratch)
    env["PYTHONPATH"] = os.pathsep.join([str(ROOT / "tests" / "support"), env.get("PYTHONPATH", "")]).rstrip(os.pathsep)
    env["PYTHONDONTWRITEBYTECODE"] = "1"
    env.setdefault("JAX_PLATFORMS", "cpu")
    # libxylem_jit.so holds its own copies of base and ir on purpose; to the sanitizer they look like clashing definitions. An
    # absurd size must reach our own error for it, not end the process.
    for name, ours in (("ASAN_OPTIONS", "detect_odr_violation=0:detect_stack_use_after_return=1:strict_string_checks=1:"
                                        "allocator_may_return_null=1"),
                       ("UBSAN_OPTIONS", "print_stacktrace=1"),
                       ("TSAN_OPTIONS", "second_deadlock_stack=1:allocator_may_return_null=1")):
        env[name] = ":".join(filter(None, [ours, env.get(name)]))
    env.update(job.env)
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
        outcome.times.append((float(case.get("time") or 0), name))
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
        outcome.times.append((float(case.get("time") or 0), name))
        problems = [child for child in case if child.tag in ("failure", "error")]
        skips = [child for child in case if child.tag == "skipped"]
        if problems:
            outcome.failed.append((name, "\n".join(p.text or p.get("message", "") for p in problems)))
        elif skips:
            outcome.add_skip(name, skips[0].get("message", ""))
        else:
            outcome.passed += 1


def run_job(job, scratch):
    suite, text = job.suite, job.text
    outcome = Outcome(job)
    timeout = int(os.environ.get("XYLEM_TEST_TIMEOUT", TIMEOUT_SECONDS[suite.speed]))
    if job.preset in ("asan", "tsan"):
        timeout *= 10
    folder = pathlib.Path(tempfile.mkdtemp(dir=scratch))
    report = folder / "report"
    env = environment(job, folder)
    if suite.kind == "gtest":
        command = [str(job.build_dir / suite.path), f"--gtest_output=xml:{report}", "--gtest_color=no"]
        if text or job.pattern:
            command.append(f"--gtest_filter={job.pattern or '*' + text + '*'}")
    elif suite.kind == "program":
        command = [str(job.build_dir / suite.path)]
        if text and text not in suite.name:
            return outcome
    elif suite.kind == "fuzz":
        # The corpus is made by the fuzzer when its folder is empty, and kept in the build; so is what broke it.
        corpus = job.build_dir / "fuzz-corpus" / pathlib.Path(suite.path).name
        crashes = job.build_dir / "fuzz-crashes"
        corpus.mkdir(parents=True, exist_ok=True)
        crashes.mkdir(exist_ok=True)
        seconds = int(60 * float(os.environ.get("XYLEM_FUZZ_MINUTES", "10")))
        timeout = max(timeout, seconds + 900)
        command = [str(job.build_dir / suite.path), str(corpus), f"-max_total_time={seconds}", "-timeout=60",
                   "-rss_limit_mb=2560", "-print_final_stats=1", f"-artifact_prefix={crashes}/{suite.name.replace('/', '-')}-"]
    elif suite.kind == "unittest":
        command = [sys.executable, str(ROOT / "tools" / "run_unittest.py"), suite.path, str(report)]
        if text:
            command.append(text)
    else:
        python = ROOT / "build" / "venv" / "bin" / "python"
        command = [str(python), "-m", "pytest", "-q", "-rN", "-p", "no:cacheprovider", f"--junitxml={report}",
                   "--rootdir", str(ROOT / "tests"), suite.path]
        if text:
            command += ["-k", " and ".join(re.findall(r"\w+", text))]
    if not pathlib.Path(command[0]).exists():
        outcome.failed.append((suite.name, f"{command[0]} does not exist"))
        return outcome

    status, outcome.output, outcome.seconds = execute(command, env, timeout)

    if suite.kind in ("program", "fuzz"):
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
    may_be_empty = text or job.pattern or job.shards > 1
    if status != 0 and not outcome.failed and not nothing_selected:
        outcome.failed.append((suite.name, describe(status, timeout) + "\n" + outcome.output[-8000:]))
    if outcome.passed + len(outcome.failed) + len(outcome.skipped) == 0 and not may_be_empty:
        outcome.failed.append((suite.name, "the suite collected no test"))
    return outcome


def report_line(outcome, position, total):
    parts = [f"{outcome.passed} passed"]
    if outcome.failed:
        parts.append(f"{len(outcome.failed)} FAILED")
    if outcome.skipped:
        parts.append(f"{len(outcome.skipped)} skipped")
    print(f"[{position:{len(str(total))}}/{total}] {outcome.job.name:28} {', '.join(parts)}  {outcome.seconds:.1f} s",
          flush=True)
    for test, message in outcome.failed:
        body = "\n".join("    " + line for line in message.rstrip().splitlines())
        print(f"  FAILED {test}\n{body}", flush=True)


def run_jobs(jobs):
    outcomes = []
    with tempfile.TemporaryDirectory(prefix="xylem-test-") as scratch:
        with concurrent.futures.ThreadPoolExecutor(max_workers=2) as pool:
            try:
                futures = [pool.submit(run_job, job, scratch) for job in jobs]
                for done in concurrent.futures.as_completed(futures):
                    outcome = done.result()
                    outcomes.append(outcome)
                    if not outcome.job.text or outcome.passed or outcome.failed or outcome.skipped:
                        report_line(outcome, len(outcomes), len(jobs))
            except KeyboardInterrupt:
                with running_lock:
                    for process in running:
                        try:
                            os.killpg(process.pid, signal.SIGKILL)
                        except ProcessLookupError:
                            pass
                pool.shutdown(cancel_futures=True)
                raise
    return outcomes


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build-dir", required=True, type=pathlib.Path)
    parser.add_argument("--preset", default="release")
    parser.add_argument("--speeds", default="fast", help="words of: fast slow parity soak")
    parser.add_argument("--filter")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--targets", action="store_true", help="print the build targets that the chosen suites need")
    parser.add_argument("--soak-builds", action="store_true", help="print preset and targets of each build that soak needs")
    options = parser.parse_args()
    build_dir = options.build_dir.resolve()

    if options.soak_builds:
        wanted = {}
        for _, preset, names, _, _ in soak_lines():
            wanted.setdefault(preset, set()).update(names)
        for preset, names in wanted.items():
            print(preset, " ".join(sorted(n if n == "@fuzz" else f"xylem_{n}_tests" for n in names - {"@soak"} if preset != "release")))
        return 0

    if options.speeds == "soak":
        dirs = {p: build_dir if p == "release" else build_dir / p for p in ("release", "dev", "asan", "tsan", "clang", "fuzz")}
        text, jobs = None, soak_jobs(dirs, options.filter)
        suites = [job.suite for job in jobs]
    else:
        suites, text = choose(read_suites(build_dir), options.speeds.split(), options.filter)
        jobs = [Job(s, build_dir, options.preset, None, text) for s in suites]

    if options.list:
        for job in jobs:
            print(f"{job.suite.speed:7} {job.suite.kind:9} {job.name}")
        return 0
    if options.targets:
        # Without a filter for suites everything is built, so that what no test uses compiles too.
        targets = {s.target for s in suites if s.target != "-"}
        print("all" if text or not options.filter or "all" in targets else " ".join(sorted(targets)))
        return 0

    begin = time.monotonic()
    times_file = build_dir / "test-times.json"
    try:
        times = json.loads(times_file.read_text())
    except (OSError, ValueError):
        times = {}
    outcomes = run_jobs(with_shards(jobs, times))
    if not text:
        for key in {o.job.key for o in outcomes}:
            times[key] = round(sum(o.seconds for o in outcomes if o.job.key == key), 1)
        try:
            times_file.write_text(json.dumps(times, indent=0, sort_keys=True))
        except OSError:
            pass  # It only helps the next run to be quick.

    passed = sum(o.passed for o in outcomes)
    failed = sum(len(o.failed) for o in outcomes)
    if options.speeds == "soak" and not options.filter:
        ran = {o.job.line for o in outcomes if o.passed or o.failed or o.skipped}
        for line in [line for line, *_ in soak_lines() if line not in ran]:
            print(f"  FAILED tools/soak.txt: this line runs no test: {line}")
            failed += 1
    skipped = sum(len(o.skipped) for o in outcomes)
    if passed + failed + skipped == 0:
        print(f"no test matches '{options.filter}'" if options.filter else "there are no such suites")
        failed = 1
    again = [(o.job.name, test) for o in outcomes for test, _ in o.failed]
    if len(outcomes) > 1 and again:
        print("failed:")
        for name, test in again:
            print(f"  {name}: {test}")
    for outcome in outcomes:
        for test, reason in outcome.skipped:
            print(f"  skipped {test}: {reason}")
    slowest = sorted((t for o in outcomes for t in o.times if t[0] >= 2), reverse=True)[:5]
    if slowest:
        print("slowest: " + ", ".join(f"{test} {seconds:.1f} s" for seconds, test in slowest))
    print(f"{time.monotonic() - begin:.1f} s")
    print(f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""))
    return 1 if failed else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
