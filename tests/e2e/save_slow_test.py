"""Saves by several processes, of which one is killed now and then."""

import unittest

import saves


class KillOneOfSeveral(saves.Saves):
    def test_committed_steps_stay_whole_and_the_others_end(self):
        print("kills:", self.kill_one(3, 7, 3))


if __name__ == "__main__":
    unittest.main()
