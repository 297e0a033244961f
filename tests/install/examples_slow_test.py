"""The examples as a project of their own, built outside the tree against an installed copy."""

import os
import pathlib
import shutil
import tempfile
import unittest

from built import BUILD, PRESET, SOURCE, run

SANITIZERS = {"asan": "-fsanitize=address,undefined", "tsan": "-fsanitize=thread"}


class Examples(unittest.TestCase):
    def test_a_copied_folder_builds_and_runs(self):
        with tempfile.TemporaryDirectory(prefix="xylem-examples-") as scratch:
            scratch = pathlib.Path(scratch)
            run("cmake", "--install", BUILD, "--prefix", scratch / "prefix")
            shutil.copytree(SOURCE / "examples", scratch / "examples")
            options = [f"-DCMAKE_PREFIX_PATH={scratch / 'prefix'}", f"-DCMAKE_CXX_FLAGS=-O1 {SANITIZERS.get(PRESET, '')}"]
            if PRESET == "clang":
                options.append("-DCMAKE_CXX_COMPILER=clang++-19")
            env = dict(os.environ, CCACHE_DISABLE="1")
            run("cmake", "-G", "Ninja", "-S", scratch / "examples", "-B", scratch / "build", *options, env=env)
            run("cmake", "--build", scratch / "build", "--target", "logistic_regression", "rnn", env=env)
            data = scratch / "examples" / "data" / "digits.csv.gz"
            _, out, _ = run(scratch / "build" / "logistic_regression", "--data", data, cwd="/")
            self.assertIn(b"loss at the minimum 0.23564", out)
            _, out, _ = run(scratch / "build" / "rnn", "--updates", 5, cwd="/")
            self.assertIn(b"accuracy on sequences of 200 bits", out)


if __name__ == "__main__":
    unittest.main()
