"""Minimax polynomials with coefficients rounded to a machine format.

fit(g, weight, a, b, degree, bits) finds the polynomial p of the given degree that minimises
max |weight(x) * (p(x) - g(x))| over [a, b] by Remez' exchange on a dense Chebyshev grid, then rounds
the coefficients one after the other, lowest first: after each is rounded the remaining ones are fitted
anew, so that they take up its rounding error. Everything runs in multiple precision.
"""

from mpmath import mp, mpf

mp.dps = 60


def round_to(x, bits):
    """x rounded to nearest with a significand of so many bits (24: f32, 53: f64)."""
    x = mpf(x)
    if x == 0:
        return x
    _, exponent = mp.frexp(x)
    scale = mpf(2) ** (bits - exponent)
    return mp.nint(x * scale) / scale


def _grid(a, b, n):
    a, b = mpf(a), mpf(b)
    return [(a + b) / 2 - (b - a) / 2 * mp.cos(mp.pi * i / (n - 1)) for i in range(n)]


def _remez(xs, targets, weights, first, degree):
    """Minimax over the grid with basis x^first … x^degree. Returns (coefficients, error)."""
    n = degree - first + 1
    powers = [[x**first] for x in xs]
    for row, x in zip(powers, xs):
        for _ in range(n - 1):
            row.append(row[-1] * x)
    nodes = [round(i * (len(xs) - 1) / n) for i in range(n + 1)]
    coefficients, level = None, mpf(0)
    for _ in range(60):
        system = mp.matrix(n + 1, n + 1)
        right = mp.matrix(n + 1, 1)
        for r, i in enumerate(nodes):
            for c in range(n):
                system[r, c] = powers[i][c] * weights[i]
            system[r, n] = (-1) ** r
            right[r] = targets[i] * weights[i]
        solution = mp.lu_solve(system, right)
        coefficients = [solution[c] for c in range(n)]
        errors = [
            w * (sum(c * p for c, p in zip(coefficients, row)) - t)
            for row, t, w in zip(powers, targets, weights)
        ]
        # One extremum per run of equal sign; then the best n + 1 neighbouring ones.
        extrema = []
        for i, e in enumerate(errors):
            if extrema and (errors[extrema[-1]] >= 0) == (e >= 0):
                if abs(e) > abs(errors[extrema[-1]]):
                    extrema[-1] = i
            else:
                extrema.append(i)
        while len(extrema) > n + 1:
            if abs(errors[extrema[0]]) < abs(errors[extrema[-1]]):
                extrema.pop(0)
            else:
                extrema.pop()
        peak = max(abs(e) for e in errors)
        if len(extrema) < n + 1:
            break
        level = abs(solution[n])
        if extrema == nodes or peak <= level * (1 + mpf(10) ** -4):
            break
        nodes = extrema
    return coefficients, max(abs(e) for e in errors)


def fit(g, weight, a, b, degree, bits, fixed=(), points=None):
    """Returns (rounded coefficients, largest weighted error). `bits`: of all coefficients, or a list.
    `fixed`: leading low-order coefficients that are given."""
    n = points or max(200, 24 * (degree + 2))
    xs = _grid(a, b, n)
    targets = [g(x) for x in xs]
    weights = [abs(weight(x)) for x in xs]
    widths = list(bits) if isinstance(bits, (list, tuple)) else [bits] * (degree + 1)
    done = [mpf(c) for c in fixed]

    def peak(coefficients):
        return max(
            w * abs(sum(c * x**k for k, c in enumerate(coefficients)) - t)
            for x, t, w in zip(xs, targets, weights)
        )

    free, _ = _remez(xs, [t - sum(c * x**k for k, c in enumerate(done)) for t, x in zip(targets, xs)],
                     weights, len(done), degree)
    while len(done) < degree:
        done.append(round_to(free[0], widths[len(done)]))
        free = free[1:]
        rest = [t - sum(c * x**k for k, c in enumerate(done)) for t, x in zip(targets, xs)]
        # x^k … x^n is no Haar system on an interval around 0, so the exchange may fail there: the former
        # coefficients stay if they are better.
        again, _ = _remez(xs, rest, weights, len(done), degree)
        if peak(done + again) < peak(done + free):
            free = again
    done.append(round_to(free[0], widths[degree]))
    return done, peak(done)
