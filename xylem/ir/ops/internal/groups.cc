#include "xylem/ir/ops/internal/groups.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "xylem/base/error.h"
#include "xylem/ir/ops/internal/eval_util.h"

namespace xylem::ir::ops {
namespace {

// Device ids along the given axes of a mesh: each group runs over these axes, the first outermost.
std::vector<std::vector<std::int64_t>> mesh_groups(const Attrs& mesh, const AttrList& axes,
                                                   bool& good) {
  struct Axis {
    std::string name;
    std::int64_t size, stride;
  };
  std::vector<Axis> all;
  const Attr* list = mesh.find("axes");
  for (const Attr& a : list && list->list() ? *list->list() : AttrList{}) {
    const Attrs* d = a.dict();
    if (!d || d->i64_or("size", 0) <= 0)
      return good = false, std::vector<std::vector<std::int64_t>>();
    all.push_back({d->str_or("name", ""), d->i64_or("size", 1), 1});
  }
  std::int64_t total = 1;
  for (std::size_t i = all.size(); i-- > 0;) {
    all[i].stride = total;
    if (__builtin_mul_overflow(total, all[i].size, &total) || total > (1 << 20)) {
      good = false;
      return {};
    }
  }
  // The part of the device number that the group's axes take: (size, stride) of each.
  std::vector<std::pair<std::int64_t, std::int64_t>> parts;
  for (const Attr& a : axes) {
    const Attrs* d = a.dict();
    auto axis = d ? std::find_if(all.begin(), all.end(),
                                 [&](const Axis& x) { return x.name == d->str_or("name", ""); })
                  : all.end();
    if (axis == all.end()) return good = false, std::vector<std::vector<std::int64_t>>();
    std::int64_t size = axis->size, stride = axis->stride;
    if (const Attr* sub = d->find("sub_axis_info")) {  // "(pre)size"
      const OpaqueAttr* text = sub->get<OpaqueAttr>();
      std::int64_t pre = 0, sub_size = 0;
      if (text && text->text.size() > 2 && text->text[0] == '(') {
        pre = std::strtoll(text->text.c_str() + 1, nullptr, 10);
        std::size_t close = text->text.find(')');
        if (close != std::string::npos)
          sub_size = std::strtoll(text->text.c_str() + close + 1, nullptr, 10);
      } else if (const Attrs* fields = sub->dict()) {
        pre = fields->i64_or("pre_size", 0);
        sub_size = fields->i64_or("size", 0);
      }
      if (pre <= 0 || sub_size <= 0 || pre > size || sub_size > size || size % (pre * sub_size))
        return good = false, std::vector<std::vector<std::int64_t>>();
      stride *= size / (pre * sub_size);
      size = sub_size;
    }
    parts.push_back({size, stride});
  }
  std::vector<std::int64_t> devices;
  if (const Attr* ids = mesh.find("device_ids")) {
    if (const HostArray* h = ids->get<HostArray>())
      for (std::int64_t i = 0; i < h->size(); ++i)
        devices.push_back(integer_scalar(h->to_contiguous(), i));
  }
  if (devices.empty())
    for (std::int64_t i = 0; i < total; ++i) devices.push_back(i);
  if (static_cast<std::int64_t>(devices.size()) != total)
    return good = false, std::vector<std::vector<std::int64_t>>();
  auto own = [&](std::int64_t n) {
    std::int64_t rest = n;
    for (auto [size, stride] : parts) rest -= n / stride % size * stride;
    return rest;
  };
  std::vector<std::vector<std::int64_t>> groups;
  for (std::int64_t n = 0; n < total; ++n) {
    if (own(n) != n) continue;  // not the first of its group
    std::vector<std::int64_t> numbers{n};
    for (auto [size, stride] : parts) {
      std::vector<std::int64_t> next;
      for (std::int64_t base : numbers)
        for (std::int64_t k = 0; k < size; ++k) next.push_back(base + k * stride);
      numbers = std::move(next);
    }
    for (std::int64_t& v : numbers) v = devices[static_cast<std::size_t>(v)];
    groups.push_back(std::move(numbers));
  }
  return groups;
}

}  // namespace

Groups::Groups(const Attrs& attrs) {
  const Attr* a = attrs.find("replica_groups");
  if (!a) return;
  if (const HostArray* h = a->get<HostArray>()) {
    HostArray wide = h->astype(DType::kI64).to_contiguous();
    if (wide.rank() != 2) {
      well_formed = wide.size() == 0;
      return;
    }
    for (std::int64_t g = 0; g < wide.dims()[0]; ++g) {
      std::vector<std::int64_t> row;
      for (std::int64_t m = 0; m < wide.dims()[1]; ++m) {
        std::int64_t id = wide.as<std::int64_t>()[g * wide.dims()[1] + m];
        if (id != -1) row.push_back(id);
      }
      ids.push_back(std::move(row));
    }
    return;
  }
  const Attrs* mesh_axes = a->dict();
  const Attr* mesh = mesh_axes ? mesh_axes->find("mesh") : nullptr;
  const Attr* axes = mesh_axes ? mesh_axes->find("axes") : nullptr;
  if (!mesh || !axes || !axes->list()) {
    well_formed = a->get<OpaqueAttr>() != nullptr;
    known = false;
    return;
  }
  if (!mesh->dict()) {  // a symbol
    known = false;
    return;
  }
  ids = mesh_groups(*mesh->dict(), *axes->list(), well_formed);
}

std::int64_t channel_of(const Attrs& attrs) {
  const Attr* a = attrs.find("channel_handle");
  const Attrs* d = a ? a->dict() : nullptr;
  return d ? d->i64_or("handle", 0) : 0;
}

GroupStrategy reduction_strategy(const Attrs& attrs) {
  if (channel_of(attrs) <= 0) return GroupStrategy::kCrossReplica;
  return attrs.flag("use_global_device_ids") ? GroupStrategy::kFlattened
                                             : GroupStrategy::kCrossReplicaAndPartition;
}

GroupStrategy permutation_strategy(const Attrs& attrs) {
  return channel_of(attrs) <= 0 ? GroupStrategy::kCrossReplica : GroupStrategy::kCrossPartition;
}

std::vector<Member> group_of(const Groups& groups, GroupStrategy strategy, const Grid& grid,
                             Member self) {
  if (!groups.known)
    throw_user_error({"replica_groups", "the mesh stands in the attribute", "it is named elsewhere",
                      "Inline the mesh"});
  std::vector<std::vector<std::int64_t>> ids = groups.ids;
  int limit = strategy == GroupStrategy::kCrossPartition ? grid.num_partitions()
              : strategy == GroupStrategy::kFlattened    ? grid.size()
                                                         : grid.num_replicas();
  if (ids.empty()) {
    ids.emplace_back();
    for (int i = 0; i < limit; ++i) ids[0].push_back(i);
  }
  for (const auto& group : ids) {
    std::vector<Member> members;
    for (std::int64_t id : group) {
      if (id < 0 || id >= limit)
        throw_user_error({"replica_groups", fmt::format("ids lie in [0, {})", limit),
                          fmt::format("{} does not", id), "Run a grid of that size"});
      auto n = static_cast<int>(id);
      switch (strategy) {
        case GroupStrategy::kCrossReplica: members.push_back({n, self.partition}); break;
        case GroupStrategy::kCrossPartition: members.push_back({self.replica, n}); break;
        case GroupStrategy::kFlattened:
          members.push_back({n / grid.num_partitions(), n % grid.num_partitions()});
          break;
        case GroupStrategy::kCrossReplicaAndPartition: members.push_back({n, 0}); break;
      }
    }
    if (strategy == GroupStrategy::kCrossReplicaAndPartition) {
      // Partitions outside, replicas inside.
      std::vector<Member> all;
      for (int p = 0; p < grid.num_partitions(); ++p)
        for (const Member& m : members) all.push_back({m.replica, p});
      members = std::move(all);
    }
    if (std::find(members.begin(), members.end(), self) != members.end()) return members;
  }
  return {};
}

}  // namespace xylem::ir::ops
