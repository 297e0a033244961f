#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>

#include "xylem/base/bytes.h"
#include "xylem/base/error.h"
#include "xylem/base/npy.h"
#include "xylem/checkpoint/internal/rescue.h"
#include "xylem/checkpoint/npz.h"
#include "xylem/checkpoint/safetensors.h"

namespace xylem::checkpoint::internal {
namespace {

using Kind = RepairAction::Kind;

[[noreturn]] void nothing_left(const std::string& path, std::string_view reason) {
  throw_user_error({fmt::format("repair {}", path), "at least one array that is whole", reason,
                    "Restore it from a copy"});
}

std::string read_range(const InputFile& file, std::uint64_t at, std::uint64_t n) {
  std::string out(static_cast<std::size_t>(n), '\0');
  file.read(at, std::as_writable_bytes(std::span<char>(out)));
  return out;
}

}  // namespace

std::vector<RepairAction> rescue_safetensors(const FileSystem& fs, const std::string& path,
                                             const std::string& to) {
  const auto file = fs.open(path);
  std::string reason;
  try {
    const SafetensorsFile whole(path, fs);
    // Some contents can be wrong, too.
    for (const TensorInfo& t : whole.tensors()) whole.read(t);
    return {};
  } catch (const Error& e) {
    reason = e.message();
  }
  std::uint64_t length = 0;
  if (file->size() < 8) nothing_left(path, reason);
  file->read(0, std::as_writable_bytes(std::span(&length, 1)));
  if (length > file->size() - 8 || length > 100'000'000) nothing_left(path, reason);
  const std::uint64_t data = 8 + length;
  const auto header = nlohmann::json::parse(read_range(*file, 8, length), nullptr, false);
  if (!header.is_object()) nothing_left(path, reason);
  std::vector<RepairAction> actions{
      {Kind::kRebuilt, base_name(path), reason + "; written anew from the tensors that are whole"}};
  NamedArrays arrays;
  std::map<std::string, std::string> metadata;
  for (const auto& [name, value] : header.items()) {
    if (name == "__metadata__") {
      if (value.is_object())
        for (const auto& [k, v] : value.items())
          if (v.is_string()) metadata[k] = v.get<std::string>();
      continue;
    }
    // As a file of its own the tensor is checked by the same rules as any.
    nlohmann::json alone;
    std::string lost;
    try {
      const auto begin = value.at("data_offsets").at(0).get<std::uint64_t>();
      const auto end = value.at("data_offsets").at(1).get<std::uint64_t>();
      if (begin > end || end > file->size() - data) {
        lost = fmt::format("bytes {} to {} of the data, which has {}", begin, end,
                           file->size() - data);
      } else {
        alone[name] = value;
        alone[name]["data_offsets"] = {0, end - begin};
        const std::string text = alone.dump();
        ByteWriter w;
        w.write(static_cast<std::uint64_t>(text.size()));
        w.write_string(text);
        const FileSystem memory = FileSystem::memory();
        w.write_string(read_range(*file, data + begin, end - begin));
        memory.write_file("/t.safetensors", w.str());
        const SafetensorsFile one("/t.safetensors", memory);
        arrays.push_back({name, one.read(one.tensors().at(0))});
      }
    } catch (const std::exception& e) {
      lost = e.what();
    }
    if (!lost.empty()) actions.push_back({Kind::kQuarantined, name, lost});
  }
  if (arrays.empty()) nothing_left(path, reason);
  if (!to.empty()) write_safetensors(to, arrays, metadata);
  return actions;
}

std::vector<RepairAction> rescue_npz(const FileSystem& fs, const std::string& path,
                                     const std::string& to) {
  std::string reason;
  try {
    const auto item = open_npz(fs, path);
    item->check([&](std::string_view where, std::string_view what) {
      if (reason.empty()) reason = fmt::format("{}: {}", where, what);
    });
    if (reason.empty()) return {};
  } catch (const Error& e) {
    reason = e.message();
  }
  // Members carry headers of their own, so that the directory is not needed.
  const std::string bytes = fs.read_file(path, std::uint64_t{64} << 30);
  std::vector<RepairAction> actions{
      {Kind::kRebuilt, base_name(path), reason + "; written anew from the members that are whole"}};
  NamedArrays arrays;
  std::set<std::string> names;
  for (std::size_t at = bytes.find("PK\3\4"); at != std::string::npos;
       at = bytes.find("PK\3\4", at + 4)) {
    const std::string place = fmt::format("the member at byte {}", at);
    std::string name = place;
    try {
      ByteReader r(std::string_view(bytes).substr(at), place);
      r.skip(8);
      const auto method = r.read<std::uint16_t>();
      r.skip(4);
      const auto crc = r.read<std::uint32_t>();
      std::uint64_t compressed = r.read<std::uint32_t>(), size = r.read<std::uint32_t>();
      const auto name_size = r.read<std::uint16_t>(), extra_size = r.read<std::uint16_t>();
      name = r.read_string(name_size);
      if (name.ends_with(".npy")) name.resize(name.size() - 4);
      ByteReader extra(r.read_string(extra_size), name);
      while (extra.remaining() >= 4) {
        const auto id = extra.read<std::uint16_t>(), length = extra.read<std::uint16_t>();
        ByteReader field(extra.read_string(length), name);
        if (id != 1) continue;
        if (size == 0xffffffff) size = field.read<std::uint64_t>();
        if (compressed == 0xffffffff) compressed = field.read<std::uint64_t>();
      }
      std::string contents(r.read_string(compressed));
      if (method == 8)
        contents = inflate_member(contents, size, name);
      else if (method != 0)
        r.fail("a member stored or deflated", fmt::format("method {}", method));
      const auto sum = static_cast<std::uint32_t>(
          crc32_z(0, reinterpret_cast<const Bytef*>(contents.data()), contents.size()));
      if (sum != crc || contents.size() != size)
        r.fail(fmt::format("contents with CRC-32 {:08x}", crc), fmt::format("{:08x}", sum));
      HostArray a = parse_npy(as_byte_span(contents), name);
      if (names.insert(name).second) arrays.push_back({name, std::move(a)});
    } catch (const Error& e) {
      actions.push_back({Kind::kQuarantined, name, e.message()});
    }
  }
  if (arrays.empty()) nothing_left(path, reason);
  if (!to.empty()) write_npz(fs, to, arrays);
  return actions;
}

}  // namespace xylem::checkpoint::internal
