"""Arrays that TensorStore wrote with each of its codecs, element types and layouts of zarr 2 and 3 are read here."""

import itertools
import json

import built
import ml_dtypes
import numpy as np
import pytest
import tensorstore as ts
from checkpoint_trees import array_of, bits, verify

V2 = [None, {"id": "bz2", "level": 3}, {"id": "zlib", "level": 1}, {"id": "gzip", "level": 6}, {"id": "zstd", "level": 3}] + [
    {"id": "blosc", "cname": name, "clevel": level, "shuffle": shuffle}
    for name, level, shuffle in itertools.product(("blosclz", "lz4", "lz4hc", "snappy", "zlib", "zstd"), (1, 9), (0, 1, 2))]
V3 = [[], [{"name": "gzip", "configuration": {"level": 5}}], [{"name": "zstd", "configuration": {"level": 3}}], [{"name": "crc32c"}],
      [{"name": "zstd", "configuration": {"level": 1}}, {"name": "crc32c"}]] + [
    [{"name": "blosc", "configuration": {"cname": name, "clevel": 5, "shuffle": shuffle, "typesize": 4}}]
    for name in ("blosclz", "lz4", "snappy", "zlib", "zstd") for shuffle in ("noshuffle", "shuffle", "bitshuffle")]
TYPES = ["<f4", "<i2", "|u1", "<c8", "bfloat16"]


def values(dtype):
    random = np.random.default_rng(3)
    a = np.cumsum(random.integers(0, 3, (37, 53)), axis=1)
    return a.astype(getattr(ml_dtypes, dtype, None) or dtype)


def tree(folder, names, zarr3):
    """The metadata that makes a folder of arrays a tree."""
    folder.mkdir(exist_ok=True)
    (folder / "_METADATA").write_text(json.dumps({"tree_metadata": {f"('{n}',)": {
        "key_metadata": [{"key": n, "key_type": 2}], "value_metadata": {"value_type": "np.ndarray", "skip_deserialize": False}}
        for n in names}, "use_ocdbt": False, "use_zarr3": zarr3}))


def check(folder, want):
    leaves = json.loads(built.run(built.XYLEM, "checkpoint", "show", "--json", "--values", folder)[1])["items"][""]["leaves"]
    assert len(leaves) == len(want)
    for leaf in leaves:
        assert bits(array_of(leaf)) == bits(want[leaf["path"][0]]), leaf["path"]
    assert verify(folder) == []


@pytest.mark.parametrize("dtype", TYPES)
def test_zarr_2(tmp_path, dtype):
    want = {}
    for i, compressor in enumerate(V2):
        for order in "CF":
            name = f"a{i}{order}"
            array = ts.open({"driver": "zarr", "kvstore": f"file://{tmp_path}/x/t/{name}/", "create": True, "metadata": {
                "shape": [37, 53], "chunks": [16, 20], "dtype": dtype, "compressor": compressor, "order": order}}).result()
            want[name] = values(dtype.lstrip("<|"))
            array[...] = want[name]
    tree(tmp_path / "x" / "t", want, False)
    check(tmp_path / "x" / "t", want)


@pytest.mark.parametrize("dtype", ["float32", "uint8", "bfloat16"])
def test_zarr_3(tmp_path, dtype):
    want = {}
    for i, codecs in enumerate(V3):
        codecs = json.loads(json.dumps(codecs).replace('"typesize": 4', f'"typesize": {np.dtype(getattr(ml_dtypes, dtype, None) or dtype).itemsize}'))
        for sharded, transposed in itertools.product((False, True), (False, True)):
            name = f"a{i}{'s' * sharded}{'t' * transposed}"
            chain = [{"name": "transpose", "configuration": {"order": [1, 0]}}] * transposed + [
                {"name": "bytes", "configuration": {"endian": "little"}}] + codecs
            if sharded:
                chain = [{"name": "sharding_indexed", "configuration": {"chunk_shape": [8, 10], "codecs": chain}}]
            array = ts.open({"driver": "zarr3", "kvstore": f"file://{tmp_path}/x/t/{name}/", "create": True, "metadata": {
                "shape": [37, 53], "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [16, 20]}},
                "data_type": dtype, "codecs": chain}}).result()
            want[name] = values(dtype)
            array[...] = want[name]
    tree(tmp_path / "x" / "t", want, True)
    check(tmp_path / "x" / "t", want)
