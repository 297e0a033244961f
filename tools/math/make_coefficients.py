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


TABLES = []


def table(name, comment, g, weight, a, b, degree, bits):
    TABLES.append((name, comment, g, weight, a, b, degree, bits))


# --- exp ---------------------------------------------------------------------------------------------
for name, degree, bits in (("kExpF32", 4, 24), ("kExpF64", 10, 53)):
    table(
        name, "(e^r - 1 - r) / r^2, |r| <= ln(2) / 2",
        away_from_zero(lambda r: (mp.exp(r) - 1 - r) / r**2, mpf(1) / 2),
        lambda r: r**2 / mp.exp(r), -LN2_HALF, LN2_HALF, degree, bits)
table("kExp2Lite", "(2^r - 1) / r, |r| <= 1/2",
      away_from_zero(lambda r: (2**r - 1) / r, mp.log(2)), lambda r: r / 2**r,
      -mpf("0.5001"), mpf("0.5001"), 6, 53)

# --- log ---------------------------------------------------------------------------------------------
for name, degree, bits in (("kLogF32", 7, 24),):
    table(
        name, "(log(1 + f) - f + f^2 / 2) / f^3, -1/4 <= f <= 1/2",
        away_from_zero(lambda f: (mp.log1p(f) - f + f**2 / 2) / f**3, mpf(1) / 3),
        lambda f: f**3 / mp.log1p(f) if f else mpf(0), mpf("-0.25001"), mpf("0.50001"), degree, bits)
table("kLog2Lite", "log2(1 + f) / f, |f| <= 1/3",
      away_from_zero(lambda f: mp.log1p(f) / f / mp.log(2), 1 / mp.log(2)),
      lambda f: mp.log(2) * f / mp.log1p(f) if f else mpf(1), -THIRD, THIRD, 14, 53)

# --- tanh, erf ---------------------------------------------------------------------------------------
table("kTanhF32", "(tanh(x) / x - 1) / x^2 in x^2, |x| <= 0.55",
      away_from_zero(lambda u: (root(mp.tanh)(u) - 1) / u, mpf(-1) / 3),
      lambda u: u / root(mp.tanh)(u) if u else mpf(0), 0, mpf("0.55") ** 2, 4, 24)
table("kErfF32", "erf(x) / x - 1 in x^2, |x| <= 1",
      away_from_zero(lambda u: root(mp.erf)(u) - 1, 2 / mp.sqrt(mp.pi) - 1),
      lambda u: 1 / root(mp.erf)(u) if u else mpf(1), 0, 1, 6, 24)
table("kErfTailF32", "erf(t + 2.375), |t| <= 1.5625",
      lambda t: mp.erf(t + mpf("2.375")), lambda t: 1 / mp.erf(t + mpf("2.375")),
      -mpf("1.5"), mpf("1.5625"), 15, 24)

# --- sin, cos ----------------------------------------------------------------------------------------
for name, degree, bits in (("kSinF32", 3, 24),):
    table(name, "(sin(r) / r - 1) / r^2 in r^2, |r| <= pi / 4",
          away_from_zero(lambda u: (root(mp.sin)(u) - 1) / u, mpf(-1) / 6),
          lambda u: u / root(mp.sin)(u) if u else mpf(0), 0, PI_4**2, degree, bits)
for name, degree, bits in (("kCosF32", 3, 24),):
    table(name, "(cos(r) - 1 + r^2 / 2) / r^4 in r^2, |r| <= pi / 4",
          away_from_zero(lambda u: (mp.cos(mp.sqrt(u)) - 1 + u / 2) / u**2, mpf(1) / 24),
          lambda u: u**2 / mp.cos(mp.sqrt(u)), 0, PI_4**2, degree, bits)


CONSTANTS = []


def split(name, x, bits, count):
    """x as a sum of so many numbers of `bits` significant bits."""
    for i in range(count):
        part = round_to(x, bits)
        CONSTANTS.append((f"{name}{i + 1 if count > 1 else ''}{'F32' if bits == 24 else 'F64'}", part, bits))
        x -= part


split("kLn2Part", mp.log(2), 24, 2)
split("kLn2Part", mp.log(2), 53, 2)
split("kHalfPiPart", mp.pi / 2, 24, 3)
split("kHalfPiPart", mp.pi / 2, 53, 3)
split("kLog2e", 1 / mp.log(2), 24, 1)
split("kLog2e", 1 / mp.log(2), 53, 1)
split("kTwoOverPi", 2 / mp.pi, 24, 1)
split("kTwoOverPi", 2 / mp.pi, 53, 1)


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
