"""What the parity suites share: the versions they run against, and the programs of the build."""

import importlib.metadata
import os
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
for folder in (ROOT / "tests" / "parity", ROOT / "tests" / "support"):     # started by hand, neither is on the path
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import built
import pytest


def locked_versions():
    """Package -> version of tools/parity.lock."""
    lines = (ROOT / "tools" / "parity.lock").read_text().splitlines()
    return dict(line.split("==", 1) for line in lines if "==" in line and not line.startswith("#"))


@pytest.fixture(scope="session", autouse=True)
def locked():
    """Every suite compares with the locked versions, or fails before its first test."""
    wanted = locked_versions()
    wrong = []
    for package, version in wanted.items():
        try:
            found = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            found = "nothing"
        if found != version:
            wrong.append(f"{package}: locked {version}, installed {found}")
    assert not wrong, "the parity environment is not the locked one (./x setup parity):\n" + "\n".join(wrong)
    return wanted


@pytest.fixture(scope="session")
def xylem():
    """The command of the build under test."""
    assert built.XYLEM.exists(), f"{built.XYLEM} does not exist: ./x build"
    return built.XYLEM


@pytest.fixture(scope="session")
def tool():
    """tool("add") is the program that tests/parity/add_tool.cc became."""
    def find(name):
        path = built.tool("parity", name)
        assert path.exists(), f"{path} does not exist: ./x build"
        return path
    return find
