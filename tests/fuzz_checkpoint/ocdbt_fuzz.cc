#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "tests/fuzz/corpus.h"
#include "tests/fuzz_checkpoint/seeds.h"
#include "xylem/base/bytes.h"
#include "xylem/base/error.h"
#include "xylem/checkpoint/ocdbt/database.h"
#include "xylem/checkpoint/ocdbt/recover.h"

// A database of one manifest and one data file, whatever is in them, opens and is walked, or gives
// an Error. Lengths and checksums are made right first, so that what lies behind them is reached:
// the input is a byte of options, two bytes with the manifest's size, the manifest, the data file.

namespace {

// As if the object's writer had meant these bytes.
void reseal(std::string& object) {
  if (object.size() < 18) return;
  const std::uint64_t size = object.size();
  std::memcpy(object.data() + 4, &size, 8);
  const std::uint32_t crc = xylem::crc32c(std::string_view(object).substr(0, size - 4));
  std::memcpy(object.data() + size - 4, &crc, 4);
}

// Each node that starts with its magic number and ends where the next one does.
void reseal_nodes(std::string& data) {
  constexpr std::string_view kMagic("\x0c\xdb\x20\xde", 4);
  for (std::size_t at = data.find(kMagic); at != std::string::npos;) {
    const std::size_t next = data.find(kMagic, at + 4);
    std::string node = data.substr(at, next == std::string::npos ? next : next - at);
    reseal(node);
    data.replace(at, node.size(), node);
    at = next;
  }
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  xylem::fuzz::fill_corpus(*argc, *argv, xylem::fuzz::ocdbt_databases());
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace xylem;
  using namespace xylem::checkpoint;
  if (size < 3) return 0;
  const std::string_view input(reinterpret_cast<const char*>(bytes), size);
  const std::size_t split =
      std::min<std::size_t>(bytes[1] | static_cast<std::size_t>(bytes[2]) << 8, size - 3);
  std::string manifest(input.substr(3, split)), data(input.substr(3 + split));
  if ((bytes[0] & 1) != 0) reseal(manifest);
  if ((bytes[0] & 2) != 0) reseal_nodes(data);
  const FileSystem fs = FileSystem::memory();
  fs.make_directories("/d");
  fs.write_file("/manifest.ocdbt", manifest);
  fs.write_file("/d/" + std::string(32, '0'), data);
  try {
    const ocdbt::Database db(fs, "/");
    db.check([](std::string_view) {});
    for (const std::uint64_t g : db.generations()) db.at_generation(g)->find("w/.zarray");
    std::uint64_t budget = 1000;
    db.for_each("", [&](std::string_view key) {
      if (budget-- == 0) throw_user_error({"fuzz", "fewer keys", "many", "stop"});
      const auto found = db.find(key);
      if (found && found->size() < (1 << 20)) found->read_all();
    });
  } catch (const Error&) {
  }
  try {
    ocdbt::recover_database(fs, "/", [](std::string_view) { return std::uint64_t{1}; });
  } catch (const Error&) {
  }
  return 0;
}
