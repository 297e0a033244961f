"""Records what Grain gives: orders, elements, states, generators, samplers; see README.md."""

import json
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "parity"))

import grain
import grain_twin as twin
import numpy as np
from grain._src.python.dataset.transformations.map import RngPool
from grain._src.python.experimental.index_shuffle.python import index_shuffle_module


def index_shuffles():
    out = []
    for top, seed, rounds in [(1, 0, 4), (4, 0, 4), (9, 42, 4), (46204, 52, 4), (65535, 7, 4), (65536, 3, 4), (131072, 3, 4),
                              (262144, 3, 4), (1234567891, 27, 4), (10**12, 2**32 - 1, 8), (2**62, 5, 4), (2**40, 1, 1024)]:
        index = sorted({i for i in (0, 1, 2, 3, 4, top // 2, top - 1, top) if i <= top})
        out.append({"max_index": top, "seed": seed, "rounds": rounds, "index": index,
                    "image": [int(index_shuffle_module.index_shuffle(index=i, max_index=top, seed=seed, rounds=rounds)) for i in index]})
    return out


def generators():
    seeds = [{"entropy": e, "word": int(np.random.SeedSequence(e).generate_state(1)[0])}
             for e in ([42, 1], [0, 1], [7, 1, 9, 1], [9, 1], [2**32 + 5, 1], [1, 2, 3, 4, 5, 6])]
    streams = []
    for index in (0, 1, 7, 2**40):
        g = RngPool(42).acquire_rng(index)
        raw = [str(v) for v in g.bit_generator.random_raw(6)]
        g = RngPool(42).acquire_rng(index)
        streams.append({"seed": 42, "index": index, "raw": raw, "random": twin.plain(g.random(3)), "integers10": twin.plain(g.integers(0, 10, 5)),
                        "integers2e40": twin.plain(g.integers(0, 2**40, 2)), "negative": twin.plain(g.integers(-2**62, 2**62, 2)),
                        "permuted5": twin.plain(g.permuted(np.arange(5)))})
    sampler = [float(np.random.Generator(np.random.Philox(key=45)).random())]
    bins = [{"seed": s, "n": n, "order": twin.plain(np.random.default_rng(s).permuted(np.arange(n)))} for n, s in ((3, 7), (8, 0), (3, 10), (200, 2**40))]
    return {"seed_sequence": seeds, "philox": streams, "sampler key 45": sampler, "pcg64": bins}


def main():
    runs = [{"name": n, "spec": s, **{k: v for k, v in twin.run(s).items() if k != "last"}} for n, s in twin.RUNS.items()]
    items = [{"name": n, "spec": s, **twin.items(s, k)} for n, (s, k) in twin.ITEMS.items()]
    old_runs = [{"name": n, "spec": twin.grain_mode(s), **{k: v for k, v in twin.run(s).items() if k != "last"}} for n, s in twin.DEFECT_RUNS.items()]
    old_items = [{"name": n, "spec": twin.grain_mode(s), **twin.items(s, k)} for n, (s, k) in twin.DEFECT_ITEMS.items()]
    out = {"origin": f"grain {grain.__version__ if hasattr(grain, '__version__') else '0.2.18'}, numpy {np.__version__}; make_grain.py",
           "layout": "items: elements by item access, null for absent; runs: elements and states of an iterator, state0 before the first; "
                     "compat_*: the same in the mode that reproduces Grain's known defects; all equal exactly",
           "index_shuffle": index_shuffles(), "generators": generators(), "items": items, "runs": runs,
           "compat_items": old_items, "compat_runs": old_runs}
    text = json.dumps(out)
    for key in ('"index_shuffle": [', '"items": [', '"runs": [', '"compat_items": [', '"compat_runs": [', '{"name": '):
        text = text.replace(key, "\n" + key)
    (HERE / "grain.json").write_text(text + "\n")


if __name__ == "__main__":
    main()
