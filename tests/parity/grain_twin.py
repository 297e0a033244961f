"""Pipelines of real Grain from the specifications of xylem/data/testing/spec.h, and the ones that are always compared."""

import functools
import logging
import os
import warnings

os.environ.setdefault("JAX_PLATFORMS", "cpu")
warnings.filterwarnings("ignore")

import absl.flags
import absl.logging
import grain
import numpy as np
from grain import experimental as ge

logging.disable(logging.ERROR)
absl.logging.set_verbosity(absl.logging.FATAL)
if not absl.flags.FLAGS.is_parsed():
    absl.flags.FLAGS(["grain_twin"])


def plain(x):
    """The element or state as JSON would have it."""
    if isinstance(x, dict):
        return {str(k): plain(v) for k, v in x.items()}
    if isinstance(x, (list, tuple)):
        return [plain(v) for v in x]
    if isinstance(x, np.ndarray):
        return plain(x.tolist())
    if isinstance(x, np.generic):
        return x.item()
    return x


def value_of(v):
    """An element of a source: lists are arrays."""
    if isinstance(v, dict):
        return {k: value_of(x) for k, x in v.items()}
    return np.array(v, np.int64) if isinstance(v, list) else v


def add(x, k):
    if isinstance(x, dict):
        return {n: add(v, k) for n, v in x.items()}
    if isinstance(x, (list, tuple)):
        return tuple(add(v, k) for v in x)
    if isinstance(x, float) or getattr(x, "dtype", None) is not None and x.dtype.kind == "f":
        return x
    return x + k


def function(s):
    fn, k, m = s["fn"], s.get("k", 0), s.get("m", 1)
    return {"id": lambda x: x, "add": lambda x: add(x, k), "pair": lambda x: (k, x),
            "seq": lambda x: {"t": np.full(x % m + 1, x + 1, np.int64)},
            "seq2": lambda x: {"a": np.full(x % m + 1, x + 1, np.int64), "b": np.full(x * 3 % m + 1, x + 100, np.int64)}}[fn]


def random_function(s):
    if s["fn"] == "real":
        return lambda x, rng: float(rng.random())
    return lambda x, rng: add(x, int(rng.integers(0, s.get("n", 100))))


class Copies(ge.FlatMapTransform):
    max_fan_out = 3

    def flat_map(self, x):
        return [x] * (x % 3 + 1)


def build(s):
    op, of = s["op"], s.get("of")
    if op == "range":
        return grain.MapDataset.range(s.get("start", 0), s["stop"], s.get("step", 1))
    if op == "source":
        return grain.MapDataset.source([value_of(v) for v in s["values"]])
    if op == "mix_named":
        return grain.IterDataset.mix({k: build(v) for k, v in of.items()}, s.get("weights"))
    if isinstance(of, list):
        parts = [build(p) for p in of]
        is_map = isinstance(parts[0], grain.MapDataset)
        if op == "interleave":
            return ge.InterleaveIterDataset(parts, cycle_length=s["cycle"], iter_buffer_size=s.get("buffer", 1))
        if op == "concatenate":
            return grain.MapDataset.concatenate(parts)
        if op == "mix":
            return (grain.MapDataset if is_map else grain.IterDataset).mix(parts, s.get("weights"))
        return ge.ZipMapDataset(parts) if is_map else ge.ZipIterDataset(parts, strict=s.get("strict", True))
    d = build(of)
    is_map = isinstance(d, grain.MapDataset)
    if op in ("compat", "skip_errors"):
        return d
    if op == "map":
        return d.map(function(s))
    if op == "map_with_index":
        return d.map_with_index(lambda i, x: (i, x))
    if op == "random_map":
        return d.random_map(random_function(s), seed=s.get("seed"))
    if op == "filter":
        return d.filter(lambda x: x % s["m"] == s["r"])
    if op == "seed":
        return d.seed(s["seed"])
    if op == "window_shuffle":
        return (ge.WindowShuffleMapDataset if is_map else ge.WindowShuffleIterDataset)(
            d, window_size=s["window"], seed=s["seed"])
    if op == "repeat":
        return d.repeat(s.get("n"), reseed_each_epoch=s.get("reseed", True)) if is_map else ge.RepeatIterDataset(d, s.get("n"))
    if op == "batch":
        return d.batch(s["n"], drop_remainder=s.get("drop", False))
    if op == "pad_batch":
        return d.batch(s["n"], batch_fn=functools.partial(ge.batch_and_pad, batch_size=s["n"], pad_value=s.get("value", 0)))
    if op == "list_batch":
        return d.batch(s["n"], batch_fn=list)
    if op == "shuffle":
        return d.shuffle(s.get("seed"))
    if op == "slice":
        return d[s.get("start"):s.get("stop"):s.get("step", 1)]
    if op == "flat_map":
        return ge.FlatMapMapDataset(d, Copies()) if is_map else ge.FlatMapIterDataset(d, Copies())
    if op == "elastic":
        return ge.ElasticIterator(d, s["batch"], grain.sharding.ShardOptions(s["index"], s["count"]),
                                  read_options=grain.ReadOptions(0, 0))
    if op == "to_iter":
        return d.to_iter_dataset(grain.ReadOptions(num_threads=s.get("threads", 0), prefetch_buffer_size=s.get("buffer", 0)),
                                 allow_nones=s.get("nones", False))
    if op == "limit":
        return ge.LimitIterDataset(d, s["n"])
    if op == "rebatch":
        return ge.RebatchIterDataset(d, s["n"], drop_remainder=s.get("drop", False))
    if op == "cache":
        return ge.CacheIterDataset(d)
    if op == "prefetch":
        return ge.ThreadPrefetchIterDataset(d, prefetch_buffer_size=s["buffer"])
    if op == "mp":
        # By threads, whose states and order are those of processes (§ "mp" of the sampled comparison runs processes).
        return ge.multithread_prefetch(d, s["workers"], s.get("buffer", 1), s.get("sequential", False))
    if op == "pack":
        cls = ge.BestFitPackIterDataset if s.get("best") else ge.FirstFitPackIterDataset
        return cls(d, length_struct=dict(map(tuple, s["length"])), num_packing_bins=s["bins"], seed=s.get("seed", 0),
                   shuffle_bins=s.get("shuffle", True), shuffle_bins_group_by_feature=s.get("group"),
                   meta_features=s.get("meta", ()),
                   pack_alignment_struct=per_feature(s, "alignment", 1), padding_struct=per_feature(s, "padding", None),
                   max_sequences_per_bin=s.get("max_sequences"))
    if op == "concat_then_split":
        bos = {} if s.get("bos") is None else dict(
            bos_handling=ge.BOSHandling.REPLACE_FIRST_TOKEN_WITH_BOS, bos_features=s["bos_features"], bos_token_id=s["bos"])
        return ge.ConcatThenSplitIterDataset(d, length_struct=dict(map(tuple, s["length"])), meta_features=s.get("meta", ()),
                                             split_full_length_features=s.get("split_full", True), **bos)
    raise ValueError(op)


def per_feature(s, key, default):
    if key not in s:
        return None
    return {name: s[key].get(name, default) for name, _ in s["length"]}


def items(spec, n):
    """Elements 0 ... n - 1 by item access, and the length."""
    d = build(spec)
    return {"length": len(d), "elements": [plain(d[i]) for i in range(n)]}


def run(spec, restore=None, take=None, states=True):
    """What an iterator gives, with the state before, after each element."""
    it = iter(build(spec))
    if restore is not None:
        it.set_state(restore)
    out = {"state0": plain(it.get_state()), "elements": [], "states": []}
    while take is None or len(out["elements"]) < take:
        try:
            e = next(it)
        except StopIteration:
            break
        out["elements"].append(plain(e))
        if states:
            out["states"].append(plain(it.get_state()))
    out["last"] = it.get_state()
    if hasattr(it, "close"):
        it.close()
    return out


class Inc(grain.transforms.Map):
    def map(self, x):
        return x + 1


class Even(grain.transforms.Filter):
    def filter(self, x):
        return x % 2 == 0


class Random(grain.transforms.RandomMap):
    def random_map(self, x, rng):
        return float(rng.random())


class Twice(ge.FlatMapTransform):
    max_fan_out = 2

    def flat_map(self, x):
        return [x, x]


def sampler(s):
    shard = grain.sharding.ShardOptions(*s["shard"]) if "shard" in s else grain.sharding.NoSharding()
    if s["kind"] == "sequential":
        return grain.samplers.SequentialSampler(s["n"], shard, s.get("seed"))
    return grain.samplers.IndexSampler(s["n"], shard, shuffle=s.get("shuffle", False), num_epochs=s.get("epochs"), seed=s.get("seed"))


def positions(s):
    it = sampler(s)
    return {"repr": repr(it), "items": [[i, int(it[i].record_key)] for i in range(min(len(it), 30))]}


def loader(s):
    ops = [{"inc": Inc, "even": Even, "random": Random, "twice": Twice}[o]() if isinstance(o, str) else grain.transforms.Batch(o)
           for o in s["ops"]]
    return grain.DataLoader(data_source=list(range(s["n"])), sampler=sampler(s["sampler"]), operations=ops,
                            worker_count=s.get("workers", 0), read_options=grain.ReadOptions(0, 0))


def run_loader(s, restore=None, take=None):
    it = iter(loader(s))
    if restore is not None:
        it.set_state(restore)
    out = {"state0": it.get_state().decode(), "elements": [], "states": []}
    while take is None or len(out["elements"]) < take:
        try:
            out["elements"].append(plain(next(it)))
        except StopIteration:
            break
        out["states"].append(it.get_state().decode())
    out["last"] = it.get_state().decode()
    del it
    return out


def over(op, of, **arguments):
    return {"op": op, **arguments, "of": of}


def rng(n, **k):
    return {"op": "range", "stop": n, **k}


def to_iter(d, **k):
    return over("to_iter", d, **k)


def copies(*pairs):
    return [{"op": "source", "values": [v] * n} for v, n in pairs]


I10, I5 = to_iter(rng(10)), to_iter(rng(5))
TOKENS = {"op": "source", "values": [{"t": [k + 1] * n} for k, n in enumerate([3, 4, 2, 5, 3, 1, 4, 6, 2])]}
SPLIT = {"op": "source", "values": [{"t": [k + 1] * n} for k, n in enumerate([3, 6, 2, 5, 6, 4])]}
TWO = {"op": "source", "values": [{"a": [i] * (i % 4 + 1), "b": [i + 50] * (i * 7 % 5 + 1), "m": [i]} for i in range(1, 14)]}
CUT = {"op": "source", "values": [{"a": list(range(100, 120)), "b": list(range(200, 207))}]}


def grain_mode(d):
    """The pipeline in the mode that reproduces Grain, set at its sources."""
    if "of" not in d:
        return over("compat", d, mode="grain")
    of = d["of"]
    if isinstance(of, list):
        of = [grain_mode(p) for p in of]
    elif d["op"] == "mix_named":
        of = {k: grain_mode(p) for k, p in of.items()}
    else:
        of = grain_mode(of)
    return {**d, "of": of}


# Name -> (specification, elements by item access).
ITEMS = {
    "shuffle": (over("shuffle", rng(10), seed=42), 20),
    "shuffle of one": (over("shuffle", rng(1), seed=42), 3),
    "shuffle, default seed": (over("shuffle", over("seed", rng(10), seed=42)), 10),
    "shuffle, default seed further up": (over("shuffle", over("map", over("seed", rng(10), seed=42), fn="id")), 10),
    "shuffle, two seeds": (over("shuffle", over("seed", over("map", over("seed", rng(10), seed=1), fn="id"), seed=7)), 10),
    "shuffle, repeat": (over("repeat", over("shuffle", rng(5), seed=3), n=2), 10),
    "shuffle, repeat without reseeding": (over("repeat", over("shuffle", rng(5), seed=3), n=2, reseed=False), 10),
    "shuffle, large seed": (over("repeat", over("shuffle", rng(7), seed=2**32 - 1), n=3), 21),
    "slice from behind": (over("repeat", over("slice", rng(10), step=-3), n=2), 8),
    "slice of a slice": (over("repeat", over("slice", over("slice", rng(20), start=2, step=3), start=-4, stop=-1), n=2), 6),
    "batch, repeat": (over("repeat", over("batch", rng(5), n=2), n=2), 6),
    "batch, drop": (over("batch", rng(5), n=2, drop=True), 6),
    "batch across epochs": (over("batch", over("repeat", rng(5), n=2), n=3), 4),
    "batch and pad": (over("pad_batch", rng(5), n=2, value=-1), 6),
    "batch of dicts": (over("batch", {"op": "source", "values": [{"a": [i, i], "b": i} for i in range(5)]}, n=2), 3),
    "own batch function": (over("list_batch", rng(5), n=2), 3),
    "concatenate": (over("repeat", over("concatenate", [rng(2), {"op": "source", "values": [7, 8, 9]}]), n=2), 10),
    "concatenate shuffles": (over("repeat", over("concatenate", [over("shuffle", rng(4), seed=1), over("shuffle", rng(3), seed=2)]), n=3), 21),
    "map_with_index": (over("map_with_index", over("repeat", rng(3), n=2)), 6),
    "index runs on": (over("repeat", over("map_with_index", rng(3)), n=2), 6),
    "mix": (over("mix", [rng(5), {"op": "source", "values": [7, 8, 9]}]), 12),
    "mix weights": (over("mix", [rng(9), rng(8, start=-20), rng(7)], weights=[.5, .3, .2]), 40),
    "mix .7 .3": (over("mix", [rng(90), over("shuffle", rng(8), seed=4)], weights=[.7, .3]), 40),
    "mix, seeds": (over("shuffle", over("mix", [over("seed", rng(5), seed=7), over("seed", rng(5), seed=9)])), 10),
    "mix, seed above": (over("shuffle", over("seed", over("mix", [over("shuffle", over("seed", rng(5), seed=1)), over("shuffle", over("seed", rng(5), seed=2))]), seed=9)), 20),
    "random_map": (over("random_map", rng(10), fn="draw", n=10, seed=42), 20),
    "random_map, default seed": (over("random_map", over("seed", rng(10), seed=41), fn="draw", n=10), 10),
    "random_map, reals": (over("repeat", over("random_map", rng(5), fn="real", seed=1), n=2), 10),
    "random_map, large range": (over("random_map", rng(10), fn="draw", n=2**40, seed=3), 10),
    "flat_map": (over("flat_map", rng(4), fan_out=3), 24),
    "filter": (over("filter", rng(6), m=2, r=0), 12),
    "zip": (over("zip", [rng(3), over("shuffle", rng(3), seed=1), rng(6, start=3)]), 6),
    "window shuffle": (over("window_shuffle", rng(20), window=4, seed=0), 40),
    "range": (rng(21, start=2, step=3), 14),
    "range down": (rng(-7, start=5, step=-4), 6),
}

# The same for cases in which only the mode for old runs does as Grain.
DEFECT_ITEMS = {
    "shuffle of 2^16 + 1": (over("slice", over("shuffle", rng(65537), seed=3), step=4096), 40),
    "window shuffle of 10 by 4": (over("window_shuffle", rng(10), window=4, seed=0), 30),
    "slice after shuffle": (over("repeat", over("slice", over("shuffle", over("seed", rng(10), seed=42)), stop=4), n=3), 12),
    "slice after shuffle, random_map": (over("repeat", over("slice", over("random_map", over("shuffle", rng(10), seed=5), fn="draw", seed=1), stop=4), n=3), 12),
}

# Name -> specification of an iterator that ends.
RUNS = {
    "to_iter": to_iter(rng(4)),
    "to_iter, threads": to_iter(rng(40), threads=3, buffer=7),
    "filter": to_iter(over("filter", rng(6), m=2, r=0)),
    "absent elements": to_iter(over("filter", rng(4), m=2, r=0), nones=True),
    "map": over("map", I5, fn="add", k=3),
    "filter after": over("filter", I10, m=3, r=1),
    "map_with_index": over("map_with_index", to_iter(rng(4))),
    "random_map": over("random_map", to_iter(rng(8)), fn="draw", seed=5),
    "random_map, default seed": over("random_map", over("seed", to_iter(rng(8)), seed=5), fn="real"),
    "batch": over("batch", I5, n=2),
    "batch, drop": over("batch", I5, n=2, drop=True),
    "pad_batch": over("pad_batch", I5, n=2, value=-1),
    "list_batch": over("list_batch", I5, n=2),
    "limit": over("limit", I5, n=3),
    "limit above": over("limit", I5, n=9),
    "repeat": over("repeat", to_iter(rng(2)), n=3),
    "repeat of a shuffle": over("repeat", to_iter(over("shuffle", rng(4), seed=1)), n=2),
    "rebatch": over("rebatch", over("batch", I10, n=4), n=3),
    "rebatch, larger": over("rebatch", over("batch", I10, n=2), n=5, drop=True),
    "rebatch, dropping": over("rebatch", over("batch", I10, n=4), n=4, drop=True),
    "cache": over("cache", to_iter(rng(3))),
    "cache, repeat": over("repeat", over("cache", to_iter(rng(3))), n=3),
    "flat_map": over("flat_map", to_iter(rng(4))),
    "zip": over("zip", [to_iter(rng(3)), over("map", to_iter(rng(3)), fn="add", k=10)]),
    "zip, not strict": over("zip", [to_iter(rng(3)), to_iter(rng(2))], strict=False),
    "mix": over("mix", [I5, to_iter({"op": "source", "values": [7, 8, 9]})]),
    "mix, weights": over("mix", [I10, over("map_with_index", I5)], weights=[.7, .3]),
    "mix by name": over("mix_named", {"a": I5, "b": over("map", to_iter(rng(9)), fn="add", k=100)}, weights={"a": 1, "b": 2}),
    "window_shuffle": over("window_shuffle", I10, window=4, seed=42),
    "window_shuffle, whole": over("window_shuffle", I10, window=5, seed=1),
    "prefetch": over("prefetch", to_iter(rng(6)), buffer=3),
    "prefetch of none": over("prefetch", to_iter(rng(6)), buffer=0),
    "prefetch over filter": over("prefetch", over("filter", I10, m=3, r=0), buffer=2),
    "prefetch, repeat": over("repeat", over("prefetch", to_iter(rng(3)), buffer=2), n=2),
    "mp 3": over("mp", I10, workers=3),
    "mp 1": over("mp", I10, workers=1),
    "mp sequential": over("mp", I10, workers=3, sequential=True),
    "mp sequential range": over("mp", to_iter(rng(21, start=2, step=3)), workers=3, sequential=True),
    "mp after shuffle": over("mp", over("map", to_iter(over("shuffle", rng(11), seed=2)), fn="add", k=1), workers=4, buffer=2),
    "mp over batch": over("mp", over("batch", I10, n=2, drop=True), workers=3),
    "mp of random_map": over("mp", over("random_map", to_iter(rng(8)), fn="draw", seed=5), workers=3),
    "mp, random_map": over("random_map", over("mp", to_iter(rng(8)), workers=3), fn="draw", seed=5),
    "mp of interleave": over("mp", over("interleave", copies((1, 3), (2, 1), (3, 4), (4, 2)), cycle=2), workers=2),
    "interleave, unequal": over("interleave", [rng(2), rng(3), rng(4)], cycle=2),
    "interleave of iterators": over("interleave", [to_iter(rng(2)), over("map", to_iter(rng(3)), fn="add", k=10), I5], cycle=2, buffer=3),
    **{f"interleave {c}, {name}": over("interleave", copies(*pairs), cycle=c)
       for c in (1, 2, 3, 10)
       for name, pairs in (("1 to 5", [(1, 1), (2, 2), (3, 3), (4, 4), (5, 5)]), ("3 1 4 2", [(1, 3), (2, 1), (3, 4), (4, 2)]),
                           ("3 0 4 2 0", [(1, 3), (0, 0), (3, 4), (4, 2), (0, 0)]))},
    **{f"{'best' if best else 'first'} fit {kw}": over("pack", to_iter(TOKENS), length=[["t", 6]], bins=3, best=best, **kw)
       for best in (False, True) for kw in ({"shuffle": False}, {"seed": 7}, {"shuffle": False, "max_sequences": 2}, {"alignment": {"t": 2}})},
    "pack, alignment and padding": over("pack", to_iter({"op": "source", "values": [{"t": [k + 1] * n} for k, n in enumerate([3, 2, 1])]}),
                                        length=[["t", 8]], bins=1, alignment={"t": 4}, padding={"t": -1}, shuffle=False),
    "pack, groups": over("pack", to_iter({"op": "source", "values": [{"t": [k, k], "g": [k]} for k in (2, 1, 3, 1, 5)]}),
                         length=[["t", 2], ["g", 1]], bins=3, meta=["g"], group="g"),
    "pack, several features": over("pack", to_iter(TWO), length=[["b", 7], ["a", 6], ["m", 4]], bins=2, meta=["m"], seed=3),
    "pack, listed meta": over("pack", to_iter(TWO), length=[["a", 6]], bins=3, meta=["m"], seed=5),
    "pack scalars": over("pack", I10, length=[], bins=1) if False else over("pack", to_iter({"op": "source", "values": [{"t": i} for i in range(7)]}), length=[["t", 3]], bins=2, shuffle=False),
    "concat_then_split, full rows kept": over("concat_then_split", to_iter(SPLIT), length=[["t", 6]], split_full=False),
    "concat_then_split": over("concat_then_split", to_iter(SPLIT), length=[["t", 6]]),
    "concat_then_split, long elements": over("concat_then_split", to_iter({"op": "source", "values": [{"t": list(range(20))}, {"t": [5]}, {"t": list(range(13))}]}), length=[["t", 4]]),
    "concat_then_split, BOS": over("concat_then_split", to_iter(SPLIT), length=[["t", 4]], bos=99, bos_features=["t"]),
    "concat_then_split, meta": over("concat_then_split", to_iter(TWO), length=[["b", 9], ["m", 4], ["a", 9]], meta=["m"]),
    "concat_then_split, two cuts each": over("concat_then_split", to_iter(TWO), length=[["a", 6], ["b", 6], ["m", 5]], meta=["m"]),
    "elastic 0 of 2": over("elastic", rng(12), batch=4, index=0, count=2),
    "elastic 1 of 2": over("elastic", over("shuffle", rng(13), seed=1), batch=4, index=1, count=2),
}

DEFECT_RUNS = {
    "concat_then_split, several cuts": over("concat_then_split", to_iter(CUT), length=[["a", 5], ["b", 4]]),
    "concat_then_split, several cuts and more": over("concat_then_split", to_iter(
        {"op": "source", "values": [{"a": list(range(10 * i, 10 * i + 3 * i + 2)), "b": list(range(50, 50 + 11 - 2 * i))} for i in range(5)]}),
        length=[["a", 5], ["b", 4]]),
    "window_shuffle, batch": over("batch", to_iter(over("window_shuffle", rng(10), window=4, seed=0)), n=3),
}

S16 = {"kind": "sequential", "n": 16}
SAMPLERS = [
    S16, {"kind": "sequential", "n": 7, "shard": [1, 2, False]}, {"kind": "sequential", "n": 7, "shard": [0, 2, True], "seed": 3},
    {"kind": "index", "n": 6, "shard": [0, 3, True], "shuffle": True, "epochs": 1, "seed": 32},
    {"kind": "index", "n": 8, "shard": [0, 4, False], "shuffle": True, "epochs": 1, "seed": 32},
    {"kind": "index", "n": 5, "shuffle": True, "epochs": 2, "seed": 32}, {"kind": "index", "n": 16, "shard": [1, 2, False], "shuffle": True, "epochs": 1, "seed": 42},
    {"kind": "index", "n": 16, "shuffle": True, "seed": 42}, {"kind": "index", "n": 9, "epochs": 3},
    {"kind": "index", "n": 7, "shard": [0, 2, False], "epochs": 2, "seed": 0, "compat": True},
    {"kind": "index", "n": 7, "shard": [1, 2, False], "epochs": 2, "seed": 0, "shuffle": True, "compat": True}]

LOADERS = {
    "operations": {"n": 16, "sampler": S16, "ops": ["inc", "even", 2]},
    "shard": {"n": 8, "sampler": {"kind": "sequential", "n": 8, "shard": [1, 2, False]}, "ops": []},
    "generators": {"n": 4, "sampler": {"kind": "index", "n": 4, "seed": 42, "epochs": 1}, "ops": ["random"]},
    "shuffled epochs": {"n": 10, "sampler": {"kind": "index", "n": 10, "seed": 7, "shuffle": True, "epochs": 3, "shard": [1, 2, False]}, "ops": [3]},
    "flat_map": {"n": 5, "sampler": {"kind": "index", "n": 5, "seed": 42, "epochs": 1}, "ops": ["twice", "inc"]},
    "unequal shards": {"n": 7, "sampler": {"kind": "index", "n": 7, "seed": 0, "epochs": 2, "shard": [0, 2, False], "compat": True}, "ops": ["inc"]},
}
WORKER_LOADERS = {
    "2 workers": {"n": 16, "sampler": S16, "ops": ["inc", "even", 2], "workers": 2},
    "3 workers, shard": {"n": 20, "sampler": {"kind": "index", "n": 20, "seed": 1, "shuffle": True, "epochs": 2, "shard": [1, 2, False]}, "ops": ["inc"], "workers": 3},
}
