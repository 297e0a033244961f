"""Record formats of bytes against the real array_record, bagz and protobuf, in both directions."""

import json
import random
import subprocess
import sys
import zlib

import built
import numpy as np
import pytest
from array_record.python import array_record_module


def cat(xylem, *arguments, check=True):
    status, out, err = built.run(xylem, "data", "cat", "--json", *arguments, check=check)
    lines = [json.loads(line) for line in out.splitlines()]
    return lines if check else (status, lines, err.decode())


def records_of(lines):
    if lines:
        assert [line["index"] for line in lines] == list(range(lines[0]["index"], lines[0]["index"] + len(lines)))
    records = [bytes.fromhex(line["hex"]) for line in lines]
    assert [line["size"] for line in lines] == [len(r) for r in records]
    return records


def some_records(seed, n=120, longest=3000):
    r = random.Random(seed)
    out = [b"", b"a"]
    for i in range(n):
        size = r.choice([0, 1, 7, 32, 100, r.randrange(longest)])
        out.append(r.randbytes(size) if i % 2 else bytes([97 + i % 26]) * size)
    return out


def write_text_records(path, records):
    """As TFRecord by the format's description, which other tests hold against TensorFlow's bytes."""
    path.write_bytes(b"".join(tfrecord(r) for r in records))


def crc32c_table():
    table = []
    for i in range(256):
        c = i
        for _ in range(8):
            c = (c >> 1) ^ (0x82f63b78 if c & 1 else 0)
        table.append(c)
    return table


TABLE = crc32c_table()


def masked_crc(data):
    c = 0xffffffff
    for b in data:
        c = TABLE[(c ^ b) & 255] ^ (c >> 8)
    c ^= 0xffffffff
    return ((c >> 15 | c << 17) + 0xa282ead8) & 0xffffffff


def tfrecord(data):
    head = len(data).to_bytes(8, "little")
    return head + masked_crc(head).to_bytes(4, "little") + data + masked_crc(data).to_bytes(4, "little")


OPTIONS = ["", "group_size:1", "group_size:7", "group_size:3,uncompressed", "group_size:5,brotli:9", "group_size:4,snappy",
           "group_size:2,zstd:19", "group_size:3,transpose:true", "group_size:50,transpose:true,brotli:6",
           "group_size:2,pad_to_block_boundary:true", "group_size:200,zstd:1", "group_size:4,zstd:3,window_log:12"]


@pytest.mark.parametrize("options", OPTIONS)
def test_files_of_array_record_read_the_same(xylem, tmp_path, options):
    records = some_records(OPTIONS.index(options))
    path = tmp_path / "a.array_record"
    writer = array_record_module.ArrayRecordWriter(str(path), options)
    for r in records:
        writer.write(r)
    writer.close()
    assert records_of(cat(xylem, path)) == records
    assert records_of(cat(xylem, path, "--start", 17, "--count", 40)) == records[17:57]
    assert records_of(cat(xylem, path, "--start", len(records))) == []
    built.run(xylem, "data", "verify", path)


@pytest.mark.parametrize("options", [o for o in OPTIONS if "transpose" not in o])
def test_our_array_records_are_read_by_array_record(xylem, tmp_path, options):
    records = some_records(100 + OPTIONS.index(options))
    write_text_records(tmp_path / "a.tfrecord", records)
    path = tmp_path / "b.array_record"
    built.run(xylem, "data", "convert", tmp_path / "a.tfrecord", "--out", path, "--options", options)
    reader = array_record_module.ArrayRecordReader(str(path))
    assert reader.num_records() == len(records)
    assert reader.read_all() == records
    assert reader.read([5, 0, 77]) == [records[5], records[0], records[77]]
    # The real writer keeps these options' text; both must say the same.
    twin = tmp_path / "twin.array_record"
    writer = array_record_module.ArrayRecordWriter(str(twin), options)
    for r in records:
        writer.write(r)
    writer.close()
    real = array_record_module.ArrayRecordReader(str(twin)).writer_options_string()
    strip = lambda s: [o for o in s.split(",") if not o.startswith("max_parallelism")]
    assert strip(reader.writer_options_string()) == strip(real)
    if "uncompressed" in options:
        ours, theirs = path.read_bytes(), twin.read_bytes()
        assert len(ours) == len(theirs)


def test_large_records_cross_blocks_as_in_array_record(xylem, tmp_path):
    r = random.Random(3)
    records = [r.randbytes(n) for n in [65536, 10, 200_000, 0, 65512, 65472, 65448, 1, 131072]]
    theirs = tmp_path / "a.array_record"
    writer = array_record_module.ArrayRecordWriter(str(theirs), "group_size:1,uncompressed")
    for x in records:
        writer.write(x)
    writer.close()
    assert records_of(cat(xylem, theirs)) == records
    ours = tmp_path / "b.array_record"
    built.run(xylem, "data", "convert", theirs, "--out", ours, "--options", "group_size:1,uncompressed")
    assert array_record_module.ArrayRecordReader(str(ours)).read_all() == records


def test_many_empty_records_have_positions_of_their_own(xylem, tmp_path):
    path = tmp_path / "a.array_record"
    writer = array_record_module.ArrayRecordWriter(str(path), "group_size:70000,zstd")
    for _ in range(150_000):
        writer.write(b"")
    writer.close()
    _, out, _ = built.run(xylem, "data", "info", "--json", path)
    assert json.loads(out)["records"] == 150_000
    assert records_of(cat(xylem, path, "--start", 149_998)) == [b"", b""]
    built.run(xylem, "data", "verify", path)
    ours = tmp_path / "b.array_record"
    built.run(xylem, "data", "convert", path, "--out", ours, "--options", "group_size:70000,zstd")
    assert array_record_module.ArrayRecordReader(str(ours)).num_records() == 150_000


def test_protobuf_messages_come_out_of_transposed_chunks(xylem, tmp_path):
    """Nested messages, groups aside: tf.train.Example-like bytes from the real protobuf library."""
    example = example_class()
    records = []
    r = random.Random(5)
    for i in range(300):
        e = example()
        e.features.feature["id"].int64_list.value.append(i * r.choice([1, 1000, 10**12, -1]))
        e.features.feature["x"].float_list.value.extend([r.random() for _ in range(i % 5)])
        e.features.feature["text"].bytes_list.value.extend([b"line %d" % i] * (i % 3))
        records.append(e.SerializeToString(deterministic=True))
        if i % 50 == 7:
            records.append(b"\xff\xffno message")
    for options in ["group_size:300,transpose:true,uncompressed", "group_size:16,transpose:true",
                    "group_size:64,transpose:true,brotli:3,transpose_bucket_size:64"]:
        path = tmp_path / "a.array_record"
        writer = array_record_module.ArrayRecordWriter(str(path), options)
        for x in records:
            writer.write(x)
        writer.close()
        assert records_of(cat(xylem, path)) == records
        built.run(xylem, "data", "verify", path)


def example_class():
    """tf.train.Example built from its description (tensorflow/core/example/{example,feature}.proto)."""
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
    f = descriptor_pb2.FileDescriptorProto(name="example_for_test.proto", package="t", syntax="proto3")
    F = descriptor_pb2.FieldDescriptorProto

    def message(name, *fields):
        m = f.message_type.add(name=name)
        for number, field, kind, repeated, type_name in fields:
            m.field.add(name=field, number=number, type=kind, type_name=type_name,
                        label=F.LABEL_REPEATED if repeated else F.LABEL_OPTIONAL)
        return m

    message("BytesList", (1, "value", F.TYPE_BYTES, True, None))
    message("FloatList", (1, "value", F.TYPE_FLOAT, True, None))
    message("Int64List", (1, "value", F.TYPE_INT64, True, None))
    feature = message("Feature", (1, "bytes_list", F.TYPE_MESSAGE, False, ".t.BytesList"),
                      (2, "float_list", F.TYPE_MESSAGE, False, ".t.FloatList"),
                      (3, "int64_list", F.TYPE_MESSAGE, False, ".t.Int64List"))
    feature.oneof_decl.add(name="kind")
    for field in feature.field:
        field.oneof_index = 0

    def with_map(name, field_name, value):
        m = message(name, (1, field_name, F.TYPE_MESSAGE, True, f".t.{name}.{field_name.title().replace('_', '')}Entry"))
        entry = m.nested_type.add(name=f"{field_name.title().replace('_', '')}Entry")
        entry.options.map_entry = True
        entry.field.add(name="key", number=1, type=F.TYPE_STRING, label=F.LABEL_OPTIONAL)
        entry.field.add(name="value", number=2, type=F.TYPE_MESSAGE, label=F.LABEL_OPTIONAL, type_name=value)

    with_map("Features", "feature", ".t.Feature")
    message("FeatureList", (1, "feature", F.TYPE_MESSAGE, True, ".t.Feature"))
    with_map("FeatureLists", "feature_list", ".t.FeatureList")
    message("Example", (1, "features", F.TYPE_MESSAGE, False, ".t.Features"))
    message("SequenceExample", (1, "context", F.TYPE_MESSAGE, False, ".t.Features"),
            (2, "feature_lists", F.TYPE_MESSAGE, False, ".t.FeatureLists"))
    pool = descriptor_pool.DescriptorPool()
    pool.Add(f) if hasattr(pool, "Add") else pool.AddSerializedFile(f.SerializeToString())
    example_class.sequence = message_factory.GetMessageClass(pool.FindMessageTypeByName("t.SequenceExample"))
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("t.Example"))


def plain(feature):
    kind = feature.WhichOneof("kind")
    if kind is None:
        return []
    return [{"hex": v.hex()} if isinstance(v, bytes) else v for v in getattr(feature, kind).value]


def test_examples_decode_as_in_protobuf(xylem, tmp_path):
    example = example_class()
    r = random.Random(9)
    messages = []
    for i in range(60):
        e = example()
        for k in range(r.randrange(5)):
            feature = e.features.feature[f"f{r.randrange(9)}"]
            feature.Clear()
            kind = r.randrange(4)
            if kind == 0:
                feature.bytes_list.value.extend([r.randbytes(r.randrange(5)) for _ in range(r.randrange(4))])
            elif kind == 1:
                feature.float_list.value.extend([r.choice([0.1, -3e38, 1e-40, 7]) for _ in range(r.randrange(4))])
            elif kind == 2:
                feature.int64_list.value.extend([r.choice([0, -1, 2**63 - 1, -2**63, 300]) for _ in range(r.randrange(4))])
        messages.append(e)
    write_text_records(tmp_path / "a.tfrecord", [m.SerializeToString() for m in messages])
    lines = cat(xylem, tmp_path / "a.tfrecord", "--decode", "example")
    for line, m in zip(lines, messages, strict=True):
        assert line["fields"] == {k: plain(v) for k, v in m.features.feature.items()}
    # Unpacked numbers, and a map key that comes twice.
    entry = lambda key, feature: b"\x0a" + bytes([len(key) + 4 + len(feature)]) + b"\x0a" + bytes([len(key)]) + key \
        + b"\x12" + bytes([len(feature)]) + feature
    features = entry(b"a", b"\x1a\x05\x08\x01\x08\xac\x02") + entry(b"a", b"\x1a\x02\x08\x09")
    message = b"\x0a" + bytes([len(features)]) + features
    assert [v for v in example.FromString(message).features.feature["a"].int64_list.value] == [9]
    write_text_records(tmp_path / "b.tfrecord", [message])
    assert cat(xylem, tmp_path / "b.tfrecord", "--decode", "example")[0]["fields"] == {"a": [9]}


def test_sequence_examples_decode_as_in_protobuf(xylem, tmp_path):
    example_class()
    m = example_class.sequence()
    m.context.feature["n"].int64_list.value.append(3)
    for i in range(3):
        step = m.feature_lists.feature_list["steps"].feature.add()
        step.float_list.value.extend([i, i / 2])
    m.feature_lists.feature_list["none"]
    write_text_records(tmp_path / "a.tfrecord", [m.SerializeToString()])
    line, = cat(xylem, tmp_path / "a.tfrecord", "--decode", "sequence_example")
    assert line["fields"] == {"context": {"n": [3]}, "feature_lists": {
        k: [plain(f) for f in v.feature] for k, v in m.feature_lists.feature_list.items()}}


def test_our_examples_are_read_by_protobuf(xylem, tmp_path):
    example = example_class()
    lines = [{"i": [1, -5], "f": [0.5, 2.0], "s": "text", "empty": []}, {"i": 7, "mixed": [1, 2.5]}]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(x) + "\n" for x in lines))
    built.run(xylem, "data", "convert", tmp_path / "a.jsonl", "--out", tmp_path / "b.tfrecord", "--encode", "example")
    got = [example.FromString(r) for r in records_of(cat(xylem, tmp_path / "b.tfrecord"))]
    first = {k: plain(v) for k, v in got[0].features.feature.items()}
    assert first == {"i": [1, -5], "f": [0.5, 2.0], "s": [{"hex": b"text".hex()}], "empty": []}
    assert {k: plain(v) for k, v in got[1].features.feature.items()} == {"i": [7], "mixed": [1.0, 2.5]}


@pytest.mark.parametrize("compress", [None, "gzip", "zlib"])
def test_tfrecords_by_description(xylem, tmp_path, compress):
    records = some_records(4)
    data = b"".join(tfrecord(r) for r in records)
    if compress == "gzip":      # two members
        import gzip
        data = gzip.compress(data[:5000]) + gzip.compress(data[5000:])
    if compress == "zlib":
        data = zlib.compress(data)
    path = tmp_path / "a.tfrecord"
    path.write_bytes(data)
    assert records_of(cat(xylem, path)) == records
    assert records_of(cat(xylem, path, "--start", 30, "--count", 5)) == records[30:35]


def test_indices_run_over_all_files(xylem, tmp_path):
    a, b = some_records(1, 10), some_records(2, 10)
    write_text_records(tmp_path / "a.tfrecord", a)
    writer = array_record_module.ArrayRecordWriter(str(tmp_path / "b.array_record"), "")
    for x in b:
        writer.write(x)
    writer.close()
    (tmp_path / "c.txt").write_bytes(b"one\ntwo")
    files = [tmp_path / "a.tfrecord", tmp_path / "b.array_record", tmp_path / "c.txt"]
    want = a + b + [b"one", b"two"]
    assert records_of(cat(xylem, *files)) == want
    lines = cat(xylem, "--start", 8, "--count", 17, *files)
    assert [line["index"] for line in lines] == list(range(8, 25))[:len(want) - 8]
    assert records_of(lines) == want[8:25]


def test_damage_is_an_error_behind_what_came_before(xylem, tmp_path):
    records = some_records(6, 20)
    path = tmp_path / "a.tfrecord"
    write_text_records(path, records)
    data = bytearray(path.read_bytes())
    place = sum(len(tfrecord(r)) for r in records[:9])
    data[place + 13] ^= 1
    path.write_bytes(data)
    if len(records[9]) < 2:
        pytest.fail("the record must have data")
    status, lines, err = cat(xylem, path, check=False)
    assert status == 1 and records_of(lines) == records[:9]
    assert err.count("\n") == 1 and f"bytes {place}-{place + len(tfrecord(records[9])) - 1}" in err
    status, out, _ = built.run(xylem, "data", "verify", path, check=False)
    assert status == 1
    assert out.decode().startswith(f"{path}: bytes {place}-{place + len(tfrecord(records[9])) - 1}: ")
    assert out.count(b"\n") == 1
    path.write_bytes(bytes(data[:place + 5]))
    status, lines, err = cat(xylem, path, check=False)
    assert status == 1 and records_of(lines) == records[:9] and f"bytes {place}-{place + 4}" in err


def test_verify_goes_on_behind_files_that_cannot_be_opened(xylem, tmp_path):
    records = some_records(12, 5)
    for name in ("a.tfrecord", "b.tfrecord"):
        write_text_records(tmp_path / name, records)
        data = (tmp_path / name).read_bytes()
        (tmp_path / name).write_bytes(data[:-1])
    files = [tmp_path / "a.tfrecord", tmp_path / "missing.tfrecord", tmp_path / "b.tfrecord"]
    status, out, err = built.run(xylem, "data", "verify", *files, check=False)
    lines = out.decode().splitlines()
    assert status == 1 and len(lines) == 2 and err.count(b"\n") == 1 and b"missing.tfrecord" in err
    assert lines[0].startswith(f"{files[0]}: bytes ") and lines[1].startswith(f"{files[2]}: bytes ")


def test_negative_places_are_refused(xylem, tmp_path):
    (tmp_path / "a.txt").write_text("x\n")
    for option in ("--start", "--count"):
        status, lines, err = cat(xylem, tmp_path / "a.txt", option, -1, check=False)
        assert status == 2 and not lines and option in err


def test_contents_tell_the_format_before_the_name(xylem, tmp_path):
    records = some_records(13, 9)
    for name in ("a.txt", "a.bagz", "a.tfrecord", "a"):
        writer = array_record_module.ArrayRecordWriter(str(tmp_path / name), "")
        for x in records:
            writer.write(x)
        writer.close()
        assert records_of(cat(xylem, tmp_path / name)) == records
    status, lines, _ = cat(xylem, tmp_path / "a.bagz", "--format", "bagz", check=False)
    assert status == 1 and not lines


def test_damaged_array_records_are_read_as_far_as_they_hold(xylem, tmp_path):
    records = some_records(8, 60)
    path = tmp_path / "a.array_record"
    writer = array_record_module.ArrayRecordWriter(str(path), "group_size:3")
    for x in records:
        writer.write(x)
    writer.close()
    whole = path.read_bytes()
    for cut in [10, 64, 100, 5000, len(whole) - 65536, len(whole) - 1]:
        path.write_bytes(whole[:cut])
        status, lines, err = cat(xylem, path, check=False)
        got = records_of(lines)
        assert status == 1 and got == records[:len(got)] and err.count("\n") == 1, cut
        if cut >= 65536:
            assert got == records


def test_a_bomb_stops_at_the_limit(xylem, tmp_path):
    """1 GiB of zeros in a megabyte: an error, in bounded memory."""
    import gzip
    path = tmp_path / "bomb.txt.gz"
    with gzip.open(path, "wb", compresslevel=9) as f:
        for _ in range(400):
            f.write(bytes(1 << 20))
    script = ("import resource, subprocess, sys; "
              "r = subprocess.run(sys.argv[1:], capture_output=True); "
              "sys.stderr.buffer.write(r.stderr); "
              "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss); sys.exit(r.returncode)")
    done = subprocess.run([sys.executable, "-c", script, str(xylem), "data", "cat", "--json",
                           "--max-record-bytes", str(16 << 20), str(path)], capture_output=True, text=True)
    assert done.returncode == 1 and "more than the limit" in done.stderr
    assert int(done.stdout) < 200_000    # KiB


def test_npy_and_npz_read_the_same(xylem, tmp_path):
    r = np.random.default_rng(1)
    arrays = {"f": r.normal(size=(5, 2, 3)).astype("f4"), "big": np.arange(5).astype(">i8"), "s": np.array(list("abcde")),
              "F": np.asfortranarray(np.arange(30).reshape(5, 6)), "b": np.array([b"x", b"", b"abc", b"\0a", b"q"]),
              "t": np.array([(i, i / 2) for i in range(5)], dtype=[("x", "<i4"), ("y", ">f8")]), "bool": np.arange(5) > 2}
    for name, a in arrays.items():
        np.save(tmp_path / "a.npy", a)
        lines = cat(xylem, tmp_path / "a.npy")
        assert [line["fields"]["data"] for line in lines] == [json_value(x) for x in a], name
    for save in (np.savez, np.savez_compressed):
        save(tmp_path / "a.npz", **arrays)
        lines = cat(xylem, tmp_path / "a.npz")
        assert [line["fields"] for line in lines] == [{k: json_value(a[i]) for k, a in arrays.items()} for i in range(5)]
        built.run(xylem, "data", "verify", tmp_path / "a.npz")
    (tmp_path / "b.jsonl").write_text("".join(json.dumps({"x": [i, 2.5], "y": i}) + "\n" for i in range(4))
                                      .replace(", 2.5", ".0, 2.5"))
    built.run(xylem, "data", "convert", tmp_path / "b.jsonl", "--out", tmp_path / "c.npz")
    with np.load(tmp_path / "c.npz") as got:
        assert np.array_equal(got["x"], [[i, 2.5] for i in range(4)]) and np.array_equal(got["y"], range(4))
    np.save(tmp_path / "o.npy", np.array([{}, None], dtype=object), allow_pickle=True)
    status, lines, err = cat(xylem, tmp_path / "o.npy", check=False)
    assert status == 1 and "pickle" in err


def json_value(x):
    if isinstance(x, np.void):
        return {n: json_value(x[n]) for n in x.dtype.names}
    v = x.tolist()
    return {"hex": v.hex()} if isinstance(v, bytes) else v


def test_csv_reads_as_pythons(xylem, tmp_path):
    import csv
    r = random.Random(2)
    rows = [["".join(r.choice('ab,"\n\r é') for _ in range(r.randrange(6))).replace("\r", "") for _ in range(3)]
            for _ in range(100)]
    with open(tmp_path / "a.csv", "w", newline="", encoding="utf-8") as f:
        w = csv.writer(f)
        w.writerow(["x", "y", "z"])
        w.writerows(rows)
    with open(tmp_path / "a.csv", newline="", encoding="utf-8") as f:
        want = list(csv.DictReader(f))
    assert [line["fields"] for line in cat(xylem, tmp_path / "a.csv")] == want
    built.run(xylem, "data", "convert", tmp_path / "a.csv", "--out", tmp_path / "b.tsv")
    with open(tmp_path / "b.tsv", newline="", encoding="utf-8") as f:
        assert list(csv.DictReader(f, delimiter="\t")) == want
