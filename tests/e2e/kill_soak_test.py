"""Training that is killed 2,000 times."""

import unittest

import kills


class KillTraining(kills.Kills):
    def test_the_newest_step_always_loads_and_the_run_ends_as_if_undisturbed(self):
        self.kill_and_resume(2000)


if __name__ == "__main__":
    unittest.main()
