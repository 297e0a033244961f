"""Holds every #include of the tree against cmake/layers.json, and proves on small trees that a violation is seen."""

import json
import pathlib
import tempfile
import unittest

import layering

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Tree(unittest.TestCase):
    def none(self, problems):
        if problems:
            self.fail("\n" + "\n".join(problems))

    def test_table_is_ordered(self):
        self.none(layering.check_table(layering.load(ROOT)))

    def test_includes_follow_the_table(self):
        self.none(layering.check_includes(ROOT, layering.load(ROOT)))

    def test_examples_and_benchmarks_use_public_headers(self):
        self.none(layering.check_outsiders(ROOT))

    def test_public_headers_are_light(self):
        self.none(layering.check_heavy(ROOT, layering.load(ROOT)))

    def test_headers_are_guarded(self):
        for path in layering.source_files(ROOT):
            if path.suffix == ".h":
                text = layering.strip_comments(path.read_text(encoding="utf-8"))
                self.assertRegex(text, r"#pragma once|#ifndef \w+", str(path))


class Checker(unittest.TestCase):
    """Each case is a tree of one or two files and a part of the message expected, or None."""

    def problems(self, files):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / "cmake").mkdir()
            (root / "cmake" / "layers.json").write_bytes((ROOT / "cmake" / "layers.json").read_bytes())
            for name, text in files.items():
                path = root / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            layers = layering.load(root)
            return layering.check_includes(root, layers) + layering.check_heavy(root, layers)

    def check(self, name, text, expected, **others):
        found = self.problems({name: text} | others.get("files", {}))
        if expected is None:
            self.assertEqual(found, [])
        else:
            self.assertTrue(any(expected in problem for problem in found), found)

    def test_upward(self):
        self.check("xylem/base/a.cc", '#include "xylem/ir/graph.h"\n', "base must not include")

    def test_downward(self):
        self.check("xylem/ir/a.cc", '#include "xylem/base/error.h"\n', None)

    def test_inherited(self):
        self.check("xylem/nn/a.cc", '#include "xylem/base/error.h"\n', None)

    def test_not_inherited(self):
        self.check("xylem/nn/a.cc", '#include "xylem/ir/graph.h"\n', "nn must not include")

    def test_core_does_not_see_the_compiler(self):
        self.check("xylem/core/a.cc", '#include "xylem/compiler/compile.h"\n', "core must not include")

    def test_only_the_cpu_device_sees_the_compiler(self):
        self.check("xylem/runtime/cpu/a.cc", '#include "xylem/compiler/compile.h"\n', None)
        self.check("xylem/runtime/a.cc", '#include "xylem/compiler/compile.h"\n', "runtime must not include")

    def test_cpu_device_is_private(self):
        self.check("xylem/core/a.cc", '#include "xylem/runtime/cpu/client.h"\n', "private to runtime")

    def test_llvm(self):
        text = "#include <llvm/IR/Module.h>\n"
        self.check("xylem/compiler/jit/a.cc", text, None)
        self.check("xylem/compiler/a.cc", text, "LLVM is for")

    def test_jit_headers(self):
        self.check("xylem/compiler/a.cc", '#include "xylem/compiler/jit/jit.h"\n', None)
        self.check("xylem/compiler/a.cc", '#include "xylem/compiler/jit/emit.h"\n', "private to xylem/compiler/jit")

    def test_internal(self):
        self.check("xylem/ir/a.cc", '#include "xylem/base/internal/x.h"\n', "internal to base")
        self.check("xylem/base/a.cc", '#include "xylem/base/internal/x.h"\n', None)

    def test_testing(self):
        self.check("xylem/ir/a.cc", '#include "xylem/base/testing/x.h"\n', "is for tests")
        self.check("xylem/ir/a_test.cc", '#include "xylem/base/testing/x.h"\n', None)
        self.check("xylem/ir/a.cc", "#include <gtest/gtest.h>\n", "is no test")

    def test_relative(self):
        self.check("xylem/ir/a.cc", '#include "b.h"\n', "relative path", files={"xylem/ir/b.h": "#pragma once\n"})

    def test_unknown_library(self):
        self.check("xylem/nonsense/a.cc", "", "not in cmake/layers.json")

    def test_heavy(self):
        for name in ("iostream", "sstream", "regex", "filesystem", "chrono", "boost/asio.hpp", "nlohmann/json.hpp"):
            self.check("xylem/base/a.h", f"#pragma once\n#include <{name}>\n", f"includes <{name}>")
        self.check("xylem/base/a.cc", "#include <sstream>\n", None)

    def test_heavy_through_another_header(self):
        self.check("xylem/ir/a.h", '#pragma once\n#include "xylem/base/internal/b.h"\n', "a.h -> xylem/base/internal/b.h:2",
                   files={"xylem/base/internal/b.h": "#pragma once\n#include <chrono>\n"})

    def test_comments_do_not_count(self):
        self.check("xylem/base/a.h", "#pragma once\n// #include <chrono>\n/*\n#include <regex>\n*/\n", None)


if __name__ == "__main__":
    unittest.main()
