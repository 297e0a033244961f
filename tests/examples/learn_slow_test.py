"""Examples that train something: it must have learned, by data that training did not see."""

import unittest

import built  # noqa: F401 - the build must be there
from programs import ExampleCase, output


class Learn(ExampleCase):
    def test_mlp_reads_digits(self):
        text = output("mlp_digits")
        self.assertGreater(self.number(text, "accuracy on held-out digits"), 0.89)
        self.assertGreater(self.number(text, "accuracy on training digits"), 0.99)

    def test_pinn_solves_the_heat_equation(self):
        text = output("pinn")
        self.assertLess(self.number(text, "relative error"), 5e-3)
        self.assertLess(self.number(text, "largest error"), 1e-2)

    def test_vae_beats_independent_pixels_and_stays_above_their_entropy(self):
        text = output("vae")
        bound = self.number(text, "held-out bound")
        self.assertLess(bound, self.number(text, "independent pixels") - 1.5)
        self.assertGreater(bound, self.number(text, "entropy of the grey values"))
        drawn = text[text.index("new digits:"):].splitlines()[1:]
        self.assertEqual([len(line) for line in drawn], [6 * 18] * 16)
        self.assertGreater(sum(line.count("@") for line in drawn), 5)

    def test_rnn_counts_beyond_what_it_saw(self):
        text = output("rnn")
        self.assertGreater(self.number(text, "accuracy on sequences of 12 bits"), 0.999)
        self.assertGreater(self.number(text, "accuracy on sequences of 200 bits"), 0.99)

    def test_per_example_gradients_add_up_and_train_privately(self):
        text = output("per_example_gradients")
        self.assertLess(self.number(text, "mean of the gradients is off by"), 1e-5)
        self.assertGreater(self.number(text, "accuracy on held-out digits"), 0.86)

    def test_more_noise_hides_more(self):
        """At some level of noise nothing can be learnt, so the noise does reach the gradients."""
        text = output("per_example_gradients", "--noise", "100", "--updates", "50")
        self.assertLess(self.number(text, "accuracy on held-out digits"), 0.6)

    def test_maml_adapts_in_one_step(self):
        meta, joint = output("maml").splitlines()[-2:]
        before, after = self.number(meta, "meta-learned: error"), self.number(meta, "before the step,")
        self.assertLess(after, before / 2)
        self.assertLess(after, self.number(joint, "before the step,") / 2)


if __name__ == "__main__":
    unittest.main()
