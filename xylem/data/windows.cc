#include "xylem/data/windows.h"

#include <fmt/format.h>

#include <algorithm>

#include "xylem/base/error.h"

namespace xylem::data {

Windows::Windows(std::string_view text, std::int64_t length, std::string_view what)
    : text_(text), length_(length), count_(0) {
  if (length < 1)
    throw_user_error({"max_target_length", "at least 1", fmt::format("{}", length),
                      "Set max_target_length to the number of tokens the model sees at once"});
  const std::int64_t bytes = static_cast<std::int64_t>(text.size());
  if (bytes > length) count_ = (bytes - 1) / length;
  if (count_ == 0)
    throw_user_error({fmt::format("dataset: the {}", what),
                      fmt::format("at least max_target_length + 1 = {} bytes", length + 1),
                      fmt::format("{} bytes", bytes),
                      "Give a longer text (a twentieth of it is held out for validation), or a "
                      "smaller max_target_length"});
}

void Windows::copy(std::int64_t i, std::span<std::int32_t> out) const {
  XYLEM_CHECK(i >= 0 && i < count_ && static_cast<std::int64_t>(out.size()) == length_ + 1,
              "no such window");
  const char* from = text_.data() + i * length_;
  for (std::size_t k = 0; k < out.size(); ++k) out[k] = static_cast<unsigned char>(from[k]);
}

HostArray Windows::get(std::int64_t i) const {
  HostArray a(DType::kI32, {length_ + 1});
  copy(i, {a.as<std::int32_t>(), static_cast<std::size_t>(length_) + 1});
  return a;
}

HostArray Windows::range(std::int64_t first, std::int64_t n) const {
  HostArray a(DType::kI32, {n, length_ + 1});
  const std::size_t width = static_cast<std::size_t>(length_) + 1;
  for (std::int64_t k = 0; k < n; ++k)
    copy(std::min(first + k, count_ - 1),
         {a.as<std::int32_t>() + static_cast<std::size_t>(k) * width, width});
  return a;
}

}  // namespace xylem::data
