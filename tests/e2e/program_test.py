"""xylem run, verify, convert and inspect: what they print, write and end with."""

import json
import pathlib
import re
import struct
import subprocess
import tempfile
import unittest

import built

ADD = """func.func @main(%arg0: tensor<2xf32>, %arg1: tensor<2xf32>) -> tensor<2xf32> {
  %0 = stablehlo.add %arg0, %arg1 : tensor<2xf32>
  return %0 : tensor<2xf32>
}
"""

CHUNKS = """func.func @main() {
  %0 = stablehlo.constant dense<[1, 2]> : tensor<2xi32>
  check.expect_eq_const %0, dense<[1, 2]> : tensor<2xi32>
  return
}
// -----
func.func @wrong() {
  %0 = stablehlo.constant dense<[1, 3]> : tensor<2xi32>
  check.expect_eq_const %0, dense<[1, 2]> : tensor<2xi32>
  return
}
func.func private @helper() { return }
func.func @with_argument(%a: tensor<f32>) { return }
func.func @right() {
  return
}
// -----
func.func @broken() -> tensor<3xf32> {
  %0 = stablehlo.constant dense<1.0> : tensor<2xf32>
  return %0 : tensor<2xf32>
}
 // -----
// -----

"""


def npy(descr, shape, data):
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}".encode()
    header += b" " * (-(len(header) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + data


class ProgramCase(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = pathlib.Path(holder.name)

    def write(self, name, content):
        path = self.folder / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    def xylem(self, *arguments, status=0):
        done = subprocess.run([built.XYLEM, *map(str, arguments)], capture_output=True, timeout=120)
        self.assertEqual(done.returncode, status, (done.stdout, done.stderr))
        return done.stdout.decode(), done.stderr.decode()

    def floats(self, name, *values):
        return self.write(name, npy("<f4", f"({len(values)},)", struct.pack(f"<{len(values)}f", *values)))


class Run(ProgramCase):
    def test_results_are_printed_as_dense_attributes(self):
        path = self.write("p.mlir", ADD)
        a, b = self.floats("a.npy", 1, 2), self.floats("b.npy", 3, 4.5)
        for backend in ("cpu", "interpret"):
            out, _ = self.xylem("run", "--backend", backend, "--input", a, "--input", b, path)
            self.assertEqual(out, "dense<[4.000000e+00, 6.500000e+00]> : tensor<2xf32>\n")

    def test_results_go_to_npy_files(self):
        path = self.write("p.mlir", """func.func @only() -> (tensor<2xbf16>, tensor<3xi4>, tensor<i1>) {
          %0 = stablehlo.constant dense<[1.0, -2.0]> : tensor<2xbf16>
          %1 = stablehlo.constant dense<[1, -1, 7]> : tensor<3xi4>
          %2 = stablehlo.constant dense<true> : tensor<i1>
          return %0, %1, %2 : tensor<2xbf16>, tensor<3xi4>, tensor<i1>
        }""")
        out, _ = self.xylem("run", "--output-dir", self.folder / "new" / "out", path)
        self.assertEqual(out, "")
        files = [(self.folder / "new" / "out" / f"{k}.npy").read_bytes() for k in range(3)]
        self.assertIn(b"'descr': '|V2'", files[0])
        self.assertEqual(files[0][-4:], struct.pack("<2H", 0x3F80, 0xC000))
        self.assertIn(b"'descr': '|V1'", files[1])
        self.assertEqual(files[1][-3:], bytes([1, 0x0F, 7]))
        self.assertIn(b"'descr': '|b1'", files[2])

    def test_narrow_inputs_come_as_raw_bytes_with_any_mark(self):
        path = self.write("p.mlir", """func.func @main(%a: tensor<2xbf16>, %b: tensor<2xi4>) -> (tensor<2xf32>, tensor<2xi32>) {
          %0 = stablehlo.convert %a : (tensor<2xbf16>) -> tensor<2xf32>
          %1 = stablehlo.convert %b : (tensor<2xi4>) -> tensor<2xi32>
          return %0, %1 : tensor<2xf32>, tensor<2xi32>
        }""")
        for mark in "<>|":
            a = self.write("a.npy", npy(f"{mark}V2", "(2,)", struct.pack("<2H", 0x3F80, 0xC000)))
            b = self.write("b.npy", npy(f"{mark}V1", "(2,)", bytes([0xF3, 0xAF])))
            out, _ = self.xylem("run", "--input", a, "--input", b, path)
            self.assertEqual(out, "dense<[1.000000e+00, -2.000000e+00]> : tensor<2xf32>\ndense<[3, -1]> : tensor<2xi32>\n")

    def test_inputs_that_do_not_fit_are_refused(self):
        path = self.write("p.mlir", ADD)
        a, short = self.floats("a.npy", 1, 2), self.floats("short.npy", 1)
        wide = self.write("wide.npy", npy("<f8", "(2,)", struct.pack("<2d", 1, 2)))
        for inputs, part in (([a], "1 were given"), ([a, a, a], "3 were given"), ([a, short], "f32[1]"), ([a, wide], "f64[2]"),
                             ([a, self.folder / "none.npy"], "none.npy"), ([a, self.write("bad.npy", b"NUMPY")], "bad.npy")):
            out, errors = self.xylem("run", *[x for i in inputs for x in ("--input", i)], path, status=1)
            self.assertEqual(out, "")
            self.assertIn(part, errors)

    def test_the_entry_is_main_or_the_only_public_function_or_named(self):
        text = "func.func @f() -> tensor<i32> { %0 = stablehlo.constant dense<1> : tensor<i32> return %0 : tensor<i32> }\n"
        one = self.write("one.mlir", text)
        self.assertEqual(self.xylem("run", one)[0], "dense<1> : tensor<i32>\n")
        two = self.write("two.mlir", text + text.replace("@f", "@g").replace("<1>", "<2>"))
        self.assertIn("@f, @g", self.xylem("run", two, status=1)[1])
        self.assertEqual(self.xylem("run", "--entry", "g", two)[0], "dense<2> : tensor<i32>\n")
        self.assertIn("--entry h", self.xylem("run", "--entry", "h", two, status=1)[1])

    def test_times_are_printed_after_a_warm_up(self):
        path = self.write("p.mlir", ADD)
        a = self.floats("a.npy", 1, 2)
        out, _ = self.xylem("run", "--input", a, "--input", a, "--time", 4, path)
        self.assertRegex(out.splitlines()[-1], r"^time n=4 median_us=[\d.]+ min_us=[\d.]+ spread_us=[\d.]+$")

    def test_pieces_run_apart(self):
        path = self.write("p.mlir", CHUNKS)
        for backend in ("cpu", "interpret"):
            out, _ = self.xylem("run", "--split", "--backend", backend, path, status=1)
            lines = out.splitlines()
            self.assertEqual(lines[0], "ok 1 main")
            self.assertRegex(lines[1], r"^FAILED 2 wrong: .*\[1\]: got 3, expected 2")
            self.assertEqual(lines[2], "ok 2 right")
            self.assertRegex(lines[3], rf"^FAILED 3 broken: {re.escape(str(path))}:\d+:\d+: error: ")
            self.assertEqual(lines[4:], ["skipped 4"])

    def test_failed_checks_tell_expected_got_index_and_distance(self):
        path = self.write("p.mlir", """func.func @main() {
          %0 = stablehlo.constant dense<[1.0, 2.0000005]> : tensor<2xf32>
          %1 = stablehlo.constant dense<[1.0, 2.0]> : tensor<2xf32>
          check.expect_close %0, %1, max_ulp_difference = 1 : tensor<2xf32>, tensor<2xf32>
          return
        }""")
        for backend in ("cpu", "interpret"):
            errors = self.xylem("run", "--backend", backend, path, status=1)[1]
            for part in ("[1]", "2", "ulp"):
                self.assertIn(part, errors)

    def test_what_needs_the_interpreter_says_so(self):
        path = self.write("p.mlir", """func.func @main() -> tensor<ui32> {
          %0 = stablehlo.replica_id : tensor<ui32>
          return %0 : tensor<ui32>
        }""")
        errors = self.xylem("run", path, status=1)[1]
        self.assertRegex(errors, r"^unsupported on cpu: .*; use --backend interpret\n$")

    def test_wrong_command_lines_are_status_2(self):
        path = self.write("p.mlir", ADD)
        for arguments in ([], [path, "--backend", "gpu"], [path, "--time", "x"], [path, "--split", "--entry", "main"], [path, "--nothing"]):
            self.assertIn("xylem run --help" if "--split" in arguments else "--help", self.xylem("run", *arguments, status=2)[1])

    def test_missing_files_are_status_1(self):
        self.assertIn("none.mlir", self.xylem("run", self.folder / "none.mlir", status=1)[1])


    def test_tolerances_are_met_or_refused(self):
        text = """func.func @main() -> tensor<f32> {
  %%c = stablehlo.constant dense<1.0> : tensor<f32>
  %%0 = stablehlo.exponential %%c {result_accuracy = #stablehlo.result_accuracy<%s>} : tensor<f32>
  return %%0 : tensor<f32>
}
"""
        mode = "mode = #stablehlo.result_accuracy_mode<%s>"
        for backend in ("cpu", "interpret"):
            for good in (mode % "HIGHEST", "ulps = 2, " + mode % "TOLERANCE", "rtol = 1.0e-6, " + mode % "TOLERANCE"):
                out, _ = self.xylem("run", "--backend", backend, self.write("p.mlir", text % good))
                self.assertEqual(out, "dense<2.7182817e+00> : tensor<f32>\n")
            for bad in ("atol = 1.0e-9, " + mode % "TOLERANCE", "rtol = 1.0e-8, " + mode % "TOLERANCE"):
                out, err = self.xylem("run", "--backend", backend, self.write("p.mlir", text % bad), status=1)
                self.assertEqual(out, "")
                self.assertIn("exponential: results are within 2 ulp", err)


class Verify(ProgramCase):
    def test_right_programs_print_nothing(self):
        self.assertEqual(self.xylem("verify", self.write("p.mlir", ADD)), ("", ""))

    def test_every_finding_is_a_line_with_place_and_label(self):
        path = self.write("p.mlir", """func.func @main(%a: tensor<2xf32>, %b: tensor<3xf32>) -> tensor<5xf32> {
  %0 = "stablehlo.concatenate"(%a, %b) <{dimension = 1 : i64}> : (tensor<2xf32>, tensor<3xf32>) -> tensor<5xf32>
  %1 = "stablehlo.transpose"(%a) <{permutation = array<i64: 1>}> : (tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<5xf32>
}
""")
        out, errors = self.xylem("verify", path, status=1)
        self.assertEqual(errors, "")
        lines = out.splitlines()
        self.assertEqual(len(lines), 2, out)
        self.assertRegex(lines[0], rf"^{re.escape(str(path))}:2:\d+: error: .*\[concatenate_c4\]")
        self.assertRegex(lines[1], rf"^{re.escape(str(path))}:3:\d+: error: .*\[transpose_c2\]")

    def test_pieces_are_checked_apart_with_lines_of_the_file(self):
        path = self.write("p.mlir", CHUNKS)
        out, _ = self.xylem("verify", "--split", path, status=1)
        self.assertRegex(out, rf"^{re.escape(str(path))}:20:\d+: error: [^\n]*\n$")

    def test_unknown_dialects_need_permission(self):
        path = self.write("p.mlir", """func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> {
  %0 = "other.op"(%a) {x = 1 : i32} : (tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}
""")
        self.assertRegex(self.xylem("verify", path, status=1)[0], r"p\.mlir:2:\d+: error: .*other\.op")
        self.xylem("verify", "--allow-unregistered", path)

    def test_several_files_and_missing_ones(self):
        right, missing = self.write("p.mlir", ADD), self.folder / "none.mlir"
        self.assertIn("none.mlir", self.xylem("verify", right, missing, status=1)[1])
        self.xylem("verify", status=2)


class Convert(ProgramCase):
    def test_text_artifact_and_back(self):
        path = self.write("p.mlir", ADD)
        artifact, again = self.folder / "p.mlirbc", self.folder / "again.mlir"
        self.xylem("convert", path, artifact)
        data = artifact.read_bytes()
        self.assertEqual(data[:4], b"ML\xefR")
        self.assertIn(b"StableHLO_v1.17.0", data)
        self.xylem("convert", artifact, again)
        self.xylem("convert", path, self.folder / "text.mlir")
        self.assertEqual(again.read_text(), (self.folder / "text.mlir").read_text())
        a = self.floats("a.npy", 1, 2)
        self.assertEqual(self.xylem("run", "--input", a, "--input", a, artifact)[0], self.xylem("run", "--input", a, "--input", a, path)[0])

    def test_targets(self):
        path, out = self.write("p.mlir", ADD), self.folder / "p.bc"
        self.xylem("convert", "--target", "0.9.0", path, out)
        self.assertIn(b"StableHLO_v0.9.0", out.read_bytes())
        self.xylem("convert", "--target", "new", path, out, status=2)
        self.assertIn("9.9.9", self.xylem("convert", "--target", "9.9.9", path, out, status=1)[1])

    def test_what_the_target_cannot_express_is_refused_with_its_place(self):
        path = self.write("p.mlir", """func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> {
  %0 = stablehlo.tan %a : tensor<2xf32>
  return %0 : tensor<2xf32>
}
""")
        out = self.folder / "p.bc"
        errors = self.xylem("convert", "--target", "1.0.0", path, out, status=1)[1]
        self.assertIn("stablehlo.tan", errors)
        self.assertIn("p.mlir:2:", errors)
        self.assertFalse(out.exists())

    def test_generic_form_and_locations(self):
        text = ADD.replace("tensor<2xf32>\n  return", 'tensor<2xf32> loc("model.py":3:4)\n  return')
        path = self.write("p.mlir", text)
        for name, flags in (("plain", []), ("generic", ["--generic"]), ("stripped", ["--strip-debug"])):
            self.xylem("convert", *flags, path, self.folder / f"{name}.mlir")
        read = lambda name: (self.folder / f"{name}.mlir").read_text()
        self.assertIn("model.py", read("plain"))
        self.assertNotIn("loc(", read("stripped"))
        self.assertIn('"stablehlo.add"(', read("generic"))
        self.xylem("convert", self.write("q.mlir", ADD), self.folder / "bare.mlir")
        self.assertNotIn("loc(", read("bare"))

    def test_a_program_that_does_not_hold_is_not_written(self):
        path = self.write("p.mlir", ADD.replace("-> tensor<2xf32> {", "-> tensor<3xf32> {"))
        errors = self.xylem("convert", path, self.folder / "out.mlir", status=1)[1]
        self.assertRegex(errors, r"p\.mlir:\d+:\d+: error: ")
        self.assertFalse((self.folder / "out.mlir").exists())


class Inspect(ProgramCase):
    def setUp(self):
        super().setUp()
        self.path = self.write("p.mlir", """func.func @main(%a: tensor<4x8xf32>, %n: tensor<i32>) -> tensor<4x4xf32> {
          %w = stablehlo.constant dense<0.5> : tensor<8x4xf32>
          %0 = stablehlo.dot_general %a, %w, contracting_dims = [1] x [0] : (tensor<4x8xf32>, tensor<8x4xf32>) -> tensor<4x4xf32>
          %1 = "stablehlo.case"(%n) ({
            %2 = stablehlo.tanh %0 : tensor<4x4xf32>
            stablehlo.return %2 : tensor<4x4xf32>
          }, {
            stablehlo.return %0 : tensor<4x4xf32>
          }) : (tensor<i32>) -> tensor<4x4xf32>
          return %1 : tensor<4x4xf32>
        }""")

    def test_json(self):
        report = json.loads(self.xylem("inspect", "--json", self.path)[0])
        main = report["functions"][0]
        self.assertEqual((main["name"], main["parameters"], main["results"]), ("main", ["tensor<4x8xf32>", "tensor<i32>"], ["tensor<4x4xf32>"]))
        self.assertEqual(main["ops"], {"stablehlo.constant": 1, "stablehlo.dot_general": 1, "stablehlo.case": 1, "stablehlo.tanh": 1})
        self.assertEqual(main["constant_bytes"], 128)
        self.assertEqual(main["flops"], 256)
        self.assertEqual(main["transcendentals"], 16)
        self.assertEqual(main["memory"]["arguments"], 4 * 8 * 4 + 4)
        self.assertEqual(main["memory"]["results"], 64)

    def test_text_dot_and_html(self):
        self.assertIn("func @main(tensor<4x8xf32>, tensor<i32>)", self.xylem("inspect", self.path)[0])
        dot = self.xylem("inspect", "--dot", self.path)[0]
        self.assertTrue(dot.startswith("digraph"))
        self.assertEqual(dot.count("{"), dot.count("}"))
        self.xylem("inspect", "--html", self.folder / "p.html", self.path)
        page = (self.folder / "p.html").read_text()
        data = json.loads(re.search(r'type="application/json">(.*?)</script>', page, re.S).group(1))
        self.assertEqual([n["op"] for n in data[0]["nodes"]], ["arg0", "arg1", "stablehlo.constant", "stablehlo.dot_general", "stablehlo.case", "return"])
        self.assertEqual(len(data[0]["nodes"][4]["regions"]), 2)
        self.xylem("inspect", "--json", "--dot", self.path, status=2)
