"""Writes xylem/compiler/math/coefficients.h: minimax polynomials of the elementary functions.

    python3 tools/math/make_coefficients.py | clang-format --assume-filename=a.h > xylem/compiler/math/coefficients.h

Needs mpmath (gmpy2 makes it several times faster). Each table states function, interval and the largest
error of the polynomial with its rounded coefficients, relative to the function that it serves and
before any rounding of arithmetic, in units of 2^-24 (f32) or 2^-53 (f64).
"""

import sys

from mpmath import mp, mpf

from remez import fit, round_to

LN2_HALF = mp.log(2) / 2 * mpf("1.0005")  # the rounding of x / ln 2 may leave a little more than half
PI_4 = mp.pi / 4 * mpf("1.0005")
THIRD = mpf(1) / 3 * mpf("1.0001")


def root(f):
    """An odd function's f(x) / x in u = x^2."""
    return lambda u: f(mp.sqrt(u)) / mp.sqrt(u)


def away_from_zero(g, limit):
    """g, which cancels at 0, with its limit there."""
    return lambda x: g(x) if abs(x) > mpf(10) ** -12 else limit


CONSTANTS = []


def split(name, x, bits, count):
    """x as a sum of so many numbers of `bits` significant bits."""
    for i in range(count):
        part = round_to(x, bits)
        CONSTANTS.append((f"{name}{i + 1 if count > 1 else ''}{'F32' if bits == 24 else 'F64'}", part, bits))
        x -= part


TABLES = []


def table(name, comment, g, weight, a, b, degree, bits):
    TABLES.append((name, comment, g, weight, a, b, degree, bits))


# --- exp ---------------------------------------------------------------------------------------------
for name, degree, bits in (("kExpF32", 4, 24), ("kExpF64", 9, 53)):
    table(
        name, "(e^r - 1 - r) / r^2, |r| <= ln(2) / 2",
        away_from_zero(lambda r: (mp.exp(r) - 1 - r) / r**2, mpf(1) / 2),
        lambda r: r**2 / mp.exp(r), -LN2_HALF, LN2_HALF, degree, bits)
table("kExp2Lite", "(2^r - 1) / r, |r| <= 1/2",
      away_from_zero(lambda r: (2**r - 1) / r, mp.log(2)), lambda r: r / 2**r,
      -mpf("0.5001"), mpf("0.5001"), 6, 53)

# --- log ---------------------------------------------------------------------------------------------
for name, degree, bits in (("kLogF32", 7, 24), ("kLogF64", 18, 53)):
    table(
        name, "(log(1 + f) - f + f^2 / 2) / f^3, -1/4 <= f <= 1/2",
        away_from_zero(lambda f: (mp.log1p(f) - f + f**2 / 2) / f**3, mpf(1) / 3),
        lambda f: f**3 / mp.log1p(f) if f else mpf(0), mpf("-0.25001"), mpf("0.50001"), degree, bits)
table("kLog2Lite", "log2(1 + f) / f, |f| <= 1/3",
      away_from_zero(lambda f: mp.log1p(f) / f / mp.log(2), 1 / mp.log(2)),
      lambda f: mp.log(2) * f / mp.log1p(f) if f else mpf(1), -THIRD, THIRD, 14, 53)


def log_ratio(u):
    """(log((1 + s) / (1 - s)) - 2 s - 2/3 s^3) / s^5 in u = s^2."""
    s = mp.sqrt(u)
    return (2 * mp.atanh(s) - 2 * s - 2 * s**3 / 3) / s**5


table("kLogRatioF64", "(log((1 + s) / (1 - s)) - 2 s - 2/3 s^3) / s^5 in s^2, |s| <= 0.1716",
      away_from_zero(log_ratio, mpf(2) / 5), lambda u: mpf(1), 0, mpf("0.1717") ** 2, 8, 53)
table("kCbrt", "cbrt(x), 1 <= x <= 2", mp.cbrt, lambda x: 1 / mp.cbrt(x), 1, 2, 5, 53)

# --- hyperbolic functions and their inverses ---------------------------------------------------------


def odd_table(name, text, f, limit, first, degree, bits):
    """(f(x) / x - 1) / x^2 in x^2 for |x| <= limit; `first`: its value at 0."""
    table(name, f"({text} / x - 1) / x^2 in x^2, |x| <= {limit}",
          away_from_zero(lambda u: (root(f)(u) - 1) / u, first),
          lambda u: u / root(f)(u) if u else mpf(0), 0, mpf(limit) ** 2, degree, bits)


odd_table("kTanhF32", "tanh(x)", mp.tanh, "0.55", mpf(-1) / 3, 4, 24)
odd_table("kTanhF64", "tanh(x)", mp.tanh, "0.55", mpf(-1) / 3, 10, 53)
odd_table("kSinhF32", "sinh(x)", mp.sinh, "1", mpf(1) / 6, 3, 24)
odd_table("kSinhF64", "sinh(x)", mp.sinh, "1", mpf(1) / 6, 7, 53)
odd_table("kAsinhF64", "asinh(x)", mp.asinh, "0.5", mpf(-1) / 6, 11, 53)
odd_table("kAtanhF64", "atanh(x)", mp.atanh, "0.5", mpf(1) / 3, 13, 53)
table("kAcoshF64", "(acosh(1 + t) / sqrt(2 t) - 1) / t, 0 <= t <= 1/2",
      away_from_zero(lambda t: (mp.acosh(1 + t) / mp.sqrt(2 * t) - 1) / t, mpf(-1) / 12),
      lambda t: t, 0, mpf("0.50001"), 11, 53)

# --- erf ---------------------------------------------------------------------------------------------
for name, degree, bits in (("kErfF32", 6, 24), ("kErfF64", 13, 53)):
    table(name, "erf(x) / x - 1 in x^2, |x| <= 1",
          away_from_zero(lambda u: root(mp.erf)(u) - 1, 2 / mp.sqrt(mp.pi) - 1),
          lambda u: 1 / root(mp.erf)(u) if u else mpf(1), 0, 1, degree, bits)
table("kErfTailF32", "erf(t + 2.375), |t| <= 1.5625",
      lambda t: mp.erf(t + mpf("2.375")), lambda t: 1 / mp.erf(t + mpf("2.375")),
      -mpf("1.5"), mpf("1.5625"), 15, 24)


def centered_table(name, comment, f, low, high, degree):
    """f(t) = f(0) + t p(t), p the table and f(0) a constant in two parts."""
    center = f(mpf(0))
    split(name.removesuffix("F64") + "Center", center, 53, 2)
    table(name, f"(f(t) - f(0)) / t, f = {comment}",
          lambda t: (f(t) - center) / t if t else mp.diff(f, 0), lambda t: t / f(t), low, high,
          degree - 1, 53)


def scaled_erfc(k):
    """(1 + 2 x) e^(x^2) erfc(x) where x = k (1 + t) / (1 - t)."""

    def f(t):
        x = k * (1 + t) / (1 - t)
        return (1 + 2 * x) * mp.exp(x * x) * mp.erfc(x)

    return f


table("kErfcLite", "(1 + 2 x) e^(x^2) erfc(x) in t = (x - 2) / (x + 2), 3/4 <= x <= 10.5",
      scaled_erfc(2), lambda t: 1 / scaled_erfc(2)(t), mpf("-1.25") / mpf("2.75"),
      mpf("8.5") / mpf("12.5"), 11, 53)
centered_table("kErfcF64", "(1 + 2 x) e^(x^2) erfc(x) in t = (x - 4) / (x + 4), 3/4 <= x <= 27.5",
               scaled_erfc(4), mpf("-3.25") / mpf("4.75"), mpf("23.5") / mpf("31.5"), 20)

# erf_inv(x) = x p(w) with w = -log(1 - x^2).
def erf_inv_factor(w):
    x = mp.sqrt(-mp.expm1(-w))
    return mp.erfinv(x) / x


def erf_inv_table(name, variable, center, low, high, degree):
    """p in t = variable - center for low <= variable <= high."""
    power = 1 if variable == "w" else 2
    centered_table(name, f"erf_inv(x) / x in t = {variable} - {center}, {low} <= {variable} <= {high}",
                   lambda t: erf_inv_factor((t + mpf(center)) ** power),
                   mpf(low) - mpf(center), mpf(high) - mpf(center), degree)


table("kErfInvSmallF64", "(erf_inv(x) / x - sqrt(pi) / 2) / x^2 in x^2, |x| <= 1/2",
      away_from_zero(lambda u: (root(mp.erfinv)(u) - mp.sqrt(mp.pi) / 2) / u, mp.pi ** mpf("1.5") / 24),
      lambda u: u / root(mp.erfinv)(u) if u else mpf(0), 0, mpf("0.2501"), 12, 53)
erf_inv_table("kErfInvMiddleF64", "w", "3.125", "0.2876", "6.25", 23)
erf_inv_table("kErfInvLargeF64", "sqrt(w)", "3.25", "2.5", "4", 20)
erf_inv_table("kErfInvTailF64", "sqrt(w)", "5", "4", "6.1", 18)

# --- sin, cos ----------------------------------------------------------------------------------------
for name, degree, bits in (("kSinF32", 3, 24), ("kSinF64", 6, 53), ("kSinLite", 4, 53)):
    table(name, "(sin(r) / r - 1) / r^2 in r^2, |r| <= pi / 4",
          away_from_zero(lambda u: (root(mp.sin)(u) - 1) / u, mpf(-1) / 6),
          lambda u: u / root(mp.sin)(u) if u else mpf(0), 0, PI_4**2, degree, bits)
for name, degree, bits in (("kCosF32", 2, 24), ("kCosF64", 5, 53), ("kCosLite", 4, 53)):
    table(name, "(cos(r) - 1 + r^2 / 2) / r^4 in r^2, |r| <= pi / 4",
          away_from_zero(lambda u: (mp.cos(mp.sqrt(u)) - 1 + u / 2) / u**2, mpf(1) / 24),
          lambda u: u**2 / mp.cos(mp.sqrt(u)), 0, PI_4**2, degree, bits)

# --- inverse trigonometric functions -----------------------------------------------------------------
odd_table("kAtanF64", "atan(x)", mp.atan, "0.5", mpf(-1) / 3, 11, 53)
odd_table("kAtanLite", "atan(x)", mp.atan, "1", mpf(-1) / 3, 13, 53)
odd_table("kAsinF64", "asin(x)", mp.asin, "0.5", mpf(1) / 6, 12, 53)

split("kLn2Part", mp.log(2), 24, 2)
split("kLn2Part", mp.log(2), 53, 2)
split("kHalfPiPart", mp.pi / 2, 24, 3)
split("kHalfPiPart", mp.pi / 2, 53, 3)
split("kLog2e", 1 / mp.log(2), 24, 1)
split("kLog2e", 1 / mp.log(2), 53, 1)
split("kHalfRootPiPart", mp.sqrt(mp.pi) / 2, 53, 2)
split("kTwoOverPi", 2 / mp.pi, 24, 1)
split("kTwoOverPi", 2 / mp.pi, 53, 1)
split("kPi4Part", mp.pi / 4, 50, 2)
CONSTANTS.append(("kLn2Short1F64", round_to(mp.log(2), 40), 53))
CONSTANTS.append(("kLn2Short2F64", round_to(mp.log(2) - round_to(mp.log(2), 40), 53), 53))
split("kTwoThirdsPart", mpf(2) / 3, 53, 2)


def hexadecimal(x, bits):
    """A C++ hexadecimal literal of a number with so many significant bits."""
    return float(x).hex().replace("0000000p", "p") if bits <= 24 else float(x).hex()


def main():
    only = set(sys.argv[1:])  # names, for trying out
    print("#pragma once\n")
    print("// Written by tools/math/make_coefficients.py. Lowest power first; errors are those of the")
    print("// polynomials alone, relative to the function, in units of 2^-24 (f32) or 2^-53 (f64).\n")
    print("namespace xylem::compiler::math {\n")
    for name, value, bits in CONSTANTS:
        print(f"inline constexpr double {name} = {hexadecimal(value, bits)};")
    print()
    for name, comment, g, weight, a, b, degree, bits in TABLES:
        if only and name not in only:
            continue
        coefficients, error = fit(g, weight, a, b, degree, bits)
        print(f"// {comment}: error {mp.nstr(error * mpf(2) ** bits, 3)}.")
        print(f"inline constexpr double {name}[] = {{")
        line = "   "
        for c in coefficients:
            text = f" {hexadecimal(c, bits)},"
            if len(line) + len(text) > 100:
                print(line)
                line = "   "
            line += text
        print(line + "};\n")
    print("}  // namespace xylem::compiler::math")


main()
