#include <cstdint>
#include <string>
#include <string_view>

#include "tests/fuzz/corpus.h"
#include "tests/fuzz_checkpoint/seeds.h"
#include "xylem/base/error.h"
#include "xylem/checkpoint/orbax/metadata.h"
#include "xylem/checkpoint/orbax/writer.h"

// Orbax's JSON files give their contents or an Error; what is read is written so that it reads the
// same. The input is a byte that names the file, and its text.

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  xylem::fuzz::fill_corpus(*argc, *argv, xylem::fuzz::orbax_json_files());
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace xylem;
  using namespace xylem::checkpoint;
  if (size < 1) return 0;
  const std::string_view text(reinterpret_cast<const char*>(bytes + 1), size - 1);
  try {
    switch (bytes[0] % 6) {
      case 0: {
        const orbax::TreeMetadata m = orbax::parse_tree_metadata(text, "fuzz");
        const std::string first = orbax::format_tree_metadata(m);
        if (orbax::format_tree_metadata(orbax::parse_tree_metadata(first, "again")) != first)
          __builtin_trap();
        break;
      }
      case 1: {
        const std::string first =
            orbax::format_step_metadata(orbax::parse_step_metadata(text, "fuzz"));
        if (orbax::format_step_metadata(orbax::parse_step_metadata(first, "again")) != first)
          __builtin_trap();
        break;
      }
      case 2:
        for (const auto& [name, sharding] : orbax::parse_shardings(text, "fuzz"))
          orbax::sharding_defect(sharding);
        break;
      case 3: {
        const auto a = orbax::parse_array_metadatas(text, "fuzz");
        const std::string first = orbax::format_array_metadatas(a);
        if (orbax::format_array_metadatas(orbax::parse_array_metadatas(first, "again")) != first)
          __builtin_trap();
        break;
      }
      case 4: orbax::Strings::parse(text, "fuzz").find("a/b"); break;
      case 5: {
        const FileSystem fs = FileSystem::memory();
        fs.write_file(std::string("/") + orbax::kChecksumFile, text);
        orbax::check_checksums(fs, "/", [](std::string_view, std::string_view) {});
        orbax::standard_json(text);
        break;
      }
    }
  } catch (const Error&) {
  }
  return 0;
}
