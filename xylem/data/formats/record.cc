#include "xylem/data/formats/record.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <numeric>

#include "xylem/data/formats/internal/checks.h"

namespace xylem::data {
namespace {

std::string range_text(std::uint64_t begin, std::uint64_t end) {
  return fmt::format("bytes {}-{}", begin, end > begin ? end - 1 : begin);
}
// Reasons may be whole messages; sentences are closed by what they are put into.
std::string_view without_stop(std::string_view s) {
  while (s.ends_with('.') || s.ends_with('\n')) s.remove_suffix(1);
  return s;
}

}  // namespace

DamageError::DamageError(std::string_view file, std::uint64_t begin, std::uint64_t end,
                         std::string_view reason, std::string_view advice)
    : UserError(ErrorParts{
          file, "its contents must be whole and match their lengths and checksums",
          fmt::format("{}: {}", range_text(begin, end), without_stop(reason)),
          advice.empty() ? "Restore the file from a copy; `xylem data verify` lists all damage"
                         : advice}),
      begin_(begin),
      end_(end),
      reason_(without_stop(reason)),
      file_(file) {}

std::uint64_t RecordCursor::skip(std::uint64_t n) {
  Record record;
  for (std::uint64_t i = 0; i < n; ++i)
    if (!next(record)) return i;
  return n;
}

std::vector<Record> RecordReader::read_batch(std::span<const std::uint64_t> indices) const {
  std::vector<std::size_t> order(indices.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return indices[a] < indices[b]; });
  std::vector<Record> out(indices.size());
  for (std::size_t k = 0; k < order.size(); ++k) {
    if (k > 0 && indices[order[k]] == indices[order[k - 1]])
      out[order[k]] = out[order[k - 1]];
    else
      out[order[k]] = read(indices[order[k]]);
  }
  return out;
}

void RecordReader::verify(const DamageSink& sink) const {
  Record record;
  std::unique_ptr<RecordCursor> cursor;
  try {
    cursor = scan(0);
  } catch (const DamageError& e) {
    sink(e);
    return;
  }
  while (true) {
    try {
      while (cursor->next(record)) {
      }
      return;
    } catch (const DamageError& e) {
      sink(e);
    }
    if (!cursor->recover()) return;
  }
}

namespace internal {

void check_limit(std::string_view file, std::uint64_t begin, std::uint64_t end, std::uint64_t size,
                 const ReadOptions& options) {
  if (size > options.max_record_bytes)
    throw DamageError(file, begin, end,
                      fmt::format("{} bytes in one record or block are more than the limit of {}",
                                  size, options.max_record_bytes),
                      "If the file is meant to be so, raise the limit (--max-record-bytes)");
}

void check_index(std::string_view file, std::uint64_t index, std::uint64_t count) {
  if (index >= count)
    throw_user_error({fmt::format("read {}", file), fmt::format("an index below {}", count),
                      fmt::format("{}", index), "Records are numbered from 0"});
}

OptionsText::OptionsText(std::string_view format, std::string_view text) : format_(format) {
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    const std::string_view item = text.substr(0, comma);
    text.remove_prefix(comma == std::string_view::npos ? text.size() : comma + 1);
    if (item.empty()) continue;
    const std::size_t colon = item.find(':');
    const std::string name(item.substr(0, colon));
    for (const Item& i : items_)
      if (i.name == name)
        throw_user_error(
            {format_ + " options", "each name once", name + " twice", "Remove one of them"});
    items_.push_back(
        {name, std::string(colon == std::string_view::npos ? "" : item.substr(colon + 1))});
  }
}

bool OptionsText::take(std::string_view name, std::string& value) {
  for (Item& i : items_)
    if (i.name == name) {
      i.taken = true;
      value = i.value;
      return true;
    }
  return false;
}

std::int64_t OptionsText::take_int(std::string_view name, std::int64_t otherwise, std::int64_t min,
                                   std::int64_t max) {
  std::string text;
  if (!take(name, text)) return otherwise;
  std::int64_t v = 0;
  const auto r = std::from_chars(text.data(), text.data() + text.size(), v);
  if (r.ec != std::errc() || r.ptr != text.data() + text.size() || v < min || v > max)
    throw_user_error({fmt::format("{} options: {}", format_, name),
                      fmt::format("an integer from {} to {}", min, max),
                      fmt::format("\"{}\"", text), "Correct the value"});
  return v;
}

bool OptionsText::take_bool(std::string_view name, bool otherwise) {
  std::string text;
  if (!take(name, text)) return otherwise;
  if (text.empty() || text == "true") return true;
  if (text == "false") return false;
  throw_user_error({fmt::format("{} options: {}", format_, name), "true or false",
                    fmt::format("\"{}\"", text), "Correct the value"});
}

void OptionsText::finish() const {
  for (const Item& i : items_)
    if (!i.taken)
      throw_user_error({format_ + " options", "a name that the format knows",
                        fmt::format("\"{}\"", i.name),
                        "See the format's options in docs/record-formats.md"});
}

}  // namespace internal
}  // namespace xylem::data
