"""Damaged checkpoints that real Orbax, safetensors and NumPy wrote: `verify` names what is wrong, `repair` mends it, and Orbax
restores the result."""

import logging
import os
import pathlib
import random
import re
import shutil

os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=8"

import absl.logging
import built
import flax.serialization
import jax.numpy as jnp
import numpy as np
import orbax.checkpoint as ocp
import pytest
import safetensors.numpy
import tensorstore as ts
from checkpoint_trees import check_restored, check_shown, show, trees, verify
from orbax.checkpoint import v1 as ocp1

absl.logging.set_verbosity(absl.logging.FATAL)
logging.disable(logging.WARNING)

TREE = {**trees()["sharded_mixed"][0], "p": trees()["mixed"][0], "big": np.arange(20000, dtype=np.float32)}
FILES = ("t.safetensors", "t.npz", "d.npz", "t.msgpack")


def run(*arguments):
    status, out, errors = built.run(built.XYLEM, "checkpoint", *arguments, check=False)
    assert status in (0, 1) and b"internal" not in errors.lower(), (arguments, status, errors)
    return status, out.decode()


@pytest.fixture(scope="module")
def originals(tmp_path_factory):
    folder = tmp_path_factory.mktemp("originals")
    with ocp.CheckpointManager(folder / "root") as manager:
        manager.save(2, args=ocp.args.Composite(state=ocp.args.PyTreeSave(TREE), meta=ocp.args.JsonSave({"a": 1})))
        manager.wait_until_finished()
    ocp1.save(folder / "v1", TREE)
    built.run(built.XYLEM, "checkpoint", "convert", folder / "root" / "2", folder / "ours" / "2", "--to", "orbax-v0")
    safetensors.numpy.save_file({"a": np.arange(60, dtype=np.float32), "b.c": np.ones((2, 2), np.int8)}, folder / "t.safetensors")
    np.savez(folder / "t.npz", a=np.arange(300), b=np.array(["x", "yy"]), c=np.array([1 + 1j]))
    np.savez_compressed(folder / "d.npz", a=np.arange(3000), b=np.ones(3))
    (folder / "t.msgpack").write_bytes(flax.serialization.to_bytes({"a": jnp.ones((2, 3), jnp.bfloat16), "t": "x"}))
    return folder


def damages(data):
    yield "cut", data[:len(data) // 2]
    yield "empty", b""
    yield "noise", random.randbytes(min(len(data), 5000))
    flipped = bytearray(data)
    if flipped:
        flipped[random.randrange(len(flipped))] ^= 1 << random.randrange(8)
        yield "flip", bytes(flipped)
    yield "gone", None
    yield "directory", ...


def damaged(originals, name, work):
    """Damages each file in each way; yields (the copy's path, file, kind of damage)."""
    random.seed(14)
    source = originals / name
    for file in sorted(p for p in source.rglob("*") if p.is_file()) if source.is_dir() else [source]:
        for kind, data in damages(file.read_bytes()):
            if data == file.read_bytes():
                continue
            shutil.rmtree(work, ignore_errors=True)
            work.mkdir()
            copy = work / source.name
            (shutil.copytree if source.is_dir() else shutil.copy)(source, copy)
            victim = copy / file.relative_to(source) if source.is_dir() else copy
            victim.unlink()
            if data is ...:
                victim.mkdir()
            elif data is not None:
                victim.write_bytes(data)
            yield copy, str(file.relative_to(originals)), kind


@pytest.mark.parametrize("name", ("ours/2", "root/2", "v1", *FILES))
def test_damage_is_named_line_by_line(originals, tmp_path, name):
    missed = []
    for copy, file, kind in damaged(originals, name, tmp_path / "w"):
        status, out = run("verify", copy)
        assert (status == 0) == (out == ""), (file, kind, out)
        for line in out.split("\n")[:-1]:
            assert re.fullmatch(re.escape(str(copy)) + r": .+: .+", line), (file, kind, line)
        if status == 0:
            missed.append((file, kind))
        run("show", "--json", "--values", copy)
        run("show", copy)
    if name == "ours/2":
        # A commit file's text is the one thing without a checksum; without the list of checksums none is checked.
        assert {f"{pathlib.Path(file).name} {kind}" for file, kind in missed} <= {
            "commit_success.txt flip", "commit_success.txt cut", "xylem_checksums.json gone"}, missed
    elif name in ("root/2", "v1"):
        # Orbax writes no checksums: a flip may read as other contents; what nothing refers to may be anything.
        files = {file for file, kind in missed if kind in ("cut", "empty", "noise") and "ocdbt.process_0/d/" not in file}
        assert files <= {f"{name}/orbax.checkpoint", f"{name}/meta/commit_success.txt", f"{name}/state/commit_success.txt",
                         f"{name}/commit_success.txt"}, missed
    else:
        assert {kind for _, kind in missed} <= {"flip"}, missed


@pytest.mark.parametrize("name", ("ours/2", "root/2"))
def test_repaired_steps_verify_and_orbax_restores_them(originals, tmp_path, name):
    want = {"whole": 0, "lost": 0}
    for copy, file, kind in damaged(originals, name, tmp_path / "w"):
        status, out = run("repair", copy)
        assert verify(copy) == [], (file, kind, out)
        if "rebuilt" in out or "dropped" in out or "quarantined" in out:
            assert (copy.parent / "2.xylem-backup").is_dir()
        want["lost" if status else "whole"] += 1
        restorable = ("manifest" in file or "_sharding" in file or "METADATA" in file) and "_METADATA" != file[-9:]
        if restorable and (copy / "state").is_dir():
            assert status == 0, (file, kind, out)
            check_shown(TREE, show(copy)["items"]["state"]["leaves"])
            with ocp.PyTreeCheckpointer() as checkpointer:
                back = checkpointer.restore(copy / "state", args=ocp.args.PyTreeRestore(
                    item=TREE, restore_args=ocp.checkpoint_utils.construct_restore_args(TREE)))
            check_restored(TREE, back)
    assert want["whole"] > 20 and want["lost"] > 5, want


def test_a_rebuilt_tree_restores_with_a_target(originals, tmp_path):
    shutil.copytree(originals / "root", tmp_path / "r")
    for name in ("_METADATA", "manifest.ocdbt", "ocdbt.process_0/manifest.ocdbt"):
        (tmp_path / "r" / "2" / "state" / name).unlink()
    status, out = run("repair", tmp_path / "r")
    assert status == 0 and "rebuilt 2/state/_METADATA" in out and "rebuilt 2/state/manifest.ocdbt" in out
    arrays = {k: v for k, v in TREE.items() if k in ("w", "n", "single", "big")}
    with ocp.PyTreeCheckpointer() as checkpointer:
        back = checkpointer.restore(tmp_path / "r" / "2" / "state", args=ocp.args.PyTreeRestore(
            item=arrays, restore_args=ocp.checkpoint_utils.construct_restore_args(arrays), partial_restore=True))
    check_restored(arrays, back)


def test_databases_with_any_keys_are_printed(tmp_path):
    keys = {b"": b"empty", b"\xff\xfe": b"bin", b"a\nb": b"nl", "ключ".encode(): b"u", b"\xed\xa0\x80": b"surrogate",
            b"\xf4\x90\x80\x80": b"beyond", b"\xc0\x80": b"long", b"big": b"x" * 5000, b'q"\\': b""}
    store = ts.KvStore.open({"driver": "ocdbt", "base": f"file://{tmp_path}/kv/"}).result()
    for key, value in keys.items():
        store.write(key, value).result()
    import json
    shown = json.loads(run("kv", "--json", tmp_path / "kv")[1])
    want = {}
    for key, value in keys.items():
        try:
            want[key.decode()] = value.hex()
        except UnicodeDecodeError:
            want["hex:" + key.hex()] = value.hex()
    assert shown == want
    assert verify(tmp_path / "kv") == []
    for folder in ("empty", "missing"):
        if folder == "empty":
            (tmp_path / folder).mkdir()
        for verb in ("show", "kv", "verify", "repair", "ls" if folder == "missing" else "show"):
            assert run(verb, tmp_path / folder)[0] == 1
