#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/fuzz/data_seeds.h"
#include "tests/fuzz/seeds.h"
#include "xylem/data/formats/testing/samples.h"

// Descriptions of folders, MosaicML's index.json and TFDS' two files, end in records or in an
// Error. The input is these three files one after the other.

namespace {
constexpr const char* kDatasetInfo =
    R"({"name": "d", "version": "1.0.0", "fileFormat": "tfrecord", "splits": [{"name": "train",)"
    R"( "shardLengths": ["2", "1"], "filepathTemplate":)"
    R"( "{DATASET}-{SPLIT}.{FILEFORMAT}-{SHARD_X_OF_Y}"}]})";
constexpr const char* kFeatures =
    R"({"pythonClassName": "x.FeaturesDict", "featuresDict": {"features": {"i": {"tensor":)"
    R"( {"shape": {"dimensions": ["2", "-1"]}, "dtype": "int64", "encoding": "none"}}, "l":)"
    R"( {"classLabel": {"numClasses": "3"}}, "s": {"sequence": {"feature": {"text": {}},)"
    R"( "length": "-1"}}, "p": {"image": {"shape": {"dimensions": ["1", "1", "3"]}, "dtype":)"
    R"( "uint8", "encodingFormat": "png"}}}}})";
}  // namespace

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  std::vector<std::string> seeds{xylem::fuzz::join_files({"", kDatasetInfo, kFeatures})};
  for (const auto& folder : xylem::data::testing::folder_samples())
    if (folder.format == "mds")
      seeds.push_back(xylem::fuzz::join_files({folder.files.at("index.json"), "", ""}));
  xylem::fuzz::fill_corpus(*argc, *argv, seeds);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using xylem::data::testing::exercise_folder;
  static const auto mds = xylem::data::testing::folder_samples();
  static const std::vector<std::string> records = xylem::fuzz::record_files("tfrecord");
  const std::vector<std::string> files = xylem::fuzz::split_files(data, size);
  if (files.empty()) return 0;
  if (!files[0].empty())
    for (auto folder : mds) {
      folder.files["index.json"] = files[0];
      exercise_folder(folder);
    }
  if (files.size() < 3) return 0;
  exercise_folder({"tfds",
                   {{"dataset_info.json", files[1]},
                    {"features.json", files[2]},
                    {"d-train.tfrecord-00000-of-00002", records[0]},
                    {"d-train.tfrecord-00001-of-00002", records[0]}}});
  return 0;
}
