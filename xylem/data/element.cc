#include "xylem/data/element.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "xylem/base/bytes.h"
#include "xylem/base/dtype_cast.h"

namespace xylem::data {
namespace internal {

HostArray stack_arrays(std::span<const HostArray* const> elements) {
  const HostArray& first = *elements[0];
  if (!first.defined())
    throw_user_error({"batch", "elements whose arrays are defined", "an array without contents",
                      "Leave the field out of the element"});
  Dims dims{static_cast<std::int64_t>(elements.size())};
  for (const std::int64_t d : first.dims()) dims.push_back(d);
  HostArray out(first.dtype(), dims);
  const std::size_t bytes = first.nbytes();
  std::byte* to = out.data();
  for (std::size_t i = 0; i < elements.size(); ++i, to += bytes) {
    const HostArray& e = *elements[i];
    if (!e.defined() || e.dtype() != first.dtype() || !std::ranges::equal(e.dims(), first.dims()))
      throw_user_error({fmt::format("batch: element {} of {}", i, elements.size()),
                        fmt::format("an array of type {}, as element 0", first.type_string()),
                        e.defined() ? e.type_string() : "an array without contents",
                        "Pad, crop or pack the elements to one shape before batching, or give a "
                        "batch function"});
    if (e.contiguous())
      std::memcpy(to, e.data(), bytes);
    else
      std::memcpy(to, e.to_contiguous().data(), bytes);
  }
  return out;
}

void throw_unequal_lengths(std::size_t element, std::size_t expected, std::size_t given) {
  throw_user_error({fmt::format("batch: element {}", element),
                    fmt::format("{} values, as element 0", expected), fmt::format("{}", given),
                    "Pad, crop or pack the elements to one length before batching, or give a batch "
                    "function"});
}

void throw_unequal_structure(std::string_view what, std::size_t element) {
  throw_user_error({fmt::format("batch: element {}", element), "the structure of element 0",
                    std::string(what), "Give every element the same fields"});
}

std::string array_spec(const HostArray& a) { return a.defined() ? a.type_string() : "nothing"; }

std::string dotted_path(std::string_view path) {
  std::string out;
  bool quoted = false;
  for (const char c : path) {
    if (c == '"')
      quoted = !quoted;
    else if (quoted || (c != '[' && c != ']'))
      out += c;
    else if (c == '[' && !out.empty())
      out += '.';
  }
  return out;
}

std::string preview_array(const HostArray& a) {
  if (!a.defined()) return "nothing";
  constexpr std::int64_t kMax = 12;
  if (is_complex(a.dtype())) return a.type_string();
  const auto value = [&](std::int64_t i) { return fmt::format("{:g}", a.at(i)); };
  if (a.rank() == 0) return value(0);
  std::string s = a.type_string() + " ";
  for (std::int64_t i = 0; i < std::min(a.size(), kMax); ++i) s += (i > 0 ? " " : "") + value(i);
  return a.size() > kMax ? s + " ..." : s;
}

std::string preview_text(std::string_view s) {
  std::string out = "\"";
  for (const char c : s.substr(0, 60))
    out += c >= ' ' && c < 127 ? std::string(1, c)
                               : fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
  return out + (s.size() > 60 ? "...\"" : "\"");
}

}  // namespace internal

HostArray pad_rows(const HostArray& a, std::int64_t n, double value) {
  if (a.rank() == 0 || a.dims()[0] >= n) return a;
  Dims dims = a.dims();
  dims[0] = n;
  HostArray out(a.dtype(), dims);
  const HostArray from = a.to_contiguous();
  std::memcpy(out.data(), from.data(), from.nbytes());
  std::byte* to = out.data() + from.nbytes();
  const HostArray fill = HostArray::scalar(value).astype(a.dtype());
  const std::size_t item = fill.nbytes();
  if (value == 0)
    std::memset(to, 0, out.nbytes() - from.nbytes());
  else
    for (std::size_t at = from.nbytes(); at < out.nbytes(); at += item, to += item)
      std::memcpy(to, fill.data(), item);
  return out;
}

HostArray slice_rows(const HostArray& a, std::int64_t begin, std::int64_t end) {
  XYLEM_CHECK(a.rank() > 0 && begin >= 0 && begin <= end && end <= a.dims()[0],
              "rows out of range");
  Dims dims = a.dims();
  const std::ptrdiff_t offset = begin * a.byte_strides()[0];
  dims[0] = end - begin;
  // Shares ownership with the whole.
  std::shared_ptr<std::byte> bytes(a.owner(), a.owner().get() + offset);
  return HostArray(a.dtype(), dims, std::move(bytes), a.byte_strides());
}

HostArray concatenate_rows(std::span<const HostArray> pieces) {
  XYLEM_CHECK(!pieces.empty(), "no rows");
  if (pieces.size() == 1) return pieces[0];
  Dims dims = pieces[0].dims();
  dims[0] = 0;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const HostArray& p = pieces[i];
    bool same = p.dtype() == pieces[0].dtype() && p.rank() == pieces[0].rank();
    for (int d = 1; same && d < p.rank(); ++d) same = p.dims()[d] == pieces[0].dims()[d];
    if (!same)
      throw_user_error({"concatenate rows",
                        fmt::format("arrays of dtype and row shape of {}", pieces[0].type_string()),
                        p.type_string(), "Give every batch the same fields and shapes"});
    dims[0] += p.dims()[0];
  }
  HostArray out(pieces[0].dtype(), dims);
  std::byte* to = out.data();
  for (const HostArray& p : pieces) {
    const HostArray c = p.to_contiguous();
    std::memcpy(to, c.data(), c.nbytes());
    to += c.nbytes();
  }
  return out;
}

}  // namespace xylem::data
