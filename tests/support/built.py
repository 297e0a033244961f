"""Where the build is, and how to run a program of it: for the Python suites, which ./x test starts with this folder on the path."""

import os
import pathlib
import subprocess

SOURCE = pathlib.Path(os.environ.get("XYLEM_SOURCE_DIR", pathlib.Path(__file__).resolve().parents[2]))
BUILD = pathlib.Path(os.environ.get("XYLEM_BUILD_DIR", SOURCE / "build"))
PRESET = os.environ.get("XYLEM_PRESET", "release")
XYLEM = BUILD / "bin" / "xylem"


def tool(folder, name):
    """The program that tests/<folder>/<name>_tool.cc became."""
    return BUILD / "tests" / folder / f"{name}_tool"


def run(program, *arguments, stdin=b"", check=True, **options):
    """Runs a program of the build; returns (status, output, errors) as bytes, or fails with what it wrote."""
    if isinstance(stdin, str):
        stdin = stdin.encode()
    done = subprocess.run([str(program), *map(str, arguments)], input=stdin, capture_output=True, **options)
    if check and done.returncode != 0:
        raise AssertionError(f"{pathlib.Path(program).name} ended with status {done.returncode}\n"
                             f"{done.stdout.decode(errors='replace')}\n{done.stderr.decode(errors='replace')}")
    return done.returncode, done.stdout, done.stderr
