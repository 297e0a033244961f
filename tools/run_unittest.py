#!/usr/bin/env python3
"""Runs one file of standard-library unit tests and writes what happened as JSON: run_unittest.py FILE REPORT [FILTER]."""

import importlib.util
import json
import pathlib
import sys
import unittest


class Result(unittest.TextTestResult):
    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.passed = 0

    def addSuccess(self, test):
        super().addSuccess(test)
        self.passed += 1


def main():
    path, report = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    text = sys.argv[3] if len(sys.argv) > 3 else None
    sys.path.insert(0, str(path.parent))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    loader = unittest.TestLoader()
    if text:
        loader.testNamePatterns = [f"*{text}*"]
    result = unittest.TextTestRunner(resultclass=Result, verbosity=1).run(loader.loadTestsFromModule(module))
    problems = [(str(test), trace) for test, trace in result.failures + result.errors]
    problems += [(str(test), "passed, but was expected to fail") for test in result.unexpectedSuccesses]
    skips = [(str(test), reason) for test, reason in result.skipped]
    report.write_text(json.dumps({"passed": result.passed, "failed": problems, "skipped": skips}))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
