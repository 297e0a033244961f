#pragma once

// Written by tools/math/make_coefficients.py. Lowest power first; errors are those of the
// polynomials alone, relative to the function, in units of 2^-24 (f32) or 2^-53 (f64).

namespace xylem::compiler::math {

inline constexpr double kErfcCenter1F64 = 0x1.3ba5916e9fd7fp+0;
inline constexpr double kErfcCenter2F64 = -0x1.aa9c415679e6fp-55;
inline constexpr double kErfInvMiddleCenter1F64 = 0x1.a755e7c99ae86p+0;
inline constexpr double kErfInvMiddleCenter2F64 = -0x1.b3639c30931fcp-56;
inline constexpr double kErfInvLargeCenter1F64 = 0x1.8abcc380d5a48p+1;
inline constexpr double kErfInvLargeCenter2F64 = -0x1.92060f0628130p-54;
inline constexpr double kErfInvTailCenter1F64 = 0x1.3664ddd1ad7fbp+2;
inline constexpr double kErfInvTailCenter2F64 = -0x1.7c90e434da15ap-54;
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
inline constexpr double kHalfRootPiPart1F64 = 0x1.c5bf891b4ef6bp-1;
inline constexpr double kHalfRootPiPart2F64 = -0x1.618f13eb7ca89p-55;
inline constexpr double kTwoOverPiF32 = 0x1.45f306p-1;
inline constexpr double kTwoOverPiF64 = 0x1.45f306dc9c883p-1;
inline constexpr double kPi4Part1F64 = 0x1.921fb54442d18p-1;
inline constexpr double kPi4Part2F64 = 0x1.1a62633145c08p-55;
inline constexpr double kLn2Short1F64 = 0x1.62e42fefa4000p-1;
inline constexpr double kLn2Short2F64 = -0x1.8432a1b0e2634p-43;
inline constexpr double kTwoThirdsPart1F64 = 0x1.5555555555555p-1;
inline constexpr double kTwoThirdsPart2F64 = 0x1.5555555555555p-55;

// (e^r - 1 - r) / r^2, |r| <= ln(2) / 2: error 0.0536.
inline constexpr double kExpF32[] = {
    0x1.fffffcp-2, 0x1.55548cp-3, 0x1.555858p-5, 0x1.123db8p-7, 0x1.6ac2eap-10,
};

// (e^r - 1 - r) / r^2, |r| <= ln(2) / 2: error 0.0335.
inline constexpr double kExpF64[] = {
    0x1.000000000000ap-1,  0x1.5555555555502p-3,  0x1.5555555550608p-5,  0x1.1111111125214p-7,
    0x1.6c16c184b36a7p-10, 0x1.a01a013b4a183p-13, 0x1.a019989909b5bp-16, 0x1.71def9cd1eec8p-19,
    0x1.28aec6b4ac1b8p-22, 0x1.adcc3182f467ap-26,
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

// (log(1 + f) - f + f^2 / 2) / f^3, -1/4 <= f <= 1/2: error 0.0863.
inline constexpr double kLogF64[] = {
    0x1.55555555555a0p-2, -0x1.0000000000787p-2, 0x1.999999998c828p-3, -0x1.5555555456dfcp-3,
    0x1.24924929653d7p-3, -0x1.0000006485dccp-3, 0x1.c71c70e8d9942p-4, -0x1.999972a5fa7a7p-4,
    0x1.745cea7de0578p-4, -0x1.55593991e0671p-4, 0x1.3b1f23dedc58ap-4, -0x1.2465b73ae56cbp-4,
    0x1.101bb0058372fp-4, -0x1.fff3eb8867986p-5, 0x1.f24e677ddba33p-5, -0x1.e90f8fe2f3c2cp-5,
    0x1.9faf374f4cf9cp-5, -0x1.e2445a5e7073dp-6, 0x1.09b11cd3143c4p-7,
};

// log2(1 + f) / f, |f| <= 1/3: error 3.67e+3.
inline constexpr double kLog2Lite[] = {
    0x1.71547652b8173p+0, -0x1.71547652f178fp-1, 0x1.ec709dc562bdap-2, -0x1.715475bda7f8ap-2,
    0x1.2776c3c1a7ea1p-2, -0x1.ec710db031c85p-3, 0x1.a6181d8c2a6eap-3, -0x1.71420375c44a9p-3,
    0x1.483181bcf95e0p-3, -0x1.29037108a97fep-3, 0x1.0e7c7d2f549e6p-3, -0x1.c947cc2adcecap-4,
    0x1.9fe39e654fcf9p-4, -0x1.34df9c89f1b84p-3, 0x1.284865435438bp-3,
};

// (log((1 + s) / (1 - s)) - 2 s - 2/3 s^3) / s^5 in s^2, |s| <= 0.1716: error 0.2.
inline constexpr double kLogRatioF64[] = {
    0x1.999999999999ap-2, 0x1.2492492492491p-2, 0x1.c71c71c71d003p-3,
    0x1.745d174510718p-3, 0x1.3b13b1be0cadap-3, 0x1.1110df3471947p-3,
    0x1.e1f821fe7c522p-4, 0x1.ac472bacd4a66p-4, 0x1.b8f1fadc8b6bdp-4,
};

// cbrt(x), 1 <= x <= 2: error 1.11e+10.
inline constexpr double kCbrt[] = {
    0x1.e4b0ce1639c85p-2, 0x1.ad23443e5b2a4p-1,  -0x1.e07d47390002bp-2,
    0x1.9f49410156112p-3, -0x1.9cc38470f80eep-5, 0x1.5e84d241e3546p-8,
};

// (tanh(x) / x - 1) / x^2 in x^2, |x| <= 0.55: error 0.0185.
inline constexpr double kTanhF32[] = {
    -0x1.55554cp-2, 0x1.110d66p-3, -0x1.b9310cp-5, 0x1.5979b2p-6, -0x1.9c6090p-8,
};

// (tanh(x) / x - 1) / x^2 in x^2, |x| <= 0.55: error 0.00597.
inline constexpr double kTanhF64[] = {
    -0x1.5555555555553p-2,  0x1.1111111110b67p-3,  -0x1.ba1ba1b9a92cbp-5,  0x1.664f48619dcd6p-6,
    -0x1.226e2ffcda01fp-7,  0x1.d6d2bc2d158edp-9,  -0x1.7d914f4361e8fp-10, 0x1.348ede9d5b5afp-11,
    -0x1.e9d94e5c663dap-13, 0x1.5e8f2a63d2ae5p-14, -0x1.49a2890a7a726p-16,
};

// (sinh(x) / x - 1) / x^2 in x^2, |x| <= 1: error 0.00509.
inline constexpr double kSinhF32[] = {
    0x1.555556p-3,
    0x1.1110e0p-7,
    0x1.a022bcp-13,
    0x1.756c1ep-19,
};

// (sinh(x) / x - 1) / x^2 in x^2, |x| <= 1: error 0.00101.
inline constexpr double kSinhF64[] = {
    0x1.5555555555555p-3,  0x1.111111111119bp-7,  0x1.a01a01a007360p-13, 0x1.71de3a68cf7a9p-19,
    0x1.ae644123d87efp-26, 0x1.61314c45d1e04p-33, 0x1.a6662d6cf2b1dp-41, 0x1.d27acbfd5354dp-48,
};

// (asinh(x) / x - 1) / x^2 in x^2, |x| <= 0.5: error 0.00583.
inline constexpr double kAsinhF64[] = {
    -0x1.5555555555541p-3, 0x1.3333333330757p-4, -0x1.6db6db6ba62bbp-5, 0x1.f1c71ba9a1971p-6,
    -0x1.6e8b8ca4f16b0p-6, 0x1.1c4d2f8e2ffccp-6, -0x1.c972e8f7b7cadp-7, 0x1.7941dd93209fcp-7,
    -0x1.3869f791fb92dp-7, 0x1.e942aa29f41d7p-8, -0x1.371fc913cb13fp-8, 0x1.c25bf9c6741a7p-10,
};

// (atanh(x) / x - 1) / x^2 in x^2, |x| <= 0.5: error 0.0043.
inline constexpr double kAtanhF64[] = {
    0x1.555555555554cp-2,  0x1.999999999b3b9p-3, 0x1.24924923c63a8p-3,  0x1.c71c722bb646ep-4,
    0x1.745d0896825d6p-4,  0x1.3b1513add526fp-4, 0x1.10fa57320c5b6p-4,  0x1.e3ecbc094bf81p-5,
    0x1.9e72c4996d30cp-5,  0x1.e76cbc7eabf27p-5, -0x1.4dbac60c13bf5p-8, 0x1.65143c7e865aap-3,
    -0x1.8ff8d8cb562f3p-3, 0x1.ecca4a8ae3b0ep-3,
};

// (acosh(1 + t) / sqrt(2 t) - 1) / t, 0 <= t <= 1/2: error 0.00582.
inline constexpr double kAcoshF64[] = {
    -0x1.5555555555541p-4,  0x1.333333333074bp-6,  -0x1.6db6db6ba5409p-8,  0x1.f1c71ba9341d8p-10,
    -0x1.6e8b8c97b1fabp-11, 0x1.1c4d2e9b92fdep-12, -0x1.c972d31c1551dp-14, 0x1.79413a8206733p-15,
    -0x1.3866e5ea5d0a4p-16, 0x1.e9303ade64a47p-18, -0x1.370067eae0770p-19, 0x1.c1ff839478bc8p-22,
};

// erf(x) / x - 1 in x^2, |x| <= 1: error 0.0239.
inline constexpr double kErfF32[] = {
    0x1.06eba8p-3, -0x1.81273ep-2,  0x1.ce2ce6p-4,  -0x1.b7f71ap-6,
    0x1.53f224p-8, -0x1.a3515ep-11, 0x1.4771fcp-14,
};

// erf(x) / x - 1 in x^2, |x| <= 1: error 0.112.
inline constexpr double kErfF64[] = {
    0x1.06eba8214db69p-3,  -0x1.812746b037a37p-2,  0x1.ce2f21a0471d2p-4,  -0x1.b82ce314057a5p-6,
    0x1.565bcd51ab866p-8,  -0x1.c02dc224ae3c9p-11, 0x1.f9a50fe037bcep-14, -0x1.f4fe9ed3a56e1p-17,
    0x1.bca5225ee78bap-20, -0x1.7d59c86b270f0p-23, 0x1.da5fba7932abfp-26, -0x1.2f4f2b2ffc350p-27,
    0x1.75bb7e68f0dbcp-29, -0x1.bf8c981257141p-32,
};

// erf(t + 2.375), |t| <= 1.5625: error 0.538.
inline constexpr double kErfTailF32[] = {
    0x1.ff9962p-1,   0x1.069148p-8,   -0x1.37d816p-7, 0x1.c1ee5ep-7,
    -0x1.ae0a4cp-7,  0x1.11ccdap-7,   -0x1.9b71f6p-9, 0x1.0cab78p-13,
    0x1.4831e8p-11,  -0x1.69ab4cp-12, 0x1.1967b0p-15, 0x1.3d829cp-15,
    -0x1.cc3c86p-17, 0x1.bac354p-23,  0x1.a75e3cp-21, -0x1.984350p-23,
};

// (1 + 2 x) e^(x^2) erfc(x) in t = (x - 2) / (x + 2), 3/4 <= x <= 10.5: error 2.47e+5.
inline constexpr double kErfcLite[] = {
    0x1.46e80e2253ff4p+0,   -0x1.7bf5ec02b4d8dp-4,  -0x1.5407bdc006cc1p-3, 0x1.4ffa1ab12f347p-3,
    -0x1.bc2c25b352ccfp-5,  -0x1.073c94591820bp-7,  0x1.1def51d429087p-7,  0x1.4b3d17104928bp-10,
    -0x1.826cf5c27439cp-10, -0x1.b10e77586eb0fp-12, 0x1.efd2998961e0dp-13, 0x1.05e1183e3cc67p-14,
};

// (f(t) - f(0)) / t, f = (1 + 2 x) e^(x^2) erfc(x) in t = (x - 4) / (x + 4), 3/4 <= x <= 27.5:
// error 0.0682.
inline constexpr double kErfcF64[] = {
    -0x1.1df1ad154a28ap-3,  0x1.f7f5df66fdb24p-7,   0x1.16ecefcfa4decp-4,   -0x1.9ddb23c3eb498p-4,
    0x1.7fee004e22a3bp-4,   -0x1.0fb06dfe08c83p-4,  0x1.3079edf3dcf30p-5,   -0x1.096238933ebd9p-6,
    0x1.49c6737789cb3p-8,   -0x1.8d4a8bf10015ep-11, -0x1.a1dff4d200c23p-13, 0x1.3bdf3753812efp-13,
    -0x1.993d2b2be8296p-16, -0x1.78569e9da453ep-17, 0x1.7df237e43c922p-18,  0x1.305ea5188a808p-22,
    -0x1.aa6689ab77561p-21, 0x1.645dd1ebc1692p-24,  0x1.55262af644615p-24,  -0x1.4550d694bf5aep-26,
};

// (erf_inv(x) / x - sqrt(pi) / 2) / x^2 in x^2, |x| <= 1/2: error 0.0378.
inline constexpr double kErfInvSmallF64[] = {
    0x1.db29fb2fee612p-3, 0x1.053c2c0ab3aaep-3, 0x1.62847c4d631afp-4, 0x1.0a13174fb22e9p-4,
    0x1.a7c8b581d2b53p-5, 0x1.5ee3a3aed97f9p-5, 0x1.2b257a9a10836p-5, 0x1.ff0349965e2bcp-6,
    0x1.00f78e30ff9d3p-5, 0x1.2e2d3c388b012p-7, 0x1.25c00aa5c5615p-4, -0x1.2e4dd3467be9fp-4,
    0x1.ca06296bbea56p-4,
};

// (f(t) - f(0)) / t, f = erf_inv(x) / x in t = w - 3.125, 0.2876 <= w <= 6.25: error 0.0759.
inline constexpr double kErfInvMiddleF64[] = {
    0x1.ebd80d9b13dfbp-3,   -0x1.8b6c33114eb1ap-8,  -0x1.8457694836805p-11, 0x1.879c2a20ba03ap-13,
    -0x1.d1d1f7c92e068p-17, -0x1.6e8a53d3f6a97p-20, 0x1.c6b4f85c866f8p-22,  -0x1.f36ceb745fda1p-26,
    -0x1.1a9ea6ec39bfcp-28, 0x1.20f521eb62129p-30,  -0x1.dc41a1ab067c4p-35, -0x1.c89f7d789f71ap-37,
    0x1.72432c0137f41p-39,  -0x1.6c83070f5bd86p-44, -0x1.6922e8dc20b72p-45, 0x1.d8d0e57248ec6p-48,
    -0x1.0c43f84934c04p-55, -0x1.251b4ec36db22p-53, 0x1.0d90d0caa8055p-56,  0x1.2698c94e6c06fp-60,
    -0x1.65ab82a840e70p-62, 0x1.45648205b4a63p-69,  0x1.52baaf845b144p-69,
};

// (f(t) - f(0)) / t, f = erf_inv(x) / x in t = sqrt(w) - 3.25, 2.5 <= sqrt(w) <= 4: error 0.0406.
inline constexpr double kErfInvLargeF64[] = {
    0x1.0158a6d641d55p+0,   0x1.5ffcfe5b6d8f5p-8,   -0x1.ebadabba08567p-9,  0x1.468eeca8daadcp-9,
    -0x1.ba9240d6eb260p-10, 0x1.f3cc5486ee61bp-11,  -0x1.7448bd26e6108p-12, 0x1.932e50c57d649p-16,
    0x1.1e6ac7b8aea0dp-14,  -0x1.8cf389de81f29p-15, 0x1.a2400d4cc084cp-17,  0x1.89621a2fe983fp-19,
    -0x1.0b703db82f6f3p-18, 0x1.8ed7ea14f9a8ep-20,  -0x1.ea788b2e49d51p-26, -0x1.0e9009672abcep-22,
    0x1.1c6313a895cbfp-23,  -0x1.08a2db75f7316p-26, -0x1.0c6ce057b7dc9p-26, 0x1.874898069759dp-28,
};

// (f(t) - f(0)) / t, f = erf_inv(x) / x in t = sqrt(w) - 5, 4 <= sqrt(w) <= 6.1: error 0.0964.
inline constexpr double kErfInvTailF64[] = {
    0x1.02a30d1fba10ep+0,   -0x1.22ea5df1ad00fp-13, -0x1.c2f36aa2aba82p-13, 0x1.3ebf4ef35e1dap-14,
    -0x1.4a348f949ac1fp-16, 0x1.2fbd02e238860p-18,  -0x1.0a9085fd5001ap-20, 0x1.ebdf87864043ep-23,
    -0x1.22236fd133fb7p-24, 0x1.f2de18e10eeafp-26,  -0x1.062dcd9309accp-26, 0x1.0b9bab2f0e442p-27,
    -0x1.dc42969aab505p-29, 0x1.72bc19de4cf74p-30,  -0x1.e4d4f861613a1p-32, 0x1.cac0fc133b509p-35,
    0x1.7fe28400f5d48p-35,  -0x1.230b57770cacbp-36,
};

// (sin(r) / r - 1) / r^2 in r^2, |r| <= pi / 4: error 0.00273.
inline constexpr double kSinF32[] = {
    -0x1.555556p-3,
    0x1.111174p-7,
    -0x1.a05956p-13,
    0x1.7c2d90p-19,
};

// (sin(r) / r - 1) / r^2 in r^2, |r| <= pi / 4: error 0.00157.
inline constexpr double kSinF64[] = {
    -0x1.5555555555555p-3,  0x1.111111111103dp-7,  -0x1.a01a019ff3511p-13, 0x1.71de3a2393856p-19,
    -0x1.ae64166cb7089p-26, 0x1.60fb9db87423fp-33, -0x1.9903b6bc9bef9p-41,
};

// (sin(r) / r - 1) / r^2 in r^2, |r| <= pi / 4: error 45.3.
inline constexpr double kSinLite[] = {
    -0x1.55555555521f9p-3, 0x1.1111110c82a16p-7,   -0x1.a019f9330cea3p-13,
    0x1.71d769a5fc1b5p-19, -0x1.a9605ceabc774p-26,
};

// (cos(r) - 1 + r^2 / 2) / r^4 in r^2, |r| <= pi / 4: error 0.00197.
inline constexpr double kCosF32[] = {
    0x1.55554ap-5,
    -0x1.6c0c28p-10,
    0x1.99e80cp-16,
};

// (cos(r) - 1 + r^2 / 2) / r^4 in r^2, |r| <= pi / 4: error 0.000515.
inline constexpr double kCosF64[] = {
    0x1.555555555554bp-5,   -0x1.6c16c16c1500dp-10, 0x1.a01a019c8dd1ep-16,
    -0x1.27e4f7f0501b4p-22, 0x1.1ee9dacb78671p-29,  -0x1.8fa5ec7275b47p-37,
};

// (cos(r) - 1 + r^2 / 2) / r^4 in r^2, |r| <= pi / 4: error 0.837.
inline constexpr double kCosLite[] = {
    0x1.5555555552da9p-5,   -0x1.6c16c1671c002p-10, 0x1.a019fa5a637a0p-16,
    -0x1.27e0090470f28p-22, 0x1.1bbdbba080715p-29,
};

// (atan(x) / x - 1) / x^2 in x^2, |x| <= 0.5: error 0.0407.
inline constexpr double kAtanF64[] = {
    -0x1.5555555555538p-2, 0x1.9999999993fa7p-3, -0x1.249249221e4c8p-3, 0x1.c71c70c539686p-4,
    -0x1.745cf90f7b31ap-4, 0x1.3b117702ee227p-4, -0x1.10f51e7b9227bp-4, 0x1.e0017a668f798p-5,
    -0x1.a3f85fb0082fep-5, 0x1.57ea7291a19d4p-5, -0x1.c44fd2e98d639p-6, 0x1.4f26a17bab5bbp-7,
};

// (atan(x) / x - 1) / x^2 in x^2, |x| <= 1: error 2.58e+3.
inline constexpr double kAtanLite[] = {
    -0x1.55555554becb9p-2,  0x1.999998f9e473fp-3,  -0x1.2492310f42deap-3, 0x1.c718fe0965953p-4,
    -0x1.7438579f93256p-4,  0x1.3a177fc8851a7p-4,  -0x1.0c6b2e2ba8f04p-4, 0x1.c26616e82c52ap-5,
    -0x1.6024e366a2610p-5,  0x1.de311b630836dp-6,  -0x1.03d867ef52ef5p-6, 0x1.9ad84d95d7ffcp-8,
    -0x1.9bc78b6d4ed05p-10, 0x1.84149f92b9cd2p-13,
};

// (asin(x) / x - 1) / x^2 in x^2, |x| <= 0.5: error 0.00859.
inline constexpr double kAsinF64[] = {
    0x1.5555555555577p-3, 0x1.333333332e130p-4, 0x1.6db6db7212777p-5, 0x1.f1c71a94ed04dp-6,
    0x1.6e8bdee0d5296p-6, 0x1.1c49f0544f267p-6, 0x1.ca1f8e078b7adp-7, 0x1.7585869fd1e77p-7,
    0x1.613c9345b835dp-7, 0x1.e5f5b797637c6p-9, 0x1.639c37c05f165p-6, -0x1.57fcee757cbedp-6,
    0x1.0b467ffc6b8dap-5,
};

}  // namespace xylem::compiler::math
