"""Bytes a second of processor time of reading and checking StableHLO, text and portable artifacts, beside jaxlib's readers on the same files, and
the memory that it takes.

Files: a long chain of layers (many ops), one large constant as a string of bytes, the same as a list of numbers, and the first two as the
artifacts that jaxlib writes of them."""

import os
import pathlib
import subprocess
import sys
import tempfile

BUILD = pathlib.Path(os.environ.get("XYLEM_BUILD_DIR", "build"))
ROUNDS = int(os.environ.get("ROUNDS", 3))


def layers(n):
    lines = ["module @m {", "  func.func public @main(%x: tensor<64x128xf32>, %w: tensor<128x128xf32>) -> tensor<64x128xf32> {"]
    h = "x"
    for i in range(n):
        lines += [
            f"    %a{i} = stablehlo.dot_general %{h}, %w, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : "
            "(tensor<64x128xf32>, tensor<128x128xf32>) -> tensor<64x128xf32>",
            f"    %b{i} = stablehlo.constant dense<0.000000e+00> : tensor<f32>",
            f"    %c{i} = stablehlo.broadcast_in_dim %b{i}, dims = [] : (tensor<f32>) -> tensor<64x128xf32>",
            f"    %d{i} = stablehlo.maximum %a{i}, %c{i} : tensor<64x128xf32>",
            f"    %e{i} = stablehlo.add %d{i}, %{h} : tensor<64x128xf32>",
        ]
        h = f"e{i}"
    return "\n".join(lines + [f"    return %{h} : tensor<64x128xf32>", "  }", "}", ""])


def constant(literal, n):
    return f"func.func @main() -> tensor<{n}xf32> {{\n  %0 = stablehlo.constant dense<{literal}> : tensor<{n}xf32>\n  return %0 : tensor<{n}xf32>\n}}\n"


def files(folder):
    n = 12_000_000
    texts = {
        "many ops": layers(60_000),
        "constant, bytes": constant('"0x' + "CDCCCC3D0000803F" * (n // 2) + '"', n),
        "constant, numbers": constant("[" + ", ".join(["1.000000e-01", "-2.500000e+00"] * (n // 8)) + "]", n // 4),
    }
    for name, text in texts.items():
        path = folder / f"{name.replace(' ', '_').replace(',', '')}.mlir"
        path.write_text(text)
        yield name, path
        if name != "constant, numbers":
            artifact = path.with_suffix(".mlirbc")
            subprocess.run([sys.executable, "-c", ARTIFACT, path, artifact], check=True)
            yield name + ", artifact", artifact


ARTIFACT = """
import sys
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo
import jax._src.interpreters.mlir as m
with m.make_ir_context():
    open(sys.argv[2], "wb").write(stablehlo.serialize_portable_artifact(ir.Module.parse(open(sys.argv[1]).read()), "1.17.0", False))
"""

JAXLIB = """
import sys, time
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo
import jax._src.interpreters.mlir as m
data = open(sys.argv[1], "rb").read()
with m.make_ir_context() as context:
    start = time.process_time()
    if data[:4] == b"ML\\xefR":
        stablehlo.deserialize_portable_artifact(context, data).operation.verify()
    else:
        ir.Module.parse(data).operation.verify()
    seconds = time.process_time() - start
peak = next(int(line.split()[1]) * 1024 for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(seconds, peak)
"""


def run(command):
    """Seconds and peak resident bytes that the program prints."""
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    seconds, peak = done.stdout.split()[-2:]
    return float(seconds), int(peak)


def main():
    tool = BUILD / "tests" / "parity" / "ir_tool"
    print(f"{'file':25} {'MB':>6} {'Xylem MB/s':>11} {'jaxlib MB/s':>12} {'Xylem mem':>10} {'jaxlib mem':>11}   (memory: peak over file size)")
    with tempfile.TemporaryDirectory() as folder:
        for name, path in files(pathlib.Path(folder)):
            size = path.stat().st_size
            best = {}
            for who, command in (("xylem", [tool, "time", path]), ("jaxlib", [sys.executable, "-c", JAXLIB, path])):
                runs = [run(list(map(str, command))) for _ in range(ROUNDS)]
                best[who] = min(r[0] for r in runs), max(r[1] for r in runs)
            rate = {who: size / seconds / 1e6 for who, (seconds, _) in best.items()}
            memory = {who: peak / size for who, (_, peak) in best.items()}
            print(f"{name:25} {size / 1e6:6.1f} {rate['xylem']:11.1f} {rate['jaxlib']:12.1f} {memory['xylem']:10.2f} {memory['jaxlib']:11.2f}")


if __name__ == "__main__":
    main()
