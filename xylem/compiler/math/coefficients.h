#pragma once

// Written by tools/math/make_coefficients.py. Lowest power first; errors are those of the
// polynomials alone, relative to the function, in units of 2^-24 (f32) or 2^-53 (f64).

namespace xylem::compiler::math {

inline constexpr double kLn2Part1F32 = 0x1.62e430p-1;
inline constexpr double kLn2Part2F32 = -0x1.05c610p-29;
inline constexpr double kLn2Part1F64 = 0x1.62e42fefa39efp-1;
inline constexpr double kLn2Part2F64 = 0x1.abc9e3b39803fp-56;
inline constexpr double kHalfPiPart1F32 = 0x1.921fb6p+0;
inline constexpr double kHalfPiPart2F32 = -0x1.777a5cp-25;
inline constexpr double kHalfPiPart3F32 = -0x1.ee59dap-50;
inline constexpr double kHalfPiPart1F64 = 0x1.921fb54442d18p+0;
inline constexpr double kHalfPiPart2F64 = 0x1.1a62633145c07p-54;
inline constexpr double kHalfPiPart3F64 = -0x1.f1976b7ed8fbcp-110;
inline constexpr double kLog2eF32 = 0x1.715476p+0;
inline constexpr double kLog2eF64 = 0x1.71547652b82fep+0;
inline constexpr double kTwoOverPiF32 = 0x1.45f306p-1;
inline constexpr double kTwoOverPiF64 = 0x1.45f306dc9c883p-1;

// (e^r - 1 - r) / r^2, |r| <= ln(2) / 2: error 0.0536.
inline constexpr double kExpF32[] = {
    0x1.fffffcp-2, 0x1.55548cp-3, 0x1.555858p-5, 0x1.123db8p-7, 0x1.6ac2eap-10,
};

// (e^r - 1 - r) / r^2, |r| <= ln(2) / 2: error 0.00067.
inline constexpr double kExpF64[] = {
    0x1.0000000000000p-1,  0x1.555555555555dp-3,  0x1.555555555556cp-5,  0x1.111111110e54ep-7,
    0x1.6c16c16c0a4b3p-10, 0x1.a01a01b5f1576p-13, 0x1.a01a01e840393p-16, 0x1.71ddeab80f742p-19,
    0x1.27e44bdbbf92cp-22, 0x1.af7430c325bb3p-26, 0x1.204dd2cf1094dp-29,
};

// (2^r - 1) / r, |r| <= 1/2: error 4.21e+5.
inline constexpr double kExp2Lite[] = {
    0x1.62e42ff0e15dfp-1,  0x1.ebfbe077ac225p-3,  0x1.c6b08ac0954f9p-5,  0x1.3b29f37746f80p-7,
    0x1.5d8a85adeada2p-10, 0x1.445ca5984c864p-13, 0x1.fde6aa9b6871dp-17,
};

// (log(1 + f) - f + f^2 / 2) / f^3, -1/4 <= f <= 1/2: error 0.0835.
inline constexpr double kLogF32[] = {
    0x1.5555a4p-2, -0x1.000040p-2, 0x1.99693ap-3, -0x1.54ef66p-3,
    0x1.288b60p-3, -0x1.0d975ap-3, 0x1.ac6f36p-4, -0x1.70b080p-5,
};

// log2(1 + f) / f, |f| <= 1/3: error 3.67e+3.
inline constexpr double kLog2Lite[] = {
    0x1.71547652b8173p+0,  -0x1.71547652f178fp-1, 0x1.ec709dc562bdap-2,  -0x1.715475bda7f8ap-2, 0x1.2776c3c1a7ea1p-2,
    -0x1.ec710db031c85p-3, 0x1.a6181d8c2a6eap-3,  -0x1.71420375c44a9p-3, 0x1.483181bcf95e0p-3,  -0x1.29037108a97fep-3,
    0x1.0e7c7d2f549e6p-3,  -0x1.c947cc2adcecap-4, 0x1.9fe39e654fcf9p-4,  -0x1.34df9c89f1b84p-3, 0x1.284865435438bp-3,
};

// (tanh(x) / x - 1) / x^2 in x^2, |x| <= 0.55: error 0.0185.
inline constexpr double kTanhF32[] = {
    -0x1.55554cp-2, 0x1.110d66p-3, -0x1.b9310cp-5, 0x1.5979b2p-6, -0x1.9c6090p-8,
};

// erf(x) / x - 1 in x^2, |x| <= 1: error 0.0239.
inline constexpr double kErfF32[] = {
    0x1.06eba8p-3, -0x1.81273ep-2, 0x1.ce2ce6p-4, -0x1.b7f71ap-6, 0x1.53f224p-8, -0x1.a3515ep-11, 0x1.4771fcp-14,
};

// erf(t + 2.375), |t| <= 1.5625: error 0.538.
inline constexpr double kErfTailF32[] = {
    0x1.ff9962p-1,   0x1.069148p-8,  -0x1.37d816p-7, 0x1.c1ee5ep-7,   -0x1.ae0a4cp-7, 0x1.11ccdap-7,
    -0x1.9b71f6p-9,  0x1.0cab78p-13, 0x1.4831e8p-11, -0x1.69ab4cp-12, 0x1.1967b0p-15, 0x1.3d829cp-15,
    -0x1.cc3c86p-17, 0x1.bac354p-23, 0x1.a75e3cp-21, -0x1.984350p-23,
};

// (sin(r) / r - 1) / r^2 in r^2, |r| <= pi / 4: error 0.00273.
inline constexpr double kSinF32[] = {
    -0x1.555556p-3,
    0x1.111174p-7,
    -0x1.a05956p-13,
    0x1.7c2d90p-19,
};

// (cos(r) - 1 + r^2 / 2) / r^4 in r^2, |r| <= pi / 4: error 0.000387.
inline constexpr double kCosF32[] = {
    0x1.555556p-5,
    -0x1.6c179cp-10,
    0x1.a0aeacp-16,
    -0x1.44bbfcp-22,
};

}  // namespace xylem::compiler::math
