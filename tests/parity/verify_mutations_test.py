"""Diagnostics against the real stack: of thousands of damaged programs, Xylem refuses those that jaxlib's parser and
verifier refuse, at the same line, and accepts those that they accept.

XYLEM_MUTANTS is the number of damaged programs (default 800), XYLEM_SEED their seed."""

import json
import os
import random
import re
import subprocess
import sys

import stablehlo_text_test

# Programs that JAX does not write: forms and attributes of every kind.
WRITTEN = r"""
func.func @main(%a: tensor<2x3xf32>, %b: tensor<2x3xf32>, %p: tensor<2x3xi1>) -> tensor<2x3xf32> {
  %0 = stablehlo.add %a, %b : tensor<2x3xf32>
  %1 = stablehlo.select %p, %0, %b : tensor<2x3xi1>, tensor<2x3xf32>
  %2 = "stablehlo.maximum"(%1, %a) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %3 = stablehlo.compare GT, %2, %a, FLOAT : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xi1>
  %4 = stablehlo.and %3, %p : tensor<2x3xi1>
  %5 = stablehlo.convert %4 : (tensor<2x3xi1>) -> tensor<2x3xf32>
  %6 = stablehlo.clamp %a, %5, %b : tensor<2x3xf32>
  %7 = stablehlo.exponential %6 : tensor<2x3xf32>
  return %7 : tensor<2x3xf32>
}
// -----
func.func @main(%a: tensor<2x3xf32>) -> tensor<3x4xf32> {
  %z = stablehlo.constant dense<0.000000e+00> : tensor<f32>
  %0 = stablehlo.transpose %a, dims = [1, 0] : (tensor<2x3xf32>) -> tensor<3x2xf32>
  %1 = stablehlo.pad %0, %z, low = [0, 1], high = [0, 1], interior = [0, 0] : (tensor<3x2xf32>, tensor<f32>) -> tensor<3x4xf32>
  %2 = stablehlo.reverse %1, dims = [0, 1] : tensor<3x4xf32>
  %3 = stablehlo.slice %2 [0:3:1, 1:3] : (tensor<3x4xf32>) -> tensor<3x2xf32>
  %4 = stablehlo.concatenate %3, %0, dim = 1 : (tensor<3x2xf32>, tensor<3x2xf32>) -> tensor<3x4xf32>
  %5 = stablehlo.reshape %4 : (tensor<3x4xf32>) -> tensor<12xf32>
  %6 = stablehlo.broadcast_in_dim %5, dims = [1] : (tensor<12xf32>) -> tensor<2x12xf32>
  %7 = stablehlo.iota dim = 1 : tensor<3x4xi32>
  %8 = stablehlo.bitcast_convert %7 : (tensor<3x4xi32>) -> tensor<3x4xf32>
  return %8 : tensor<3x4xf32>
}
// -----
func.func @main(%a: tensor<4x8xf32>, %b: tensor<8x5xf32>, %i: tensor<i32>) -> tensor<5xf32> {
  %z = stablehlo.constant dense<0.000000e+00> : tensor<f32>
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0], precision = [DEFAULT, HIGHEST] : (tensor<4x8xf32>, tensor<8x5xf32>) -> tensor<4x5xf32>
  %1 = stablehlo.reduce(%0 init: %z) applies stablehlo.add across dimensions = [0] : (tensor<4x5xf32>, tensor<f32>) -> tensor<5xf32>
  %2 = stablehlo.dynamic_slice %0, %i, %i, sizes = [1, 5] : (tensor<4x5xf32>, tensor<i32>, tensor<i32>) -> tensor<1x5xf32>
  %3 = stablehlo.dynamic_update_slice %0, %2, %i, %i : (tensor<4x5xf32>, tensor<1x5xf32>, tensor<i32>, tensor<i32>) -> tensor<4x5xf32>
  %4 = stablehlo.reduce(%3 init: %z) across dimensions = [0] : (tensor<4x5xf32>, tensor<f32>) -> tensor<5xf32>
   reducer(%x: tensor<f32>, %y: tensor<f32>) {
    %5 = stablehlo.maximum %x, %y : tensor<f32>
    stablehlo.return %5 : tensor<f32>
  }
  return %4 : tensor<5xf32>
}
// -----
func.func @main(%n: tensor<i32>, %x: tensor<4xf32>) -> (tensor<i32>, tensor<4xf32>) {
  %z = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %0:2 = stablehlo.while(%i = %z, %c = %x) : tensor<i32>, tensor<4xf32>
  cond {
    %p = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %k = stablehlo.add %i, %one : tensor<i32>
    %d = stablehlo.multiply %c, %x : tensor<4xf32>
    stablehlo.return %k, %d : tensor<i32>, tensor<4xf32>
  }
  %q = stablehlo.compare EQ, %n, %one : (tensor<i32>, tensor<i32>) -> tensor<i1>
  %1 = "stablehlo.if"(%q) ({
    %2 = stablehlo.sine %0#1 : tensor<4xf32>
    stablehlo.return %2 : tensor<4xf32>
  }, {
    stablehlo.return %x : tensor<4xf32>
  }) : (tensor<i1>) -> tensor<4xf32>
  %3 = "stablehlo.case"(%n) ({
    stablehlo.return %1 : tensor<4xf32>
  }, {
    %4 = func.call @f(%x) : (tensor<4xf32>) -> tensor<4xf32>
    stablehlo.return %4 : tensor<4xf32>
  }) : (tensor<i32>) -> tensor<4xf32>
  return %0#0, %3 : tensor<i32>, tensor<4xf32>
}
func.func private @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.negate %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}
// -----
func.func @main(%a: tensor<9x4xf32>, %i: tensor<3x1xi32>, %u: tensor<3x4xf32>) -> tensor<9x4xf32> {
  %0 = "stablehlo.gather"(%a, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 1, 4>}> : (tensor<9x4xf32>, tensor<3x1xi32>) -> tensor<3x4xf32>
  %1 = "stablehlo.scatter"(%a, %i, %0) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, unique_indices = false}> ({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    %2 = stablehlo.add %x, %y : tensor<f32>
    stablehlo.return %2 : tensor<f32>
  }) : (tensor<9x4xf32>, tensor<3x1xi32>, tensor<3x4xf32>) -> tensor<9x4xf32>
  %3:2 = "stablehlo.sort"(%1, %a) <{dimension = 0 : i64, is_stable = true}> ({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>, %z: tensor<f32>, %w: tensor<f32>):
    %4 = stablehlo.compare LT, %x, %y, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %4 : tensor<i1>
  }) : (tensor<9x4xf32>, tensor<9x4xf32>) -> (tensor<9x4xf32>, tensor<9x4xf32>)
  return %3#0 : tensor<9x4xf32>
}
// -----
func.func @main(%a: tensor<4x6xf32>) -> tensor<2x2xf32> {
  %z = stablehlo.constant dense<0.000000e+00> : tensor<f32>
  %0 = "stablehlo.reduce_window"(%a, %z) <{base_dilations = array<i64: 1, 1>, padding = dense<[[0, 0], [1, 1]]> : tensor<2x2xi64>, window_dilations = array<i64: 1, 1>, window_dimensions = array<i64: 2, 3>, window_strides = array<i64: 2, 4>}> ({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    %1 = stablehlo.add %x, %y : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) : (tensor<4x6xf32>, tensor<f32>) -> tensor<2x2xf32>
  %2 = stablehlo.reduce_precision %0, format = e5m10 : tensor<2x2xf32>
  %3 = chlo.erf %2 : tensor<2x2xf32> -> tensor<2x2xf32>
  %4, %5 = chlo.top_k(%3, k = 1) : tensor<2x2xf32> -> (tensor<2x1xf32>, tensor<2x1xi32>)
  %6 = stablehlo.complex %3, %2 : tensor<2x2xcomplex<f32>>
  %7 = stablehlo.real %6 : (tensor<2x2xcomplex<f32>>) -> tensor<2x2xf32>
  %8:2 = stablehlo.optimization_barrier %7, %4 : tensor<2x2xf32>, tensor<2x1xf32>
  return %8#0 : tensor<2x2xf32>
}
// -----
module @m attributes {mhlo.num_partitions = 1 : i32, a.b = [1, 2.0, "s"]} {
  func.func public @main(%s: tensor<2xui64>, %x: tensor<2x3xi8> {jax.arg_info = "x"}) -> (tensor<4xui32> {jax.result_info = "r"}) attributes {c.d} {
    %output_state, %output = stablehlo.rng_bit_generator %s, algorithm = THREE_FRY : (tensor<2xui64>) -> (tensor<2xui64>, tensor<4xui32>)
    %c = stablehlo.constant dense<[1, 2, 3, 4]> : tensor<4xui32>
    %c_0 = stablehlo.constant dense<[[1, -2, 3], [4, 5, 127]]> : tensor<2x3xi8>
    %cst = stablehlo.constant dense<[true, false]> : tensor<2xi1>
    %cst_1 = stablehlo.constant dense<"0x000080BF0000803F"> : tensor<2xf32>
    %cst_2 = stablehlo.constant dense<(1.0,2.0)> : tensor<3xcomplex<f64>>
    %0 = stablehlo.xor %output, %c {x.y = "z"} : tensor<4xui32>
    %1 = stablehlo.shift_left %0, %c : tensor<4xui32>
    %2 = stablehlo.subtract %x, %c_0 : tensor<2x3xi8>
    %3 = stablehlo.popcnt %2 : tensor<2x3xi8>
    %4 = stablehlo.is_finite %cst_1 : (tensor<2xf32>) -> tensor<2xi1>
    %5 = stablehlo.abs %cst_2 : (tensor<3xcomplex<f64>>) -> tensor<3xf64>
    %6 = stablehlo.after_all : !stablehlo.token
    return %1 : tensor<4xui32>
  }
}
"""

FROM_JAX = ["arithmetic", "integers", "shapes", "slicing", "gather", "scatter", "reductions", "windows", "dot", "sort", "cond",
            "fori_loop", "scan", "mlp_grad", "attention", "convert", "inner_jits", "constants"]

DTYPES = ["f32", "f64", "bf16", "f16", "i1", "i8", "i32", "i64", "ui32", "f8E4M3FN", "complex<f32>"]
WORDS = ["LT", "GT", "EQ", "FLOAT", "SIGNED", "TOTALORDER", "DEFAULT", "HIGHEST", "true", "false", "THREE_FRY"]
OPS = ["add", "multiply", "divide", "maximum", "and", "power", "atan2", "negate", "sine", "abs", "not", "floor", "convert", "transpose",
       "reverse", "reshape", "nothing"]


def damage(text, rng):
    """One small change of a program, of a random kind; None if the program has no place for it."""
    def replace(pattern, make):
        places = list(re.finditer(pattern, text))
        if not places:
            return None
        m = rng.choice(places)
        new = make(m)
        return text[:m.start()] + new + text[m.end():] if new != m.group() else None

    def line_change(make):
        lines = text.split("\n")
        inner = [i for i, line in enumerate(lines) if " = " in line and line.lstrip().startswith("%")]
        if not inner:
            return None
        i = rng.choice(inner)
        return "\n".join(make(lines, i))

    values = re.findall(r"%[A-Za-z_0-9]+", text)
    return rng.choice([
        lambda: replace(r"(?<=<)\d+(?=x)|(?<=x)\d+(?=x)", lambda m: rng.choice(["0", "1", "2", "3", "5", "?"])),
        lambda: replace(r"(?<=[<x])(?:f32|i32|i1|f64|i8|ui32|ui64|bf16)(?=>)", lambda m: rng.choice(DTYPES)),
        lambda: replace(r"tensor<[^<>]*>", lambda m: rng.choice(re.findall(r"tensor<[^<>]*>", text))),
        lambda: replace(r"(?<=[\[ ,:])-?\d+(?=[\], :>])", lambda m: rng.choice(["-1", "0", "1", "2", "3", "7", "100"])),
        lambda: replace(r"\[[\d, ]*\]", lambda m: rng.choice(["[]", "[0]", "[1]", "[0, 1]", "[1, 0]", "[0, 0]", "[2, 1, 0]"])),
        lambda: replace(r"array<i64[^>]*>", lambda m: rng.choice(["array<i64>", "array<i64: 1>", "array<i64: 1, 1>", "array<i64: 2, 3, 1>", "array<i64: 0, 1>"])),
        lambda: replace(r"%[A-Za-z_0-9]+(?:#\d)?", lambda m: rng.choice(values)),
        lambda: replace(r"%[A-Za-z_0-9]+", lambda m: "%undefined"),
        lambda: replace("|".join(rf"\b{w}\b" for w in WORDS), lambda m: rng.choice(WORDS)),
        lambda: replace(r"(?<=stablehlo\.)[a-z_]+(?= |\")", lambda m: rng.choice(OPS)),
        lambda: replace(r"[a-z_]+ = (?:\d+ : i64|true|false|array<[^>]*>|#stablehlo<[^>]*>)(?:, )?", lambda m: ""),
        lambda: replace(r"[(){}\[\]<>:,=%\"]", lambda m: ""),
        lambda: replace(r"[(){}\[\]<>:,=%]", lambda m: m.group() * 2),
        lambda: replace(r" : | -> |, | = ", lambda m: rng.choice([" : ", " -> ", ", ", " = ", " "])),
        lambda: replace(r"(?<=dense<)[^<>]*(?=>)", lambda m: rng.choice(["", "1", "1.0", "true", "[1, 2]", "[[1, 2], [3, 4]]", "\"0x00\"", "-1", "300", "0x7F"])),
        lambda: replace(r"@[a-z_0-9]+", lambda m: rng.choice(["@main", "@nothing", "@f"])),
        lambda: line_change(lambda lines, i: lines[:i] + lines[i + 1:]),
        lambda: line_change(lambda lines, i: lines[:i] + [lines[i]] + lines[i:]),
        lambda: line_change(lambda lines, i: lines[:i] + [lines[i].split(" : ")[0]] + lines[i + 1:]),
    ])()


def sources():
    for text in WRITTEN.split("// -----\n"):
        yield text.lstrip("\n")
    for name in FROM_JAX:
        jitted, args = stablehlo_text_test.program(name)
        yield jitted.lower(*args).as_text()


def mutants(count, seed):
    rng = random.Random(seed)
    texts = list(sources())
    out = list(texts)
    while len(out) < count:
        text = damage(rng.choice(texts[:7] if rng.random() < 0.7 else texts), rng)
        if text:
            out.append(text)
    return out


# Prints the lines of jaxlib's errors of each text of a JSON list, one text a line. It never starts a back end.
ORACLE = r"""
import json, re, sys
from jaxlib.mlir import ir
import jax._src.interpreters.mlir as jax_mlir
texts = json.load(open(sys.argv[1]))
with jax_mlir.make_ir_context():
    for text in texts[int(sys.argv[2]):]:
        try:
            ir.Module.parse(text).operation.verify()
            found = []
        except Exception as e:
            found = re.findall(r'error: "-":(\d+):\d+', str(e)) or ["0"]
        print(",".join(found), flush=True)
"""


def jaxlib_lines(texts, folder):
    """Per text the lines of jaxlib's errors; None where it crashes: some texts end the process."""
    path = folder / "texts.json"
    path.write_text(json.dumps(texts))
    out = []
    while len(out) < len(texts):
        done = subprocess.run([sys.executable, "-c", ORACLE, path, str(len(out))], capture_output=True, text=True, timeout=600)
        out += [[int(n) for n in line.split(",") if n] for line in done.stdout.split("\n")[:-1]]
        if done.returncode != 0:
            assert done.returncode < 0, done.stderr[-2000:]
            out.append(None)
    return out


def xylem_lines(tool, texts, path):
    """Per text the messages and their lines, counted in the text."""
    path.write_text("// -----\n".join(text if text.endswith("\n") else text + "\n" for text in texts))
    done = subprocess.run([tool, "chunks", path], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, f"{done.returncode}\n{done.stderr[-2000:]}"
    out, first = [], 1
    for line in done.stdout.splitlines():
        if re.fullmatch(r"(?:ok|error) \d+", line):
            if out:
                first += texts[len(out) - 1].rstrip("\n").count("\n") + 2
            out.append([])
        else:
            place = re.match(r".*?:(\d+):\d+: error: ", line)
            out[-1].append((int(place.group(1)) - first + 1 if place else 0, line.strip()))
    return out


# What differs on purpose.
def is_known(text, theirs, ours):
    messages = " ".join(m for _, m in ours)
    # Xylem's functions do not call themselves.
    if not theirs and "closes a cycle" in messages:
        return True
    # MLIR reads ops outside of functions before it refuses them.
    if theirs and "A module holds functions" in messages:
        return True
    # The specification's constraint compare_c3, which the real verifier does not check.
    if not theirs and "[compare_c3]" in messages:
        return True
    # A use before the definition is told at the use, not where the definition turns out to differ.
    if theirs and "values are defined before their use" in messages and theirs[0] != min(line for line, _ in ours):
        return True
    return False


def disagreement(text, theirs, ours):
    lines = {line for line, _ in ours}
    if theirs is None or is_known(text, theirs, ours):
        return None
    if not theirs and ours:
        return "refused, jaxlib accepts"
    if theirs and not ours:
        return "accepted, jaxlib refuses"
    if theirs and theirs[0] not in lines:
        return f"at lines {sorted(lines)}, jaxlib at {theirs}"
    return None


def compare(tool, count, seed, folder):
    texts = [t for t in mutants(count, seed) if "// -----" not in t]
    theirs, ours = jaxlib_lines(texts, folder), xylem_lines(tool, texts, folder / "mutants.mlir")
    assert len(theirs) == len(ours) == len(texts)
    wrong = []
    for text, a, b in zip(texts, theirs, ours):
        if (why := disagreement(text, a, b)):
            wrong.append((why, text, a, b))
    refused = sum(1 for a in theirs if a)
    return texts, refused, wrong


def test_damaged_programs_are_refused_where_jaxlib_refuses_them(tool, tmp_path):
    count, seed = int(os.environ.get("XYLEM_MUTANTS", 800)), int(os.environ.get("XYLEM_SEED", 7))
    texts, refused, wrong = compare(tool("ir"), count, seed, tmp_path)
    assert refused > count // 3, "the changes are of use"
    shown = []
    for why, text, theirs, ours in wrong[:20]:
        numbered = "\n".join(f"{i:3} {line}" for i, line in enumerate(text.split("\n"), 1)) if text.count("\n") < 60 else "(long)"
        shown.append(f"{why}\n{numbered}\n{ours[:3]}")
    assert not wrong, f"{len(wrong)} of {len(texts)} differ\n" + "\n\n".join(shown)
