"""Grain: records/s of shuffle + light map + batch(32) over memory and ArrayRecord; one JSON object a case.

    grain_pipeline.py [--records FILE]     (200,000 records of 1 KB, group size 1; written if it is not there)
"""
import json
import os
import sys
import time

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import absl.flags
import grain
import numpy as np
from array_record.python import array_record_module
from grain import experimental as ge

RECORDS, RECORD_BYTES, BATCH = 200_000, 1024, 32


class Integers:
    def __len__(self):
        return 1_000_000

    def __getitem__(self, index):
        return int(index)


def write_records(path):
    data = np.random.default_rng(0).bytes(RECORD_BYTES * 1024)
    writer = array_record_module.ArrayRecordWriter(path, "group_size:1")
    for i in range(RECORDS):
        offset = i * 37 % (RECORD_BYTES * 1023)
        writer.write(data[offset:offset + RECORD_BYTES])
    writer.close()


def emit(case, value, unit="records/s", **extra):
    print(json.dumps({"case": case, "value": float(f"{value:.6g}"), "unit": unit, **extra}), flush=True)


def rate_of(make, count, per=BATCH, repeats=3):
    rates, firsts = [], []
    for _ in range(repeats):
        start = time.perf_counter()
        it = iter(make())
        next(it)
        firsts.append(time.perf_counter() - start)
        for _ in range(10):
            next(it)
        start = time.perf_counter()
        for _ in range(count):
            next(it)
        rates.append(count * per / (time.perf_counter() - start))
        if hasattr(it, "close"):
            it.close()
        del it
    return sorted(rates)[len(rates) // 2], {"first_batch_s": sorted(firsts)[len(firsts) // 2]}


def add_one(x):
    return x + 1


def decode(record):
    return np.frombuffer(record, np.uint8).astype(np.int32)


def main():
    absl.flags.FLAGS(["grain_pipeline"])
    path = sys.argv[sys.argv.index("--records") + 1] if "--records" in sys.argv else None

    def threaded(ds, threads):
        return lambda: ds.to_iter_dataset(grain.ReadOptions(num_threads=threads, prefetch_buffer_size=64 if threads else 0))

    ints = grain.MapDataset.source(Integers()).shuffle(seed=1).map(add_one).batch(BATCH)
    for threads in (0, 2, 16):
        value, extra = rate_of(threaded(ints, threads), 1000)
        emit(f"memory 1M ints shuffle+map+batch32, {threads} read threads", value, **extra)
    value, extra = rate_of(lambda: ints.to_iter_dataset(grain.ReadOptions(2, 64)).mp_prefetch(
        grain.MultiprocessingOptions(num_workers=2, per_worker_buffer_size=8)), 1000)
    emit("memory 1M ints shuffle+map+batch32, 2 workers", value, **extra)
    start = time.perf_counter()
    count = sum(len(ints[i]) for i in range(2000))
    emit("memory 1M ints random access dataset[i]", count / (time.perf_counter() - start))
    it = iter(ints.to_iter_dataset())
    next(it)
    start = time.perf_counter()
    for _ in range(10000):
        json.dumps(it.get_state())
    emit("state of shuffle+map+batch as JSON", (time.perf_counter() - start) / 1e4, "s")
    it.close()

    rows = [np.zeros(2048, np.int32) for _ in range(1000)]
    value, extra = rate_of(threaded(grain.MapDataset.source(rows).shuffle(1).repeat().batch(32), 0), 500, 32 * 2048 * 4)
    emit("batches of 32 x 2048 i32", value, "bytes/s", **extra)

    lists = grain.MapDataset.range(1_000_000).map(lambda x: {"t": np.ones(x * 7919 % 100 + 1, np.int32)})
    value, extra = rate_of(lambda: ge.FirstFitPackIterDataset(lists.to_iter_dataset(grain.ReadOptions(0, 0)), length_struct={"t": 512},
                                                              num_packing_bins=64), 640, 512 / 50.5, 1)
    emit("first-fit packing, 1 to 100 tokens into 64 rows of 512", value, "sequences/s", **extra)

    if path:
        if not os.path.exists(path):
            write_records(path)
        source = grain.sources.ArrayRecordDataSource([path])
        records = grain.MapDataset.source(source).shuffle(1).map(decode).batch(BATCH)
        for threads in (0, 2, 16):
            value, extra = rate_of(threaded(records, threads), 200)
            emit(f"arrayrecord 1KB shuffle+decode+batch32, {threads} read threads", value, **extra)
        value, extra = rate_of(threaded(grain.MapDataset.source(source).shuffle(1), 0), 5000, 1)
        emit("arrayrecord 1KB shuffle, bytes", value, **extra)


if __name__ == "__main__":
    main()
