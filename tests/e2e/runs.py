"""Small training runs for the tests beside this file: how to start, stop and inspect them."""

import json
import os
import pathlib
import struct
import subprocess
import tempfile
import time
import unittest

import built

# A model that trains in microseconds per step.
TINY = {
    "max_target_length": 8, "per_device_batch_size": 2, "base_emb_dim": 8, "base_num_decoder_layers": 1,
    "base_num_query_heads": 2, "head_dim": 4, "base_mlp_dim": 16, "steps": 20, "eval_interval": 10,
    "eval_steps": 1, "eval_per_device_batch_size": 4, "checkpoint_period": 5, "log_period": 1,
    "max_predict_length": 0, "peak_flops": 1e9,
}
TEXT = b"In the beginning God created the heaven and the earth.\nAnd the earth was without form, and void.\n" * 12


class RunCase(unittest.TestCase):
    """A test with a folder of its own that holds a text and a configuration."""

    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = pathlib.Path(holder.name)
        self.text = self.folder / "text.txt"
        self.text.write_bytes(TEXT)
        self.config = self.folder / "tiny.yaml"
        self.write_config()

    def write_config(self, **keys):
        values = TINY | {"base_output_directory": self.folder / "runs", "dataset_path": self.text} | keys
        self.config.write_text("".join(f"{key}: {value}\n" for key, value in values.items()))

    def path(self, name):
        return self.folder / "runs" / name

    def command(self, name, **keys):
        return [str(built.XYLEM), "train", str(self.config), f"run_name={name}"] + [f"{k}={v}" for k, v in keys.items()]

    def train(self, name, status=0, options=None, **keys):
        """Trains; returns (output, errors) once it ended with the status expected."""
        done = subprocess.run(self.command(name, **keys), capture_output=True, text=True, timeout=300, **(options or {}))
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        if status in (1, 2):
            self.assert_message(done.stderr)
        return done.stdout, done.stderr

    def start(self, name, **keys):
        return subprocess.Popen(self.command(name, **keys), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)

    def assert_message(self, errors):
        """One line that opens with the program's name; a sentence with all four parts."""
        self.assertEqual(errors.count("\n"), 1, errors)
        self.assertTrue(errors.startswith("xylem: "), errors)

    # ---- what a run left

    def metrics(self, name):
        with open(self.path(name) / "metrics.jsonl") as file:
            return [json.loads(line) for line in file]

    def values(self, name):
        """The metrics that do not depend on time."""
        kept = ("step", "loss", "learning_rate", "grad_norm", "eval_loss", "eval_bits_per_byte")
        return [{key: line[key] for key in kept if key in line} for line in self.metrics(name)]

    def steps(self, name):
        folder = self.path(name) / "checkpoints"
        return sorted(int(p.name) for p in folder.iterdir() if p.name.isdigit()) if folder.exists() else []

    def state(self, name, step):
        """The arrays of a checkpoint as text that says every bit, and its state."""
        done = subprocess.run([built.XYLEM, "checkpoint", "show", "--json", "--values", self.path(name) / "checkpoints" / str(step)],
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)["items"]

    def assert_whole(self, name, step):
        """Holds a checkpoint against its own description, without Xylem, and then with it."""
        folder = self.path(name) / "checkpoints" / str(step)
        state = json.loads((folder / "state" / "metadata").read_text())
        self.assertEqual(state["step"], step)
        for file, entry in json.loads((folder / "xylem_checksums.json").read_text())["files"].items():
            self.assertEqual((folder / file).stat().st_size, entry["size"], file)
        for item in ("params", "optimizer"):
            self.assertTrue((folder / item / "manifest.ocdbt").exists())
            self.assertTrue(json.loads((folder / item / "_METADATA").read_text())["tree_metadata"])
        self.assertTrue((folder / "commit_success.txt").exists())
        done = subprocess.run([built.XYLEM, "checkpoint", "verify", folder], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout), (0, ""))

    def assert_same_run(self, name, reference, step):
        self.assertEqual(self.values(name), self.values(reference))
        self.assertEqual(self.state(name, step), self.state(reference, step))


def wait_for_lines(path, lines, process, seconds=60):
    """Waits until a file has so many lines, or the process has ended."""
    end = time.time() + seconds
    while time.time() < end and process.poll() is None:
        if path.exists() and path.read_bytes().count(b"\n") >= lines:
            return
        time.sleep(0.002)


def is_root():
    return os.geteuid() == 0
