"""What may include what: reads cmake/layers.json and the #include lines of a source tree. Used by layering_test.py."""

import json
import pathlib
import re

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"]', re.MULTILINE)
SOURCE_ENDINGS = (".h", ".cc", ".inc")
# What a public header must not drag into every file that includes it.
HEAVY = re.compile(
    r"(iostream|sstream|ostream|istream|fstream|iomanip|regex|filesystem|chrono|locale|"
    r"(boost|nlohmann|llvm|llvm-c|yaml-cpp|CLI|google/protobuf|grpcpp)/.*)$")
TEST_FRAMEWORKS = ("gtest/", "gmock/", "benchmark/")


class Layers:
    def __init__(self, table):
        self.libraries = {entry["name"]: entry for entry in table["libraries"]}
        self.folders = table["folders"]
        self.not_inherited = set(table["not_inherited"])
        self._closures = {}

    def closure(self, name):
        """All that a library sees: what it lists, and what that sees in turn, but for what is never inherited."""
        if name not in self._closures:
            listed = self.libraries[name]["may_include"]
            seen = set(listed)
            for other in listed:
                seen |= self.closure(other) - self.not_inherited
            self._closures[name] = seen
        return self._closures[name]


def load(root):
    return Layers(json.loads((root / "cmake" / "layers.json").read_text(encoding="utf-8")))


def strip_comments(text):
    # Newlines inside block comments stay, so that line numbers are right.
    return re.sub(r"/\*.*?\*/", lambda m: "\n" * m.group().count("\n"), text, flags=re.DOTALL)


def includes(path):
    """Pairs of (line, name, quoted) of a file."""
    text = strip_comments(path.read_text(encoding="utf-8", errors="replace"))
    for match in INCLUDE.finditer(text):
        yield text.count("\n", 0, match.start(2)) + 1, match.group(2), match.group(1) == '"'


def source_files(root, top="xylem"):
    return sorted(p for p in (root / top).rglob("*")
                  if p.suffix in SOURCE_ENDINGS and p.is_file() and "testdata" not in p.parts)


def is_test(relative):
    parts = pathlib.PurePosixPath(relative).parts
    return relative.endswith(("_test.cc", "_bench.cc")) or "testing" in parts[:-1]


def folder_of(relative, layers):
    """The special folder (such as runtime/cpu) that a file below xylem/ lies in, or None."""
    for folder in layers.folders:
        if relative.startswith(folder + "/"):
            return folder
    return None


def check_includes(root, layers):
    """Messages for every include that the table does not allow."""
    problems = []
    for path in source_files(root):
        relative = path.relative_to(root / "xylem").as_posix()
        library = relative.split("/")[0]
        where = f"xylem/{relative}"
        if library not in layers.libraries:
            problems.append(f"{where}: library '{library}' is not in cmake/layers.json")
            continue
        own_folder = folder_of(relative, layers)
        allowed = {library} | layers.closure(library)
        externals = []
        if own_folder:
            allowed |= set(layers.folders[own_folder].get("may_include", []))
            externals = layers.folders[own_folder].get("external", [])
        for line, name, quoted in includes(path):
            at = f"{where}:{line}"
            top = name.split("/")[0]
            if top in ("llvm", "llvm-c") and top not in externals:
                problems.append(f"{at}: includes {name}; LLVM is for xylem/compiler/jit alone")
            if name.startswith(TEST_FRAMEWORKS) and not is_test(relative):
                problems.append(f"{at}: includes {name}, but is no test")
            if top != "xylem":
                if quoted and not (root / name).exists() and (path.parent / name).exists():
                    problems.append(f"{at}: includes \"{name}\" by a relative path; write xylem/<library>/…")
                continue
            target = name[len("xylem/"):]
            other = target.split("/")[0]
            if other not in allowed:
                problems.append(f"{at}: {library} must not include {name} (may include: {', '.join(sorted(allowed))})")
                continue
            folder = folder_of(target, layers)
            if folder and folder != own_folder:
                rule = layers.folders[folder]
                public = target in [f"{folder}/{h}" for h in rule.get("public_headers", [])]
                if not public and library != rule["private_to"]:
                    problems.append(f"{at}: {name} is private to {rule['private_to']}")
                if not public and "external" in rule:
                    problems.append(f"{at}: {name} is private to xylem/{folder}")
            if other != library and "/internal/" in target:
                problems.append(f"{at}: {name} is internal to {other}")
            if "/testing/" in target and not is_test(relative):
                problems.append(f"{at}: {name} is for tests")
    return problems


def check_outsiders(root):
    """Examples and benchmarks use Xylem as anybody does, so what is internal is closed to them."""
    problems = []
    for top in ("examples", "benchmarks"):
        if (root / top).is_dir():
            for path in source_files(root, top):
                for line, name, _ in includes(path):
                    if name.startswith("xylem/") and ("/internal/" in name or "/testing/" in name):
                        problems.append(f"{path.relative_to(root)}:{line}: includes {name}")
    return problems


def public_headers(root, layers):
    for path in source_files(root):
        relative = path.relative_to(root / "xylem").as_posix()
        if path.suffix != ".h" or is_test(relative) or "internal" in pathlib.PurePosixPath(relative).parts:
            continue
        folder = folder_of(relative, layers)
        if folder and "external" in layers.folders[folder]:
            if relative not in [f"{folder}/{h}" for h in layers.folders[folder].get("public_headers", [])]:
                continue
        yield path


def check_heavy(root, layers):
    """Messages for public headers that include something heavy, themselves or through other headers of ours."""
    problems = []
    for header in public_headers(root, layers):
        came_from = {header: None}
        queue = [header]
        while queue:
            path = queue.pop(0)
            for line, name, _ in includes(path):
                if HEAVY.match(name):
                    chain, step = [], path
                    while step is not None:
                        chain.append(step.relative_to(root).as_posix())
                        step = came_from[step]
                    problems.append(f"{' -> '.join(reversed(chain))}:{line} includes <{name}>")
                target = root / name
                if name.startswith("xylem/") and target.is_file() and target not in came_from:
                    came_from[target] = path
                    queue.append(target)
    return problems


def check_table(layers):
    """The table itself: every name is known and comes before what includes it, so there is no cycle."""
    problems, seen = [], set()
    for name, entry in layers.libraries.items():
        for other in entry["may_include"] + entry.get("private_link", []):
            if other not in layers.libraries:
                problems.append(f"{name} may include '{other}', which the table does not have")
            elif other not in seen:
                problems.append(f"{name} may include '{other}', which comes after it")
        seen.add(name)
    return problems
