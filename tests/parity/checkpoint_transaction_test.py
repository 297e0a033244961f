"""Transactions on OCDBT databases, which TensorStore reads, and goes on with."""

import json
import random

import built
import pytest
import tensorstore as ts

TOOL = built.tool("parity", "transaction")


def contents(path):
    store = ts.KvStore.open({"driver": "ocdbt", "base": f"file://{path}/"}).result()
    return {key.decode(): store.read(key).result().value for key in store.list().result()}


def commit(path, *transactions):
    lines = (json.dumps({k: v if v is None else v.hex() for k, v in t.items()}) for t in transactions)
    built.run(TOOL, path, stdin="".join(line + "\n" for line in lines))


@pytest.mark.parametrize("seed", range(6))
def test_both_sides_change_one_database_in_turn(tmp_path, seed):
    rng = random.Random(seed)
    path = tmp_path / "db"
    model = {}

    def changes():
        out = {}
        for _ in range(rng.randrange(1, 40)):
            key = rng.choice(("a/", "b/", "")) + f"key {rng.randrange(50)}é"
            out[key] = None if rng.random() < 0.3 else rng.randbytes(rng.choice((0, 1, 100, 1024, 1025, 50_000)))
        return out

    for turn in range(8):
        if rng.random() < 0.5 or turn == 7:
            transactions = [changes() for _ in range(rng.choice((1, 1, 3, 20)))]
            commit(path, *transactions)
        else:
            transactions = [changes()]
            options = {} if turn else {"config": {"max_inline_value_bytes": rng.choice((0, 10, 2000)), "max_decoded_node_bytes": 400}}
            store = ts.KvStore.open({"driver": "ocdbt", "base": f"file://{path}/"} | options).result()
            with ts.Transaction(atomic=False) as t:
                for key, value in transactions[0].items():
                    if value is None:
                        del store.with_transaction(t)[key]
                    else:
                        store.with_transaction(t)[key] = value
        for t in transactions:
            model |= t
        model = {k: v for k, v in model.items() if v is not None}
        assert contents(path) == model
        _, out, _ = built.run(built.XYLEM, "checkpoint", "kv", "--json", path)
        assert json.loads(out) == {k: v.hex() for k, v in model.items()}
