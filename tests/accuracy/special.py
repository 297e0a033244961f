"""Writes the table of special functions of docs/accuracy.md: the largest errors of compiled chlo.lgamma and its like against SciPy's doubles.

    build/venv/bin/python tests/accuracy/special.py [COUNT]

COUNT random singles a function and domain. An error is counted in units in the last place of the exact value, or of 1 where that is smaller,
because these functions have zeros that no single hits."""

import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import scipy.special

XYLEM = pathlib.Path(os.environ.get("XYLEM_BUILD_DIR", "build")) / "bin" / "xylem"


def between(low, high):
    return lambda rng, n: rng.uniform(low, high, n)


def magnitude(low, high):
    return lambda rng, n: np.exp(rng.uniform(np.log(low), np.log(high), n))


def whole(low, high):
    return lambda rng, n: rng.integers(low, high + 1, n).astype(np.float64)


# Name, reference, domain in words, how its arguments are drawn.
FUNCTIONS = [
    ("chlo.lgamma", scipy.special.gammaln, "10⁻³⁰ to 10³⁰", [magnitude(1e-30, 1e30)]),
    ("chlo.lgamma", scipy.special.gammaln, "-20 to 0", [between(-20, 0)]),
    ("chlo.digamma", scipy.special.psi, "10⁻³⁰ to 10³⁰", [magnitude(1e-30, 1e30)]),
    ("chlo.digamma", scipy.special.psi, "-20 to 0", [between(-20, 0)]),
    ("chlo.zeta", scipy.special.zeta, "1.1 to 20; 0.1 to 100", [between(1.1, 20), between(0.1, 100)]),
    ("chlo.polygamma", lambda n, x: scipy.special.polygamma(n.astype(int), x), "0 to 5; 0.1 to 100", [whole(0, 5), between(0.1, 100)]),
    ("chlo.bessel_i1e", scipy.special.i1e, "-1000 to 1000", [between(-1000, 1000)]),
    ("chlo.erf_inv", scipy.special.erfinv, "-1 to 1", [between(-1, 1)]),
]


def compiled(name, arguments, folder):
    """The function's values, as `xylem run` computes them."""
    n = len(arguments[0])
    kind = f"tensor<{n}xf32>"
    names = ", ".join(f"%x{i}" for i in range(len(arguments)))
    signature = ", ".join(f"%x{i}: {kind}" for i in range(len(arguments)))
    types = ", ".join([kind] * len(arguments))
    (folder / "p.mlir").write_text(f"func.func @main({signature}) -> {kind} {{\n  %r = {name} {names} : {types} -> {kind}\n  return %r : {kind}\n}}\n")
    command = [XYLEM, "run", "--output-dir", folder]
    for i, x in enumerate(arguments):
        np.save(folder / f"in{i}.npy", x)
        command += ["--input", folder / f"in{i}.npy"]
    subprocess.run([*command, folder / "p.mlir"], check=True)
    return np.load(folder / "0.npy")


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    rng = np.random.default_rng(1)
    print("| function | arguments | f32, largest | f32, mean |\n| --- | --- | ---: | ---: |")
    with tempfile.TemporaryDirectory() as folder:
        for name, reference, domain, draw in FUNCTIONS:
            arguments = [d(rng, count).astype(np.float32) for d in draw]
            got = compiled(name, arguments, pathlib.Path(folder)).astype(np.float64)
            with np.errstate(all="ignore"):
                want = reference(*[x.astype(np.float64) for x in arguments])
                finite = np.isfinite(want) & (np.abs(want) < np.finfo(np.float32).max)
                ulp = np.spacing(np.maximum(np.abs(want), 1).astype(np.float32)).astype(np.float64)
                error = (np.abs(got - want) / ulp)[finite]
            print(f"| `{name}` | {domain} | {error.max():.1f} | {error.mean():.2f} |", flush=True)


if __name__ == "__main__":
    main()
