"""Writes core_indexing.json: reads and updates of arrays by random index expressions, with gradients."""
import golden_io as io

import random

import jax
import jax.numpy as jnp
import numpy as np

rng = random.Random(7)
SHAPES = [(5,), (3, 4), (2, 3, 4), (4, 1, 3), (6, 2)]
# Values by formula, so that the file holds results only.
X = lambda n: ((np.arange(n) * 7 % 11 - 5) / 2).astype(np.float32)
V = lambda n: ((np.arange(n) * 5 % 7 - 3) / 2).astype(np.float32)
W = lambda n: (np.arange(n) * 3 % 5 - 2).astype(np.float32)


def entry(n, batch, outside):
    kind = rng.choice(["int", "slice", "slice", "all", "array", "array", "scalar"])
    if kind == "int":
        return {"int": rng.randrange(-n, n)}
    if kind == "all":
        return {"slice": [None, None, 1]}
    if kind == "slice":
        end = lambda: rng.choice([None, rng.randrange(-n - 1, n + 2)])
        return {"slice": [end(), end(), rng.choice([1, 1, 1, 2, -1, -2])]}
    lo, hi = (-n - 2, n + 3) if outside else (-n, n)
    if kind == "scalar":
        return {"array": io.array(np.int32(rng.randrange(lo, hi)))}
    shape = tuple(d if rng.random() < 0.8 else 1 for d in batch[rng.randrange(len(batch)):]) if batch else (2,)
    return {"array": io.array(np.array([rng.randrange(lo, hi) for _ in range(int(np.prod(shape)))], np.int32).reshape(shape))}


def value(a):
    return np.array(a["values"], {"i32": np.int32, "i1": bool}[a["dtype"]]).reshape(a["shape"])


def index_of(entries):
    out = []
    for e in entries:
        if "int" in e:
            out.append(e["int"])
        elif "slice" in e:
            out.append(slice(*e["slice"]))
        elif "array" in e:
            out.append(jnp.asarray(value(e["array"])))
        else:
            out.append(None if e["token"] == "newaxis" else Ellipsis)
    return tuple(out)


def encoded(entries):
    """Ends of slices as text, empty where open."""
    return [{"slice": ["" if v is None else str(v) for v in e["slice"]]} if "slice" in e else e for e in entries]


def expression(shape):
    outside = rng.random() < 0.4
    batch = rng.choice([(2,), (3,), (2, 2), (2, 1, 3)])
    entries, axis = [], 0
    count = rng.randrange(0, len(shape) + 1)
    cut = rng.randrange(0, count + 1) if rng.random() < 0.3 else None
    for k in range(count):
        if k == cut:
            entries.append({"token": "ellipsis"})
            axis = len(shape) - (count - k)
        entries.append(entry(shape[axis], batch, outside))
        axis += 1
        if rng.random() < 0.15:
            entries.append({"token": "newaxis"})
    return entries


MASKS = [((3, 4), [{"array": io.array(np.array([True, False, True]))}]),
         ((3, 4), [{"array": io.array(np.arange(12).reshape(3, 4) % 3 == 0)}]),
         ((2, 3, 4), [{"slice": [None, None, 1]}, {"array": io.array(np.array([True, True, False]))}, {"int": 1}]),
         ((2, 3, 4), [{"array": io.array(np.array([[True, False, True], [False, False, True]]))}, {"slice": [1, 3, 1]}]),
         ((3, 4), [{"array": io.array(np.bool_(True))}, {"slice": [0, 2, 1]}]), ((3,), [{"array": io.array(np.bool_(False))}]),
         ((2, 3), [{"array": io.array(np.array([False, False]))}])]
OPS = ["set", "add", "multiply", "min", "max", "subtract"]


def record(shape, entries, k):
    n = int(np.prod(shape))
    x, idx = jnp.asarray(X(n)).reshape(shape), index_of(entries)
    got = x[idx]
    v = jnp.asarray(V(got.size)).reshape(got.shape)
    if k % 5 == 0:
        v = v.reshape(-1)[0] if got.size else jnp.float32(1)
    op = OPS[k % len(OPS)]
    repeated = op == "multiply" and len({tuple(p) for p in np.stack(np.unravel_index(np.asarray(jnp.arange(n).reshape(shape)[idx]).ravel(), shape), 1)}) < got.size
    mode = [None, "clip", "drop"][k % 3]
    r = {"shape": list(shape), "index": encoded(entries), "op": op, "mode": mode or "", "scalar": k % 5 == 0, "get": io.array(got),
         "fill": io.array(x.at[idx].get(mode="fill", fill_value=7.0)), "out": io.array(getattr(x.at[idx], op)(v, mode=mode))}
    r["read_grad"] = io.array(jax.grad(lambda x: jnp.sum(jnp.sin(x[idx]) * W(got.size).reshape(got.shape)))(x))
    if op != "multiply":
        gx, gv = jax.grad(lambda x, v: jnp.sum(jnp.sin(getattr(x.at[idx], op)(v, mode=mode)) * W(n).reshape(shape)), (0, 1))(x, v)
        # The extremal rule forgets the mode: out of range, JAX divides by a count of zero.
        if np.isfinite(gv).all():
            r |= {"grad_x": io.array(gx), "grad_v": io.array(gv)}
    return r


records = [record(s, e, k) for k, (s, e) in enumerate(MASKS)]
k = len(records)
while k < 150:
    shape = rng.choice(SHAPES)
    entries = expression(shape)
    try:
        records.append(record(shape, entries, k))
    except (IndexError, TypeError, ValueError) as e:
        assert "Incompatible shapes" in str(e) or "broadcast" in str(e), (entries, e)
        continue
    k += 1
io.dump({"origin": io.origin("jax", "jaxlib") + ", CPU", "made_by": "make_core_indexing.py",
         "layout": {"records": "x = (7 i mod 11 - 5) / 2, v = (5 i mod 7 - 3) / 2, w = 3 i mod 5 - 2; get = x[index], fill = x.at[index].get(fill, 7), out = x.at[index].op(v), "
                    "read_grad of sum(sin(get) w), grad_x and grad_v of sum(sin(out) w)"}, "records": records}, "core_indexing.json", depth=2)
