"""Hostile programs and arrays: the command ends with status 1 and an error that names the file, in bounded time and memory."""

import os
import pathlib
import resource
import struct
import subprocess
import tempfile
import unittest

import built

MEMORY = 1 << 30       # resident, at most
SECONDS = 30           # of processor time, a bound for what never ends; an error takes well under one
DEEP = 100_000
BODY = "func.func @main() -> tensor<2xf32> {\n  %0 = stablehlo.constant dense<1.0> : tensor<2xf32>\n  return %0 : tensor<2xf32>\n}\n"


def body(*lines):
    return "func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {\n  " + "\n  ".join(lines) + "\n  return %x : tensor<2xf32>\n}\n"


def attribute(text):
    return body(f"%0 = stablehlo.negate %x {{a = {text}}} : tensor<2xf32>")


def nested_ifs(n):
    opened = '"stablehlo.if"(%p) ({\n' * n
    return "func.func @main(%p: tensor<i1>) {\n" + opened + "stablehlo.return\n" + "}, {\nstablehlo.return\n}) : (tensor<i1>) -> ()\n" * n + "return\n}\n"


# name -> (text, a piece of the error)
TEXTS = {
    "nested types": (f"func.func @main(%x: {'tuple<' * DEEP}", "levels"),
    "nested regions": (nested_ifs(DEEP), "error"),
    "nested modules": ("module {\n" * DEEP, "levels"),
    "nested lists": (attribute("[" * DEEP), "levels"),
    "nested dictionaries": (attribute("{a = " * DEEP), "levels"),
    "nested locations": (body(f"%0 = stablehlo.negate %x : tensor<2xf32> loc({'callsite(' * DEEP}"), "levels"),
    "nested constants": (body(f"%0 = stablehlo.constant dense<{'[' * DEEP}"), "error"),
    "overflowing product": (body("%0 = stablehlo.iota dim = 0 : tensor<4294967296x4294967296x2xf32>"), "63 bits"),
    "overflowing dimension": ("func.func @main(%x: tensor<99999999999999999999999xf32>) { return }", "63 bits"),
    "overflowing result": (
        "func.func @main(%x: tensor<3xf32>, %v: tensor<f32>) {\n  %0 = stablehlo.pad %x, %v, low = [9223372036854775807], high = "
        "[9223372036854775807], interior = [0] : (tensor<3xf32>, tensor<f32>) -> tensor<?xf32>\n  return\n}", "pad_c4"),
    "terabyte of numbers": (body("%0 = stablehlo.constant dense<[1.0, 2.0]> : tensor<1099511627776xf32>"), "elements"),
    "terabyte of bytes": (body('%0 = stablehlo.constant dense<"0x00000000FF"> : tensor<1099511627776xf32>'), "bytes"),
    "absent resource": (body("%0 = stablehlo.constant dense_resource<r> : tensor<1099511627776xf32>"), "resource"),
    "short resource": (body("%0 = stablehlo.constant dense_resource<r> : tensor<1099511627776xf32>")
                       + '{-#\n  dialect_resources: { builtin: { r: "0x0400000000" } }\n#-}\n', "error"),
    "cyclic locations": ("#a = loc(callsite(#b at #b))\n#b = loc(fused[#a])\n" + body("%0 = stablehlo.negate %x : tensor<2xf32> loc(#a)"), "cycle"),
    "cyclic attributes": ("#a = [#b]\n#b = [#a]\n" + attribute("#a"), "themselves"),
    "cyclic types": ("!a = tuple<!b>\n!b = tuple<!a>\nfunc.func @main(%x: !a) { return }", "themselves"),
    "doubling aliases": ("\n".join(f"#a{i} = [#a{i + 1}, #a{i + 1}]" for i in range(64)) + "\n#a64 = [1]\n" + attribute("#a0"), ""),
    "cyclic calls": ("func.func @main() {\n  call @f() : () -> ()\n  return\n}\nfunc.func private @f() {\n  call @main() : () -> ()\n  return\n}", "cycle"),
    "duplicate functions": (BODY + BODY, "name of its own"),
    "duplicate values": (body("%0 = stablehlo.negate %x : tensor<2xf32>", "%0 = stablehlo.negate %x : tensor<2xf32>"), "defined once"),
    "duplicate attributes": (attribute("1, a = 2"), "repeated"),
    "use before definition": (body("%0 = stablehlo.negate %1 : tensor<2xf32>", "%1 = stablehlo.negate %x : tensor<2xf32>"), "before their use"),
    "bytes that are no text": (b"func.func @main() {\n  \xff\xfe\x80 = stablehlo.negate\n}\n", "error"),
    "bytes in an attribute": (b"func.func @main(%x: tensor<2xf32> {a = #b.c<\xff>}) { return }", "0xFF"),
    "zero bytes": (b"func.func @main\0() { return }", "error"),
    "unclosed string": ('func.func @"' + "a" * 1_000_000, "error"),
    "endless number": (attribute("9" * 1_000_000), "error"),
    "many results": (body("%0:2147483647 = stablehlo.negate %x : tensor<2xf32>"), "results"),
    "empty": ("", "main"),
}

NPY = {
    "wrong magic": b"\x93NUMPX\x01\x00\x10\x00" + b" " * 16,
    "future version": b"\x93NUMPY\x09\x00\x10\x00" + b" " * 16,
    "header beyond the file": b"\x93NUMPY\x02\x00\xff\xff\xff\xff{'descr'",
    "no header": b"\x93NUMPY\x01\x00\x00\x00",
    "empty": b"",
}
for name, descr, shape in [("overflowing product", "<f4", f"({1 << 62}, {1 << 62})"), ("terabyte", "<f4", f"({1 << 40},)"),
                           ("negative size", "<f4", "(-2,)"), ("objects", "|O", "(2,)"), ("huge item", f"|V{1 << 40}", "(2,)"),
                           ("strings", "<U8", "(2,)"), ("endless size", "<f4", f"({'9' * 100_000},)"), ("nested shape", "<f4", "(" * 30_000),
                           ("many dimensions", "<f4", "(" + "1," * 10_000 + ")"), ("records", "[('a', '<f4')]", "(2,)")]:
    header = f"{{'descr': {descr if descr[0] == '[' else repr(descr)}, 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    NPY[name] = b"\x93NUMPY\x02\x00" + struct.pack("<I", len(header)) + header + bytes(8)
NPY["bytes that are no text"] = NPY["negative size"].replace(b"descr", b"\xff\xfe\x80\xc0\xaf")


def limits():
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))


class Hostile(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = pathlib.Path(holder.name)

    def refused(self, *arguments):
        """What the command says; it ends with status 1, and has taken no more memory than the bound."""
        with tempfile.TemporaryFile() as log:
            process = subprocess.Popen([str(built.XYLEM), *map(str, arguments)], stdout=log, stderr=log, preexec_fn=limits)
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            log.seek(0)
            said = log.read()
        self.assertEqual(process.returncode, 1, (arguments, said[-2000:]))
        self.assertLess(usage.ru_maxrss * 1024, MEMORY, arguments)
        self.assertLess(len(said), 1 << 20, arguments)
        return said.decode(errors="replace")

    def write(self, name, content):
        path = self.folder / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    def test_texts(self):
        for name, (text, piece) in TEXTS.items():
            with self.subTest(name):
                path = self.write("p.mlir", text)
                if name in ("doubling aliases", "empty"):
                    continue  # right as a text; below
                said = self.refused("verify", path)
                self.assertTrue(said.startswith(f"{path}:"), said[:300])
                self.assertIn(piece, said[:4000])
                self.refused("run", path)

    def test_an_empty_text_has_nothing_to_run(self):
        self.assertIn("main", self.refused("run", self.write("p.mlir", "")))

    def test_aliases_that_double_stay_small(self):
        said = self.refused("verify", self.write("p.mlir", TEXTS["doubling aliases"][0]))
        self.assertIn("error", said)

    def test_artifacts(self):
        source = self.write("p.mlir", BODY)
        for target in ("1.17.0", "0.9.0"):
            whole = self.folder / "whole.mlirbc"
            subprocess.run([str(built.XYLEM), "convert", "--target", target, source, whole], check=True, capture_output=True)
            data = whole.read_bytes()
            # Every varint may promise 2^56 of something; a program may be cut anywhere.
            damaged = [data[:at] + b"\x80" + b"\xff" * 7 + data[at + 1:] for at in range(4, len(data))]
            damaged += [data[:at] + b"\x00" + b"\xff" * 8 + data[at + 1:] for at in range(4, len(data), 3)]
            damaged += [data[:at] for at in range(4, len(data))]
            paths = [self.write(f"{k}.mlirbc", d) for k, d in enumerate(damaged)]
            said = self.refused("verify", *paths)
            self.assertGreater(said.count(": error: "), len(paths) * 3 // 4)

    def test_arrays(self):
        program = self.write("p.mlir", body("%0 = stablehlo.negate %x : tensor<2xf32>"))
        for name, data in NPY.items():
            with self.subTest(name):
                path = self.write("x.npy", data)
                for backend in ("cpu", "interpret"):
                    self.assertIn("x.npy", self.refused("run", "--backend", backend, "--input", path, program))
        right = b"\x93NUMPY\x01\x00" + struct.pack("<H", 60) + b"{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }".ljust(59) + b"\n" + bytes(8)
        for at in range(len(right)):
            if at % 9 == 0:
                self.refused("run", "--backend", "interpret", "--input", self.write("x.npy", right[:at]), program)
        self.refused("run", "--backend", "interpret", "--input", self.write("x.npy", right + b"x"), program)


if __name__ == "__main__":
    unittest.main()
