"""Every line of docs/from-grain.md: Grain's side run by Grain, Xylem's by Xylem, equal elements."""

import functools
import json
import re

import built
import grain
import grain_twin as twin
import numpy as np
import pytest
from grain import experimental as ge

NAMES = {"functools": functools, "grain": grain, "ge": ge, "np": np, "M": grain.MapDataset,
         "src": lambda n: grain.MapDataset.source(list(range(n)))}
PAGE = (built.SOURCE / "docs" / "from-grain.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| `(.+?)` \| `(.+?)` \|$", PAGE, re.MULTILINE)


def squeezed(code):
    return re.sub(r"\s+", "", code)


@pytest.fixture(scope="module")
def shown(tool):
    _, out, _ = built.run(tool("from_grain"))
    lines = [json.loads(line) for line in out.decode().splitlines()]
    return {squeezed(line["code"]): line["elements"] for line in lines}


def test_page_and_tool_have_the_same_lines(shown):
    assert len(ROWS) >= 30
    assert sorted(shown) == sorted(squeezed(ours) for _, ours in ROWS)


@pytest.mark.parametrize("grains, ours", ROWS, ids=[g for g, _ in ROWS])
def test_line(shown, grains, ours):
    ds = eval(grains, NAMES)
    if isinstance(ds, grain.MapDataset):
        want = [twin.plain(ds[i]) for i in range(len(ds))]
    elif isinstance(ds, ge.ElasticIterator):
        it, want = iter(ds), []
        for _ in range(3):
            want.append(twin.plain(next(it)))
    else:
        want = [twin.plain(e) for e in ds]
    assert shown[squeezed(ours)] == want
