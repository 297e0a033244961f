"""Writes formats_tfds.json: dataset folders that tensorflow-datasets made, with what it reads from them.

Run once where tensorflow-datasets 4.9.10 and tensorflow-cpu 2.21 are installed: python make_formats_tfds.py.
"""

import base64
import importlib.metadata
import json
import os
import pathlib
import tempfile

os.environ.update(TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="")
import numpy as np
import tensorflow_datasets as tfds

HERE = pathlib.Path(__file__).resolve().parent
F = tfds.features


class Golden(tfds.core.GeneratorBasedBuilder):
    VERSION = tfds.core.Version("1.0.0")
    pkg_dir_path = HERE

    def _info(self):
        return tfds.core.DatasetInfo(builder=self, features=F.FeaturesDict({
            "image": F.Image(shape=(None, None, 3), encoding_format="png"), "label": F.ClassLabel(names=["cat", "dog"]),
            "text": F.Text(), "f64": np.float64, "bool": np.bool_, "u8": np.uint8,
            "fixed": F.Tensor(shape=(2, 3), dtype=np.float32), "rows": F.Tensor(shape=(None, 2), dtype=np.int64),
            "ints": F.Sequence(np.int32), "items": F.Sequence({"a": np.int64, "t": F.Text()}), "nest": {"x": {"y": np.int32}},
            "ragged": F.Sequence(F.Sequence(np.int32)), "zlib": F.Tensor(shape=(3,), dtype=np.int32, encoding="zlib"),
            "bytes": F.Tensor(shape=(3,), dtype=np.int32, encoding="bytes"), "texts": F.Sequence(F.Text()),
            "box": F.BBoxFeature()}))

    def _split_generators(self, _):
        return {"train": self._generate_examples(9), "test": self._generate_examples(3)}

    def _generate_examples(self, n):
        for i in range(n):
            yield i, {
                "image": np.full((2, 3, 3), 20 * i, np.uint8), "label": i % 2, "text": f"text {i} é", "f64": i / 3, "bool": i % 2 == 0,
                "u8": i, "fixed": np.arange(6, dtype=np.float32).reshape(2, 3) + i,
                "rows": np.arange(2 * (i % 4), dtype=np.int64).reshape(i % 4, 2), "ints": list(range(i % 5)),
                "items": [{"a": k, "t": f"t{k}"} for k in range(i % 3)], "nest": {"x": {"y": -i}},
                "ragged": [[1] * k for k in range(i % 4)], "zlib": np.arange(3, dtype=np.int32) + i,
                "bytes": np.arange(3, dtype=np.int32) - i, "texts": ["a", "bc"][:i % 3],
                "box": F.BBox(0.0, 0.25, 0.5, 1.0)}


def plain(v):
    if isinstance(v, dict):
        return {k: plain(x) for k, x in sorted(v.items())}
    if isinstance(v, bytes):
        return v.decode()
    if hasattr(v, "to_list"):
        return plain(v.to_list())
    if isinstance(v, np.ndarray):
        return plain(v.tolist())
    if isinstance(v, list):
        return [plain(x) for x in v]
    return v.item() if isinstance(v, np.generic) else v


def main():
    cases = []
    for file_format in ("tfrecord", "array_record"):
        with tempfile.TemporaryDirectory() as folder:
            builder = Golden(data_dir=folder, file_format=file_format)
            builder.download_and_prepare(download_config=tfds.download.DownloadConfig(num_shards=2))
            base = pathlib.Path(builder.data_dir)
            import zlib
            files = {p.name: base64.b64encode(zlib.compress(p.read_bytes(), 9)).decode()
                     for p in sorted(base.iterdir()) if p.is_file()}
            samples = {}
            for split in ("train", "test"):
                data = builder.as_dataset(split=split, shuffle_files=False) if file_format == "tfrecord" \
                    else builder.as_data_source(split=split)
                data = tfds.as_numpy(data) if file_format == "tfrecord" else [data[i] for i in range(len(data))]
                samples[split] = [plain(x) for x in data]
        cases.append({"name": file_format, "files": files, "samples": samples})
    origin = f"tensorflow-datasets {importlib.metadata.version('tensorflow-datasets')}, tests/goldens/make_formats_tfds.py"
    (HERE / "formats_tfds.json").write_text(json.dumps({"origin": origin, "cases": cases}) + "\n")


main()
