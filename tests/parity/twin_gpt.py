"""The demo's twin (benchmarks/jax_twin) for parity tests: run it beside Xylem on the same parameters and batches."""

import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = ROOT / "benchmarks" / "jax_twin"
if str(FOLDER) not in sys.path:
    sys.path.insert(0, str(FOLDER))

import gpt_twin  # noqa: E402,F401


def run(*arguments, config=None, timeout=3600):
    """gpt_twin.py in a process of its own; its result as a dictionary (losses, grad_norms, evals, times)."""
    command = [sys.executable, str(FOLDER / "gpt_twin.py"), *(["--config", str(config)] if config else []), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout)
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout)
