#include "xylem/ir/bytecode/pools.h"

#include <cstring>

#include "xylem/ir/bytecode/byte_cursor.h"
#include "xylem/ir/bytecode/frame.h"

namespace xylem::ir::bytecode {
namespace {

// Larger constants are told apart by where they lie rather than by their bytes.
constexpr std::size_t kMaxCompared = 4096;

enum Section : char {
  kString = 0,
  kDialect = 1,
  kAttrType = 2,
  kAttrTypeOffset = 3,
  kIr = 4,
  kResource = 5,
  kResourceOffset = 6,
  kProperties = 8,
};

void append_head(std::string& out, Section id, std::size_t size) {
  out += id;
  append_varint(out, size);
}

void append_section(std::string& out, Section id, std::string_view data) {
  append_head(out, id, data.size());
  out += data;
}

}  // namespace

std::size_t Pools::string(std::string_view s) {
  auto [it, added] = string_ids_.emplace(std::string(s), strings_.size());
  if (added) strings_.emplace_back(s);
  return it->second;
}

std::size_t Pools::dialect(std::string_view name) {
  auto [it, added] = dialect_ids_.emplace(std::string(name), dialects_.size());
  if (added) dialects_.push_back(string(name));
  return it->second;
}

std::size_t Pools::op_name(std::string_view dialect_name, std::string_view name) {
  std::string key = std::string(dialect_name) + '.' + std::string(name);
  auto [it, added] = op_ids_.emplace(std::move(key), op_names_.size());
  if (added) op_names_.push_back({dialect(dialect_name), string(name)});
  return it->second;
}

std::size_t Pools::add(std::vector<Entry>& to, std::unordered_map<std::string, std::size_t>& known,
                       Entry e) {
  std::string key;
  append_varint(key, e.dialect << 1 | e.custom);
  key += e.bytes;
  if (e.data.defined()) {
    if (e.data.nbytes() <= kMaxCompared) {
      key.append(reinterpret_cast<const char*>(e.data.data()), e.data.nbytes());
    } else {
      const std::byte* p = e.data.data();
      key.append(reinterpret_cast<const char*>(&p), sizeof p);
    }
  }
  auto [it, added] = known.emplace(std::move(key), to.size());
  if (added) to.push_back(std::move(e));
  return it->second;
}

std::size_t Pools::attr(std::string_view dialect_name, std::string bytes, HostArray data) {
  return add(attrs_, attr_ids_, {dialect(dialect_name), true, std::move(bytes), std::move(data)});
}

std::size_t Pools::attr_text(std::string_view dialect_name, std::string_view text) {
  std::string bytes(text);
  bytes += '\0';
  return add(attrs_, attr_ids_, {dialect(dialect_name), false, std::move(bytes), {}});
}

std::size_t Pools::type(std::string_view dialect_name, std::string bytes) {
  return add(types_, type_ids_, {dialect(dialect_name), true, std::move(bytes), {}});
}

std::size_t Pools::record(std::string bytes) {
  auto [it, added] = record_ids_.emplace(bytes, records_.size());
  if (added) records_.push_back(std::move(bytes));
  return it->second;
}

std::string Pools::string_section() const {
  std::string out;
  append_varint(out, strings_.size());
  for (std::size_t i = strings_.size(); i-- > 0;) append_varint(out, strings_[i].size() + 1);
  for (const std::string& s : strings_) (out += s) += '\0';
  return out;
}

std::string Pools::dialect_section() const {
  std::string out;
  append_varint(out, dialects_.size());
  // No dialect of ours has a version of its own.
  for (std::size_t name : dialects_) append_varint(out, format_ >= 1 ? name << 1 : name);
  if (format_ >= 4) append_varint(out, op_names_.size());
  for (std::size_t i = 0; i < op_names_.size();) {
    std::size_t end = i;
    while (end < op_names_.size() && op_names_[end].dialect == op_names_[i].dialect) ++end;
    append_varint(out, op_names_[i].dialect);
    append_varint(out, end - i);
    for (; i < end; ++i)
      append_varint(out, format_ >= 5 ? op_names_[i].name << 1 | 1 : op_names_[i].name);
  }
  return out;
}

std::string Pools::offset_section() const {
  std::string out;
  append_varint(out, attrs_.size());
  append_varint(out, types_.size());
  for (const auto* list : {&attrs_, &types_}) {
    for (std::size_t i = 0; i < list->size();) {
      std::size_t end = i;
      while (end < list->size() && (*list)[end].dialect == (*list)[i].dialect) ++end;
      append_varint(out, (*list)[i].dialect);
      append_varint(out, end - i);
      for (; i < end; ++i) append_varint(out, (*list)[i].size() << 1 | (*list)[i].custom);
    }
  }
  return out;
}

std::string Pools::property_section() const {
  std::string out;
  append_varint(out, records_.size());
  for (const std::string& r : records_) {
    append_varint(out, r.size());
    out += r;
  }
  return out;
}

std::string Pools::assemble(std::string_view producer, std::string_view ir) const {
  std::string strings = string_section(), dialects = dialect_section();
  std::string offsets = offset_section(), properties = property_section();
  std::size_t values = 0;
  for (const auto* list : {&attrs_, &types_})
    for (const Entry& e : *list) values += e.size();

  std::string out;
  out.reserve(values + ir.size() + strings.size() + dialects.size() + offsets.size() +
              properties.size() + producer.size() + 128);
  out += kMagic;
  append_varint(out, static_cast<std::uint64_t>(format_));
  (out += producer) += '\0';
  append_section(out, kDialect, dialects);
  append_section(out, kAttrTypeOffset, offsets);
  append_head(out, kAttrType, values);
  for (const auto* list : {&attrs_, &types_})
    for (const Entry& e : *list) {
      out += e.bytes;
      if (e.data.defined())
        out.append(reinterpret_cast<const char*>(e.data.data()), e.data.nbytes());
    }
  append_section(out, kIr, ir);
  append_section(out, kResourceOffset, "\1");
  append_section(out, kResource, "");
  append_section(out, kString, strings);
  if (format_ >= 5) append_section(out, kProperties, properties);
  return out;
}

}  // namespace xylem::ir::bytecode
