#include "xylem/ir/bytecode/enums.h"

namespace xylem::ir::bytecode {
namespace {

constexpr std::string_view kDirection[] = {"EQ", "NE", "GE", "GT", "LE", "LT"};
constexpr std::string_view kCompareType[] = {"NOTYPE", "FLOAT", "TOTALORDER", "SIGNED", "UNSIGNED"};
constexpr std::string_view kApiVersion[] = {
    "API_VERSION_UNSPECIFIED", "API_VERSION_ORIGINAL", "API_VERSION_STATUS_RETURNING",
    "API_VERSION_STATUS_RETURNING_UNIFIED", "API_VERSION_TYPED_FFI"};
constexpr std::string_view kFft[] = {"FFT", "IFFT", "RFFT", "IRFFT"};
constexpr std::string_view kPrecision[] = {"DEFAULT", "HIGH", "HIGHEST"};
constexpr std::string_view kAlgorithm[] = {"DEFAULT", "THREE_FRY", "PHILOX"};
constexpr std::string_view kDistribution[] = {"", "UNIFORM", "NORMAL"};
constexpr std::string_view kTranspose[] = {"TRANSPOSE_INVALID", "NO_TRANSPOSE", "TRANSPOSE",
                                           "ADJOINT"};
constexpr std::string_view kAccuracy[] = {"DEFAULT", "HIGHEST", "TOLERANCE"};

constexpr Enumeration kTable[] = {
    {"comparison_direction", 3, 2, 0, kDirection},
    {"comparison_type", 4, 3, 1, kCompareType},
    {"custom_call_api_version", 5, -1, -1, kApiVersion},
    {"fft_type", 7, 6, -1, kFft},
    {"precision", 11, 8, -1, kPrecision},
    {"rng_algorithm", 12, 9, -1, kAlgorithm},
    {"rng_distribution", 13, 10, -1, kDistribution},
    {"transpose", 16, 12, -1, kTranspose},
    {"result_accuracy_mode", 19, 16, -1, kAccuracy},
};

template <class Test>
const Enumeration* find(Test test) {
  for (const Enumeration& e : kTable)
    if (test(e)) return &e;
  return nullptr;
}

}  // namespace

int Enumeration::number(std::string_view member) const {
  for (std::size_t i = 0; i < members.size(); ++i)
    if (members[i] == member && !member.empty()) return static_cast<int>(i);
  return -1;
}

std::span<const Enumeration> enumerations() { return kTable; }

const Enumeration* enumeration_of_mnemonic(std::string_view mnemonic) {
  return find([&](const Enumeration& e) { return e.mnemonic == mnemonic; });
}
const Enumeration* enumeration_of_vhlo(std::uint64_t code) {
  return find(
      [&](const Enumeration& e) { return static_cast<std::uint64_t>(e.vhlo_code) == code; });
}
const Enumeration* enumeration_of_stablehlo(std::uint64_t code) {
  return find([&](const Enumeration& e) {
    return e.stablehlo_code >= 0 && static_cast<std::uint64_t>(e.stablehlo_code) == code;
  });
}
const Enumeration* enumeration_of_chlo(std::uint64_t code) {
  return find([&](const Enumeration& e) {
    return e.chlo_code >= 0 && static_cast<std::uint64_t>(e.chlo_code) == code;
  });
}

}  // namespace xylem::ir::bytecode
