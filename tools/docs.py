#!/usr/bin/env python3
"""Regenerates what lies between markers in docs/; with --check, only says what would change. Called by ./x docs."""

import json
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def layer_table():
    table = json.loads((ROOT / "cmake" / "layers.json").read_text(encoding="utf-8"))
    folders = {}
    for folder, rule in table["folders"].items():
        for other in rule.get("may_include", []) + (["LLVM"] if "llvm" in rule.get("external", []) else []):
            folders.setdefault(folder.split("/")[0], []).append(f"only `{folder}`: {other}")
    rows = ["| library | role | may include | must not know |", "|---|---|---|---|"]
    for entry in table["libraries"]:
        may = ["all" if entry["name"] == "cli" else ", ".join(entry["may_include"])] + folders.get(entry["name"], [])
        may = "; ".join(filter(None, may)) or "–"
        rows.append(f"| `{entry['name']}` | {entry['role']} | {may} | {entry['must_not_know']} |")
    return "\n".join(rows)


# (file, name of the marker, what makes the text)
PARTS = [("docs/architecture.md", "layers", layer_table)]


def main():
    check = sys.argv[1:] == ["--check"]
    stale = []
    for name, marker, make in PARTS:
        path = ROOT / name
        text = path.read_text(encoding="utf-8")
        begin, end = f"<!-- {marker}: made by ./x docs -->\n", f"<!-- {marker} ends -->"
        if text.count(begin) != 1 or text.count(end) != 1:
            sys.exit(f"docs: {name} lacks the markers of '{marker}'")
        head, rest = text.split(begin)
        tail = rest.split(end)[1]
        wanted = head + begin + make() + "\n" + end + tail
        if wanted != text:
            stale.append(f"{name} ({marker})")
            if not check:
                path.write_text(wanted, encoding="utf-8")
    for part in stale:
        print(f"docs: {part} {'is out of date; run ./x docs' if check else 'rewritten'}")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
