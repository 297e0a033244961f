"""xylem generate, init, data batches and the command line itself."""

import json
import struct
import subprocess
import unittest

import built
import runs


def xylem(*arguments, status=0):
    done = subprocess.run([built.XYLEM, *map(str, arguments)], capture_output=True, timeout=300)
    if done.returncode != status:
        raise AssertionError(f"status {done.returncode}: {done.stdout!r} {done.stderr!r}")
    return done.stdout, done.stderr.decode()


class Generate(runs.RunCase):
    def setUp(self):
        super().setUp()
        self.train("a")
        self.run_folder = self.path("a")

    def generate(self, *options, prompt="In the"):
        return xylem("generate", "--run", self.run_folder, "--prompt", prompt, *options)[0]

    def test_output_is_prompt_and_continuation_only(self):
        text = self.generate("--max-tokens", 20)
        self.assertTrue(text.startswith(b"In the"))
        self.assertEqual(len(text), 26)
        self.assertEqual(self.generate("--max-tokens", 0), b"In the")

    def test_json_holds_prompt_text_and_tokens(self):
        result = json.loads(self.generate("--json", "--max-tokens", 20))
        self.assertEqual(set(result), {"prompt", "text", "tokens"})
        self.assertEqual(result["prompt"], "In the")
        self.assertEqual(len(result["tokens"]), 20)
        self.assertEqual(bytes(result["tokens"]), self.generate("--max-tokens", 20)[6:])

    def test_a_seed_decides_the_text(self):
        self.assertEqual(self.generate("--seed", 3), self.generate("--seed", 3))
        self.assertNotEqual(self.generate("--seed", 3), self.generate("--seed", 4))
        for greedy in (["--temperature", 0], ["--top-k", 1], ["--top-p", 1e-6]):
            self.assertEqual(self.generate(*greedy, "--seed", 1), self.generate("--temperature", 0, "--seed", 2), greedy)

    def test_prompts_longer_than_the_context_keep_their_end(self):
        long = "x" * 100 + "In the e"
        text = self.generate("--temperature", 0, "--max-tokens", 5, prompt=long)
        self.assertEqual(text[:108], long.encode())
        self.assertEqual(text[108:], self.generate("--temperature", 0, "--max-tokens", 5, prompt="In the e")[8:])

    def test_prompts_are_bytes(self):
        self.assertTrue(self.generate("--max-tokens", 3, prompt="é☃").startswith("é☃".encode()))

    def test_mistakes(self):
        for options, part in ((["--temperature", -1], "temperature"), (["--top-k", -1], "top_k"), (["--top-p", 0], "top_p"),
                              (["--top-p", 1.5], "top_p"), (["--max-tokens", -1], "max-tokens"), (["--max-tokens", 10**20], "max-tokens")):
            errors = xylem("generate", "--run", self.run_folder, "--prompt", "a", *options, status=1)[1]
            self.assert_message(errors)
            self.assertIn(part, errors)
        self.assertIn("prompt", xylem("generate", "--run", self.run_folder, "--prompt", "", status=1)[1])
        self.assertIn("absent", xylem("generate", "--run", self.folder / "absent", "--prompt", "a", status=1)[1])
        xylem("generate", "--prompt", "a", status=2)
        xylem("generate", "--run", self.run_folder, "--prompt", "a", "--max-tokens", "many", status=2)
        xylem("generate", "--run", self.run_folder, "--prompt", "a", "--seed", -1, status=2)

    def test_a_run_without_checkpoint_is_refused(self):
        self.train("b", enable_checkpointing="false")
        self.assertIn("checkpoint", xylem("generate", "--run", self.path("b"), "--prompt", "a", status=1)[1])

    def test_a_damaged_checkpoint_is_refused(self):
        file = self.run_folder / "checkpoints" / "20" / "params" / "manifest.ocdbt"
        file.write_bytes(file.read_bytes()[:50])
        self.assertIn("manifest.ocdbt", xylem("generate", "--run", self.run_folder, "--prompt", "a", status=1)[1])


class Command(runs.RunCase):
    def test_version_and_help(self):
        self.assertRegex(xylem("--version")[0], rb"^xylem \d+\.\d+\.\d+\n$")
        self.assertIn(b"generate", xylem("--help")[0])
        text = xylem("train", "--help")[0].decode()
        for key in ("run_name=\"\"", "learning_rate=0.001", "max_target_length=256", "scale_embedding=false"):
            self.assertIn(key, text)

    def test_usage_errors_end_with_2(self):
        for arguments in ([], ["fly"], ["train"], ["train", self.config, "--fast"], ["train", self.config, "steps"],
                          ["data"], ["data", "batches", self.config], ["init", self.config]):
            self.assert_message(xylem(*arguments, status=2)[1])

    def test_init_writes_the_parameters_that_training_begins_with(self):
        out = self.folder / "init.safetensors"
        xylem("init", self.config, "run_name=a", "--out", out)
        data = out.read_bytes()
        length = struct.unpack("<Q", data[:8])[0]
        header = json.loads(data[8:8 + length])
        self.assertEqual(header["embed.embedding"]["shape"], [256, 8])
        self.assertEqual(header["layers[0].attention.query.kernel"]["shape"], [8, 8])
        self.assertEqual(header["norm.scale"]["dtype"], "F32")
        self.train("random")
        self.train("loaded", load_parameters_path=out)
        self.assertEqual(self.values("loaded"), self.values("random"))
        self.assertIn("layers[0]", self.train("other", status=1, load_parameters_path=out, base_mlp_dim=24)[1])

    def test_batches_are_those_of_training(self):
        out = self.folder / "batches.npy"
        xylem("data", "batches", self.config, "run_name=a", "--steps", 30, "--out", out)
        raw = out.read_bytes()
        self.assertIn(b"'descr': '|u1', 'fortran_order': False, 'shape': (30, 2, 9)", raw)
        windows = raw[-30 * 2 * 9:]
        train = runs.TEXT[:len(runs.TEXT) - len(runs.TEXT) // 20]
        starts = set()
        for i in range(0, len(windows), 9):
            start = train.find(windows[i:i + 9])
            self.assertGreaterEqual(start, 0)
            starts.add(start)
        self.assertGreater(len(starts), 5)

    def test_standard_output_that_is_closed_or_full_is_an_error(self):
        self.train("a")
        for arguments in (["generate", "--run", self.path("a"), "--prompt", "a"], ["--help"], ["train", "--help"], ["--version"]):
            with self.subTest(arguments=arguments), open("/dev/full", "w") as full:
                done = subprocess.run([built.XYLEM, *arguments], stdout=full, stderr=subprocess.PIPE, text=True)
                self.assertEqual(done.returncode, 1)
                self.assertIn("standard output", done.stderr)


if __name__ == "__main__":
    unittest.main()
