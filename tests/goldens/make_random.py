"""Writes random.json: the default PRNG (threefry2x32, partitionable), its samplers, initialisers."""
import golden_io as io

import jax
import jax.numpy as jnp
import numpy as np
from jax import random
from jax.extend.random import threefry_2x32

SEEDS = (0, 1, 7, 42, 1701)
DTYPES = {"f16": "float16", "bf16": "bfloat16", "f32": "float32", "f64": "float64", "i8": "int8", "i16": "int16",
          "i32": "int32", "i64": "int64", "ui8": "uint8", "ui32": "uint32", "ui64": "uint64"}


def word(x):
    """A list of integers of any width; data of keys."""
    return [int(v) for v in np.asarray(random.key_data(x) if jnp.issubdtype(x.dtype, jax.dtypes.prng_key) else x).ravel()]


def blocks():
    """The four published vectors of the block function."""
    out = []
    for key, counter in (([0, 0], [0, 0]), ([0xFFFFFFFF] * 2, [0xFFFFFFFF] * 2),
                         ([0x13198A2E, 0x03707344], [0x243F6A88, 0x85A308D3]), ([0, 0], [1, 0])):
        value = threefry_2x32(np.array(key, np.uint32), np.array(counter, np.uint32))
        text = lambda words: " ".join(f"{int(w):08x}" for w in words)
        out.append({"key": text(key), "counter": text(counter), "out": text(value)})
    return out


def keys():
    out = []
    for seed in SEEDS:
        k = random.key(seed)
        out.append({
            "seed": seed, "key": word(k), "split2": word(random.split(k)), "split3": word(random.split(k, 3)),
            "split_2x2": word(random.split(k, (2, 2))),
            "fold_in": {str(d): word(random.fold_in(k, np.uint32(d & 0xFFFFFFFF))) for d in (0, 1, 7, 2147483647, 4294967295)},
            "bits8": word(random.bits(k, (5,), "uint8")), "bits16": word(random.bits(k, (5,), "uint16")),
            "bits32": word(random.bits(k, (5,))), "bits32_2x3": word(random.bits(k, (2, 3))),
            "bits32_scalar": word(random.bits(k, ())), "bits64_hex": [f"{v:016x}" for v in bits64(k)],
        })
    return out


def bits64(k):
    with jax.enable_x64(True):
        return word(random.bits(k, (3,), "uint64"))


def sampler_cases():
    """(op, dtype or None, args) of the tables; args become keyword arguments of jax.random.<op>."""
    def floats(d):
        return [
            ("uniform", d, {"shape": [5]}), ("uniform", d, {"shape": [2, 3]}),
            ("uniform", d, {"shape": [5], "minval": -3.0, "maxval": 5.0}),
            ("normal", d, {"shape": [6]}), ("normal", d, {"shape": [2, 3]}),
            ("truncated_normal", d, {"lower": -2.0, "upper": 2.0, "shape": [6]}),
            ("gumbel", d, {"shape": [5]}), ("exponential", d, {"shape": [5]}),
        ]
    more = [
        ("uniform", "f32", {"shape": [4], "minval": 1e-3, "maxval": 1e3}), ("normal", "f32", {"shape": []}),
        ("truncated_normal", "f32", {"lower": 0.5, "upper": 1.0, "shape": [3]}),
        ("laplace", "f32", {"shape": [5]}), ("logistic", "f32", {"shape": [5]}), ("cauchy", "f32", {"shape": [5]}),
        ("gumbel", "f32", {"shape": [4], "mode": "high"}),
    ]
    ints = [
        ("randint", "i32", {"shape": [8], "minval": 0, "maxval": 10}),
        ("randint", "i32", {"shape": [8], "minval": -5, "maxval": 5}),
        ("randint", "i32", {"shape": [5], "minval": 0, "maxval": 1000000}),
        ("randint", "i32", {"shape": [5], "minval": -2**31, "maxval": 2**31 - 1}),
        ("randint", "i32", {"shape": [3], "minval": 5, "maxval": 5}),
        ("randint", "i32", {"shape": [3], "minval": 5, "maxval": 2}),
        ("randint", "ui8", {"shape": [8], "minval": 0, "maxval": 256}),
        ("randint", "i8", {"shape": [8], "minval": -128, "maxval": 128}),
        ("randint", "i16", {"shape": [8], "minval": 0, "maxval": 100}),
        ("randint", "ui32", {"shape": [5], "minval": 0, "maxval": 4294967295}),
        ("permutation", None, {"x": 1}), ("permutation", None, {"x": 2}), ("permutation", None, {"x": 8}),
        ("permutation", None, {"x": 100}), ("permutation", None, {"x": 2000}),
        ("permutation", None, {"x": [[0, 1, 2], [3, 4, 5], [6, 7, 8], [9, 10, 11]]}),
        ("permutation", None, {"x": [[0, 1, 2], [3, 4, 5], [6, 7, 8], [9, 10, 11]], "axis": 1}),
        ("permutation", None, {"x": [[0, 1, 2], [3, 4, 5], [6, 7, 8], [9, 10, 11]], "axis": 1, "independent": True}),
        ("bernoulli", None, {"p": 0.5, "shape": [16]}), ("bernoulli", None, {"p": 0.3, "shape": [16]}),
        ("bernoulli", None, {"p": [0.0, 0.25, 0.5, 1.0]}), ("bernoulli", None, {"p": 0.3, "shape": [8], "mode": "high"}),
        ("rademacher", None, {"shape": [8]}),
        ("categorical", None, {"logits": "log[.1 .2 .3 .4]"}), ("categorical", None, {"logits": "log[.1 .2 .3 .4]", "shape": [8]}),
        ("categorical", None, {"logits": "zeros[3,4]"}), ("categorical", None, {"logits": "zeros[3,4]", "axis": 0}),
        ("categorical", None, {"logits": "zeros[3,4]", "shape": [2, 3]}),
        ("categorical", None, {"logits": "zeros[6]", "shape": [3], "replace": False}),
        ("categorical", None, {"logits": "[-inf 0 -inf 0]", "shape": [6]}),
        ("choice", None, {"a": 5, "shape": [5]}), ("choice", None, {"a": 10, "shape": [4], "replace": False}),
        ("choice", None, {"a": 4, "shape": [8], "p": [.1, .2, .3, .4]}),
    ]
    for seed in (0, 1, 42, 1701):
        yield from ((seed, c, False) for c in floats("f32") + more + ints)
    for d in ("f16", "bf16"):
        yield from ((0, c, False) for c in floats(d))
    yield from ((s, c, True) for s in (0, 42) for c in floats("f64"))
    wide = [("randint", "i64", {"shape": [5], "minval": 0, "maxval": 10}),
            ("randint", "i32", {"shape": [5], "minval": 0, "maxval": 10}),
            ("randint", "i64", {"shape": [4], "minval": -2**63, "maxval": 2**63 - 1}),
            ("randint", "i64", {"shape": [3], "minval": 0, "maxval": 2**40}),
            ("bernoulli", None, {"p": 0.5, "shape": [8]})]
    yield from ((0, c, True) for c in wide)


LOGITS = {"log[.1 .2 .3 .4]": lambda: jnp.log(jnp.array([.1, .2, .3, .4])), "zeros[3,4]": lambda: jnp.zeros((3, 4)),
          "zeros[6]": lambda: jnp.zeros(6), "[-inf 0 -inf 0]": lambda: jnp.array([-jnp.inf, 0., -jnp.inf, 0.])}


def samplers():
    out = []
    for seed, (op, dtype, args), x64 in sampler_cases():
        kw = {k: tuple(v) if k == "shape" else v for k, v in args.items()}
        with jax.enable_x64(x64):
            if dtype:
                kw["dtype"] = DTYPES[dtype]
            if "logits" in kw:
                kw["logits"] = LOGITS[kw["logits"]]()
            if dtype == "ui32":
                kw["minval"], kw["maxval"] = np.uint32(kw["minval"]), np.uint32(kw["maxval"])
            for name in ("p", "x"):
                if isinstance(kw.get(name), list):
                    kw[name] = jnp.array(kw[name])
            value = getattr(random, op)(random.key(seed), **kw)
            record = {"op": op, "dtype": dtype, "x64": x64, "seed": seed, "args": args, "out": io.array(value)}
            if op == "permutation" and args["x"] == 2000:      # two rounds of sorting; the head is enough
                record["out"] = io.array(value[:20])
                record["head"] = 20
        out.append(record)
    return out


def initializers():
    init = jax.nn.initializers
    named = {
        "lecun_normal": init.lecun_normal(), "lecun_uniform": init.lecun_uniform(),
        "glorot_normal": init.glorot_normal(), "glorot_uniform": init.glorot_uniform(),
        "he_normal": init.he_normal(), "he_uniform": init.he_uniform(),
        "normal(0.01)": init.normal(), "normal(0.02)": init.normal(0.02), "uniform(0.01)": init.uniform(),
        "truncated_normal(0.01)": init.truncated_normal(), "zeros": init.zeros, "ones": init.ones,
        "constant(1.5)": init.constant(1.5),
        "variance_scaling(1, fan_in, normal, out_axis=0)": init.variance_scaling(1.0, "fan_in", "normal", out_axis=0),
        "variance_scaling(2, fan_avg, truncated_normal)": init.variance_scaling(2.0, "fan_avg", "truncated_normal"),
    }
    out = []
    for name, f in named.items():
        for seed, shape in ((0, (3, 4)), (42, (2, 5)), (0, (2, 3, 4))):
            out.append({"name": name, "seed": seed, "out": io.array(f(random.key(seed), shape, jnp.float32))})
    out.append({"name": "lecun_normal", "key": word(random.fold_in(random.key(0), 0)),
                "out": io.array(init.lecun_normal()(random.fold_in(random.key(0), 0), (3, 4)))})
    return out


def large():
    """Whole arrays that would be too long to store."""
    k = random.key(0)
    bits = np.asarray(random.bits(k, (1_000_000,)))
    p3, p4 = np.asarray(random.permutation(k, 1000)), np.asarray(random.permutation(k, 10000))
    weighted = lambda p: int((np.arange(len(p), dtype=np.int64) * p).sum())
    return {
        "seed": 0,
        "bits32[1000000]": {"sum": int(bits.astype(np.uint64).sum()), "xor": int(np.bitwise_xor.reduce(bits)),
                            "last": int(bits[-1])},
        "permutation(1000)": {"head": p3[:8].tolist(), "sum_of_i_times_p_i": weighted(p3)},
        "permutation(10000)": {"head": p4[:8].tolist(), "sum_of_i_times_p_i": weighted(p4)},
    }


io.dump({
    "origin": io.origin("jax", "jaxlib") + ", CPU",
    "made_by": "make_random.py",
    "layout": "arrays as in golden_io.py; keys and bits as lists of their words, row-major. "
              "`x64`: made with 64-bit types on. Integers, bits, keys and uniforms on [0, 1) are exact; "
              "what passes through log, erf_inv or other bounds may differ by 2 ulp",
    "block": "threefry2x32(key, counter) in hex",
    "blocks": blocks(),
    "seeds_x64_off": [{"seed": s, "key": word(random.key(s))} for s in (0, 5, -1, 2**31 - 1, -2**31)],
    "keys": keys(),
    "samplers": samplers(),
    "initializers": initializers(),
    "large": large(),
}, "random.json", depth=2)
