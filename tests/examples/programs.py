"""How the tests of examples/ run them and read what they print."""

import functools
import json
import re
import struct
import subprocess
import unittest

import built

NUMBER = r"([-+]?(?:\d+\.?\d*(?:e[-+]?\d+)?|inf|nan))"


@functools.lru_cache
def output(name, *arguments):
    """What an example prints, run from the root of the sources as the documentation says."""
    _, out, _ = built.run(built.BUILD / "examples" / name, *arguments, cwd=built.SOURCE)
    return out.decode()


def names():
    return sorted(path.stem for path in (built.SOURCE / "examples").glob("*.cc"))


class ExampleCase(unittest.TestCase):
    def number(self, text, words):
        """The number behind these words, which must be there once."""
        found = re.findall(re.escape(words) + r"\s+" + NUMBER, text)
        self.assertEqual(len(found), 1, f"'{words}' in\n{text}")
        return float(found[0])

    def numbers(self, text, words):
        """The array printed behind these words."""
        found = re.findall(re.escape(words) + r"\s+\[([^\]]*)\]", text)
        self.assertEqual(len(found), 1, f"'{words}' in\n{text}")
        return [float(v) for v in found[0].split()]


def golden(name, field):
    """The recorded values of an example as floats."""
    a = json.loads((built.SOURCE / "tests" / "goldens" / "examples.json").read_text())[name][field]
    return list(struct.unpack(f">{len(a['hex']) // 16}d", bytes.fromhex(a["hex"])))
