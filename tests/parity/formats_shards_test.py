"""Bagz and WebDataset files against the real libraries, in both directions; MDS files that the real one wrote."""

import base64
import io
import json
import pathlib
import random
import tarfile

import bagz
import built
import pytest
import webdataset
from formats_bytes_test import cat, records_of, some_records

GOLDENS = pathlib.Path(__file__).resolve().parents[1] / "goldens"


@pytest.mark.parametrize("name", ["a.bag", "a.bagz", "a.unknown"])
def test_bagz_reads_the_same_both_ways(xylem, tmp_path, name):
    records = some_records(31)
    with bagz.Writer(str(tmp_path / name)) as w:
        for r in records:
            w.write(r)
    assert records_of(cat(xylem, "--format", "bagz", tmp_path / name)) == records
    assert records_of(cat(xylem, "--format", "bagz", tmp_path / name, "--start", 50, "--count", 9)) == records[50:59]
    built.run(xylem, "data", "verify", "--format", "bagz", tmp_path / name)
    ours = tmp_path / ("ours-" + name)
    built.run(xylem, "data", "convert", "--format", "bagz", tmp_path / name, "--out", ours, "--to", "bagz")
    assert list(bagz.Reader(str(ours))) == records
    if not name.endswith(".bagz"):
        assert ours.read_bytes() == (tmp_path / name).read_bytes()


def test_bagz_with_separate_limits(xylem, tmp_path):
    records = some_records(32)
    options = bagz.Writer.Options(limits_placement=bagz.LimitsPlacement.SEPARATE)
    with bagz.Writer(str(tmp_path / "a.bag"), options) as w:
        for r in records:
            w.write(r)
    assert records_of(cat(xylem, tmp_path / "a.bag")) == records
    built.run(xylem, "data", "convert", tmp_path / "a.bag", "--out", tmp_path / "b.bagz", "--options", "separate_limits")
    reader = bagz.Reader(str(tmp_path / "b.bagz"), bagz.Reader.Options(limits_placement=bagz.LimitsPlacement.SEPARATE))
    assert list(reader) == records


def test_bagz_shards_by_their_common_name(xylem, tmp_path):
    records = some_records(33)
    for k in range(3):
        with bagz.Writer(str(tmp_path / f"a-0000{k}-of-00003.bagz")) as w:
            for r in records[k * 40:(k + 1) * 40]:
                w.write(r)
    for spec in ["a@3.bagz", "a@*.bagz"]:
        assert list(bagz.Reader(str(tmp_path / spec))) == records[:120]
        assert records_of(cat(xylem, tmp_path / spec)) == records[:120]


def webdataset_samples(n=40):
    r = random.Random(4)
    out = []
    for i in range(n):
        sample = {"__key__": f"folder.x/{'long' * 40 if i % 9 == 4 else 's'}{i:04}", "txt": f"text {i}"}
        sample["txt"] = sample["txt"].encode()
        if i % 2:
            sample["seg.png"] = r.randbytes(r.randrange(2000))
        if i % 3 == 0:
            sample["cls"] = str(i).encode()
        out.append(sample)
    return out


def as_fields(samples):
    return [{k: v if k == "__key__" else {"hex": v.hex()} for k, v in s.items()} for s in samples]


def read_webdataset(path):
    dataset = webdataset.WebDataset(str(path), shardshuffle=False)
    return [{k: v for k, v in s.items() if k not in ("__url__", "__local_path__")} for s in dataset]


@pytest.mark.parametrize("name", ["a.tar", "a.tar.gz"])
def test_webdataset_reads_the_same_both_ways(xylem, tmp_path, name):
    samples = webdataset_samples()
    with webdataset.TarWriter(str(tmp_path / name)) as w:
        for s in samples:
            w.write(s)
    want = read_webdataset(tmp_path / name)
    assert [line["fields"] for line in cat(xylem, tmp_path / name)] == as_fields(want)
    lines = cat(xylem, tmp_path / name, "--start", 11, "--count", 5, "--columns", "__key__,txt")
    assert [line["fields"] for line in lines] == [
        {k: s[k] for k in ("__key__", "txt")} for s in as_fields(want)[11:16]]
    built.run(xylem, "data", "verify", tmp_path / name)
    built.run(xylem, "data", "convert", tmp_path / name, "--out", tmp_path / "ours.tar")
    assert read_webdataset(tmp_path / "ours.tar") == want


@pytest.mark.parametrize("form", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_tar_forms(xylem, tmp_path, form):
    path = tmp_path / "a.tar"
    files = [("d/__meta__.json", b"x"), ("d/a.TXT", b"1"), ("d/a.bin", b"\0" * 513), ("d/noext", b"?"),
             ("d/.hidden", b"?"), ("p" * 60 + "/" + "q" * 60 + "/b.txt", b"2"), ("ü/c.x.y", b"3")]
    if form != tarfile.USTAR_FORMAT:
        files.append(("r" * 300 + "/d.txt", b"4"))
    with tarfile.open(path, "w", format=form) as t:
        folder = tarfile.TarInfo("d")
        folder.type = tarfile.DIRTYPE
        t.addfile(folder)
        for name, data in files:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            t.addfile(info, io.BytesIO(data))
        link = tarfile.TarInfo("d/e.txt")
        link.type, link.linkname = tarfile.SYMTYPE, "a.TXT"
        t.addfile(link)
    want = read_webdataset(path)
    assert len(want) == len(files) - 2      # a.txt and a.bin are one sample, noext none
    assert [line["fields"] for line in cat(xylem, path)] == as_fields(want)


def test_a_field_that_comes_twice_is_refused(xylem, tmp_path):
    with tarfile.open(tmp_path / "a.tar", "w") as t:
        for _ in range(2):
            t.addfile(tarfile.TarInfo("a.txt"), io.BytesIO(b""))
    status, lines, err = cat(xylem, tmp_path / "a.tar", check=False)
    assert status == 1 and not lines and 'two fields "txt"' in err


def test_mds_folders_of_the_real_writer(xylem, tmp_path):
    golden = json.loads((GOLDENS / "formats_mds.json").read_text())
    for case in golden["cases"]:
        folder = tmp_path / case["name"]
        folder.mkdir()
        for name, data in case["files"].items():
            (folder / name).write_bytes(base64.b64decode(data))
        lines = cat(xylem, folder)
        assert [line["fields"] for line in lines] == case["samples"], case["name"]
        built.run(xylem, "data", "verify", folder)
        assert cat(xylem, folder / "index.json", "--start", 3, "--count", 2) == lines[3:5]


def test_our_mds_shards_have_the_real_layout(xylem, tmp_path):
    """The shard's parts by the format's description; an independent reader of 20 lines."""
    rows = [{"b": i % 2 == 0, "j": [i, None], "n": -i, "s": "é" * i, "x": i / 4} for i in range(50)]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    built.run(xylem, "data", "convert", tmp_path / "a.jsonl", "--out", tmp_path / "m", "--to", "mds",
              "--options", "size_limit:1000")
    index = json.loads((tmp_path / "m" / "index.json").read_text())
    assert index["version"] == 2 and len(index["shards"]) > 1
    got = []
    for shard in index["shards"]:
        data = (tmp_path / "m" / shard["raw_data"]["basename"]).read_bytes()
        assert len(data) == shard["raw_data"]["bytes"] <= 1000
        u32 = lambda at: int.from_bytes(data[at:at + 4], "little")
        assert u32(0) == shard["samples"]
        config = json.loads(data[4 * (shard["samples"] + 2):u32(4)])
        assert config["column_names"] == shard["column_names"] == ["b", "j", "n", "s", "x"]
        for i in range(shard["samples"]):
            begin, end = u32(4 + 4 * i), u32(8 + 4 * i)
            sizes, at = [], begin
            for size in shard["column_sizes"]:
                if size is None:
                    size, at = u32(at), at + 4
                sizes.append(size)
            row = []
            for size in sizes:
                row.append(data[at:at + size])
                at += size
            assert at == end
            got.append(row)
    assert [json.loads(r[1]) for r in got] == [r["j"] for r in rows]
    assert [int.from_bytes(r[2], "little", signed=True) for r in got] == [r["n"] for r in rows]
    assert [r[3].decode() for r in got] == [r["s"] for r in rows]
    back = [line["fields"] for line in cat(xylem, tmp_path / "m")]
    assert back == [{**r, "b": int(r["b"])} for r in rows]
