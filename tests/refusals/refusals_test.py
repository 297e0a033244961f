"""What cannot be a tree or be reflected is refused by the compiler with a sentence that says what to do."""

import os
import pathlib
import shutil
import subprocess
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
COMPILERS = [c for c in (os.environ.get("CXX", "g++"), "clang++-19") if shutil.which(c)]

PRELUDE = """
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>
#include "xylem/base/host_array.h"
#include "xylem/base/tree.h"
using xylem::HostArray;
"""
CASE = """
namespace case%d {
%s
auto structure(const T& t) { return xylem::tree::structure<HostArray>(t); }
}
"""

REFUSED = {
    "C array of numbers": ("struct T { int a[3]; HostArray b; };", "a C array as a field: use std::array"),
    "C array of one": ("struct T { int a[1]; HostArray b; };", "a C array as a field: use std::array"),
    "C array of leaves": ("struct T { HostArray b; HostArray a[2]; };", "a C array as a field: use std::array"),
    "reference": ("struct T { HostArray& a; };", "replace references by values"),
    "base with fields": ("struct B { HostArray b; }; struct T : B { HostArray a; };", "make the base a field instead"),
    "private field": ("class T { HostArray a; };", "this type cannot be part of a tree"),
    "constructor": ("struct T { HostArray a; T(int); };", "static constexpr int xylem_num_fields = N;"),
    "too many fields": ("struct T { int " + ", ".join(f"a{i}" for i in range(33)) + "; };", "at most 32"),
    "too many fields stated": ("struct T { int a; T(int); static constexpr int xylem_num_fields = 40; };", "at most 32"),
    "pointer": ("struct T { HostArray* a; };", "a pointer cannot be part of a tree"),
    "shared_ptr": ("struct T { std::shared_ptr<HostArray> a; };", "a smart pointer cannot be part of a tree"),
    "unordered_map": ("struct T { std::unordered_map<int, HostArray> a; };", "use std::map"),
    "std::function": ("struct T { std::function<int(int)> f; };", "use a function pointer"),
    "map keys": ("struct T { std::map<double, HostArray> f; };", "must be std::string or integers"),
    "long double": ("struct T { long double f; };", "long double has padding"),
    "tree of other leaves": ("struct T { xylem::Tree<int> f; };", "must have M = L"),
}
ACCEPTED = """
enum class E { a }; struct Tag {};
struct T : Tag { HostArray a; std::vector<HostArray> b; std::string name; E e; float (*f)(float); int n; };
"""


def compile_cases(compiler, cases):
    """One translation unit for all cases, since most of the time goes into the headers."""
    text = PRELUDE + "".join(CASE % (i, case) for i, case in enumerate(cases))
    command = [compiler, "-std=c++20", "-fsyntax-only", f"-I{ROOT}", "-x", "c++", "-"]
    command.append("-ferror-limit=0" if "clang" in compiler else "-fmax-errors=0")
    done = subprocess.run(command, input=text, capture_output=True, text=True)
    return done.returncode, done.stderr


class Refusals(unittest.TestCase):
    def test_a_good_type_compiles(self):
        for compiler in COMPILERS:
            status, errors = compile_cases(compiler, [ACCEPTED])
            self.assertEqual(status, 0, errors)

    def test_each_refusal_says_what_to_do(self):
        for compiler in COMPILERS:
            status, errors = compile_cases(compiler, [text for text, _ in REFUSED.values()])
            self.assertNotEqual(status, 0)
            sentences = [line for line in errors.splitlines() if "error: static assertion failed" in line]
            for message in {message for _, message in REFUSED.values()}:
                wanted = [name for name, (_, m) in REFUSED.items() if m == message]
                found = sum(message in line for line in sentences)
                self.assertGreaterEqual(found, len(wanted), f"{compiler}: {wanted}: {message}\n{errors}")


if __name__ == "__main__":
    unittest.main()
