#include "xylem/data/packing.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <tuple>

#include "xylem/base/error.h"
#include "xylem/data/random.h"

namespace xylem::data::internal {
namespace {

bool contains(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::int64_t length_of(const HostArray& a) { return a.rank() == 0 ? 1 : a.dims()[0]; }

// Dimensions of one token.
Dims item_dims(const HostArray& a) {
  Dims d;
  for (int i = 1; i < a.rank(); ++i) d.push_back(a.dims()[i]);
  return d;
}

Dims join_dims(std::initializer_list<std::int64_t> front, const Dims& back) {
  Dims d(front);
  for (const std::int64_t v : back) d.push_back(v);
  return d;
}

std::string names_text(const Features& f) {
  std::string s;
  for (const Feature& x : f) s += (s.empty() ? "" : ", ") + x.name;
  return s;
}

std::size_t place_of(const Features& f, std::string_view name, std::string_view operation) {
  for (std::size_t i = 0; i < f.size(); ++i)
    if (f[i].name == name) return i;
  throw_user_error({fmt::format("{}: feature {}", operation, name), "a field of the element",
                    fmt::format("the fields {}", names_text(f)),
                    "Name fields by their path in the element"});
}

void check_lengths(const FeatureLengths& lengths, std::string_view operation) {
  if (lengths.empty())
    throw_user_error({fmt::format("{}: length", operation), "the row length of a feature or more",
                      "none", "Give for instance {{\"tokens\", 1024}}"});
  for (const auto& [name, n] : lengths)
    if (n < 1)
      throw_user_error({fmt::format("{}: length of {}", operation, name), "at least 1",
                        fmt::format("{}", n), "Give the number of tokens in a row"});
}

template <class Map>
void check_named(const Map& map, const FeatureLengths& lengths, std::string_view what) {
  for (const auto& [name, value] : map)
    if (std::none_of(lengths.begin(), lengths.end(),
                     [&](const auto& l) { return l.first == name; }))
      throw_user_error({fmt::format("pack: {} of {}", what, name), "a feature that `length` names",
                        "another one", "Add the feature to length, or leave this out"});
}

}  // namespace

// ---- bins

void check_pack_options(const PackOptions& o) {
  check_lengths(o.length, "pack");
  check_named(o.alignment, o.length, "alignment");
  check_named(o.padding, o.length, "padding");
  for (const auto& [name, a] : o.alignment)
    if (a < 1)
      throw_user_error({fmt::format("pack: alignment of {}", name), "at least 1",
                        fmt::format("{}", a), "Leave it out for no alignment"});
  if (o.num_packing_bins < 1)
    throw_user_error({"pack: num_packing_bins", "at least 1", fmt::format("{}", o.num_packing_bins),
                      "Give the number of rows filled at a time"});
  if (o.max_sequences_per_bin && *o.max_sequences_per_bin < 1)
    throw_user_error({"pack: max_sequences_per_bin", "at least 1",
                      fmt::format("{}", *o.max_sequences_per_bin), "Leave it out for no limit"});
  if (!o.shuffle_bins_group_by_feature.empty()) {
    const std::pair<std::string, int> group[] = {{o.shuffle_bins_group_by_feature, 0}};
    check_named(group, o.length, "shuffle_bins_group_by_feature");
  }
}

BinPacker::BinPacker(const PackOptions& options, FitStrategy strategy, const Features& like)
    : options_(options),
      strategy_(strategy),
      count_(static_cast<std::size_t>(options.num_packing_bins), 0) {
  const std::int64_t bins = options.num_packing_bins;
  for (const Feature& f : like) names_.push_back(f.name);
  for (const auto& [name, length] : options.length) {
    Packing p;
    p.feature = place_of(like, name, "pack");
    p.name = name;
    p.length = length;
    p.meta = contains(options.meta_features, name);
    if (const auto a = options.alignment.find(name); a != options.alignment.end())
      p.alignment = a->second;
    const HostArray& a = like[p.feature].array;
    const Dims item = item_dims(a);
    const auto padding = options.padding.find(name);
    p.values =
        padding != options.padding.end() && padding->second != 0
            ? pad_rows(HostArray(a.dtype(), join_dims({0, length}, item)), bins, padding->second)
            : HostArray::zeros(a.dtype(), join_dims({bins, length}, item));
    p.item_bytes = p.values.nbytes() / static_cast<std::size_t>(bins * length);
    p.row_bytes = p.item_bytes * static_cast<std::size_t>(length);
    if (!p.meta) {
      p.segment_ids = HostArray::zeros(DType::kI32, {bins, length});
      p.positions = HostArray::zeros(DType::kI32, {bins, length});
    }
    p.used.assign(static_cast<std::size_t>(bins), 0);
    packings_.push_back(std::move(p));
  }
  lengths_.resize(packings_.size());
  for (const std::string& m : options.meta_features)
    if (std::none_of(packings_.begin(), packings_.end(),
                     [&](const auto& p) { return p.name == m; })) {
      listed_.push_back(place_of(like, m, "pack: meta_features"));
      lists_.emplace_back(static_cast<std::size_t>(bins));
    }
}

std::int64_t BinPacker::find_row() const {
  const std::int64_t most = options_.max_sequences_per_bin.value_or(INT32_MAX);
  std::int64_t best = -1, best_used = -1;
  for (std::size_t r = 0; r < count_.size(); ++r) {
    if (count_[r] >= most) continue;
    bool fits = true;
    std::int64_t used = 0;
    for (std::size_t k = 0; fits && k < packings_.size(); ++k) {
      const Packing& p = packings_[k];
      fits = p.used[r] + lengths_[k] <= p.length;
      used += p.used[r];
    }
    if (!fits) continue;
    if (strategy_ == FitStrategy::first_fit) return static_cast<std::int64_t>(r);
    if (used > best_used) {
      best = static_cast<std::int64_t>(r);
      best_used = used;
    }
  }
  return best;
}

bool BinPacker::try_add(const Features& e) {
  bool same = e.size() == names_.size();
  for (std::size_t i = 0; same && i < e.size(); ++i) same = e[i].name == names_[i];
  if (!same)
    throw_user_error({"pack", fmt::format("elements with the fields {}", fmt::join(names_, ", ")),
                      names_text(e), "Give every element the same fields"});
  for (std::size_t k = 0; k < packings_.size(); ++k) {
    const Packing& p = packings_[k];
    const HostArray& a = e[p.feature].array;
    lengths_[k] = a.defined() ? length_of(a) : 0;
    if (!a.defined() || a.dtype() != p.values.dtype() ||
        a.nbytes() != p.item_bytes * static_cast<std::size_t>(lengths_[k]))
      throw_user_error({fmt::format("pack: feature {}", p.name),
                        fmt::format("dtype and token shape of {}", p.values.type_string()),
                        a.defined() ? a.type_string() : "an array without contents",
                        "Give every element the same dtype and trailing dimensions"});
    if (lengths_[k] > p.length)
      throw_user_error({fmt::format("pack: feature {}", p.name),
                        fmt::format("at most {} tokens, the length of a row", p.length),
                        fmt::format("{}", lengths_[k]),
                        "Cut sequences before packing, or use concat_then_split"});
  }
  const std::int64_t found = find_row();
  if (found < 0) return false;
  const auto r = static_cast<std::size_t>(found);
  const std::int32_t id = ++count_[r];
  for (std::size_t k = 0; k < packings_.size(); ++k) {
    Packing& p = packings_[k];
    const auto start = static_cast<std::size_t>(p.used[r]);
    const HostArray a = e[p.feature].array.to_contiguous();
    if (a.nbytes() > 0)
      std::memcpy(p.values.data() + r * p.row_bytes + start * p.item_bytes, a.data(), a.nbytes());
    if (!p.meta) {
      const auto n = static_cast<std::size_t>(p.length);
      std::int32_t* ids = p.segment_ids.as<std::int32_t>() + r * n + start;
      std::int32_t* positions = p.positions.as<std::int32_t>() + r * n + start;
      std::fill_n(ids, lengths_[k], id);
      std::iota(positions, positions + lengths_[k], 0);
    }
    p.used[r] = (p.used[r] + lengths_[k] + p.alignment - 1) / p.alignment * p.alignment;
  }
  for (std::size_t i = 0; i < listed_.size(); ++i) lists_[i][r].push_back(e[listed_[i]].array);
  return true;
}

std::int64_t BinPacker::num_rows() const {
  return std::count_if(count_.begin(), count_.end(), [](std::int32_t c) { return c > 0; });
}

std::vector<std::int64_t> BinPacker::row_order(std::uint64_t seed) const {
  const std::int64_t n = num_rows();
  std::vector<std::int64_t> order = permuted_range(seed, n);
  if (options_.shuffle_bins_group_by_feature.empty()) return order;
  const auto p = std::find_if(packings_.begin(), packings_.end(), [&](const Packing& q) {
    return q.name == options_.shuffle_bins_group_by_feature;
  });
  std::vector<std::tuple<double, std::int64_t, std::int64_t>> keys;
  for (std::int64_t r = 0; r < n; ++r) {
    // Mean of the distinct values; zeros, which are padding, do not count.
    const std::int64_t row =
        static_cast<std::int64_t>(p->row_bytes) / dtype_bytes(p->values.dtype());
    std::vector<double> values;
    for (std::int64_t i = 0; i < row; ++i) values.push_back(p->values.at(r * row + i));
    std::sort(values.begin(), values.end());
    values.erase(std::unique(values.begin(), values.end()), values.end());
    const double sum = std::accumulate(values.begin(), values.end(), 0.0);
    const auto zeros = std::count(values.begin(), values.end(), 0.0);
    const double count = static_cast<double>(values.size()) - static_cast<double>(zeros);
    keys.emplace_back(count > 0 ? sum / count : 0, order[static_cast<std::size_t>(r)], r);
  }
  std::sort(keys.begin(), keys.end());
  for (std::size_t i = 0; i < keys.size(); ++i) order[i] = std::get<2>(keys[i]);
  return order;
}

PackedRow BinPacker::row(std::int64_t r) const {
  const auto pick = [&](const HostArray& a) {
    if (!a.defined()) return a;
    Dims dims;
    for (int i = 1; i < a.rank(); ++i) dims.push_back(a.dims()[i]);
    return slice_rows(a, r, r + 1).reshape(dims);
  };
  PackedRow out;
  out.values.resize(names_.size());
  out.segment_ids.resize(names_.size());
  out.positions.resize(names_.size());
  for (const Packing& p : packings_) {
    out.values[p.feature] = pick(p.values);
    out.segment_ids[p.feature] = pick(p.segment_ids);
    out.positions[p.feature] = pick(p.positions);
  }
  for (std::size_t i = 0; i < listed_.size(); ++i) {
    std::vector<const HostArray*> list;
    for (const HostArray& a : lists_[i][static_cast<std::size_t>(r)]) list.push_back(&a);
    out.values[listed_[i]] = stack_arrays(list);
  }
  return out;
}

// ---- concat, then split

void check_concat_options(const ConcatThenSplitOptions& o) {
  check_lengths(o.length, "concat_then_split");
  const bool bos = o.bos_handling != BosHandling::do_nothing;
  if (!bos && (o.bos_token_id || !o.bos_features.empty()))
    throw_user_error({"concat_then_split: bos_features, bos_token_id",
                      "nothing while bos_handling is do_nothing", "one of them",
                      "Set bos_handling to replace_first_token_with_bos"});
  if (bos && !o.bos_token_id)
    throw_user_error({"concat_then_split: bos_token_id", "a token id", "none",
                      "Give the id of the token that begins a sequence"});
  for (const std::string& f : o.bos_features)
    if (contains(o.meta_features, f))
      throw_user_error({fmt::format("concat_then_split: feature {}", f),
                        "either a meta feature or one with BOS", "both", "Name it in one list"});
}

bool ConcatPacker::is_meta(std::string_view name) const {
  return contains(options_.meta_features, name);
}

void ConcatPacker::check(const Features& f) {
  if (names_.empty()) {
    for (const Feature& x : f) names_.push_back(x.name);
    for (const auto& [name, length] : options_.length)
      order_.push_back(place_of(f, name, "concat_then_split"));
  }
  bool same = f.size() == names_.size() && f.size() == options_.length.size();
  for (std::size_t i = 0; same && i < f.size(); ++i)
    same = f[i].name == names_[i] && f[i].array.defined();
  if (!same)
    throw_user_error(
        {"concat_then_split",
         fmt::format("elements with the {} fields that have a length", options_.length.size()),
         names_text(f), "Give a row length for each field, and drop the others"});
}

ConcatElement ConcatPacker::whole(Features f, State parent_state) const {
  return {std::move(parent_state), std::move(f),
          std::vector<std::pair<std::int64_t, std::int64_t>>(options_.length.size(), {-1, -1})};
}

// Which tokens of feature k the element stands for: [begin, end).
std::pair<std::int64_t, std::int64_t> ConcatPacker::part(const ConcatElement& e,
                                                         std::size_t k) const {
  const HostArray& a = e.features[order_[k]].array;
  const std::int64_t n = length_of(a);
  const auto [begin, end] = e.slices[k];
  if (begin < 0 || a.rank() == 0) return {0, n};
  const std::int64_t b = std::min(begin, n);
  return {b, std::clamp(end, b, n)};
}

bool ConcatPacker::full_length(const ConcatElement& e) const {
  bool full = false;
  for (std::size_t k = 0; k < order_.size(); ++k) {
    const std::int64_t n = length_of(e.features[order_[k]].array);
    if (n > options_.length[k].second) return false;
    full |= n == options_.length[k].second;
  }
  return full;
}

void ConcatPacker::clear_row() {
  row_.clear();
  used_.assign(options_.length.size(), 0);
}

std::optional<ConcatElement> ConcatPacker::add(ConcatElement e) {
  const std::size_t features = order_.size();
  std::vector<std::int64_t> taken(features), cut(features);
  bool split = false;
  for (std::size_t k = 0; k < features; ++k) {
    const auto [begin, end] = part(e, k);
    const std::int64_t n = end - begin, room = options_.length[k].second - used_[k];
    taken[k] = n;
    if (is_meta(options_.length[k].first)) {
      if (n > options_.length[k].second)
        throw_user_error(
            {fmt::format("concat_then_split: meta feature {}", options_.length[k].first),
             fmt::format("at most {} tokens, the length of a row", options_.length[k].second),
             fmt::format("{}", n), "Raise its length"});
      // Meta features are never cut: the row ends early.
      if (n > room) return e;
      continue;
    }
    if (n > room) {
      split = true;
      cut[k] = begin + room;
      taken[k] = room;
    } else {
      // Grain forgets where the element begins.
      cut[k] = compat_ == Compat::grain ? n : begin + n;
    }
  }
  std::optional<ConcatElement> rest;
  bool keeps = true;
  if (split) {
    bool nothing = true;
    for (std::size_t k = 0; k < features; ++k)
      if (!is_meta(options_.length[k].first)) nothing &= cut[k] == 0;
    if (nothing) {
      rest = e;
      keeps = false;
    } else {
      rest = e;
      for (std::size_t k = 0; k < features; ++k) {
        if (is_meta(options_.length[k].first)) continue;
        const HostArray& a = e.features[order_[k]].array;
        const auto [begin, end] = e.slices[k].first < 0
                                      ? std::pair<std::int64_t, std::int64_t>{0, length_of(a)}
                                      : e.slices[k];
        e.slices[k] = {begin, cut[k]};
        rest->slices[k] = {cut[k], end};
      }
    }
  }
  if (keeps) row_.push_back(std::move(e));
  for (std::size_t k = 0; k < features; ++k) used_[k] += taken[k];
  return rest;
}

PackedRow ConcatPacker::take_row() { return pack(row_); }

PackedRow ConcatPacker::pack(std::span<const ConcatElement> elements) const {
  PackedRow out;
  out.values.resize(names_.size());
  out.segment_ids.resize(names_.size());
  out.positions.resize(names_.size());
  for (std::size_t k = 0; k < order_.size(); ++k) {
    const auto& [name, length] = options_.length[k];
    const HostArray& like = elements[0].features[order_[k]].array;
    HostArray values = HostArray::zeros(like.dtype(), join_dims({length}, item_dims(like)));
    const std::size_t item = values.nbytes() / static_cast<std::size_t>(length);
    const bool meta = is_meta(name);
    HostArray ids, positions;
    if (!meta) {
      ids = HostArray::zeros(DType::kI32, {length});
      positions = HostArray::zeros(DType::kI32, {length});
    }
    const bool bos = contains(options_.bos_features, name);
    std::int64_t at = 0;
    std::int32_t id = 0;
    for (const ConcatElement& e : elements) {
      ++id;
      const HostArray a = e.features[order_[k]].array.to_contiguous();
      const auto [begin, end] = part(e, k);
      const std::int64_t n = end - begin;
      if (a.dtype() != values.dtype() ||
          a.nbytes() != item * static_cast<std::size_t>(length_of(a)))
        throw_user_error({fmt::format("concat_then_split: feature {}", name),
                          fmt::format("dtype and token shape of {}", values.type_string()),
                          a.type_string(),
                          "Give every element the same dtype and trailing dimensions"});
      XYLEM_CHECK(at + n <= length, "a row that is too long");
      if (n > 0)
        std::memcpy(values.data() + static_cast<std::size_t>(at) * item,
                    a.data() + static_cast<std::size_t>(begin) * item,
                    static_cast<std::size_t>(n) * item);
      if (bos && n > 0) {
        const HostArray token = HostArray::scalar(*options_.bos_token_id).astype(values.dtype());
        for (std::size_t i = 0; i < item; i += token.nbytes())
          std::memcpy(values.data() + static_cast<std::size_t>(at) * item + i, token.data(),
                      token.nbytes());
      }
      if (!meta) {
        std::fill_n(ids.as<std::int32_t>() + at, n, id);
        std::iota(positions.as<std::int32_t>() + at, positions.as<std::int32_t>() + at + n, 0);
      }
      at += n;
    }
    out.values[order_[k]] = values;
    out.segment_ids[order_[k]] = ids;
    out.positions[order_[k]] = positions;
  }
  return out;
}

std::vector<std::pair<std::int64_t, std::int64_t>> ConcatPacker::slices_of(
    const StateView& s) const {
  std::vector<std::pair<std::int64_t, std::int64_t>> out(options_.length.size(), {-1, -1});
  for (std::size_t k = 0; k < out.size(); ++k) {
    if (is_meta(options_.length[k].first)) continue;
    const auto pair = s.at(options_.length[k].first).items();
    const bool whole = pair.size() == 2 && pair[0].integer() == -1 && pair[1].integer() == -1;
    if (pair.size() != 2 || (!whole && (pair[0].integer() < 0 || pair[1].integer() < 0)))
      throw_user_error({"concat_then_split: state: remainder_slices",
                        "pairs [start, stop], or [-1, -1]",
                        fmt::format("{:.100}", s.extract().to_json()),
                        "Restore a state that the same pipeline gave"});
    out[k] = {pair[0].integer(), pair[1].integer()};
  }
  return out;
}

void ConcatPacker::write_slices(
    StateWriter& w, const std::vector<std::pair<std::int64_t, std::int64_t>>* slices) const {
  w.begin_object();
  for (std::size_t k = 0; k < options_.length.size(); ++k) {
    if (is_meta(options_.length[k].first)) continue;
    w.key(options_.length[k].first);
    w.begin_array();
    w.integer(slices != nullptr ? (*slices)[k].first : -1);
    w.integer(slices != nullptr ? (*slices)[k].second : -1);
    w.end();
  }
  w.end();
}

}  // namespace xylem::data::internal
