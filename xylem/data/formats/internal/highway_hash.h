#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace xylem::data::internal {

// HighwayHash-64 of `data` (github.com/google/highwayhash) under a key of four words. The same on
// every machine; with AVX2 about five times as fast as without.
std::uint64_t highway_hash64(std::string_view data, const std::array<std::uint64_t, 4>& key);

// Under the key of Riegeli files.
std::uint64_t riegeli_hash(std::string_view data);

// The plain implementation, which the other is tested against.
std::uint64_t highway_hash64_portable(std::string_view data,
                                      const std::array<std::uint64_t, 4>& key);

}  // namespace xylem::data::internal
