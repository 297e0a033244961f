"""Every public function of core that takes and gives arrays against its twin of JAX: values, dtypes, shapes and refusals.

A sample by default; XYLEM_SWEEP_SEED=N draws another than the first, XYLEM_SWEEP=all runs every case, XYLEM_SWEEP=NAME,NAME those functions
whole.
"""

import os
import re
import time

import built
import function_sweep as sweep
import function_tables as tables
import numpy as np
import pytest

TABLES = {"numpy_functions": tables.numpy_table, "lax_functions": tables.lax_table}
SEED = int(os.environ.get("XYLEM_SWEEP_SEED", 1))


def cases_of(name, f, make, few):
    """`few` cases of a function, or all of them."""
    seed = [SEED, sum(name.encode())]
    sweep.drawing = False
    count = sum(1 for _ in make(np.random.default_rng(seed)))
    rng = np.random.default_rng(seed)
    wanted = set(range(count) if few is None else rng.choice(count, min(few, count), replace=False).tolist())
    cases = make(rng)
    for i in range(count):
        sweep.drawing = i in wanted
        operands, attrs = next(cases)
        if i in wanted:
            yield sweep.Case(name, operands, attrs, f)
    sweep.drawing = True


def chosen(table):
    """The cases to run: by default a few of every function, in an order by seed."""
    which = os.environ.get("XYLEM_SWEEP", "")
    rng = np.random.default_rng(SEED)
    cases = []
    for name, (f, make) in table.items():
        if which not in ("", "all") and name not in which.split(","):
            continue
        cases += cases_of(name, f, make, None if which else int(os.environ.get("XYLEM_SWEEP_EACH", 1)))
    return cases if which else [cases[i] for i in rng.permutation(len(cases))]


@pytest.mark.parametrize("which", TABLES)
def test_functions_equal_jax(tool, which):
    print(f"XYLEM_SWEEP_SEED={SEED}")
    program = sweep.Tool(tool(which))
    wrong, done, cases = [], 0, chosen(TABLES[which])
    until = time.monotonic() + float(os.environ.get("XYLEM_SWEEP_SECONDS", 35))
    try:
        for case in cases:
            if not os.environ.get("XYLEM_SWEEP") and time.monotonic() > until:
                break
            done += 1
            theirs, want = sweep.oracle(case)
            for mode in ("eager", "jit"):
                if mode == "jit" and tables.concrete(case):
                    continue
                ours, got = program.call(case, mode)
                why = None
                if ours != theirs:
                    why = f"{ours} ({str(got)[:300] if ours != 'ok' else sweep.describe(got)}), JAX: {theirs} ({str(want)[:200] if theirs != 'ok' else sweep.describe(want)})"
                elif ours == "ok":
                    why = sweep.differs(case, got, want)
                if why and not tables.allowed(case, ours, theirs, got, want):
                    wrong.append(f"{case} {mode}: {why}")
    finally:
        program.close()
    print(f"{done} cases of {which}")
    assert done > 0
    assert not wrong, f"{len(wrong)} differences, XYLEM_SWEEP_SEED={SEED}\n" + "\n".join(wrong)


def declared(header, namespace):
    """The functions of a header that give arrays."""
    text = (built.SOURCE / "xylem" / header).read_text()
    text = re.sub(r"//.*", "", text)
    parts = re.split(r"^namespace xylem((?:::\w+)*) \{", text, flags=re.M)
    found = set()
    for name, body in zip(parts[1::2], parts[2::2]):
        if name == namespace:
            found |= set(re.findall(r"^(?:inline )?(?:Array|std::vector<Array>|std::pair<Array, Array>|Histogram|Unique|TopK|\w+Result|\w+Factor|Key|std::vector<Key>) (\w+)\(", body, re.M))
    return found - {"operator"}


def test_every_public_function_is_in_a_table(tool):
    for which, table in TABLES.items():
        program = sweep.Tool(tool(which))
        program.close()
        assert sorted(program.names) == sorted(table), which
    for prefix, namespace, headers in tables.PUBLIC:
        public = set().union(*(declared(h, namespace) for h in headers))
        listed = {n.removeprefix(prefix) for table in TABLES.values() for n in table if n.startswith(prefix) and (prefix or "." not in n)}
        elsewhere = set(tables.ELSEWHERE[prefix])
        assert not public - listed - elsewhere, f"{namespace}: in no table: {sorted(public - listed - elsewhere)}"
        assert not elsewhere - public, f"{namespace}: not declared: {sorted(elsewhere - public)}"
