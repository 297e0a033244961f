// checkpoint_tool IN OUT: reads a safetensors file and writes the same tensors and metadata anew.

#include <cstdio>

#include "xylem/base/error.h"
#include "xylem/checkpoint/safetensors.h"

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  try {
    const xylem::checkpoint::SafetensorsFile file(argv[1]);
    xylem::checkpoint::write_safetensors(argv[2], file.read_all(), file.metadata());
  } catch (const xylem::Error& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
  return 0;
}
