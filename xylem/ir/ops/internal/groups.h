#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "xylem/ir/op_def.h"
#include "xylem/ir/process.h"

namespace xylem::ir::ops {

// How ids of replica groups are meant.
enum class GroupStrategy { kCrossReplica, kCrossPartition, kCrossReplicaAndPartition, kFlattened };

// The ids of each group; fewer than nothing: the groups depend on a mesh that stands elsewhere.
struct Groups {
  std::vector<std::vector<std::int64_t>> ids;
  bool known = true;
  bool well_formed = true;

  explicit Groups(const Attrs& attrs);
  // The members of the first group; 0 if all processes are one group.
  std::int64_t first_size() const {
    return ids.empty() ? 0 : static_cast<std::int64_t>(ids[0].size());
  }
};

struct Member {
  int replica = 0, partition = 0;
  friend bool operator==(const Member&, const Member&) = default;
};

std::int64_t channel_of(const Attrs& attrs);
GroupStrategy reduction_strategy(const Attrs& attrs);    // all_reduce, all_gather, reduce_scatter
GroupStrategy permutation_strategy(const Attrs& attrs);  // the others

// The processes of the group that `self` is in, in their order; empty if it is in none.
std::vector<Member> group_of(const Groups& groups, GroupStrategy strategy, const Grid& grid,
                             Member self);

}  // namespace xylem::ir::ops
