"""Programs of xylem::linalg, exported as StableHLO with JAX's LAPACK calls, compiled and run by jaxlib; and JAX's programs for
TPUs and of unknown sizes, whose calls of linear algebra run here too."""

import subprocess

import built
import jax
import jax.export
import jax.numpy as jnp
import jax.scipy.linalg as jsl
import numpy as np
import pytest
from jax import lax
from jax._src import xla_bridge
from jaxlib import xla_client
from jaxlib.mlir import ir

import jax._src.interpreters.mlir as jax_mlir


def svd(x):
    u, s, vh = jnp.linalg.svd(x)
    return s, u @ vh


def eigvals(x):
    w = jnp.linalg.eigvals(x)
    return jnp.sum(w), jnp.sum(w * w)


def schur(x):
    t, z = jsl.schur(x)
    return z @ t @ jnp.conj(z.T)


FUNCTIONS = {
    "qr": jnp.linalg.qr, "lu": lax.linalg.lu, "svd": svd, "eigh": jnp.linalg.eigvalsh, "eigvals": eigvals,
    "solve": lambda x: (jnp.linalg.solve(x, x[0]), jnp.linalg.inv(x)), "det": lambda x: (jnp.linalg.det(x), jnp.linalg.slogdet(x)[1]),
    "expm": lambda x: jsl.expm(x / 4), "schur": schur, "forms": lambda x: (*jsl.hessenberg(x, calc_q=True), *lax.linalg.tridiagonal(x)[1:3]),
    "pivoted": lambda x: jsl.qr(x, pivoting=True),
}


def theirs(name, x):
    f = FUNCTIONS[name.removesuffix("_grad")]
    if name.endswith("_grad"):
        return [jax.grad(lambda a: sum(jnp.sum(jnp.sin(jnp.real(y))) for y in jax.tree.leaves(f(a))))(x)]
    return jax.tree.leaves(f(x))


def jaxlib_results(text, x):
    backend = xla_bridge.get_backend("cpu")
    jax.block_until_ready(lax.linalg.lu(np.eye(2)))     # registers LAPACK
    with jax_mlir.make_ir_context():
        code = jax_mlir.module_to_bytecode(ir.Module.parse(text))
    loaded = backend.compile_and_load(code, backend.devices()[:1], xla_client.CompileOptions())
    results = loaded.execute_sharded([jax.device_put(x)]).disassemble_into_single_device_arrays()
    return [np.asarray(r[0]) for r in results]


@pytest.mark.parametrize("dtype", ("f64", "c128"))
def test_jaxlib_computes_jaxs_values_from_what_is_exported(dtype):
    r = np.random.default_rng(3)
    x = r.standard_normal((4, 4)) + (1j * r.standard_normal((4, 4)) if dtype == "c128" else 0)
    _, out, _ = built.run(built.tool("parity", "linalg"), dtype, stdin=b"")
    programs = dict(p.split("\n", 1) for p in out.decode().split("### ")[1:])
    assert {n.removesuffix("_grad") for n in programs} == set(FUNCTIONS)
    with jax.enable_x64(True):
        for name, text in programs.items():
            ours, expected = jaxlib_results(text, x), theirs(name, x)
            assert len(ours) == len(expected), name
            for a, b in zip(ours, expected):
                np.testing.assert_allclose(a, np.asarray(b), rtol=1e-9, atol=1e-9, err_msg=f"{name} {dtype}")


TPU = {
    "lu": lax.linalg.lu, "qr": lambda x: jnp.linalg.qr(x[:, :2]), "solve": lambda x: (jnp.linalg.solve(x, x[0]), jnp.linalg.det(x)),
    "eigh": lambda x: jnp.linalg.eigvalsh(x + x.T), "svd": lambda x: jnp.linalg.svd(x, compute_uv=False),
    "grad": jax.grad(lambda x: jnp.linalg.slogdet(x)[1] + jnp.linalg.qr(x)[1][0, 0]),
}


def runs(xylem, backend, folder, expected):
    """Runs p.mlir on x.npy; its results must be these."""
    done = subprocess.run([xylem, "run", "--backend", backend, "--input", folder / "x.npy", "--output-dir", folder, folder / "p.mlir"],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for k, b in enumerate(jax.tree.leaves(expected)):
        np.testing.assert_allclose(np.load(folder / f"{k}.npy"), np.asarray(b), rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize("backend", ("cpu", "interpret"))
@pytest.mark.parametrize("name", TPU)
def test_programs_for_tpus_run(name, backend, xylem, tmp_path):
    x = np.random.default_rng(4).standard_normal((4, 4)).astype(np.float32)
    exported = jax.export.export(jax.jit(TPU[name]), platforms=["tpu"])(x)
    (tmp_path / "p.mlir").write_text(exported.mlir_module())
    np.save(tmp_path / "x.npy", x)
    runs(xylem, backend, tmp_path, TPU[name](x))


POLYMORPHIC = {
    "eigvalsh": ("b, 4, 4", jnp.linalg.eigvalsh), "qr": ("b, 4, 4", jnp.linalg.qr), "svdvals": ("b, 4, 4", lambda a: jnp.linalg.svd(a, compute_uv=False)),
    "lu": ("b, 4, 4", lax.linalg.lu), "cholesky": ("b, 4, 4", lambda a: jnp.linalg.cholesky(a @ a.mT + jnp.eye(4))),
    "solve": ("b, 4, 4", lambda a: jnp.linalg.solve(a, a[..., :1])), "eigvals": ("b, 4, 4", lambda a: jnp.linalg.eigvals(a).sum(-1)),
    "triangular_solve": ("b, 4, 4", lambda a: lax.linalg.triangular_solve(a, a, left_side=True)), "inv": ("3, n, n", jnp.linalg.inv),
    "grad": ("b, n, n", jax.grad(lambda a: jnp.linalg.slogdet(a)[1].sum())),
}


@pytest.mark.parametrize("backend", ("cpu", "interpret"))
@pytest.mark.parametrize("name", POLYMORPHIC)
def test_programs_of_unknown_sizes_run(name, backend, xylem, tmp_path):
    dims, f = POLYMORPHIC[name]
    x = np.random.default_rng(4).standard_normal((3, 4, 4)).astype(np.float32)
    shape = jax.export.symbolic_shape(dims)
    check = [jax.export.DisabledSafetyCheck.custom_call("lapack_sgetrf_ffi")]
    exported = jax.export.export(jax.jit(f), disabled_checks=check)(jax.ShapeDtypeStruct(shape, np.float32))
    (tmp_path / "p.mlir").write_text(exported.mlir_module())
    np.save(tmp_path / "x.npy", x)
    runs(xylem, backend, tmp_path, f(x))
