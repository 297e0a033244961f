"""Writes formats_mds.json: folders that mosaicml-streaming's MDSWriter made, with their samples.

Run once where mosaicml-streaming 0.13.0 is installed: python make_formats_mds.py. Its package imports torch, which the
writer does not use; an empty stand-in is enough.
"""

import base64
import importlib.metadata
import json
import pathlib
import sys
import tempfile
from unittest import mock

HERE = pathlib.Path(__file__).resolve().parent


class Anything(mock.MagicMock):
    __path__ = []


class Finder:
    """Stands in for what is not installed; comes last, so nothing that is gets here."""

    real = ("numpy", "PIL", "simplejson", "cramjam")

    def find_spec(self, name, path=None, target=None):
        import importlib.machinery
        if name.split(".")[0] not in self.real:
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec):
        module = Anything(name=spec.name)
        module.__spec__ = spec
        return module

    def exec_module(self, module):
        pass


def main():
    sys.meta_path.append(Finder())
    for name in ("base.dataset", "base.dataloader", "base.local", "vision", "multimodal", "text"):
        sys.modules[f"streaming.{name}"] = Anything()       # their classes derive from torch's
    import numpy as np
    from streaming.base.format.mds.writer import MDSWriter
    r = np.random.default_rng(3)
    cases = [
        ("scalars", {"b": "bytes", "s": "str", "n": "int", "u8": "uint8", "i16": "int16", "u64": "uint64", "f16": "float16",
                     "f32": "float32", "f64": "float64", "j": "json", "si": "str_int", "sf": "str_float"},
         [{"b": bytes([i] * i), "s": "é" * i, "n": -i, "u8": np.uint8(i), "i16": np.int16(-i), "u64": np.uint64(2**63 + i),
           "f16": np.float16(i / 2), "f32": np.float32(i / 3), "f64": i / 7, "j": {"k": [i, None]}, "si": 10 * i,
           "sf": i / 8} for i in range(12)], None),
        ("arrays", {"dynamic": "ndarray", "typed": "ndarray:int16", "fixed": "ndarray:float32:2,3"},
         [{"dynamic": r.integers(0, 9, (i % 3 + 1, 300 if i == 5 else 2)).astype([np.int8, np.uint32, np.float64][i % 3]),
           "typed": np.arange(i + 1, dtype=np.int16), "fixed": r.normal(size=(2, 3)).astype(np.float32)} for i in range(7)], None),
        ("gzip", {"s": "str"}, [{"s": f"sample {i}"} for i in range(30)], "gz:6"),
    ]
    out = []
    for name, columns, samples, compression in cases:
        with tempfile.TemporaryDirectory() as folder:
            with MDSWriter(out=folder, columns=columns, compression=compression, size_limit=600, exist_ok=True) as w:
                for s in samples:
                    w.write(s)
            files = {p.name: base64.b64encode(p.read_bytes()).decode() for p in sorted(pathlib.Path(folder).iterdir())}

        def plain(v):
            if isinstance(v, bytes):
                return {"hex": v.hex()}
            return v.tolist() if isinstance(v, (np.ndarray, np.generic)) else v

        out.append({"name": name, "files": files,
                    "samples": [{k: plain(s[k]) for k in sorted(s)} for s in samples]})
    origin = f"mosaicml-streaming {importlib.metadata.version('mosaicml-streaming')}, tests/goldens/make_formats_mds.py"
    (HERE / "formats_mds.json").write_text(json.dumps({"origin": origin, "cases": out}, indent=1) + "\n")


main()
