#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "xylem/models/tokenizers/internal/parts.h"

namespace xylem::models::internal {

struct StringHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view s) const { return std::hash<std::string_view>()(s); }
};
template <class V>
using StringMap = std::unordered_map<std::string, V, StringHash, std::equal_to<>>;

// Byte-pair encoding: a piece begins as its characters' tokens, and the adjacent pair with the
// lowest rank, the leftmost of equals, becomes one token until no pair has a rank (Sennrich et al.
// 2016, arXiv:1508.07909, as `tokenizers` does it). O(n log n) in the piece's length.
class Bpe {
 public:
  // The `model` of a tokenizer.json.
  explicit Bpe(const JsonPlace& model);

  // Appends the ids of a piece. With bytes, the piece is what ByteLevel's characters stand for.
  void encode(std::string_view piece, bool bytes, std::vector<std::int32_t>& ids) const;
  // Whether pieces may be given as bytes: no affixes that would join ByteLevel's characters.
  bool takes_bytes() const { return prefix_.empty() && suffix_.empty(); }

  const StringMap<std::int32_t>& vocab() const { return vocab_; }
  const std::string& name() const { return name_; }

 private:
  struct Merge {
    std::uint32_t rank;
    std::int32_t id;
  };
  // Pairs of ids to merges: open addressing, because this is the inner loop of all encoding.
  class MergeTable {
   public:
    void reserve(std::size_t n);
    void set(std::uint64_t key, Merge m);
    const Merge* find(std::uint64_t key) const {
      for (std::size_t i = slot(key);; i = (i + 1) & mask_)
        if (keys_[i] == key)
          return &merges_[i];
        else if (keys_[i] == kEmpty)
          return nullptr;
    }

   private:
    static constexpr std::uint64_t kEmpty = ~std::uint64_t{0};
    std::size_t slot(std::uint64_t key) const {
      return static_cast<std::size_t>((key * 0x9E3779B97F4A7C15u) >> 20) & mask_;
    }
    std::size_t mask_ = 0;
    std::vector<std::uint64_t> keys_;
    std::vector<Merge> merges_;
  };
  struct Symbol {
    std::int32_t id, previous, next;
  };
  // Pieces encoded before. A shard that another thread holds is passed by.
  struct Shard {
    std::mutex mutex;
    StringMap<std::vector<std::int32_t>> ids;
  };
  static constexpr std::size_t kShards = 16, kShardPieces = 4096, kLongestPiece = 128;

  void read_vocab(const JsonPlace& model);
  void read_merges(const JsonPlace& model);
  void add_char(std::string_view text, bool first, bool last, std::vector<Symbol>& word,
                bool& unknown_open) const;
  void merge(std::vector<Symbol>& word) const;

  std::string name_;
  StringMap<std::int32_t> vocab_;
  StringMap<std::int32_t> vocab_bytes_;         // of tokens that stand for bytes, by those
  std::array<std::int32_t, 256> byte_ids_;      // of ByteLevel's characters; -1 without
  std::array<std::int32_t, 256> fallback_ids_;  // of <0xNN>; -1 without
  MergeTable merges_;
  std::string prefix_, suffix_;
  std::optional<std::int32_t> unknown_;
  bool fuse_unknown_ = false, byte_fallback_ = false, ignore_merges_ = false;
  std::unique_ptr<std::array<Shard, kShards>> cache_;
};

}  // namespace xylem::models::internal
