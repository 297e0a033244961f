"""The optimizer's state that `xylem train` saves restores into real Optax's, with its structure and names."""


import built
import jax
import jax.numpy as jnp
import numpy as np
import optax
import orbax.checkpoint as ocp
import pytest
from checkpoint_trees import bits, show

CONFIG = {
    "max_target_length": 8, "per_device_batch_size": 2, "base_emb_dim": 8, "base_num_decoder_layers": 2, "base_num_query_heads": 2,
    "head_dim": 4, "base_mlp_dim": 16, "steps": 6, "eval_interval": 10, "eval_steps": 1, "eval_per_device_batch_size": 4,
    "checkpoint_period": 3, "log_period": 1, "max_predict_length": 0, "peak_flops": 1e9,
}


@pytest.mark.parametrize("clipping", [1.0, 0.0])
def test_a_training_state_restores_into_optax(tmp_path, clipping):
    (tmp_path / "text.txt").write_text("In the beginning God created the heaven and the earth.\n" * 30)
    values = CONFIG | {"base_output_directory": tmp_path / "runs", "dataset_path": tmp_path / "text.txt",
                       "gradient_clipping_threshold": clipping}
    (tmp_path / "tiny.yaml").write_text("".join(f"{key}: {value}\n" for key, value in values.items()))
    built.run(built.XYLEM, "train", tmp_path / "tiny.yaml", "run_name=a")
    step = tmp_path / "runs" / "a" / "checkpoints" / "6"
    with ocp.PyTreeCheckpointer() as checkpointer:
        params = checkpointer.restore(step / "params")
    params = jax.tree.map(jnp.asarray, params)
    adamw = optax.adamw(optax.cosine_decay_schedule(1e-3, 10))
    chain = optax.chain(optax.clip_by_global_norm(clipping) if clipping else optax.identity(), adamw)
    target = chain.init(params)
    with ocp.PyTreeCheckpointer() as checkpointer:
        restored = checkpointer.restore(step / "optimizer", args=ocp.args.PyTreeRestore(
            item=target, restore_args=ocp.checkpoint_utils.construct_restore_args(target)))
    assert jax.tree.structure(restored) == jax.tree.structure(target)
    counts = [leaf for path, leaf in jax.tree_util.tree_flatten_with_path(restored)[0] if path[-1] == jax.tree_util.GetAttrKey("count")]
    assert counts and all(int(c) == 6 for c in counts)
    assert any(float(jnp.abs(x).max()) > 0 for x in jax.tree.leaves(optax.tree.get(restored, "mu")))
    # Training goes on from there in Optax.
    updates, _ = chain.update(params, restored, params)
    assert all(np.isfinite(np.asarray(u)).all() for u in jax.tree.leaves(updates))
    shown = {tuple(leaf["path"]): leaf for leaf in show(step)["items"]["params"]["leaves"]}
    for path, leaf in jax.tree_util.tree_flatten_with_path(params)[0]:
        key = tuple(k.idx if hasattr(k, "idx") else k.key for k in path)
        assert tuple(shown[key]["shape"]) == bits(leaf)[0]
