"""xylem run, convert and verify on programs of real JAX: both back ends compute JAX's values from the text that JAX writes, and
portable artifacts hold the same programs."""

import subprocess

import jax
import jax.export
import jax.numpy as jnp
import numpy as np
import pytest
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo

import jax._src.interpreters.mlir as jax_mlir

from jax_programs import PROGRAMS, assert_close, kept_arguments, program, wide

BACKENDS = ("cpu", "interpret")
# JAX exports calls without a promise of compatibility only when told to.
LAPACK = [jax.export.DisabledSafetyCheck.custom_call(f"lapack_{letter}{routine}_ffi") for letter in "sdcz"
          for routine in ("getrf", "geqp3", "gesvd", "ormqr", "unmqr", "gehrd", "sytrd", "hetrd", "gtsv", "gees")]


def xylem_ok(xylem, *arguments):
    done = subprocess.run([xylem, *map(str, arguments)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


def load(path, like):
    """A result; types that NumPy lacks come as raw bytes."""
    a = np.load(path)
    if a.dtype.kind == "V":
        assert a.dtype.itemsize == like.dtype.itemsize
        a = a.view(like.dtype)
    return a


def jaxlib_text(artifact):
    """What jaxlib reads of a portable artifact, as it prints it."""
    with jax_mlir.make_ir_context() as context:
        return str(stablehlo.deserialize_portable_artifact(context, artifact))


@pytest.fixture(scope="module", params=PROGRAMS)
def case(request, tmp_path_factory):
    """Name, folder, text, inputs and JAX's results of a program."""
    name = request.param
    folder = tmp_path_factory.mktemp(name)
    with jax.enable_x64(wide(name)):
        jitted, args = program(name)
        lowered = jitted.lower(*args)
        (folder / "p.mlir").write_text(lowered.as_text())
        exported = jax.export.export(jitted, disabled_checks=LAPACK)(*jax.tree.map(jnp.array, args))
        (folder / "p.mlirbc").write_bytes(exported.mlir_module_serialized)
        inputs = []
        for i, x in enumerate(kept_arguments(lowered, args)):
            np.save(folder / f"in{i}.npy", x)
            inputs += ["--input", folder / f"in{i}.npy"]
        theirs = [np.asarray(x) for x in jax.tree.leaves(jitted(*jax.tree.map(jnp.array, args)))]
    return name, folder, inputs, theirs


@pytest.mark.parametrize("backend", BACKENDS)
def test_both_back_ends_compute_the_values_of_jax(case, backend, xylem):
    name, folder, inputs, theirs = case
    out = folder / backend
    xylem_ok(xylem, "run", "--backend", backend, *inputs, "--output-dir", out, folder / "p.mlir")
    assert len(list(out.glob("*.npy"))) == len(theirs)
    for k, b in enumerate(theirs):
        assert_close(load(out / f"{k}.npy", b), b, f"{name}: result {k} of {backend}")


def test_artifacts_hold_the_same_program_as_the_text(case, xylem):
    name, folder, _, _ = case
    xylem_ok(xylem, "verify", folder / "p.mlir", folder / "p.mlirbc")
    xylem_ok(xylem, "convert", "--strip-debug", folder / "p.mlir", folder / "text.mlir")
    xylem_ok(xylem, "convert", "--strip-debug", folder / "p.mlirbc", folder / "artifact.mlir")
    (folder / "back.mlir").write_text(jaxlib_text((folder / "p.mlirbc").read_bytes()))
    xylem_ok(xylem, "convert", "--strip-debug", folder / "back.mlir", folder / "theirs.mlir")
    assert (folder / "artifact.mlir").read_text() == (folder / "theirs.mlir").read_text()

    # What we write, jaxlib reads as the same program.
    xylem_ok(xylem, "convert", folder / "p.mlir", folder / "ours.mlirbc")
    (folder / "read.mlir").write_text(jaxlib_text((folder / "ours.mlirbc").read_bytes()))
    xylem_ok(xylem, "convert", "--strip-debug", folder / "read.mlir", folder / "again.mlir")
    xylem_ok(xylem, "convert", "--strip-debug", folder / "ours.mlirbc", folder / "own.mlir")
    assert (folder / "again.mlir").read_text() == (folder / "own.mlir").read_text()
