"""Parquet files of pyarrow read here, files written here read by pyarrow."""

import datetime
import decimal
import json
import math
import random

import built
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from formats_bytes_test import cat

UTC = datetime.timezone.utc


def json_value(v):
    if isinstance(v, bytes):
        return {"hex": v.hex()}
    if isinstance(v, (datetime.date, datetime.time)):
        return v.isoformat()
    if isinstance(v, decimal.Decimal):
        return format(v, "f")
    if isinstance(v, dict):
        return {k: json_value(x) for k, x in v.items()}
    if isinstance(v, (list, tuple)):
        return [json_value(x) for x in v]
    if isinstance(v, float) and math.isnan(v):
        return "NaN"
    return v


def maybe(r, v):
    return None if r.random() < 0.2 else v


def table(n=500, seed=1):
    r = random.Random(seed)
    words = ["", "a", "word", "längeres Wort 漢字", "x" * 200]
    columns = {
        "i8": (pa.int8(), lambda: r.randrange(-128, 128)), "u16": (pa.uint16(), lambda: r.randrange(65536)),
        "u32": (pa.uint32(), lambda: r.randrange(2**32)), "u64": (pa.uint64(), lambda: r.randrange(2**64)),
        "i32": (pa.int32(), lambda: r.randrange(-2**31, 2**31)), "i64": (pa.int64(), lambda: r.choice([0, 1, -2**63, 2**63 - 1])),
        "f16": (pa.float16(), lambda: r.choice([0.5, -2.0])), "f32": (pa.float32(), lambda: r.choice([0.5, -1e30, 2.0**-140])),
        "f64": (pa.float64(), lambda: r.choice([0.1, math.nan, 1e300, -0.0])), "bool": (pa.bool_(), lambda: r.random() < 0.5),
        "text": (pa.string(), lambda: r.choice(words) + str(r.randrange(30))), "word": (pa.string(), lambda: r.choice(words)),
        "large": (pa.large_string(), lambda: r.choice(words)), "bytes": (pa.binary(), lambda: r.randbytes(r.randrange(20))),
        "fixed": (pa.binary(5), lambda: r.randbytes(5)),
        "dec": (pa.decimal128(10, 3), lambda: decimal.Decimal(r.randrange(-10**9, 10**9)).scaleb(-3)),
        "dec38": (pa.decimal128(38, 10), lambda: decimal.Decimal(r.randrange(-10**37, 10**37)).scaleb(-10, decimal.Context(50))),
        "date": (pa.date32(), lambda: datetime.date(1, 1, 1) + datetime.timedelta(r.randrange(3_000_000))),
        "ts": (pa.timestamp("us"), lambda: datetime.datetime(1900, 1, 1) + datetime.timedelta(microseconds=r.randrange(10**16))),
        "tz": (pa.timestamp("ms", "UTC"), lambda: datetime.datetime(1960, 1, 1, tzinfo=UTC)
               + datetime.timedelta(milliseconds=r.randrange(10**13))),
        "time": (pa.time64("us"), lambda: datetime.time(r.randrange(24), r.randrange(60), 3, r.choice([0, 17]))),
        "list": (pa.list_(pa.int32()), lambda: [maybe(r, r.randrange(9)) for _ in range(r.randrange(4))]),
        "lists": (pa.list_(pa.list_(pa.string())), lambda: [maybe(r, [maybe(r, "s") for _ in range(r.randrange(3))])
                                                             for _ in range(r.randrange(4))]),
        "struct": (pa.struct([("a", pa.int32()), ("b", pa.list_(pa.float32()))]),
                   lambda: {"a": maybe(r, 7), "b": maybe(r, [0.5] * r.randrange(3))}),
        "map": (pa.map_(pa.string(), pa.int32()), lambda: [(f"k{i}", maybe(r, i)) for i in range(r.randrange(3))]),
        "deep": (pa.list_(pa.struct([("x", pa.list_(pa.struct([("y", pa.int64())])))])),
                 lambda: [maybe(r, {"x": maybe(r, [maybe(r, {"y": maybe(r, 3)}) for _ in range(r.randrange(3))])})
                          for _ in range(r.randrange(3))]),
        "null": (pa.null(), lambda: None),
    }
    return pa.table({k: pa.array([maybe(r, f()) for _ in range(n)], type=t) for k, (t, f) in columns.items()})


def want(t):
    return [json_value(row) for row in t.to_pylist()]


FORMS = {
    "default": {}, "none": {"compression": "none", "use_dictionary": False}, "gzip": {"compression": "gzip"},
    "brotli": {"compression": "brotli"}, "zstd": {"compression": "zstd", "data_page_version": "2.0"},
    "lz4": {"compression": "lz4"}, "small pages": {"data_page_size": 300, "row_group_size": 90},
    "v2": {"data_page_version": "2.0", "version": "2.6", "compression": "none"}, "crc": {"write_page_checksum": True},
    "v1 types": {"version": "1.0"}, "no statistics": {"write_statistics": False}, "index": {"write_page_index": True},
    "not compliant": {"use_compliant_nested_type": False}, "int96": {"use_deprecated_int96_timestamps": True},
}


@pytest.mark.parametrize("form", FORMS)
def test_pyarrows_files_read_the_same(xylem, tmp_path, form):
    t = table()
    if form == "int96":
        t = t.select(["ts", "i64"])
    pq.write_table(t, tmp_path / "a.parquet", **FORMS[form])
    rows = want(pq.read_table(tmp_path / "a.parquet") if form != "v1 types" else t)
    got = [line["fields"] for line in cat(xylem, tmp_path / "a.parquet")]
    for i, (g, w) in enumerate(zip(got, rows, strict=True)):
        assert g == w, i
    assert [line["fields"] for line in cat(xylem, tmp_path / "a.parquet", "--start", 95, "--count", 3)] == rows[95:98]
    built.run(xylem, "data", "verify", tmp_path / "a.parquet")
    built.run(xylem, "data", "info", "--json", tmp_path / "a.parquet")


@pytest.mark.parametrize("encoding,kinds", [
    ("PLAIN", "iubsf"), ("DELTA_BINARY_PACKED", "i"), ("DELTA_LENGTH_BYTE_ARRAY", "s"), ("DELTA_BYTE_ARRAY", "sx"),
    ("BYTE_STREAM_SPLIT", "ifx"), ("RLE", "b")])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("n", [0, 1, 2, 33, 128, 129, 5000])
def test_every_encoding(xylem, tmp_path, encoding, kinds, version, n):
    r = random.Random(n)
    make = {"i": (pa.int64(), lambda i: r.randrange(-2**63, 2**63) if i % 3 else i), "u": (pa.int32(), lambda i: r.randrange(-9, 9)),
            "b": (pa.bool_(), lambda i: r.random() < 0.1), "s": (pa.string(), lambda i: f"prefix {i // 7} {r.randrange(3)}"),
            "f": (pa.float32(), lambda i: i / 4), "x": (pa.binary(6), lambda i: i.to_bytes(6, "big"))}
    t = pa.table({k: pa.array([maybe(r, make[k][1](i)) for i in range(n)], type=make[k][0]) for k in kinds})
    pq.write_table(t, tmp_path / "a.parquet", use_dictionary=False, column_encoding={k: encoding for k in kinds},
                   data_page_version=version, data_page_size=2000)
    assert [line["fields"] for line in cat(xylem, tmp_path / "a.parquet")] == want(t)


def test_projection_and_random_rows(xylem, tmp_path):
    t = table(300)
    pq.write_table(t, tmp_path / "a.parquet", row_group_size=70)
    lines = cat(xylem, tmp_path / "a.parquet", "--columns", "deep,i8")
    assert [line["fields"] for line in lines] == want(t.select(["deep", "i8"]))
    status, _, err = cat(xylem, tmp_path / "a.parquet", "--columns", "nothing", check=False)
    assert status == 1 and "nothing" in err


OPTIONS = ["", "none", "snappy", "gzip:1", "brotli:3", "zstd:9,data_page:2", "lz4_raw", "none,data_page:2,page_rows:7",
           "zstd,row_group_rows:60", "delta,dictionary:false", "delta,dictionary:false,data_page:2,page_rows:33"]


@pytest.mark.parametrize("options", OPTIONS)
def test_pyarrow_reads_our_files(xylem, tmp_path, options):
    r = random.Random(3)
    rows = []
    for i in range(200):
        row = {"i": i * r.choice([1, -10**15]), "u": 2**63 + i, "f": i / 7, "b": r.random() < 0.3, "s": f"text {i % 9} é",
               "n": None, "l": [maybe(r, k) for k in range(r.randrange(4))],
               "ll": [[0.5] * r.randrange(3) for _ in range(r.randrange(3))],
               "o": {"a": i, "b": [{"c": "x"}] * r.randrange(3)}}
        for k in list(row):
            if i > 0 and k != "n" and r.random() < 0.1:
                row[k] = None
        rows.append(row)
    rows[0] |= {"l": [1, None], "ll": [[0.5]], "o": {"a": 0, "b": [{"c": "x"}]}}
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(x) + "\n" for x in rows))
    built.run(xylem, "data", "convert", tmp_path / "a.jsonl", "--out", tmp_path / "b.parquet", "--options", options)
    got = pq.read_table(tmp_path / "b.parquet", page_checksum_verification=True)
    assert got.to_pylist() == rows
    assert [line["fields"] for line in cat(xylem, tmp_path / "b.parquet")] == rows
    built.run(xylem, "data", "verify", tmp_path / "b.parquet")
    metadata = pq.ParquetFile(tmp_path / "b.parquet").metadata
    assert metadata.num_row_groups == (4 if "row_group" in options else 1)
    first = {metadata.row_group(0).column(k).path_in_schema: metadata.row_group(0).column(k).statistics
             for k in range(metadata.num_columns)}
    group = rows[:60] if "row_group" in options else rows
    values = [x["i"] for x in group if x["i"] is not None]
    assert (first["i"].min, first["i"].max, first["i"].null_count) == (min(values), max(values), len(group) - len(values))


@pytest.mark.parametrize("options", ["", ",data_page:2,zstd", ",page_rows:5", ",row_group_rows:30", ",dictionary:false,delta"])
def test_lists_of_pairs_become_maps_where_that_is_asked(xylem, tmp_path, options):
    r = random.Random(options)
    rows = []
    for i in range(120):
        rows.append({"m": maybe(r, [[f"k{r.randrange(9)}", maybe(r, r.randrange(100))] for _ in range(r.randrange(4))]), "i": i,
                     "deep": [[r.randrange(9), maybe(r, [maybe(r, {"a": "x", "b": r.random()}) for _ in range(r.randrange(3))])]
                              for _ in range(r.randrange(3))],
                     "empty": maybe(r, []), "none": None})
    rows[0] |= {"m": [["k", 1]], "deep": [[1, [{"a": "y", "b": 0.5}]]], "empty": []}
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(x) + "\n" for x in rows))
    built.run(xylem, "data", "convert", tmp_path / "a.jsonl", "--out", tmp_path / "b.parquet", "--options", "maps:m+deep+empty" + options)
    t = pq.read_table(tmp_path / "b.parquet", page_checksum_verification=True)
    assert [t.schema.field(k).type for k in ("m", "empty", "none")] == [pa.map_(pa.string(), pa.int64()), pa.map_(pa.string(), pa.null()), pa.null()]
    assert pa.types.is_map(t.schema.field("deep").type) and t.schema.field("deep").type.key_type == pa.int64()
    pairs = [x | {k: x[k] and [tuple(p) for p in x[k]] for k in ("m", "deep", "empty")} for x in rows]
    assert t.to_pylist() == pairs
    assert [line["fields"] for line in cat(xylem, tmp_path / "b.parquet")] == rows
    built.run(xylem, "data", "verify", tmp_path / "b.parquet")


@pytest.mark.parametrize("value", ["1", "[1]", "[[1]]", "[[null, 1]]", "[[[1], 1]]", '{"a": 1}'])
def test_what_is_no_map_is_refused(xylem, tmp_path, value):
    (tmp_path / "a.jsonl").write_text(f'{{"m": {value}}}\n')
    status, _, err = built.run(xylem, "data", "convert", tmp_path / "a.jsonl", "--out", tmp_path / "b.parquet", "--options", "maps:m", check=False)
    assert status == 1 and b'map "m": a list of pairs' in err
    assert not (tmp_path / "b.parquet").exists()


def test_arrays_keep_their_types(xylem, tmp_path):
    import numpy as np
    arrays = {"f16": np.arange(6, dtype="f2").reshape(3, 2), "f32": np.ones((3, 2, 2), "f4"), "i8": np.arange(3, dtype="i1"),
              "u32": np.arange(3, dtype="u4") + 2**31, "u64": np.arange(3, dtype="u8") + 2**63, "b": np.arange(3) > 1}
    np.savez(tmp_path / "a.npz", **arrays)
    built.run(xylem, "data", "convert", tmp_path / "a.npz", "--out", tmp_path / "b.parquet")
    t = pq.read_table(tmp_path / "b.parquet")
    assert t.schema.field("i8").type == pa.int8() and t.schema.field("u32").type == pa.uint32()
    assert t.schema.field("f16").type.value_type == pa.float16() and t.schema.field("b").type == pa.bool_()
    assert t.to_pylist() == [{k: a[i].tolist() for k, a in arrays.items()} for i in range(3)]


def test_damaged_pages_are_found(xylem, tmp_path):
    t = pa.table({"x": list(range(3000)), "s": [f"text {i}" for i in range(3000)]})
    pq.write_table(t, tmp_path / "a.parquet", write_page_checksum=True, row_group_size=500)
    whole = (tmp_path / "a.parquet").read_bytes()
    chunk = pq.ParquetFile(tmp_path / "a.parquet").metadata.row_group(3).column(1)
    place = chunk.dictionary_page_offset + chunk.total_compressed_size - 10
    bad = bytearray(whole)
    bad[place] ^= 8
    (tmp_path / "a.parquet").write_bytes(bad)
    status, lines, err = cat(xylem, tmp_path / "a.parquet", check=False)
    assert status == 1 and len(lines) == 1500 and "CRC-32" in err
    status, out, _ = built.run(xylem, "data", "verify", tmp_path / "a.parquet", check=False)
    begin, end = map(int, out.decode().split(": bytes ")[1].split(":")[0].split("-"))
    assert status == 1 and out.count(b"\n") == 1 and begin <= place <= end
    for cut in (0, 3, 11, 1000, len(whole) - 1):
        (tmp_path / "a.parquet").write_bytes(whole[:cut])
        status, lines, err = cat(xylem, tmp_path / "a.parquet", check=False)
        assert status == 1 and not lines and err.count("\n") == 1
