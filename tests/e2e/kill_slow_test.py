"""Training that is killed 200 times."""

import unittest

import kills


class KillTraining(kills.Kills):
    def test_the_newest_step_always_loads_and_the_run_ends_as_if_undisturbed(self):
        self.kill_and_resume(200)

    def test_packed_documents_are_each_delivered_once(self):
        # Losses that are equal bit by bit at every step come from the same rows in the same order.
        self.kill_and_resume(60, dataset_type="grain", document_split="line", grain_train_files=f"'{self.text},3;{self.text}'",
                             fim_rate=0.5, vocab_size=259)


if __name__ == "__main__":
    unittest.main()
