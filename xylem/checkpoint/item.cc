#include "xylem/checkpoint/item.h"

#include <fmt/format.h>

#include <cstring>

#include "xylem/base/error.h"
#include "xylem/base/thread_pool.h"

namespace xylem::checkpoint {
namespace {

class JsonItem final : public Item {
 public:
  explicit JsonItem(std::string text) : text_(std::move(text)) {}
  const std::string* json() const override { return &text_; }
  const std::vector<LeafInfo>& leaves() const override { return leaves_; }
  HostArray read(std::size_t, const std::optional<Box>&) const override {
    throw_user_error({"read a JSON item", "a leaf", "it has none", "Use json()"});
  }

 private:
  std::string text_;
  std::vector<LeafInfo> leaves_;
};

class MemoryItem final : public Item {
 public:
  explicit MemoryItem(LeafTree tree) : tree_(std::move(tree)) {
    for (const Leaf& l : tree_) infos_.push_back(l);
  }
  const std::vector<LeafInfo>& leaves() const override { return infos_; }
  HostArray read(std::size_t i, const std::optional<Box>& box) const override {
    const Leaf& l = tree_.at(i);
    if (!l.value.defined())
      throw_user_error({fmt::format("read {}", path_text(l.path)), "a leaf with an array",
                        fmt::format("a {}", value_type(l.kind)), "Look at leaves() first"});
    return box ? cut_box(l.value, *box, path_text(l.path)) : l.value;
  }

 private:
  LeafTree tree_;
  std::vector<LeafInfo> infos_;
};

}  // namespace

HostArray Item::read_named(std::string_view name, const std::optional<Box>& box) const {
  const std::vector<LeafInfo>& all = leaves();
  for (std::size_t i = 0; i < all.size(); ++i)
    if (param_name(all[i].path) == name) return read(i, box);
  throw_user_error({fmt::format("read leaf \"{}\"", name), "a leaf of the checkpoint",
                    fmt::format("{} leaves, none of this name", all.size()),
                    "List them with `xylem checkpoint show`"});
}

std::string Item::read_text(std::size_t leaf) const {
  throw_user_error({fmt::format("read {}", path_text(leaves().at(leaf).path)), "text",
                    leaves().at(leaf).dtype_name, "Read it as an array"});
}

void Item::check(const Report& f, const Progress& progress) const {
  const std::vector<LeafInfo>& all = leaves();
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (progress) progress(i, all.size());
    if (!has_array(all[i].kind) || !all[i].dtype) continue;
    try {
      read(i);
    } catch (const Error& e) {
      f(path_text(all[i].path), e.message());
    }
  }
}

LeafTree read_tree(const Item& item) {
  const std::vector<LeafInfo>& infos = item.leaves();
  LeafTree out(infos.size());
  for (std::size_t i = 0; i < infos.size(); ++i) static_cast<LeafInfo&>(out[i]) = infos[i];
  // Few large leaves are parallel within, many small ones here.
  const auto read_one = [&](std::size_t i) {
    if (has_array(infos[i].kind) && infos[i].dtype) out[i].value = item.read(i);
  };
  ThreadPool::global().parallel_for(static_cast<std::int64_t>(infos.size()), 1,
                                    [&](std::int64_t begin, std::int64_t end) {
                                      for (std::int64_t i = begin; i < end; ++i)
                                        read_one(static_cast<std::size_t>(i));
                                    });
  return out;
}

LeafTree lazy_tree(const Item& item,
                   const std::function<void(std::string_view, std::string_view)>& note) {
  LeafTree out;
  const std::vector<LeafInfo>& infos = item.leaves();
  for (std::size_t i = 0; i < infos.size(); ++i) {
    Leaf l;
    static_cast<LeafInfo&>(l) = infos[i];
    if (has_array(l.kind) && l.dtype) {
      l.source = [&item, i](const Dims& start, const Dims& shape) {
        return item.read(i, Box{start, shape});
      };
    } else if (has_array(l.kind)) {
      if (l.kind != LeafKind::kScalar || l.shape.size() != 0) {
        note(path_text(l.path), fmt::format("elements of type {} are left out", l.dtype_name));
        continue;
      }
      l.text = item.read_text(i);
      l.kind = LeafKind::kString;
    }
    out.push_back(std::move(l));
  }
  return out;
}

HostArray cut_box(const HostArray& a, const Box& box, std::string_view what) {
  bool inside = box.start.ssize() == a.rank() && box.shape.ssize() == a.rank();
  for (int i = 0; inside && i < a.rank(); ++i)
    inside = box.start[i] >= 0 && box.shape[i] >= 0 && box.start[i] <= a.dims()[i] &&
             box.shape[i] <= a.dims()[i] - box.start[i];
  if (!inside)
    throw_user_error({fmt::format("read {}", what),
                      fmt::format("a box within the shape {}", to_string(a.dims())),
                      fmt::format("from {} of {}", to_string(box.start), to_string(box.shape)),
                      "Ask for a part that exists"});
  std::ptrdiff_t offset = 0;
  for (int i = 0; i < a.rank(); ++i) offset += box.start[i] * a.byte_strides()[i];
  const HostArray view(a.dtype(), box.shape,
                       std::shared_ptr<std::byte>(a.owner(), a.owner().get() + offset),
                       a.byte_strides());
  return view.clone();
}

std::unique_ptr<Item> make_json_item(std::string text) {
  return std::make_unique<JsonItem>(std::move(text));
}
std::unique_ptr<Item> make_memory_item(LeafTree tree) {
  return std::make_unique<MemoryItem>(std::move(tree));
}

}  // namespace xylem::checkpoint
