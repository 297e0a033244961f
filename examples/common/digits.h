#pragma once

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "xylem/core/core.h"
#include "xylem/data/dataset.h"
#include "xylem/data/record_source.h"

// The handwritten digits of examples/data, read with the library's own pipeline.

namespace example {

struct Digit {
  std::array<float, 64> image;  // 8×8, 0 (paper) to 1 (ink)
  std::int32_t label;
};
struct Digits {
  xylem::HostArray image, label;  // [n, 64], [n]
};

inline Digit parse_digit(const xylem::data::Record& record) {
  Digit d{};
  for (std::size_t i = 0; i < record.fields.size(); ++i) {
    const auto* text = record.fields[i].second.get_if<std::string>();
    int v = -1;
    const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), v);
    const bool is_label = i == 64;
    if (record.fields.size() != 65 || error != std::errc() || end != text->data() + text->size() ||
        v < 0 || v > (is_label ? 9 : 16))
      throw xylem::UserError(
          {"digits: column " + std::to_string(i),
           "64 pixels of 0 to 16 and a label of 0 to 9 on every line",
           "'" + *text + "' in a line of " + std::to_string(record.fields.size()) + " fields",
           "Use examples/data/digits.csv.gz"});
    if (is_label)
      d.label = v;
    else
      d.image[i] = static_cast<float>(v) / 16;
  }
  return d;
}

// Training digits, and a fifth at the end of the file that no training sees. Digits stand in the
// file writer by writer, so these are harder than digits drawn from everywhere.
struct Split {
  std::vector<Digit> train, test;
};
inline Split read_digits(const std::string& path) {
  std::vector<Digit> all;
  auto records = xylem::data::open_records(path, {.format = "csv", .header = false})->scan();
  for (xylem::data::Record r; records->next(r);) all.push_back(parse_digit(r));
  if (all.size() < 10)
    throw xylem::UserError({"digits: " + path, "at least 10 lines", std::to_string(all.size()),
                            "Use examples/data/digits.csv.gz"});
  const auto cut = all.begin() + static_cast<std::ptrdiff_t>(all.size() - all.size() / 5);
  return {{all.begin(), cut}, {cut, all.end()}};
}

// All of them as one batch.
inline Digits batch_of(const std::vector<Digit>& digits) {
  auto all = xylem::data::source(digits).batch<Digits>(static_cast<std::int64_t>(digits.size()));
  return all[0];
}

// Images [n, 64] beside each other in characters, from light to dark.
inline std::string draw(const xylem::HostArray& images, std::int64_t n) {
  constexpr std::string_view ink = " .:-=+*#%@";
  std::string out;
  for (std::int64_t row = 0; row < 8; ++row) {
    for (std::int64_t i = 0; i < n; ++i) {
      for (std::int64_t column = 0; column < 8; ++column) {
        const double v = std::clamp(images.at(i * 64 + row * 8 + column), 0.0, 0.999);
        out.append(2, ink[static_cast<std::size_t>(v * 10)]);
      }
      out += "  ";
    }
    out += '\n';
  }
  return out;
}

}  // namespace example
