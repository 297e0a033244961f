"""Several processes that save one run together, one of which is killed at one of its calls of the file system."""

import json
import pathlib
import subprocess
import tempfile
import unittest

import built

TOOL = built.tool("e2e", "save")


class Saves(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = pathlib.Path(holder.name)
        self.rounds = 0

    def save(self, root, processes, first, count, victim=None, kill_at=None):
        """Runs all processes; returns [(status, output, errors)]."""
        self.rounds += 1
        coordination = self.folder / f"coordination{self.rounds}"
        running = []
        for p in range(processes):
            command = [TOOL, root, coordination, p, processes, first, count]
            if p == victim:
                command.append(kill_at)
            running.append(subprocess.Popen([str(c) for c in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
        return [(r.returncode, *out) for r, out in [(r, r.communicate(timeout=120)) for r in running]]

    def steps(self, root):
        return sorted(int(p.name) for p in root.iterdir() if p.name.isdigit()) if root.exists() else []

    def assert_whole(self, root, step, processes):
        done = subprocess.run([built.XYLEM, "checkpoint", "verify", root / str(step)], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout), (0, ""))
        done = subprocess.run([built.XYLEM, "checkpoint", "show", "--json", "--values", root / str(step)], capture_output=True)
        leaves = {".".join(map(str, leaf["path"])): leaf for leaf in json.loads(done.stdout)["items"]["params"]["leaves"]}
        for name, size in (("rows", 24 * processes), ("columns", 15 * processes), ("copies.even", 6 * processes),
                           ("copies.odd", 1), ("numpy", 7)):
            self.assertEqual(leaves[name]["values"], [float(step * 1000 + i) for i in range(size)], name)
        self.assertEqual((leaves["count"]["value"], leaves["name"]["value"]), (step, f"step {step}"))

    def kill_one(self, processes, stride, offset=0):
        """Kills each process at every stride-th call of two saves; returns how often."""
        calls = [int(out.split("calls ")[1]) for status, out, _ in self.save(self.folder / "whole", processes, 1, 2)]
        kills = 0
        for victim in range(processes):
            for kill_at in range(offset, calls[victim], stride):
                root = self.folder / f"run{victim}-{kill_at}"
                self.save(root, processes, 1, 1)
                ended = self.save(root, processes, 2, 2, victim, kill_at)
                committed = 1
                # How often a process looks for the others depends on time: it may end before that call.
                ended_before = ended[victim][0] == 0 and int(ended[victim][1].split("calls ")[1]) <= kill_at
                for p, (status, out, errors) in enumerate(ended):
                    for line in out.splitlines():
                        if line.startswith("committed "):
                            committed = max(committed, int(line.split()[1]))
                    if p == victim and not ended_before:
                        self.assertEqual(status, -9, (victim, kill_at, out, errors))
                    elif status:
                        # They end by themselves, and say who is missing or what failed.
                        self.assertEqual(status, 1, errors)
                        self.assertRegex(errors, r"process \d|step|directory|No such file", errors)
                kills += not ended_before
                steps = self.steps(root)
                self.assertIn(committed, steps, (victim, kill_at, ended))
                for step in steps:
                    self.assert_whole(root, step, processes)
                # No cleaning by hand, and another number of processes goes on.
                last = steps[-1] + 1
                for status, _, errors in self.save(root, 2, last, 1):
                    self.assertEqual(status, 0, errors)
                self.assert_whole(root, last, 2)
                self.assertFalse([p for p in root.iterdir() if "tmp" in p.name])
        self.assertGreater(kills, 0)
        return kills
