"""Files and training runs of Xylem beside the real stack: safetensors, Grain's order, the twin in Flax and Optax."""

import json
import subprocess
import sys

import built
import numpy as np
import pytest
import safetensors
import safetensors.numpy
from grain import python as grain

# Bits of an element by the name that the library takes.
DTYPES = {"bool": 8, "uint8": 8, "int8": 8, "float8_e5m2": 8, "float8_e4m3fn": 8, "float8_e8m0fnu": 8, "float8_e4m3fnuz": 8,
          "float8_e5m2fnuz": 8, "int16": 16, "uint16": 16, "float16": 16,
          "bfloat16": 16, "int32": 32, "uint32": 32, "float32": 32, "complex64": 64, "float64": 64, "int64": 64, "uint64": 64}
NAMES = ["w", "layers[0].attention.query.kernel", "a/b", "é☃", "tab\tquote\"back\\slash\x01\x7f", "zz", "A"]


def copied(path):
    out = path.with_suffix(".copy")
    built.run(built.tool("parity", "checkpoint"), path, out)
    return out.read_bytes()


@pytest.mark.parametrize("metadata", [None, {"format": "pt"}])
def test_safetensors_are_written_byte_for_byte_as_the_library_does(tmp_path, metadata):
    random = np.random.default_rng(0)
    tensors, buffers = {}, []
    for i, (dtype, bits) in enumerate(DTYPES.items()):
        for shape in ([], [1], [3, 5], [0, 2], [7]):
            data = random.integers(0, 2 if dtype == "bool" else 256, int(np.prod(shape)) * bits // 8, dtype=np.uint8)
            buffers.append(data)
            tensors[f"{NAMES[i % len(NAMES)]} {dtype} {len(tensors)}"] = safetensors.TensorSpec(
                dtype=dtype, shape=shape, data_ptr=data.ctypes.data, data_len=data.nbytes)
    path = tmp_path / "all.safetensors"
    path.write_bytes(safetensors.serialize(tensors, metadata))
    assert copied(path) == path.read_bytes()


def test_the_library_reads_initial_parameters_and_writes_the_same_bytes(tmp_path, config):
    out = tmp_path / "init.safetensors"
    built.run(built.XYLEM, "init", config, "--out", out)
    arrays = safetensors.numpy.load_file(out)
    assert arrays["embed.embedding"].dtype == np.float32
    assert safetensors.numpy.save(arrays, metadata={"format": "xylem"}) == out.read_bytes()


@pytest.fixture
def config(tmp_path):
    (tmp_path / "text").write_bytes(np.arange(3000, dtype=">u2").tobytes())
    path = tmp_path / "config.yaml"
    path.write_text(f"run_name: a\nbase_output_directory: {tmp_path}/runs\ndataset_path: {tmp_path}/text\nmax_target_length: 4\n"
                    "per_device_batch_size: 5\nbase_emb_dim: 8\nbase_num_query_heads: 2\nhead_dim: 4\nbase_mlp_dim: 16\n")
    return path


@pytest.mark.parametrize("seed", [0, 42, 2**32 - 1])
def test_windows_come_in_grains_order(tmp_path, config, seed):
    out = tmp_path / "batches.npy"
    windows = (6000 - 6000 // 20 - 1) // 4
    steps = 2 * windows // 5
    built.run(built.XYLEM, "data", "batches", config, f"data_shuffle_seed={seed}", "--steps", steps, "--out", out)
    # Each window begins with two numbers of its own; the first one is twice the window's index.
    batches = np.load(out).reshape(-1, 5)
    got = (batches[:, 0].astype(int) * 256 + batches[:, 1]) // 2
    order = grain.MapDataset.range(windows).shuffle(seed=seed).repeat(2)
    assert got.tolist() == [order[i] for i in range(len(got))]


STEPS = 20


def test_the_twin_agrees_step_by_step_and_on_held_out_text(tmp_path):
    demo = built.SOURCE / "configs" / "demo.yaml"
    common = [f"base_output_directory={tmp_path}", f"steps={STEPS}", "eval_interval=-1", "max_predict_length=0", "peak_flops=1e12"]
    built.run(built.XYLEM, "init", demo, *common, "--out", tmp_path / "init.safetensors")
    built.run(built.XYLEM, "data", "batches", demo, *common, "--steps", STEPS, "--out", tmp_path / "batches.npy")
    built.run(built.XYLEM, "train", demo, *common)
    run = tmp_path / "demo"
    twin = built.SOURCE / "benchmarks" / "jax_twin" / "gpt_twin.py"
    subprocess.run([sys.executable, twin, "--config", run / "config.yaml", "--init", tmp_path / "init.safetensors", "--batches",
                    tmp_path / "batches.npy", "--steps", str(STEPS), "--eval", str(STEPS), "--json", tmp_path / "twin.json"],
                   check=True, stderr=subprocess.DEVNULL)
    want = json.loads((tmp_path / "twin.json").read_text())
    got = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    np.testing.assert_allclose([m["loss"] for m in got], want["losses"], rtol=1e-4)
    np.testing.assert_allclose([m["grad_norm"] for m in got], want["grad_norms"], rtol=1e-3)
    np.testing.assert_allclose(got[-1]["eval_loss"], want["evals"][-1]["eval_loss"], rtol=1e-4)
