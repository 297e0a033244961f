"""kill -9 at random moments of training and saving: no committed step is ever lost."""

import os
import random
import time

import runs


class Kills(runs.RunCase):
    STEPS = 2000

    def kill_and_resume(self, times, **keys):
        seed = int(os.environ.get("XYLEM_TEST_SEED", time.time_ns() % 2**32))
        print(f"seed {seed} (XYLEM_TEST_SEED repeats it)")
        random.seed(seed)
        # Nearly all of the time goes into saving; six steps a save.
        self.write_config(steps=self.STEPS, eval_interval=100, checkpoint_period=6, **keys)
        self.train("whole")
        kills, newest = 0, 0
        while kills < times:
            process = self.start("parts")
            # From before the first line of main to many saves.
            time.sleep(random.choice((0.02, 0.1, 0.3, 0.6)) * random.random() * 2)
            if process.poll() is not None:
                # It got to the end: the next round begins anew.
                self.assertEqual(process.wait(), 0, process.communicate()[1])
                process.stderr.close()
                self.assert_same_run("parts", "whole", self.STEPS)
                self.path("parts").rename(self.path(f"done-{kills}"))
                newest = 0
                continue
            process.kill()
            process.communicate()
            kills += 1
            steps = self.steps("parts")
            for step in steps:
                self.assert_whole("parts", step)
            self.assertGreaterEqual(max(steps, default=0), newest, "a committed step was lost")
            newest = max(steps, default=0)
        self.train("parts")
        self.assert_same_run("parts", "whole", self.STEPS)
