"""xylem train and generate from end to end on tiny models: what a run leaves, resuming, bad input, faults."""

import html.parser
import json
import os
import pathlib
import resource
import shutil
import signal
import subprocess
import tempfile
import time
import unittest
import xml.etree.ElementTree

import built
import runs


def crc32c(data):
    crc = 0xffffffff
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82f63b78 if crc & 1 else 0)
    return crc ^ 0xffffffff


class Training(runs.RunCase):
    def test_a_run_leaves_config_metrics_checkpoints_plot_and_report(self):
        output, errors = self.train("a", max_predict_length=8)
        self.assertEqual(errors, "")
        self.assertIn("step 20/20", output)
        folder = self.path("a")
        metrics = self.metrics("a")
        self.assertEqual([line["step"] for line in metrics], list(range(20)))
        for line in metrics:
            for key in ("loss", "learning_rate", "grad_norm", "tokens_per_second", "step_seconds", "mfu"):
                self.assertIsInstance(line[key], (int, float), line)
            self.assertEqual("eval_loss" in line, line["step"] in (9, 19))
        last = metrics[-1]
        self.assertAlmostEqual(last["eval_bits_per_byte"], last["eval_loss"] / 0.6931471805599453, places=12)
        self.assertEqual(metrics[0]["learning_rate"], 0)
        self.assertEqual(self.steps("a"), [10, 15, 20])
        self.assertEqual(xml.etree.ElementTree.parse(folder / "loss.svg").getroot().tag, "{http://www.w3.org/2000/svg}svg")
        report = (folder / "report.html").read_text()
        html.parser.HTMLParser().feed(report)
        for part in ("<svg", "base_emb_dim: 8", "<td>finished</td>", "Sample"):
            self.assertIn(part, report)
        for outside in ("<script", "<link", "src="):
            self.assertNotIn(outside, report)
        self.assertIn("peak_flops: ", (folder / "config.yaml").read_text())
        self.assertFalse(list(folder.rglob("*tmp*")))

    def test_the_peak_is_measured_once_and_recorded(self):
        self.write_config(peak_flops=0)
        self.train("p", steps=2)
        line = next(l for l in (self.path("p") / "config.yaml").read_text().splitlines() if l.startswith("peak_flops"))
        self.assertGreater(float(line.split(":")[1]), 1e8)
        self.train("p", steps=4)
        self.assertIn(line, (self.path("p") / "config.yaml").read_text().splitlines())

    def test_two_runs_of_one_seed_are_equal_and_of_another_differ(self):
        self.train("a")
        self.train("b")
        self.train("c", init_weights_seed=1)
        self.train("d", data_shuffle_seed=1)
        self.assert_same_run("b", "a", 20)
        self.assertNotEqual(self.values("c")[0], self.values("a")[0])
        self.assertNotEqual(self.values("d"), self.values("a"))

    def test_a_finished_run_does_nothing_and_more_steps_go_on(self):
        self.train("a")
        before = (self.path("a") / "metrics.jsonl").read_bytes()
        output, _ = self.train("a")
        self.assertIn("done already", output)
        self.assertEqual((self.path("a") / "metrics.jsonl").read_bytes(), before)
        self.train("a", steps=25)
        self.assertEqual(len(self.metrics("a")), 25)

    def test_a_run_folder_is_a_configuration(self):
        self.train("a", steps=10)
        (self.folder / "runs" / "a").rename(self.folder / "moved")
        done = subprocess.run([built.XYLEM, "train", self.folder / "moved", "steps=12"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(len((self.folder / "moved" / "metrics.jsonl").read_text().splitlines()), 12)

    def test_without_checkpoints_nothing_is_saved(self):
        self.train("a", enable_checkpointing="false")
        self.assertEqual(self.steps("a"), [])

    def test_variants_of_the_model_train(self):
        self.train("learned", trainable_position_size=8, scale_embedding="true", remat_policy="full", steps=3)
        self.train("constant", lr_schedule_type="constant", gradient_clipping_threshold=0, steps=3)
        self.assertEqual(self.metrics("constant")[0]["learning_rate"], self.metrics("constant")[2]["learning_rate"])

    def test_remat_changes_no_value(self):
        self.train("plain")
        self.train("remat", remat_policy="full")
        self.assertEqual(self.values("plain"), self.values("remat"))

    def test_a_low_validation_loss_ends_the_run(self):
        self.train("a", target_eval_loss=100)
        self.assertEqual(len(self.metrics("a")), 10)
        self.assertEqual(self.steps("a")[-1], 10)

    def test_a_terminal_gets_one_live_line(self):
        import pty
        primary, secondary = pty.openpty()
        process = subprocess.Popen(self.command("tty"), stdout=secondary, stderr=subprocess.PIPE)
        os.close(secondary)
        text = b""
        while True:
            try:
                piece = os.read(primary, 65536)
            except OSError:
                break
            if not piece:
                break
            text += piece
        process.stderr.close()
        self.assertEqual(process.wait(), 0)
        os.close(primary)
        self.assertIn(b"\r\x1b[Kstep 20/20", text)
        self.assertIn(b"ETA", text)


class Resuming(runs.RunCase):
    STEPS = 3000

    def setUp(self):
        super().setUp()
        self.write_config(steps=self.STEPS, eval_interval=500, checkpoint_period=100)

    def test_sigterm_and_sigint_save_and_the_rest_is_bit_for_bit_the_same(self):
        self.train("whole")
        stopped = 0
        for number, lines in ((signal.SIGTERM, 40), (signal.SIGINT, 700), (signal.SIGTERM, 1500)):
            process = self.start("parts")
            runs.wait_for_lines(self.path("parts") / "metrics.jsonl", lines, process)
            process.send_signal(number)
            errors = process.communicate()[1]
            self.assertIn(process.returncode, (0, 3), errors)
            if process.returncode == 3:
                stopped += 1
                at = self.steps("parts")[-1]
                self.assertEqual(len(self.metrics("parts")), at)
                self.assertIn("stopped after", (self.path("parts") / "report.html").read_text())
        self.assertGreater(stopped, 0)
        self.train("parts")
        self.assert_same_run("parts", "whole", self.STEPS)

    def test_kill_9_loses_no_committed_step(self):
        self.train("whole")
        for lines in (10, 350, 900, 1600):
            process = self.start("parts")
            runs.wait_for_lines(self.path("parts") / "metrics.jsonl", lines, process)
            process.kill()
            process.communicate()
            for step in self.steps("parts"):
                self.assert_whole("parts", step)
        self.train("parts")
        self.assert_same_run("parts", "whole", self.STEPS)
        self.assertFalse(list((self.path("parts") / "checkpoints").glob("*tmp*")))

    def test_a_torn_last_line_is_cut(self):
        self.train("whole", steps=30)
        self.train("parts", steps=20)
        with open(self.path("parts") / "metrics.jsonl", "ab") as file:
            file.write(b'{"step": 20, "loss": 5.1}\n{"step": 21, "lo')
        # The schedule depends on the number of steps, so only the shape of the file is compared.
        self.train("parts", steps=30)
        self.assertEqual([m["step"] for m in self.metrics("parts")], list(range(30)))

    def test_a_second_process_is_kept_out(self):
        process = self.start("a", steps=10**6, eval_interval=-1)
        runs.wait_for_lines(self.path("a") / "metrics.jsonl", 5, process)
        _, errors = self.train("a", status=1)
        self.assertIn("another one holds its lock", errors)
        process.kill()
        process.communicate()


class BadInput(runs.RunCase):
    def refused(self, *parts, status=1, name="bad", **keys):
        _, errors = self.train(name, status=status, **keys)
        for part in parts:
            self.assertIn(part, errors)

    def test_keys(self):
        self.refused("learning_rat", "Did you mean learning_rate", status=2, learning_rat=1)
        self.refused("steps", "integer", "\"many\"", status=2, steps="many")
        self.refused("scale_embedding", "true or false", status=2, scale_embedding="maybe")
        self.refused("learning_rate", "number", status=2, learning_rate="nan")
        self.refused("head_dim", "even", head_dim=3)
        self.refused("steps", "at least 1", steps=0)
        self.refused("vocab_size", "256", vocab_size=100)
        self.refused("trainable_position_size", trainable_position_size=4)
        self.refused("run_name", name="")
        self.refused("run_name", name="a/b")
        self.write_config(stepz=3)
        self.refused("stepz", "Did you mean steps", "tiny.yaml:")

    def test_yaml(self):
        for text, part in (("steps: [1, 2]\n", "line 1"), ("steps: 1\nsteps: 2\n", "again"), ("- 1\n", "keys with values"),
                           ("a: b: c\n", "line 1"), ("steps: x\n", "integer")):
            self.config.write_text(text)
            self.refused(part)
        self.config.unlink()
        self.refused("tiny.yaml", "No such file")
        done = subprocess.run([built.XYLEM, "train", self.folder], capture_output=True, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertIn("config.yaml", done.stderr)

    def test_texts(self):
        self.refused("No such file", dataset_path=self.folder / "absent")
        for size, part in ((0, "at least one byte"), (5, "training text"), (100, "validation text")):
            self.text.write_bytes(b"x" * size)
            self.refused(part)
        self.text.write_bytes(b"x" * 200)
        self.train("smallest", steps=2)
        environment = os.environ | {"PATH": "/nonexistent"}
        self.write_config(dataset_path="bible")
        _, errors = self.train("bible", status=1, options={"env": environment})
        self.assertIn("bible-kjv-text", errors)

    def test_a_changed_model_key_is_refused_and_nothing_is_touched(self):
        self.train("a")
        before = {p: p.read_bytes() for p in self.path("a").rglob("*") if p.is_file()}
        self.refused("base_emb_dim", "8", "16", name="a", base_emb_dim=16)
        self.refused("max_target_length", name="a", max_target_length=4)
        self.refused("data_shuffle_seed", name="a", data_shuffle_seed=5)
        self.assertEqual(before, {p: p.read_bytes() for p in self.path("a").rglob("*") if p.is_file()})

    def test_a_changed_text_is_refused(self):
        self.train("a")
        self.text.write_bytes(runs.TEXT.replace(b"God", b"god"))
        self.refused("the text that the run began with", name="a", steps=30)

    def test_damaged_and_foreign_checkpoints_are_named(self):
        self.train("a")
        newest = self.path("a") / "checkpoints" / "20"
        data = max((newest / "params" / "d").iterdir(), key=lambda f: f.stat().st_size)
        manifest, state = newest / "params" / "manifest.ocdbt", newest / "state" / "metadata"
        good = data.read_bytes()
        data.write_bytes(good[:-10])
        self.refused("20/params", data.name, name="a", steps=30)
        # A bit of an array: its chunk's checksum says so.
        data.write_bytes(good[:100] + bytes([good[100] ^ 1]) + good[101:])
        self.refused("20/params", "checksum", name="a", steps=30)
        data.unlink()
        self.refused("20/params", data.name, name="a", steps=30)
        data.write_bytes(good)
        good = manifest.read_bytes()
        manifest.write_bytes(b"not a database")
        self.refused("20/params/manifest.ocdbt", name="a", steps=30)
        manifest.write_bytes(good)
        state.write_text("{}")
        self.refused("20/state/metadata", name="a", steps=30)
        # As the message says: without that directory it goes on from the one before.
        shutil.rmtree(newest)
        output, _ = self.train("a")
        self.assertIn("resumed from the checkpoint of step 15", output)
        self.assertEqual([m["step"] for m in self.metrics("a")], list(range(20)))

    def test_a_run_in_the_older_layout_is_resumed(self):
        self.train("a", learning_rate_schedule_steps=40)
        self.train("whole", steps=30, learning_rate_schedule_steps=40)
        newest = self.path("a") / "checkpoints" / "20"
        old = self.folder / "old"
        old.mkdir()
        items = {}
        for item in ("params", "optimizer"):
            # The names that the older layout had: positions in brackets.
            leaves = json.loads(subprocess.run([built.XYLEM, "checkpoint", "show", "--json", newest / item], capture_output=True,
                                               check=True).stdout)["items"][item]["leaves"]
            names = {".".join(map(str, leaf["path"])): "".join(
                f"[{k}]" if isinstance(k, int) else "." + k for k in leaf["path"]).lstrip(".") for leaf in leaves}
            file = old / f"{item}.safetensors"
            subprocess.run([built.XYLEM, "checkpoint", "convert", newest, file, "--item", item], check=True, capture_output=True)
            data = file.read_bytes()
            size = int.from_bytes(data[:8], "little")
            header = {names.get(name, name): entry for name, entry in json.loads(data[8:8 + size]).items()}
            text = json.dumps(header).encode()
            file.write_bytes(len(text).to_bytes(8, "little") + text + data[8 + size:])
            items[item] = {"file": file.name, "size": file.stat().st_size, "crc32c": f"{crc32c(file.read_bytes()):08x}"}
        state = json.loads((newest / "state" / "metadata").read_text())
        (old / "state.json").write_text(json.dumps({"format": "xylem-safetensors", "version": 1, "step": 20, "items": items, "state": state}))
        for step in (newest.parent).iterdir():
            shutil.rmtree(step)
        old.rename(newest)
        output, _ = self.train("a", steps=30, learning_rate_schedule_steps=40)
        self.assertIn("resumed from the checkpoint of step 20", output)
        self.assert_same_run("a", "whole", 30)
        self.assertTrue((newest.parent / "30" / "_CHECKPOINT_METADATA").exists())

    def test_another_models_checkpoint_is_refused_by_its_first_leaf(self):
        self.train("a")
        self.train("b", base_mlp_dim=24)
        # The configuration says one thing, the files another.
        (self.path("a") / "config.yaml").write_bytes((self.path("b") / "config.yaml").read_bytes())
        self.refused("layers[0].mlp.up.kernel must be f32[8,24]", "f32[8,16]", name="a", base_mlp_dim=24, steps=30)

    def test_a_loss_that_is_no_number_stops_the_run(self):
        self.refused("loss", "finite", "learning_rate", name="nan", learning_rate=1e30, gradient_clipping_threshold=0,
                     warmup_steps_fraction=0, steps=2000)
        metrics = self.metrics("nan")
        self.assertEqual([m["step"] for m in metrics], list(range(len(metrics))))
        self.train("nan2", learning_rate=1e30, gradient_clipping_threshold=0, warmup_steps_fraction=0, steps=30,
                   abort_on_nan_loss="false", abort_on_inf_loss="false")

    def test_an_unwritable_place_is_named(self):
        (self.folder / "file").write_text("")
        self.refused("file", base_output_directory=self.folder / "file")
        self.refused("/proc", base_output_directory="/proc/none")
        if not runs.is_root():
            locked = self.folder / "locked"
            locked.mkdir(mode=0o555)
            self.refused("locked", "permission", base_output_directory=locked)


class FullDisk(runs.RunCase):
    def limited(self):
        """A child in which no file grows beyond 64 KiB, as if there were no more room."""
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (65536, 65536))

    def test_no_room_for_a_checkpoint(self):
        self.write_config(base_emb_dim=64, base_mlp_dim=256)
        _, errors = self.train("a", status=1, options={"preexec_fn": self.limited})
        self.assertIn("while saving the checkpoint of step 5", errors)
        self.assertEqual(self.steps("a"), [])
        self.train("a")
        self.assertEqual([m["step"] for m in self.metrics("a")], list(range(20)))

    def test_no_room_for_metrics(self):
        _, errors = self.train("a", status=1, steps=100000, checkpoint_period=100, options={"preexec_fn": self.limited})
        self.assertIn("metrics.jsonl", errors)
        self.assertGreater(self.steps("a")[-1], 100)
        self.assert_whole("a", self.steps("a")[-1])
        self.train("a", steps=1000)

    def test_a_full_file_system(self):
        # Only root may mount one, and not in every container; the tests above stand for it there.
        with tempfile.TemporaryDirectory() as small:
            mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=700k", "tmpfs", small], capture_output=True)
            if mounted.returncode != 0:
                return
            try:
                self.write_config(base_emb_dim=32, base_mlp_dim=64, base_output_directory=small, max_num_checkpoints_to_keep=100)
                _, errors = self.train("a", status=1, steps=1000)
                self.assertIn("free space", errors)
                folder = pathlib.Path(small) / "a" / "checkpoints"
                steps = sorted(int(p.name) for p in folder.iterdir())
                self.assertTrue(steps)
                # With room again it goes on from the last step that was committed.
                for step in steps[:-1]:
                    subprocess.run(["rm", "-r", folder / str(step)], check=True)
                output, _ = self.train("a", steps=steps[-1] + 5)
                self.assertIn(f"resumed from the checkpoint of step {steps[-1]}", output)
            finally:
                subprocess.run(["umount", small], check=True)


if __name__ == "__main__":
    unittest.main()
