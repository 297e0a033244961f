"""What all examples have in common: help, errors, and their row in the documentation."""

import pathlib
import re
import subprocess
import tempfile
import unittest

import built
from programs import names

OF_DIGITS = ("logistic_regression", "mlp_digits", "per_example_gradients", "vae")


def failing(name, *arguments):
    """Status and standard error of an example that must fail."""
    done = subprocess.run([built.BUILD / "examples" / name, *arguments], cwd=built.SOURCE, capture_output=True, text=True)
    return done.returncode, done.stderr


class CommandLine(unittest.TestCase):
    def test_help_names_the_options(self):
        for name in names():
            _, out, _ = built.run(built.BUILD / "examples" / name, "--help", cwd="/")
            self.assertRegex(out.decode(), r"(?m)^  --\w+ +.*\(.*\)$", name)

    def test_each_has_a_row_in_the_table(self):
        rows = re.findall(r"(?m)^\| `(\w+)` \|", (built.SOURCE / "examples" / "README.md").read_text())
        self.assertEqual(sorted(rows), names())
        links = re.findall(r"\]\(examples/(\w+)\.cc\)", (built.SOURCE / "README.md").read_text())
        self.assertEqual(sorted(links), names())

    def test_missing_data_is_an_error_that_says_what_to_do(self):
        for name in OF_DIGITS:
            status, errors = failing(name, "--data", "absent.csv.gz")
            self.assertEqual(status, 1)
            for part in ("open absent.csv.gz", "No such file", "Check the spelling"):
                self.assertIn(part, errors, name)
            self.assertEqual(errors.count("\n"), 1, errors)

    def test_data_of_another_kind_are_an_error_that_names_the_column(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "other.csv"
            for text, part in (("1,2,3\n", "a line of 3 fields"), (",".join(["1"] * 64 + ["x"]) + "\n", "column 64"),
                               (",".join(["17"] * 65) + "\n", "column 0"), ("", "at least 10 lines")):
                path.write_text(text)
                status, errors = failing("mlp_digits", "--data", str(path))
                self.assertEqual(status, 1)
                self.assertIn(part, errors)
                self.assertIn("Use examples/data/digits.csv.gz", errors)

    def test_damaged_data_are_an_error(self):
        whole = (built.SOURCE / "examples" / "data" / "digits.csv.gz").read_bytes()
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "digits.csv.gz"
            path.write_bytes(whole[:len(whole) // 2])
            status, errors = failing("mlp_digits", "--data", str(path))
        self.assertEqual(status, 1)
        self.assertIn(str(path), errors)

    def test_wrong_options_are_usage_errors(self):
        for arguments, part in ((("--bogus", "1"), "unknown option '--bogus'"), (("bogus",), "unknown option 'bogus'"),
                                (("--epochs",), "no value after '--epochs'"), (("--",), "unknown option '--'")):
            status, errors = failing("mlp_digits", *arguments)
            self.assertEqual((status, part in errors), (2, True), errors)

    def test_wrong_values_are_errors_with_the_range(self):
        for value in ("0", "-1", "nan", "1e30", "2.5", "x", ""):
            status, errors = failing("mlp_digits", f"--epochs={value}")
            self.assertEqual(status, 1)
            self.assertIn("--epochs", errors)
            self.assertIn("See --help", errors)

    def test_a_full_output_is_a_failure(self):
        with open("/dev/full", "wb") as full:
            for arguments in ((), ("--help",)):
                done = subprocess.run([built.BUILD / "examples" / "gaussian_process", *arguments], stdout=full)
                self.assertEqual(done.returncode, 1)


if __name__ == "__main__":
    unittest.main()
