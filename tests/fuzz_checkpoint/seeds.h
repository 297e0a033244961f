#pragma once

#include <string>
#include <vector>

#include "xylem/checkpoint/storage/codec.h"

// Seeds of the fuzzers' corpora, made by the project's own writers.

namespace xylem::fuzz {

std::vector<std::string> ocdbt_databases();
std::vector<std::string> zarr_arrays();
// What codec_fuzz's first byte chooses among.
std::vector<std::vector<checkpoint::Codec>> codec_chains();
std::vector<std::string> encoded_chunks();
std::vector<std::string> orbax_json_files();
std::vector<std::string> safetensors_files();
std::vector<std::string> npz_files();
std::vector<std::string> msgpack_files();

}  // namespace xylem::fuzz
