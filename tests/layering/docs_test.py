"""What ./x docs generates is up to date, and links inside the documentation lead somewhere."""

import pathlib
import re
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def pages():
    found = list(ROOT.glob("*.md"))
    for top in ("docs", "xylem", "examples", "benchmarks", "configs", "tests"):
        found += [p for p in (ROOT / top).rglob("*.md") if "testdata" not in p.parts]
    return found


class Docs(unittest.TestCase):
    def test_generated_parts(self):
        done = subprocess.run([sys.executable, ROOT / "tools" / "docs.py", "--check"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_links(self):
        for page in pages():
            text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
            text = re.sub(r"`[^`\n]*`", "", text)
            for target in re.findall(r"\]\(([^)\s]+)\)", text):
                if re.match(r"[a-z]+:|#", target):
                    continue
                path = page.parent / target.split("#")[0]
                self.assertTrue(path.exists(), f"{page.relative_to(ROOT)}: {target}")

    def test_named_files_exist(self):
        for page in pages():
            for name in re.findall(r"`((?:xylem|tools|cmake|tests|docs|configs|examples|benchmarks)/[\w./-]+)`",
                                   page.read_text(encoding="utf-8")):
                if "/foo" not in name:
                    self.assertTrue((ROOT / name).exists(), f"{page.relative_to(ROOT)} names {name}")

    def test_every_library_has_a_page(self):
        for folder in sorted((ROOT / "xylem").iterdir()):
            if folder.is_dir() and list(folder.rglob("*.cc")):
                self.assertTrue((folder / "README.md").exists(), f"xylem/{folder.name}/README.md is missing")


if __name__ == "__main__":
    unittest.main()
