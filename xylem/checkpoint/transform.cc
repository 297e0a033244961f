#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <map>
#include <regex>

#include "xylem/base/error.h"
#include "xylem/checkpoint/struct_tree.h"

namespace xylem::checkpoint {
namespace {

struct Entry {
  LeafInfo info;
  std::string name;
  std::vector<std::size_t> sources;  // leaves of the item; several are stacked
  std::optional<std::int64_t> part;  // of the one source, along axis 0
};

std::regex compile(const std::string& pattern) {
  try {
    return std::regex(pattern, std::regex::ECMAScript);
  } catch (const std::regex_error& e) {
    throw_user_error({"transform a checkpoint", "a regular expression (ECMAScript)",
                      fmt::format("\"{}\": {}", pattern, e.what()), "Correct the pattern"});
  }
}

KeyPath split(const std::string& name) {
  KeyPath out;
  std::string_view rest = name;
  while (true) {
    const std::size_t dot = rest.find('.');
    out.push_back({std::string(rest.substr(0, dot)), false});
    if (dot == std::string_view::npos) return out;
    rest.remove_prefix(dot + 1);
  }
}

[[noreturn]] void refuse(std::string_view expected, std::string_view given) {
  throw_user_error({"transform a checkpoint", expected, given, "Change the transformation"});
}

void rename(Entry& e, const std::string& name) {
  e.name = name;
  e.info.path = split(name);
}

std::vector<Entry> apply(std::vector<Entry> in, const Transform& t) {
  const std::regex pattern = compile(t.pattern);
  std::vector<Entry> out;
  std::map<std::string, std::map<std::int64_t, Entry>> stacks;
  for (Entry& e : in) {
    std::smatch match;
    if (!std::regex_match(e.name, match, pattern)) {
      out.push_back(std::move(e));
      continue;
    }
    switch (t.kind) {
      case Transform::Kind::kDrop: break;
      case Transform::Kind::kRename:
        rename(e, match.format(t.to));
        out.push_back(std::move(e));
        break;
      case Transform::Kind::kUnstack: {
        if (e.info.shape.empty() || e.sources.size() != 1 || e.part)
          refuse("arrays with an axis to split", fmt::format("\"{}\"", e.name));
        const std::string to = match.format(t.to);
        const std::size_t braces = to.find("{}");
        if (braces == std::string::npos) refuse("a name with {} for the index", to);
        for (std::int64_t i = 0; i < e.info.shape[0]; ++i) {
          Entry part = e;
          part.part = i;
          part.info.shape = Dims(
              std::span<const std::int64_t>(e.info.shape.begin() + 1, e.info.shape.size() - 1));
          rename(part, to.substr(0, braces) + fmt::format("{}", i) + to.substr(braces + 2));
          out.push_back(std::move(part));
        }
        break;
      }
      case Transform::Kind::kStack: {
        std::int64_t index = 0;
        const std::string digits = match.size() > 1 ? match[1].str() : "";
        const char* end = digits.data() + digits.size();
        if (digits.empty() || std::from_chars(digits.data(), end, index).ptr != end)
          refuse("a first group that is a number", fmt::format("\"{}\" in {}", digits, e.name));
        if (e.sources.size() != 1 || e.part)
          refuse("leaves of the checkpoint itself to stack", fmt::format("\"{}\"", e.name));
        const std::string to = match.format(t.to);
        if (!stacks[to].emplace(index, std::move(e)).second)
          refuse("every position once", fmt::format("{} twice in {}", index, to));
        break;
      }
    }
  }
  for (auto& [to, parts] : stacks) {
    Entry e = parts.begin()->second;
    e.sources.clear();
    std::int64_t next = 0;
    for (auto& [index, part] : parts) {
      if (index != next) refuse(fmt::format("position {} of {}", next, to), "it is absent");
      ++next;
      if (part.info.shape != e.info.shape || part.info.dtype != e.info.dtype)
        refuse(fmt::format("parts of one type for {}", to),
               fmt::format("{}{} and {}{}", e.info.dtype_name, to_string(e.info.shape),
                           part.info.dtype_name, to_string(part.info.shape)));
      e.sources.push_back(part.sources[0]);
    }
    Dims shape{next};
    for (const std::int64_t d : e.info.shape) shape.push_back(d);
    e.info.shape = shape;
    rename(e, to);
    out.push_back(std::move(e));
  }
  return out;
}

class TransformedItem final : public Item {
 public:
  TransformedItem(const Item& item, const std::vector<Transform>& transforms) : item_(item) {
    const auto& infos = item.leaves();
    for (std::size_t i = 0; i < infos.size(); ++i)
      entries_.push_back({infos[i], param_name(infos[i].path), {i}, std::nullopt});
    for (const Transform& t : transforms) entries_ = apply(std::move(entries_), t);
    std::map<std::string, int> names;
    for (const Entry& e : entries_) {
      if (has_array(e.info.kind) && ++names[e.name] > 1)
        refuse("every name once", fmt::format("\"{}\" twice", e.name));
      leaves_.push_back(e.info);
    }
  }

  const std::vector<LeafInfo>& leaves() const override { return leaves_; }

  HostArray read(std::size_t i, const std::optional<Box>& box) const override {
    const Entry& e = entries_.at(i);
    if (e.part) {
      Box whole{Dims(e.info.shape.size(), 0), e.info.shape};
      const Box& b = box ? *box : whole;
      Box source{{*e.part}, {1}};
      for (const std::int64_t d : b.start) source.start.push_back(d);
      for (const std::int64_t d : b.shape) source.shape.push_back(d);
      return item_.read(e.sources[0], source).reshape(b.shape);
    }
    if (e.sources.size() == 1 && e.info.shape == item_.leaves()[e.sources[0]].shape)
      return item_.read(e.sources[0], box);
    HostArray out(*e.info.dtype, e.info.shape);
    const std::size_t bytes = out.nbytes() / e.sources.size();
    for (std::size_t k = 0; k < e.sources.size(); ++k) {
      const HostArray part = item_.read(e.sources[k]).to_contiguous();
      std::memcpy(out.data() + k * bytes, part.data(), bytes);
    }
    return box ? cut_box(out, *box, e.name) : out;
  }

  std::string read_text(std::size_t i) const override {
    return item_.read_text(entries_.at(i).sources[0]);
  }

 private:
  const Item& item_;
  std::vector<Entry> entries_;
  std::vector<LeafInfo> leaves_;
};

}  // namespace

std::unique_ptr<Item> transform(const Item& item, const std::vector<Transform>& transforms) {
  return std::make_unique<TransformedItem>(item, transforms);
}

}  // namespace xylem::checkpoint
