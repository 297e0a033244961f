"""Programs of xylem::linalg, exported as StableHLO with JAX's LAPACK calls, compiled and run by jaxlib; and JAX's programs for
TPUs, whose calls of linear algebra run here too."""

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


@pytest.mark.parametrize("backend", ("cpu", "interpret"))
@pytest.mark.parametrize("name", TPU)
def test_programs_for_tpus_run(name, backend, xylem, tmp_path):
    x = np.random.default_rng(4).standard_normal((4, 4)).astype(np.float32)
    exported = jax.export.export(jax.jit(TPU[name]), platforms=["tpu"])(x)
    (tmp_path / "p.mlir").write_text(exported.mlir_module())
    np.save(tmp_path / "x.npy", x)
    done = subprocess.run([xylem, "run", "--backend", backend, "--input", tmp_path / "x.npy", "--output-dir", tmp_path, tmp_path / "p.mlir"],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for k, expected in enumerate(jax.tree.leaves(TPU[name](x))):
        np.testing.assert_allclose(np.load(tmp_path / f"{k}.npy"), np.asarray(expected), rtol=2e-4, atol=2e-5, err_msg=name)
