"""Both back ends run every op that needs no process grid, no quantised type and no queue, and compute the same."""

import pathlib
import re
import subprocess
import tempfile
import unittest

import built

# Values that the programs use: %x and %y of 2x4, %p of one sign, %v of 4, %n and %m integers, %c complex, %s a scalar.
HEAD = """
  %x = stablehlo.constant dense<[[0.5, -1.25, 2.0, 0.25], [-3.0, 3.5, -0.75, 1.0]]> : tensor<2x4xf32>
  %y = stablehlo.constant dense<[[1.0, 2.0, 1.5, 0.5], [1.5, 1.0, 2.0, 3.0]]> : tensor<2x4xf32>
  %p = stablehlo.constant dense<[[0.5, 0.25, 0.75, 0.125], [0.375, 0.875, 0.0625, 0.1875]]> : tensor<2x4xf32>
  %v = stablehlo.constant dense<[1.0, 0.5, 2.0, 4.0]> : tensor<4xf32>
  %n = stablehlo.constant dense<[[7, -3, 0, 12], [5, -128, 127, 1]]> : tensor<2x4xi32>
  %m = stablehlo.constant dense<[[2, 1, 3, 5], [4, 2, 1, 7]]> : tensor<2x4xi32>
  %c = stablehlo.complex %x, %y : tensor<2x4xcomplex<f32>>
  %s = stablehlo.constant dense<0.5> : tensor<f32>
"""
F, I, B, C = "tensor<2x4xf32>", "tensor<2x4xi32>", "tensor<2x4xi1>", "tensor<2x4xcomplex<f32>>"


def same(op, x, kind=F, given=None):
    """One op and its type."""
    return f"%r = {op} {x} : {kind} -> {kind}" if given is None else f"%r = {op} {x} : {given} -> {kind}", kind


def exact():
    """(program, type of %r): both back ends give the same text."""
    for op in ("and", "or", "xor", "shift_left", "shift_right_arithmetic", "shift_right_logical", "add", "subtract", "multiply",
               "divide", "remainder", "maximum", "minimum"):
        yield same(f"chlo.broadcast_{op}", "%n, %m", I, f"({I}, {I})")
    for direction in ("LT", "EQ"):
        yield (f"%r = chlo.broadcast_compare %x, %v {{comparison_direction = #chlo<comparison_direction {direction}>}} : "
               f"({F}, tensor<4xf32>) -> {B}", B)
    yield f"%k = stablehlo.compare LT, %x, %y : ({F}, {F}) -> {B}\n%r = chlo.broadcast_select %k, %x, %v : ({B}, {F}, tensor<4xf32>) -> {F}", F
    yield f"%r = chlo.broadcast_clamp %s, %x, %s : (tensor<f32>, {F}, tensor<f32>) -> {F}", F
    yield same("chlo.broadcast_next_after", "%x, %y", F, f"({F}, {F})")
    yield f"%r = chlo.broadcast_complex %x, %v : ({F}, tensor<4xf32>) -> {C}", C
    yield same("chlo.conj", "%c", C)
    yield same("chlo.square", "%x")
    yield f'%r = "chlo.constant_like"(%x) <{{value = 3.0 : f32}}> : ({F}) -> {F}', F
    yield "%r = chlo.constant dense<[1, 2]> : tensor<2xi32>", "tensor<2xi32>"
    for op in ("is_inf", "is_neg_inf", "is_pos_inf"):
        yield same(f"chlo.{op}", "%x", B, F)
    yield same("chlo.next_after", "%x, %y", F, f"{F}, {F}")
    yield f"%r, %i = chlo.top_k(%x, k = 2) : {F} -> (tensor<2x2xf32>, tensor<2x2xi32>)", "tensor<2x2xf32>"
    yield f"%w, %r = chlo.top_k(%x, k = 3) : {F} -> (tensor<2x3xf32>, tensor<2x3xi32>)", "tensor<2x3xi32>"
    yield f"%r = stablehlo.bitcast_convert %x : ({F}) -> tensor<2x4x4xui8>", "tensor<2x4x4xui8>"
    yield f"%r = stablehlo.bitcast_convert %x : ({F}) -> {I}", I
    yield f"%t = stablehlo.after_all : !stablehlo.token\n%r = stablehlo.negate %x : {F}", F
    yield f"%r = stablehlo.dynamic_iota %dd, dim = 0 : (tensor<2xi32>) -> {I}", I
    state = "%g = stablehlo.constant dense<[1, 2]> : tensor<2xui64>\n"
    for algorithm in ("THREE_FRY", "PHILOX", "DEFAULT"):
        yield (state + f"%o, %r = stablehlo.rng_bit_generator %g, algorithm = {algorithm} : (tensor<2xui64>) -> "
               "(tensor<2xui64>, tensor<7xui32>)", "tensor<7xui32>")
    yield (f'%r = "stablehlo.scatter"(%n, %iu, %m) <{{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], '
           f"inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}}> ({{\n^bb0(%a: tensor<i32>, "
           f"%b: tensor<i32>):\n%q = stablehlo.subtract %a, %b : tensor<i32>\nstablehlo.return %q : tensor<i32>\n}}) : "
           f"({I}, tensor<2x1xi32>, {I}) -> {I}", I)


def close():
    """The same up to rounding."""
    for op in ("acos", "asin", "erf_inv"):
        yield same(f"chlo.{op}", "%p")
    for op in ("acosh",):
        yield same(f"chlo.{op}", "%y")
    for op in ("asinh", "atan", "bessel_i1e", "cosh", "erf", "erfc", "sinh"):
        yield same(f"chlo.{op}", "%x")
    for op in ("atanh", "digamma", "lgamma"):
        yield same(f"chlo.{op}", "%p")
    for op in ("polygamma", "zeta"):
        yield same(f"chlo.{op}", "%two, %y", F, f"{F}, {F}")
        yield same(f"chlo.broadcast_{op}", "%two, %y", F, f"({F}, {F})")
    for op in ("atan2", "power"):
        yield same(f"chlo.broadcast_{op}", "%y, %x", F, f"({F}, {F})")
    for op in ("acos", "acosh", "asin", "asinh", "atan", "atanh", "sinh", "cosh", "square"):
        yield same(f"chlo.{op}", "%c", C)
    for kind, given, length in (("FFT", "complex<f32>", 4), ("IFFT", "complex<f32>", 4)):
        yield f"%r = stablehlo.fft %c, type = {kind}, length = [{length}] : ({C}) -> {C}", C
    yield f"%r = stablehlo.fft %x, type = RFFT, length = [4] : ({F}) -> tensor<2x3xcomplex<f32>>", "tensor<2x3xcomplex<f32>>"
    yield (f"%h = stablehlo.slice %c [0:2, 0:3] : ({C}) -> tensor<2x3xcomplex<f32>>\n"
           f"%r = stablehlo.fft %h, type = IRFFT, length = [5] : (tensor<2x3xcomplex<f32>>) -> tensor<2x5xf32>", "tensor<2x5xf32>")
    square = ("%sq0 = stablehlo.constant dense<[[4.0, 1.0], [1.0, 3.0]]> : tensor<2x2xf32>\n")
    yield square + "%r = stablehlo.cholesky %sq0, lower = true : tensor<2x2xf32>", "tensor<2x2xf32>"
    yield (square + '%r = "stablehlo.triangular_solve"(%sq0, %x) <{left_side = true, lower = false, unit_diagonal = false, '
           f"transpose_a = #stablehlo<transpose TRANSPOSE>}}> : (tensor<2x2xf32>, {F}) -> {F}", F)
    yield (f'%r = "stablehlo.batch_norm_inference"(%x, %v, %v, %v, %v) <{{epsilon = 1.0e-3 : f32, feature_index = 1 : i64}}> : '
           f"({F}, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> {F}", F)
    yield (f'%r, %bm, %bv = "stablehlo.batch_norm_training"(%x, %v, %v) <{{epsilon = 1.0e-3 : f32, feature_index = 1 : i64}}> : '
           f"({F}, tensor<4xf32>, tensor<4xf32>) -> ({F}, tensor<4xf32>, tensor<4xf32>)", F)
    yield (f'%r, %bm, %bv = "stablehlo.batch_norm_grad"(%x, %v, %v, %v, %y) <{{epsilon = 1.0e-3 : f32, feature_index = 1 : i64}}> : '
           f"({F}, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, {F}) -> ({F}, tensor<4xf32>, tensor<4xf32>)", F)
    yield f'%r = "stablehlo.einsum"(%x, %y) <{{einsum_config = "ab,cb->ac"}}> : ({F}, {F}) -> tensor<2x2xf32>', "tensor<2x2xf32>"
    yield f'%r = "stablehlo.unary_einsum"(%x) <{{einsum_config = "ab->b"}}> : ({F}) -> tensor<4xf32>', "tensor<4xf32>"
    yield (f"%lo = stablehlo.constant dense<0> : tensor<1x2xi32>\n%im = stablehlo.reshape %x : ({F}) -> tensor<1x1x8xf32>\n"
           f"%ke = stablehlo.reshape %v : (tensor<4xf32>) -> tensor<1x1x4xf32>\n"
           f'%r = "stablehlo.dynamic_conv"(%im, %ke, %lo) <{{batch_group_count = 1 : i64, feature_group_count = 1 : i64, '
           f"dimension_numbers = #stablehlo.conv<[b, f, 0]x[o, i, 0]->[b, f, 0]>}}> : "
           f"(tensor<1x1x8xf32>, tensor<1x1x4xf32>, tensor<1x2xi32>) -> tensor<1x1x5xf32>", "tensor<1x1x5xf32>")


EXTRA = """
  %dd = stablehlo.constant dense<[2, 4]> : tensor<2xi32>
  %iu = stablehlo.constant dense<[[1], [1]]> : tensor<2x1xi32>
  %two = stablehlo.constant dense<2.0> : tensor<2x4xf32>
"""


def numbered(lines, k):
    """The lines with what they define renamed, so that many stand in one function."""
    names = set(re.findall(r"(%\w+): ", lines))
    for defined in re.findall(r"^(%\w+(?:, %\w+)*) = ", lines, re.M):
        names.update(defined.split(", "))
    for name in names:
        lines = re.sub(re.escape(name) + r"\b", f"{name}_{k}", lines)
    return lines


def run(programs, backend, folder):
    body = "\n".join(numbered(lines, k) for k, (lines, _) in enumerate(programs))
    kinds = ", ".join(kind for _, kind in programs)
    results = ", ".join(f"%r_{k}" for k in range(len(programs)))
    path = pathlib.Path(folder) / "p.mlir"
    path.write_text(f"func.func @main() -> ({kinds}) {{{HEAD}{EXTRA}\n{body}\nreturn {results} : {kinds}\n}}\n")
    done = subprocess.run([built.XYLEM, "run", "--backend", backend, path], capture_output=True, text=True, timeout=120)
    return done.returncode, done.stdout.splitlines(), done.stderr


class EveryOp(unittest.TestCase):
    def results(self, programs):
        with tempfile.TemporaryDirectory() as folder:
            out = []
            for backend in ("interpret", "cpu"):
                status, lines, errors = run(programs, backend, folder)
                self.assertEqual(status, 0, f"{backend}: {errors}")
                self.assertEqual(len(lines), len(programs))
                out.append(lines)
        return zip(programs, *out)

    def test_ops_without_rounding_are_equal(self):
        for (lines, _), ours, compiled in self.results(list(exact())):
            self.assertEqual(ours, compiled, lines)

    def test_functions_are_close(self):
        number = re.compile(r"0x[0-9A-F]+|-?\d+\.?\d*(?:e[+-]?\d+)?")
        for (lines, _), ours, compiled in self.results(list(close())):
            a, b = number.findall(ours.split(" : ")[0]), number.findall(compiled.split(" : ")[0])
            self.assertEqual(len(a), len(b), lines)
            for x, y in zip(a, b):
                if x.startswith("0x") or y.startswith("0x"):
                    self.assertEqual(x, y, lines)
                else:
                    self.assertLessEqual(abs(float(x) - float(y)), 1e-5 * max(1.0, abs(float(x))), f"{lines}\n{ours}\n{compiled}")


if __name__ == "__main__":
    unittest.main()
