"""Examples that compute what is known otherwise: closed forms, and what JAX and SciPy find (goldens)."""

import unittest

import built  # noqa: F401 - the build must be there
from programs import ExampleCase, golden, output


class Compute(ExampleCase):
    def test_logistic_regression_finds_the_minimum_that_scipy_finds(self):
        text = output("logistic_regression")
        self.assertAlmostEqual(self.number(text, "loss at the minimum"), golden("logistic_regression", "loss")[0], delta=2e-6)
        self.assertLess(text.count("step"), 15)
        self.assertGreater(self.number(text, "accuracy on held-out digits"), 0.88)

    def test_n_body_is_periodic_and_reversible_and_keeps_energy_and_momentum(self):
        text = output("n_body")
        there, back = text.splitlines()[:2]
        self.assertLess(self.number(there, "figure of eight: off by"), 1e-4)
        self.assertLess(self.number(back, "figure of eight: off by"), 1e-11)
        self.assertAlmostEqual(self.number(text, "energy"), golden("n_body", "energy")[0], delta=1e-6)
        self.assertLess(self.number(text, "at most"), 1e-4)
        self.assertLess(self.number(text, "momentum"), 1e-13)

    def test_n_body_loses_a_quarter_of_the_error_with_half_the_step(self):
        """The leapfrog scheme is of the second order."""
        coarse, fine = (self.number(output("n_body", "--bodies", "2", "--steps", n).splitlines()[0], "off by")
                        for n in ("1000", "2000"))
        self.assertAlmostEqual(coarse / fine, 4, delta=0.2)

    def test_ode_adjoint_agrees_with_odeint_of_jax_and_with_grad_through_the_steps(self):
        text = output("ode_adjoint")
        want = golden("ode_adjoint", "gradient")
        for words in ("gradient through the steps", "gradient by the adjoint"):
            for got, wanted in zip(self.numbers(text, words), want, strict=True):
                self.assertAlmostEqual(got, wanted, delta=1e-5)
        self.assertLess(self.number(text, "they differ by"), 1e-6)
        self.assertLess(self.number(text, "largest error of a parameter"), 1e-5)

    def test_the_two_gradients_of_an_ode_meet_as_its_steps_shrink(self):
        coarse, fine = (self.number(output("ode_adjoint", "--updates", "1", "--steps", n), "they differ by")
                        for n in ("10", "20"))
        self.assertGreater(coarse / fine, 10)

    def test_gaussian_process_finds_the_likelihood_that_scipy_finds(self):
        text = output("gaussian_process")
        loss = self.number(text.splitlines()[-4], "-log likelihood")
        self.assertAlmostEqual(loss, golden("gaussian_process", "loss")[0], delta=1e-5)
        for words, wanted in zip(("amplitude", "length", "noise"), golden("gaussian_process", "kernel"), strict=True):
            self.assertAlmostEqual(self.number(text, words), wanted, delta=1e-4)
        self.assertLess(self.number(text, "root mean square error of the prediction"), 0.1)

    def test_hamiltonian_monte_carlo_has_the_moments_of_the_closed_form(self):
        text = output("bayesian_hmc")
        means = self.numbers(text, "posterior means")
        self.assertEqual(len(means), 4)
        self.assertLess(self.number(text, "largest error of a mean, in deviations"), 0.1)
        self.assertLess(self.number(text, "largest relative error of a deviation"), 0.06)
        self.assertLess(self.number(text, "largest R of the chains"), 1.02)
        self.assertGreater(self.number(text, "acceptance"), 0.8)

    def test_implicit_gradient_is_that_of_jax_and_of_the_closed_form(self):
        text = output("implicit_differentiation")
        want = golden("implicit_differentiation", "gradient")
        for got, wanted in zip(self.numbers(text, "gradient by the implicit function theorem"), want, strict=True):
            self.assertAlmostEqual(got, wanted, delta=1e-7)
        self.assertLess(self.number(text, "the two differ by"), 1e-9)
        self.assertLess(self.number(text, "first entry against a central difference"), 1e-6)
        self.assertAlmostEqual(self.number(text, "validation error before"), golden("implicit_differentiation", "before")[0],
                               delta=1e-4)
        self.assertAlmostEqual(self.number(text, "validation error after"), golden("implicit_differentiation", "lowest")[0],
                               delta=0.01)


if __name__ == "__main__":
    unittest.main()
