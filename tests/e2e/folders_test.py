"""xylem data on folders of records: TFDS datasets that tensorflow-datasets wrote (tests/goldens/formats_tfds.json), and images by class."""

import base64
import json
import pathlib
import struct
import subprocess
import tempfile
import unittest
import zlib

import built

GOLDEN = json.loads((built.SOURCE / "tests" / "goldens" / "formats_tfds.json").read_text())


def png(width, height, rows):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"".join(b"\0" + r for r in rows))) + chunk(b"IEND", b"")


class Folders(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = pathlib.Path(holder.name)

    def data(self, *arguments, status=0):
        done = subprocess.run([built.XYLEM, "data", *map(str, arguments)], capture_output=True, timeout=120)
        self.assertEqual(done.returncode, status, (done.stdout, done.stderr))
        return done.stdout.decode(), done.stderr.decode()

    def records(self, *arguments):
        return [json.loads(line) for line in self.data("cat", "--json", *arguments)[0].splitlines()]

    def write(self, case):
        folder = self.folder / case["name"]
        folder.mkdir()
        for name, content in case["files"].items():
            (folder / name).write_bytes(zlib.decompress(base64.b64decode(content)))
        return folder

    def test_tfds_folders_give_what_tensorflow_datasets_reads(self):
        for case in GOLDEN["cases"]:
            folder = self.write(case)
            for split, samples in case["samples"].items():
                records = self.records("--split", split, folder)
                self.assertEqual([r["index"] for r in records], list(range(len(samples))))
                for record, sample in zip(records, samples):
                    fields = record["fields"]
                    self.assertEqual(bytes.fromhex(fields.pop("image")["hex"])[:4], b"\x89PNG")
                    self.assertEqual(fields, {k: v for k, v in sample.items() if k != "image"})

    def test_parts_of_tfds_splits(self):
        folder = self.write(GOLDEN["cases"][0])
        whole = [r["fields"] for r in self.records("--split", "train", folder)]
        test = [r["fields"] for r in self.records("--split", "test", folder)]
        self.assertEqual([r["fields"] for r in self.records("--split", "train[2:5]", folder)], whole[2:5])
        self.assertEqual([r["fields"] for r in self.records("--split", "test+train[:1]", folder)], test + whole[:1])
        self.assertIn("nothing", self.data("cat", "--split", "nothing", folder, status=1)[1])

    def test_damaged_tfds_records_are_told_by_file(self):
        folder = self.write(GOLDEN["cases"][0])
        shard = sorted(folder.glob("*train*"))[0]
        content = bytearray(shard.read_bytes())
        content[len(content) // 2] ^= 1
        shard.write_bytes(bytes(content))
        self.assertIn("bytes", self.data("verify", shard, status=1)[0])
        self.data("cat", "--split", "train", folder, status=1)

    def test_image_folders_have_a_class_for_each_directory(self):
        for name, rows, size in (("cat/a.png", [bytes([1, 2, 3, 4, 5, 6])], (2, 1)), ("dog/b.png", [bytes([7, 8, 9]), bytes([10, 11, 12])], (1, 2))):
            path = self.folder / name
            path.parent.mkdir()
            path.write_bytes(png(*size, rows))
        records = self.records(self.folder)
        self.assertEqual([(r["fields"]["path"], r["fields"]["label"], r["fields"]["class"]) for r in records], [("cat/a.png", 0, "cat"), ("dog/b.png", 1, "dog")])
        pixels = [r["fields"]["image"] for r in self.records("--decode", "image", self.folder)]
        self.assertEqual(pixels, [[[[1, 2, 3], [4, 5, 6]]], [[[7, 8, 9]], [[10, 11, 12]]]])
        (self.folder / "cat" / "a.png").write_bytes(b"\x89PNG\r\n\x1a\nbroken")
        self.assertIn("a.png", "".join(self.data("cat", "--decode", "image", self.folder, status=1)))
