#include "xylem/models/tokenizers/internal/bpe.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <queue>

#include "xylem/base/error.h"
#include "xylem/models/tokenizers/internal/unicode.h"

namespace xylem::models::internal {
namespace {

std::uint64_t pair_key(std::int32_t a, std::int32_t b) {
  return std::uint64_t{static_cast<std::uint32_t>(a)} << 32 | static_cast<std::uint32_t>(b);
}

}  // namespace

void Bpe::MergeTable::reserve(std::size_t n) {
  const std::size_t size = std::bit_ceil(n * 2 + 2);
  mask_ = size - 1;
  keys_.assign(size, kEmpty);
  merges_.assign(size, {});
}

void Bpe::MergeTable::set(std::uint64_t key, Merge m) {
  std::size_t i = slot(key);
  while (keys_[i] != kEmpty && keys_[i] != key) i = (i + 1) & mask_;
  keys_[i] = key;
  merges_[i] = m;
}

Bpe::Bpe(const JsonPlace& model) : name_(model.path) {
  // Old files have no type; a model with merges is BPE.
  if (model.has("type") ? model.type() != "BPE" : !model.has("merges"))
    (model.has("type") ? model.at("type") : model)
        .refuse(
            "BPE",
            "Use a byte-pair-encoding tokenizer; WordPiece, WordLevel and Unigram are not read");
  if (model.has("dropout") &&
      !(model.at("dropout").value.is_number() && model.at("dropout").value.get<double>() == 0))
    model.at("dropout").refuse("null or 0, so that a text has one encoding", "Set dropout to null");
  prefix_ = model.text_or("continuing_subword_prefix", "");
  suffix_ = model.text_or("end_of_word_suffix", "");
  fuse_unknown_ = model.boolean("fuse_unk", false);
  byte_fallback_ = model.boolean("byte_fallback", false);
  ignore_merges_ = model.boolean("ignore_merges", false);
  read_vocab(model);
  read_merges(model);
  if (model.has("unk_token")) {
    const auto unknown = vocab_.find(model.text("unk_token"));
    // The library says so at the first unknown character only; a text must not fail half way.
    if (unknown == vocab_.end())
      model.at("unk_token").refuse("a token of the vocabulary", "Add the token, or set it to null");
    unknown_ = unknown->second;
  }
  cache_ = std::make_unique<std::array<Shard, kShards>>();
}

void Bpe::read_vocab(const JsonPlace& model) {
  const JsonPlace vocab = model.at("vocab");
  if (!vocab.value.is_object())
    vocab.refuse("an object of tokens and ids", "Save the tokenizer again");
  vocab_.reserve(vocab.value.size());
  for (const auto& [token, id] : vocab.value.items()) {
    if (!id.is_number_unsigned() || id.get<std::uint64_t>() > 0x7FFFFFFE)
      JsonPlace{id, fmt::format("{}[\"{:.60}\"]", vocab.path, token)}.refuse(
          "an id from 0 to 2147483646", "Correct the vocabulary");
    vocab_.emplace(token, id.get<std::int32_t>());
    if (const auto bytes = byte_level_bytes(token))
      vocab_bytes_.emplace(*bytes, id.get<std::int32_t>());
  }
  const auto id_of = [&](const std::string& token) {
    const auto found = vocab_.find(token);
    return found == vocab_.end() ? -1 : found->second;
  };
  for (unsigned b = 0; b < 256; ++b) {
    byte_ids_[b] = id_of(byte_level_char(static_cast<unsigned char>(b)));
    fallback_ids_[b] = id_of(fmt::format("<0x{:02X}>", b));
  }
}

void Bpe::read_merges(const JsonPlace& model) {
  const std::size_t n = model.size("merges");
  const Json& merges = model.at("merges").value;
  merges_.reserve(n);
  std::uint32_t rank = 0;
  std::string merged;
  for (std::size_t i = 0; i < n; ++i) {
    const Json& m = merges[i];
    const auto refuse = [&](const char* expected) {
      JsonPlace{m, fmt::format("{}.merges[{}]", name_, i)}.refuse(expected, "Correct the merges");
    };
    std::string_view a, b;
    if (m.is_string()) {
      const std::string& line = m.get_ref<const std::string&>();
      if (line.starts_with("#version")) continue;
      const std::size_t space = line.find(' ');
      if (space == std::string::npos || line.find(' ', space + 1) != std::string::npos)
        refuse("two tokens with a space between");
      a = std::string_view(line).substr(0, space);
      b = std::string_view(line).substr(space + 1);
    } else {
      if (!m.is_array() || m.size() != 2 || !m[0].is_string() || !m[1].is_string())
        refuse("two tokens");
      a = m[0].get_ref<const std::string&>();
      b = m[1].get_ref<const std::string&>();
    }
    const auto left = vocab_.find(a), right = vocab_.find(b);
    if (left == vocab_.end() || right == vocab_.end()) refuse("tokens of the vocabulary");
    if (b.size() < prefix_.size())
      refuse("a second token that begins with continuing_subword_prefix");
    merged.assign(a).append(b.substr(prefix_.size()));
    const auto id = vocab_.find(merged);
    if (id == vocab_.end()) refuse("two tokens that make a token of the vocabulary");
    merges_.set(pair_key(left->second, right->second), {rank++, id->second});
  }
}

void Bpe::add_char(std::string_view text, bool first, bool last, std::vector<Symbol>& word,
                   bool& unknown_open) const {
  const auto add = [&](std::int32_t id) { word.push_back({id, -1, -1}); };
  std::string longer;
  if ((!first && !prefix_.empty()) || (last && !suffix_.empty())) {
    if (!first) longer = prefix_;
    longer += text;
    if (last) longer += suffix_;
    text = longer;
  }
  if (const auto found = vocab_.find(text); found != vocab_.end()) {
    if (unknown_open) add(*unknown_);
    unknown_open = false;
    return add(found->second);
  }
  if (byte_fallback_ && std::all_of(text.begin(), text.end(), [&](char c) {
        return fallback_ids_[static_cast<unsigned char>(c)] >= 0;
      })) {
    // An unknown character before stays open, and comes behind the bytes: the library's order.
    for (char c : text) add(fallback_ids_[static_cast<unsigned char>(c)]);
    return;
  }
  if (!unknown_) return;
  if (unknown_open && !fuse_unknown_) add(*unknown_);
  unknown_open = true;
}

void Bpe::merge(std::vector<Symbol>& word) const {
  if (word.size() < 2) return;
  const auto n = static_cast<std::int32_t>(word.size());
  for (std::int32_t i = 0; i < n; ++i)
    word[static_cast<std::size_t>(i)].previous = i - 1,
    word[static_cast<std::size_t>(i)].next = i + 1 < n ? i + 1 : -1;
  const auto at = [&](std::int32_t i) -> Symbol& { return word[static_cast<std::size_t>(i)]; };
  // Most pieces are short: the best pair is looked for anew each time.
  if (n <= 24) {
    std::array<const Merge*, 24> pair;
    for (std::int32_t i = 0; i + 1 < n; ++i)
      pair[static_cast<std::size_t>(i)] = merges_.find(pair_key(at(i).id, at(i + 1).id));
    for (;;) {
      std::int32_t best = -1;
      std::uint32_t rank = UINT32_MAX;
      for (std::int32_t i = 0; i >= 0 && at(i).next >= 0; i = at(i).next)
        if (const Merge* m = pair[static_cast<std::size_t>(i)]; m != nullptr && m->rank < rank)
          best = i, rank = m->rank;
      if (best < 0) break;
      Symbol& s = at(best);
      s.id = pair[static_cast<std::size_t>(best)]->id;
      const std::int32_t gone = s.next;
      s.next = at(gone).next;
      at(gone).id = -1;
      if (s.next >= 0) {
        at(s.next).previous = best;
        pair[static_cast<std::size_t>(best)] = merges_.find(pair_key(s.id, at(s.next).id));
      }
      if (s.previous >= 0)
        pair[static_cast<std::size_t>(s.previous)] =
            merges_.find(pair_key(at(s.previous).id, s.id));
    }
  } else {
    struct Candidate {
      std::uint32_t rank;
      std::int32_t at, id, left, right;  // the ids that it joins
      bool operator<(const Candidate& o) const {
        return rank != o.rank ? rank > o.rank : at > o.at;
      }
    };
    std::vector<Candidate> first;
    const auto candidate = [&](std::int32_t i, auto&& push) {
      if (i < 0 || at(i).next < 0) return;
      const std::int32_t right = at(at(i).next).id;
      if (const Merge* m = merges_.find(pair_key(at(i).id, right)))
        push(Candidate{m->rank, i, m->id, at(i).id, right});
    };
    for (std::int32_t i = 0; i < n; ++i)
      candidate(i, [&](const Candidate& c) { first.push_back(c); });
    std::priority_queue<Candidate> queue({}, std::move(first));
    const auto push = [&](const Candidate& c) { queue.push(c); };
    while (!queue.empty()) {
      const Candidate c = queue.top();
      queue.pop();
      Symbol& s = at(c.at);
      if (s.id != c.left || s.next < 0 || at(s.next).id != c.right) continue;
      const std::int32_t gone = s.next;
      s.id = c.id;
      s.next = at(gone).next;
      at(gone).id = -1;
      if (s.next >= 0) at(s.next).previous = c.at;
      candidate(s.previous, push);
      candidate(c.at, push);
    }
  }
}

void Bpe::encode(std::string_view piece, bool bytes, std::vector<std::int32_t>& ids) const {
  if (piece.empty()) return;
  if (ignore_merges_) {
    const auto& vocab = bytes ? vocab_bytes_ : vocab_;
    if (const auto whole = vocab.find(piece); whole != vocab.end()) {
      ids.push_back(whole->second);
      return;
    }
  }
  Shard* shard = nullptr;
  if (piece.size() <= kLongestPiece) {
    shard = &(*cache_)[(StringHash()(piece) >> 7) % kShards];
    if (const std::unique_lock lock(shard->mutex, std::try_to_lock); lock) {
      if (const auto known = shard->ids.find(piece); known != shard->ids.end()) {
        ids.insert(ids.end(), known->second.begin(), known->second.end());
        return;
      }
    }
  }

  thread_local std::vector<Symbol> word;
  word.clear();
  bool unknown_open = false;
  if (bytes) {
    for (std::size_t i = 0; i < piece.size(); ++i) {
      const auto b = static_cast<unsigned char>(piece[i]);
      if (byte_ids_[b] >= 0 && !unknown_open)
        word.push_back({byte_ids_[b], -1, -1});
      else
        add_char(byte_level_char(b), i == 0, i + 1 == piece.size(), word, unknown_open);
    }
  } else {
    for (std::size_t at = 0; at < piece.size();) {
      const std::size_t begin = at;
      at += char_bytes(piece[at]);
      add_char(piece.substr(begin, at - begin), begin == 0, at == piece.size(), word, unknown_open);
    }
  }
  if (unknown_open) word.push_back({*unknown_, -1, -1});
  merge(word);
  const std::size_t before = ids.size();
  for (const Symbol& s : word)
    if (s.id >= 0) ids.push_back(s.id);
  if (word.capacity() > (1u << 20)) std::vector<Symbol>().swap(word);

  if (shard != nullptr) {
    if (const std::unique_lock lock(shard->mutex, std::try_to_lock); lock) {
      // A full shard begins anew: what is common comes back at once.
      if (shard->ids.size() >= kShardPieces) shard->ids.clear();
      shard->ids.emplace(piece, std::vector<std::int32_t>(
                                    ids.begin() + static_cast<std::ptrdiff_t>(before), ids.end()));
    }
  }
}

}  // namespace xylem::models::internal
