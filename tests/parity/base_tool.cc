// For base_test.py. Elements come as raw bytes on standard input.
//   base_tool convert FROM TO          writes the converted elements
//   base_tool print < cases            each case: a line "DTYPE DIMS NBYTES" ("f32 2,3 24", "f32 -
//   4"),
//                                      then the bytes; writes each text, ended by a zero byte

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <iostream>
#include <iterator>
#include <sstream>
#include <string>

#include "xylem/base/bytes.h"
#include "xylem/base/dtype_cast.h"
#include "xylem/base/host_array.h"

namespace xylem {
namespace {

void convert(const std::string& in, DType from, DType to) {
  const std::size_t n = in.size() / static_cast<std::size_t>(dtype_bytes(from));
  std::string out(n * static_cast<std::size_t>(dtype_bytes(to)), '\0');
  convert_elements(from, in.data(), to, out.data(), static_cast<std::int64_t>(n));
  std::cout.write(out.data(), static_cast<std::streamsize>(out.size()));
}

void print(const std::string& in) {
  std::size_t at = 0;
  while (at < in.size()) {
    const std::size_t end = in.find('\n', at);
    std::istringstream line(in.substr(at, end - at));
    std::string dtype, dims;
    std::size_t bytes = 0;
    line >> dtype >> dims >> bytes;
    Dims shape;
    std::istringstream list(dims == "-" ? "" : dims);
    for (std::string d; std::getline(list, d, ',');) shape.push_back(std::atoll(d.c_str()));
    const HostArray a = HostArray::from_bytes(parse_dtype(dtype).value(), shape,
                                              as_byte_span(in).subspan(end + 1, bytes));
    std::cout << a.to_string() << '\0';
    at = end + 1 + bytes;
  }
}

}  // namespace
}  // namespace xylem

int main(int argc, char** argv) try {
  const std::string in{std::istreambuf_iterator<char>(std::cin), {}};
  if (argc == 4 && std::strcmp(argv[1], "convert") == 0)
    xylem::convert(in, xylem::parse_dtype(argv[2]).value(), xylem::parse_dtype(argv[3]).value());
  else if (argc == 2 && std::strcmp(argv[1], "print") == 0)
    xylem::print(in);
  else
    return 2;
  return 0;
} catch (const std::exception& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
