"""Trees saved by real Orbax are read here, and trees written here are restored by real Orbax."""

import logging
import os
import subprocess

os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=8"

import absl.logging
import built
import jax
import numpy as np
import orbax.checkpoint as ocp
import pytest
from checkpoint_trees import check_restored, check_shown, show, trees, verify
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from orbax.checkpoint import v1 as ocp1

absl.logging.set_verbosity(absl.logging.FATAL)
logging.disable(logging.WARNING)

TREES = trees()
V0_OPTIONS = {
    "ocdbt_zarr2": dict(use_ocdbt=True, use_zarr3=False),
    "ocdbt_zarr3": dict(use_ocdbt=True, use_zarr3=True),
    "zarr2": dict(use_ocdbt=False, use_zarr3=False),
    "zarr3": dict(use_ocdbt=False, use_zarr3=True),
    "uncompressed": dict(use_ocdbt=True, use_zarr3=False, use_compression=False),
}
WAYS = {
    "v0": ["--to", "orbax-v0"],
    "v0_zarr3": ["--to", "orbax-v0", "--zarr3"],
    "v0_no_ocdbt": ["--to", "orbax-v0", "--no-ocdbt", "--compression", "zstd:1"],
    "v0_zarr3_no_ocdbt": ["--to", "orbax-v0", "--no-ocdbt", "--zarr3", "--compression", "none"],
    "v1": ["--to", "orbax-v1"],
    "v1_zstd": ["--to", "orbax-v1", "--compression", "zstd:3"],
}
# In a directory store Orbax restores neither names with a slash nor with a backslash, not even its own.
NEEDS_OCDBT = {"slashes", "awkward_names"}


def save_v0(path, tree, step=3, **options):
    manager = ocp.CheckpointManager(path, item_handlers=ocp.PyTreeCheckpointHandler(**options))
    manager.save(step, args=ocp.args.PyTreeSave(tree))
    manager.wait_until_finished()
    manager.close()


def restore_v0(path, step=3):
    manager = ocp.CheckpointManager(path, item_handlers=ocp.PyTreeCheckpointHandler())
    assert manager.latest_step() == step
    back = manager.restore(step)
    manager.close()
    return back


@pytest.mark.parametrize("name", TREES)
@pytest.mark.parametrize("options", V0_OPTIONS)
def test_v0_checkpoints_are_read(tmp_path, name, options):
    tree, _ = TREES[name]
    save_v0(tmp_path / "r", tree, **V0_OPTIONS[options])
    shown = show(tmp_path / "r")
    assert (shown["format"], shown["step"], list(shown["items"])) == ("orbax-v0", 3, ["default"])
    check_shown(tree, shown["items"]["default"]["leaves"])
    assert verify(tmp_path / "r") == []


@pytest.mark.parametrize("name", TREES)
def test_v1_checkpoints_are_read(tmp_path, name):
    tree, _ = TREES[name]
    try:
        ocp1.save(tmp_path / "c", tree)
    except Exception as error:
        if "UnregisteredTypeError" not in type(error).__name__:
            raise
        return
    shown = show(tmp_path / "c")
    assert (shown["format"], shown["step"], list(shown["items"])) == ("orbax-v1", None, ["state"])
    check_shown(tree, shown["items"]["state"]["leaves"])
    assert verify(tmp_path / "c") == []


@pytest.mark.parametrize("name", TREES)
def test_checkpoints_written_here_are_restored(tmp_path, name):
    tree, _ = TREES[name]
    save_v0(tmp_path / "r", tree)
    want = restore_v0(tmp_path / "r")
    for way, options in WAYS.items():
        if name in NEEDS_OCDBT and "no_ocdbt" in way:
            continue
        out = tmp_path / way / "3"
        built.run(built.XYLEM, "checkpoint", "convert", tmp_path / "r", out, *options)
        if way.startswith("v1"):
            check_restored(want, ocp1.load(out))
            item = "state"
        else:
            check_restored(want, restore_v0(tmp_path / way))
            item = "default"
        assert verify(out) == []
        check_shown(tree, show(out)["items"][item]["leaves"])
        # And as any shape of tree that fits, without help from the checkpoint's own shardings.
        target = jax.tree.map(lambda x: x, tree)
        if way == "v0":
            with ocp.PyTreeCheckpointer() as checkpointer:
                back = checkpointer.restore(out / "default", args=ocp.args.PyTreeRestore(
                    item=target, restore_args=ocp.checkpoint_utils.construct_restore_args(target)))
            check_restored(tree, back)


def test_there_are_forty_trees():
    assert len(TREES) >= 40


@pytest.mark.parametrize("name", ["sharded_rows", "optax_chain", "mixed"])
def test_a_bare_checkpointer_writes_into_its_directory(tmp_path, name):
    tree, _ = TREES[name]
    with ocp.PyTreeCheckpointer() as checkpointer:
        checkpointer.save(tmp_path / "c", tree)
    shown = show(tmp_path / "c")
    assert (shown["format"], shown["step"], list(shown["items"])) == ("orbax-v0", None, [""])
    check_shown(tree, shown["items"][""]["leaves"])


def test_composite_steps_with_metrics_json_and_keys(tmp_path):
    tree, _ = TREES["optax_adam"]
    options = ocp.CheckpointManagerOptions(best_fn=lambda m: m["loss"], best_mode="min", max_to_keep=2)
    with ocp.CheckpointManager(tmp_path / "r", options=options) as manager:
        for step, loss in ((1, 3.0), (2, 1.0), (4, float("nan"))):
            manager.save(step, args=ocp.args.Composite(
                state=ocp.args.StandardSave(tree), meta=ocp.args.JsonSave({"epoch": step, "x": [1, "é"]}),
                arr=ocp.args.ArraySave(np.arange(3)), key=ocp.args.JaxRandomKeySave(jax.random.key(9)),
                np_key=ocp.args.NumpyRandomKeySave(np.random.RandomState(3).get_state())), metrics={"loss": loss},
                         custom_metadata={"note": "n"})
        manager.wait_until_finished()
        steps = sorted(manager.all_steps())
    shown = show(tmp_path / "r")
    assert shown["step"] == steps[-1]
    items = shown["items"]
    assert sorted(items) == ["arr", "key", "meta", "metrics", "np_key", "state"]
    assert items["meta"] == {"json": {"epoch": steps[-1], "x": [1, "é"]}}
    check_shown(tree, items["state"]["leaves"])
    assert items["arr"]["leaves"] == [{"path": [], "dtype": "int64", "shape": [3], "values": [0, 1, 2]}]
    assert items["key"]["leaves"][0]["prng"] == "fry"
    assert items["np_key"]["leaves"][0]["value"] == "MT19937"
    assert verify(tmp_path / "r") == []
    built.run(built.XYLEM, "checkpoint", "convert", tmp_path / "r" / str(steps[-1]), tmp_path / "o" / "7", "--to", "orbax-v0")
    with ocp.CheckpointManager(tmp_path / "o") as manager:
        back = manager.restore(7, args=ocp.args.Composite(state=ocp.args.StandardRestore(tree), meta=ocp.args.JsonRestore()))
        assert manager.metadata(7).custom_metadata == {"note": "n"}
    check_restored(tree, back["state"])
    assert back["meta"] == {"epoch": steps[-1], "x": [1, "é"]}


def test_v1_checkpointables_and_the_training_checkpointer(tmp_path):
    tree, _ = TREES["optax_adam"]
    ocp1.save_checkpointables(tmp_path / "c", {"model": tree, "info": {"epoch": 2, "tags": ["a", "b"]}})
    shown = show(tmp_path / "c")
    check_shown(tree, shown["items"]["model"]["leaves"])
    check_shown({"epoch": 2, "tags": ["a", "b"]}, shown["items"]["info"]["leaves"])
    built.run(built.XYLEM, "checkpoint", "convert", tmp_path / "c", tmp_path / "d", "--to", "orbax-v1")
    back = ocp1.load_checkpointables(tmp_path / "d")
    check_restored(ocp1.load_checkpointables(tmp_path / "c")["model"], back["model"])
    assert back["info"] == {"epoch": 2, "tags": ["a", "b"]}
    with ocp1.training.Checkpointer(tmp_path / "t") as checkpointer:
        checkpointer.save(10, tree, metrics={"loss": 0.5})
    shown = show(tmp_path / "t")
    assert (shown["format"], shown["step"], shown["items"]["metrics"]) == ("orbax-v0", 10, {"json": {"loss": 0.5}})
    check_shown(tree, shown["items"]["state"]["leaves"])


def test_zero_size_arrays_are_written_and_orbax_reads_them(tmp_path):
    np.savez(tmp_path / "z.npz", a=np.zeros((0, 3), np.float32), b=np.ones(2, np.float32))
    for way, options in WAYS.items():
        out = tmp_path / way / "3"
        built.run(built.XYLEM, "checkpoint", "convert", tmp_path / "z.npz", out, *options)
        back = ocp1.load(out) if way.startswith("v1") else restore_v0(tmp_path / way)
        assert np.asarray(back["a"]).shape == (0, 3) and np.asarray(back["b"]).tolist() == [1, 1]
        assert verify(out) == []


def test_casts_and_chunks_of_save_args(tmp_path):
    tree = {"w": np.arange(96, dtype=np.float32).reshape(8, 12)}
    import ml_dtypes
    with ocp.PyTreeCheckpointer() as checkpointer:
        checkpointer.save(tmp_path / "c", tree, save_args={
            "w": ocp.SaveArgs(dtype=np.dtype(ml_dtypes.bfloat16), chunk_byte_size=16)})
    check_shown({"w": tree["w"].astype(ml_dtypes.bfloat16)}, show(tmp_path / "c")["items"][""]["leaves"])


@pytest.mark.parametrize("processes, zarr3", [(2, False), (4, False), (4, True), (8, True)])
def test_steps_that_processes_saved_together_are_restored(tmp_path, processes, zarr3):
    environment = {**os.environ, **({"SAVE_TOOL_ZARR3": "1"} if zarr3 else {})}
    running = [subprocess.Popen([str(built.tool("e2e", "save")), tmp_path / "r", tmp_path / "c", str(p), str(processes), "5", "1"],
                                env=environment) for p in range(processes)]
    assert [p.wait() for p in running] == [0] * processes
    folder = tmp_path / "r" / "5" / "params"
    assert sorted(p.name for p in folder.glob("ocdbt.process_*")) == [f"ocdbt.process_{p}" for p in range(processes)]
    n = processes
    want = {name: (5000 + np.arange(np.prod(shape), dtype=np.float32)).reshape(shape) for name, shape in (
        ("rows", (4 * n, 6)), ("columns", (5, 3 * n)), ("numpy", (7,)))}
    want["frozen"] = np.arange(600, dtype=np.float32)
    want |= {"copies": {"even": (5000 + np.arange(6 * n, dtype=np.float32)).reshape(3, 2 * n), "odd": np.array([5000], np.float32)},
             "count": 5, "name": "step 5"}
    assert verify(tmp_path / "r") == []
    check_shown(want, sorted_leaves(show(tmp_path / "r")["items"]["params"]["leaves"]))
    # With as many devices as there were processes, by the shardings that were saved; and with fewer.
    with ocp.CheckpointManager(tmp_path / "r", item_names=("params", "state")) as manager:
        assert manager.latest_step() == 5
    for devices in {1, 2, n}:
        mesh = Mesh(np.array(jax.devices()[:devices]), ("x",))
        target = {**want, "rows": jax.device_put(want["rows"], NamedSharding(mesh, PartitionSpec("x"))),
                  "columns": jax.device_put(want["columns"], NamedSharding(mesh, PartitionSpec(None, "x")))}
        target = jax.tree.map(lambda x: x, target)
        with ocp.PyTreeCheckpointer() as checkpointer:
            back = checkpointer.restore(folder, args=ocp.args.PyTreeRestore(
                item=target, restore_args=ocp.checkpoint_utils.construct_restore_args(target)))
        assert len(back["rows"].sharding.device_set) == devices
        check_restored(want, back)
    # Written with the layout of one process it is the same tree.
    built.run(built.XYLEM, "checkpoint", "convert", tmp_path / "r" / "5", tmp_path / "o" / "5", "--to", "orbax-v0")
    assert built.run(built.XYLEM, "checkpoint", "diff", tmp_path / "r" / "5", tmp_path / "o" / "5")[0] == 0


def sorted_leaves(leaves):
    return sorted(leaves, key=lambda leaf: leaf["path"])


@pytest.mark.parametrize("processes", [1, 2])
@pytest.mark.parametrize("zarr3", [False, True])
def test_steps_that_share_unchanged_chunks_are_restored_each_alone(tmp_path, processes, zarr3):
    environment = {**os.environ, "SAVE_TOOL_DEDUPLICATE": "1", **({"SAVE_TOOL_ZARR3": "1"} if zarr3 else {})}
    running = [subprocess.Popen([str(built.tool("e2e", "save")), tmp_path / "r", tmp_path / "c", str(p), str(processes), "1", "3"],
                                env=environment) for p in range(processes)]
    assert [p.wait() for p in running] == [0] * processes
    shared = [p for p in (tmp_path / "r" / "3").rglob("*") if p.is_file() and p.stat().st_nlink == 3]
    assert len(shared) == 1 and shared[0].stat().st_size > 2400
    for step in (2, 3):
        with ocp.PyTreeCheckpointer() as checkpointer:
            back = checkpointer.restore(tmp_path / "r" / str(step) / "params", restore_args={
                **{k: ocp.RestoreArgs(restore_type=np.ndarray) for k in ("rows", "columns", "frozen", "numpy")},
                "copies": {k: ocp.RestoreArgs(restore_type=np.ndarray) for k in ("even", "odd")},
                "count": ocp.RestoreArgs(), "name": ocp.RestoreArgs()})
        assert back["frozen"].tolist() == list(range(600)) and back["count"] == step
        assert back["rows"].reshape(-1).tolist() == [step * 1000 + i for i in range(24 * processes)]
        built.run(built.XYLEM, "checkpoint", "rm", tmp_path / "r" / "1", check=False)
    assert verify(tmp_path / "r") == []
