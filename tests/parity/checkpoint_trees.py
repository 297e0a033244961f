"""Trees to save, and what they come back as, for the checkpoint suites."""

import collections
import dataclasses
import json

import built
import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import optax
from jax.sharding import Mesh, NamedSharding, PartitionSpec

Point = collections.namedtuple("Point", ["x", "y"])


@jax.tree_util.register_dataclass
@dataclasses.dataclass
class Box:
    low: object
    high: object


def key_text(entry):
    """What Orbax makes of one key of a path: text, or an integer for a position."""
    if isinstance(entry, jax.tree_util.DictKey):
        return str(entry.key)
    if isinstance(entry, jax.tree_util.GetAttrKey):
        return entry.name
    if isinstance(entry, jax.tree_util.SequenceKey):
        return entry.idx
    return entry.key


def leaves(tree):
    """[(path, leaf)] in tree order; None is a leaf; other empty nodes are none."""
    out = []
    for path, leaf in jax.tree_util.tree_flatten_with_path(tree, is_leaf=lambda x: x is None or (isinstance(x, tuple) and hasattr(
            x, "_fields") and not x._fields))[0]:
        out.append(([key_text(k) for k in path], None if isinstance(leaf, tuple) else leaf))
    return out


def bits(array):
    """(shape, dtype's name, bytes); types under a byte by value, all NaNs as one."""
    a = np.array(array)
    name = a.dtype.name
    if name.startswith(("float", "bfloat")) and a.ndim:
        a[np.isnan(a)] = np.nan
    if name in ("int4", "int2"):
        a = a.astype(np.int8)
    return tuple(np.shape(array)), name, a.tobytes()


def number(v):
    return complex(number(v[0]), number(v[1])) if isinstance(v, list) else float(v)


def array_of(leaf):
    """The array that `show --json --values` printed."""
    name = leaf["dtype"]
    dtype = np.dtype(getattr(ml_dtypes, name, None) or name)
    values = leaf["values"]
    if dtype.kind in "iub" and name not in ("int4", "int2"):
        a = np.array(values, dtype)
    elif name in ("int4", "int2"):
        a = np.array(values, np.int8).astype(dtype)
    elif dtype.kind == "c":
        # As pairs: a sum of complex numbers would lose the sign of a zero.
        part = np.float32 if name == "complex64" else np.float64
        a = np.array([[float(x) for x in v] for v in values], part).reshape(-1, 2).view(dtype).reshape(-1)
    else:
        a = np.array([float(v) for v in values], np.float64).astype(dtype)
    return a.reshape(leaf["shape"])


def check_shown(tree, shown):
    """Holds the leaves that were printed against the tree, in order, bit by bit."""
    want = leaves(tree)
    assert [leaf["path"] for leaf in shown] == [path for path, _ in want]
    for leaf, (path, value) in zip(shown, want):
        if value is None or isinstance(value, str):
            assert leaf["value"] == value and ("value" in leaf), path
        elif isinstance(value, (bool, int, float, np.generic)) and not isinstance(value, np.ndarray):
            got = leaf["value"]
            if isinstance(value, (bool, np.bool_)):
                assert got is bool(value), path
            else:
                assert np.array(number(got) if not isinstance(got, int) else got).astype(np.asarray(value).dtype).tobytes() == np.asarray(
                    value).tobytes(), path
        elif isinstance(value, jax.Array) and jnp.issubdtype(value.dtype, jax.dtypes.prng_key):
            assert leaf["prng"] == str(value.dtype)[4:-1], path
            assert bits(array_of(leaf)) == bits(jax.random.key_data(value)), path
        else:
            assert bits(array_of(leaf)) == bits(value), path


def check_restored(want, got):
    """Two trees that real Orbax restored, or a saved and a restored one, whose leaves are equal bit by bit."""
    a, b = leaves(want), leaves(got)
    assert [[str(k) for k in path] for path, _ in a] == [[str(k) for k in path] for path, _ in b]
    for (path, x), (_, y) in zip(a, b):
        if x is None or isinstance(x, str):
            assert x == y, path
        elif isinstance(x, jax.Array) and jnp.issubdtype(x.dtype, jax.dtypes.prng_key):
            assert x.dtype == y.dtype, path
            assert bits(jax.random.key_data(x)) == bits(jax.random.key_data(y)), path
        elif isinstance(x, (bool, int, float, complex)):
            assert type(x) is type(y) and (x == y or x != x and y != y), path
        else:
            assert bits(x) == bits(y), path


def show(path, *options):
    return json.loads(built.run(built.XYLEM, "checkpoint", "show", "--json", "--values", path, *options)[1])


def verify(path):
    """Lines that verify prints; none if all holds."""
    status, out, _ = built.run(built.XYLEM, "checkpoint", "verify", path, check=False)
    lines = out.decode().splitlines()
    assert (status == 0) == (not lines), (status, lines)
    return lines


def trees():
    """Name -> (tree, whether Orbax v1 takes it)."""
    random = np.random.default_rng(7)
    devices = np.array(jax.devices()[:8])
    mesh = Mesh(devices.reshape(4, 2), ("x", "y"))
    line = Mesh(devices, ("d",))

    def put(shape, *spec, over=mesh, dtype=np.float32):
        return jax.device_put(random.standard_normal(shape).astype(dtype), NamedSharding(over, PartitionSpec(*spec)))

    def normal(*shape, dtype=np.float32):
        return random.standard_normal(shape).astype(dtype)

    params = {"dense": {"kernel": jnp.asarray(normal(3, 4)), "bias": jnp.zeros(4)}, "scale": jnp.ones((2,), jnp.bfloat16)}
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 5e-324, 1.7976931348623157e308, 0.1, 1 / 3])
    everything = np.arange(65536, dtype=np.uint16)
    out = {
        "one_array": {"a": jnp.arange(6.0).reshape(2, 3)},
        "numpy": {"a": normal(3, 5), "b": np.arange(4)},
        "nested": {"a": {"b": {"c": {"d": jnp.ones(3)}}}, "z": jnp.zeros(1)},
        "list": [jnp.ones(2), jnp.zeros(3), [jnp.ones(1)]],
        "tuple": (jnp.ones(2), (np.zeros(3), 4)),
        "long_list": [np.full(2, i) for i in range(13)],
        "named_tuple": {"p": Point(jnp.ones(2), jnp.zeros(2)), "q": [Point(1, 2.5)]},
        "dataclass": {"box": Box(jnp.zeros(2), Box(np.ones(3), None))},
        "empty_nodes": {"d": {}, "l": [], "t": (), "n": None, "a": np.ones(1)},
        "nones": {"a": None, "b": [None, {"c": None}], "x": np.ones(2)},
        "scalars": {"i": 7, "f": 2.5, "t": True, "n": -3, "big": 2**62, "zero": 0, "false": False, "tiny": 1e-300},
        "special_scalars": {"nan": float("nan"), "inf": float("inf"), "ninf": float("-inf"), "nz": -0.0},
        "strings": {"a": "plain", "b": "ключ \"q\" \\ \n", "c": "", "list": ["x", "y"], "e": "😀", "arr": np.ones(2)},
        "mixed": {"w": jnp.ones((2, 2)), "s": "text", "n": None, "i": 3, "l": [1, "two", np.arange(3)]},
        "integer_keys": {1: np.ones(1), 2: np.ones(2), 10: np.ones(3)},
        "awkward_names": {"with space": np.ones(1), "quote'": np.ones(2), 'dq"': np.ones(3), "back\\slash": np.ones(1), "unicode é ☃": np.ones(2),
                          "'both\"": np.ones(1), "tab\t": np.ones(1), "%20": np.ones(1), "-": np.ones(1), "0": np.ones(1)},
        "slashes": {"a/b": np.ones(2), "c": {"d/e/f": np.arange(3)}},
        "zarr_like_names": {"c": {"0": np.ones(2)}, "zarr": np.ones(1), "d": np.zeros(3), "manifest": np.ones(1)},
        "long_names": {"n" * 120: {"m" * 90: np.ones(2)}},
        "many_small": {f"layer_{i}": {"w": np.full((2, 3), i, np.float32), "b": np.full(2, -i, np.float32)} for i in range(60)},
        "integers": {t: np.array([np.iinfo(t).min, 0, np.iinfo(t).max], t)
                     for t in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")},
        "floats": {"f16": normal(7).astype(np.float16), "f32": special.astype(np.float32), "f64": special},
        "every_bfloat16": {"a": everything.view(ml_dtypes.bfloat16)},
        "every_float16": {"a": everything.view(np.float16)},
        "float8": {t: np.arange(256, dtype=np.uint8).view(getattr(ml_dtypes, t))
                   for t in ("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e4m3b11fnuz")},
        "int4": {"a": jnp.asarray([-8, 7, 0, 3, -1], jnp.int4), "b": np.array([[1, -2], [3, -4]], ml_dtypes.int4)},
        "complex": {"c64": np.array([1 + 2j, -0.0 + 1j, complex("inf")], np.complex64), "c128": normal(3, 2).astype(complex) * 1j},
        "bools": {"a": np.array([True, False, True]), "b": jnp.zeros((2, 2), bool)},
        "rank_0": {"jax": jnp.asarray(3, jnp.int32), "np": np.asarray(2.5), "bf": jnp.asarray(1.5, jnp.bfloat16)},
        "rank_5": {"a": normal(2, 3, 1, 2, 2), "b": normal(1, 1, 1, 1, 1, 1)},
        "one_million": {"a": normal(1000, 1000)},
        "zeros": {"a": np.zeros((50, 50), np.float32), "b": jnp.zeros((4, 4), jnp.bfloat16)},
        "optax_adam": {"params": params, "opt": optax.adam(1e-3).init(params)},
        "optax_chain": {"opt": optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(1e-3)).init(params)},
        "optax_multi": {"opt": optax.sgd(0.1, momentum=0.9).init(params), "step": 12},
        "prng_keys": {"typed": jax.random.key(3), "batch": jax.random.split(jax.random.key(4), 3), "rbg": jax.random.key(5, impl="rbg"),
                      "raw": jax.random.PRNGKey(6)},
        "sharded_rows": {"a": put((8, 4), "x"), "b": put((8, 6), "x", "y")},
        "sharded_columns": {"a": put((3, 8), None, "y"), "both": put((16,), ("x", "y"))},
        "replicated": {"a": put((5, 4)), "b": put((4, 2), None)},
        "sharded_eight": {"a": put((16, 3), "d", over=line), "b": put((8,), "d", over=line, dtype=np.int32)},
        "sharded_mixed": {"w": put((8, 8), "x", "y"), "n": normal(3), "s": 4, "t": "x", "single": jax.device_put(jnp.ones(3), jax.devices()[5])},
        "sharded_bfloat16": {"w": jax.device_put(jnp.asarray(normal(8, 4), jnp.bfloat16), NamedSharding(mesh, PartitionSpec("x", "y")))},
        "fortran_order": {"a": np.asfortranarray(normal(4, 6)), "b": normal(6, 4).T, "c": normal(9, 9)[::2, ::3]},
    }
    refused_by_v1 = set()
    return {name: (tree, name not in refused_by_v1) for name, tree in out.items()}
