// Exports for the Python suite.
//
//   export_tool write NAME OUT   writes the export of one of the functions below, vjp_order 2
//   export_tool call FILE KIND   calls an export of one or two float vectors of length 3; prints
//                                values of the results ("call") or of the gradient of their sum by
//                                the first argument ("grad"), one line each

#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <vector>

#include "xylem/base/file.h"
#include "xylem/core/core.h"

namespace xylem {
namespace {

struct Layer {
  Array kernel, bias;
};

std::string exported(const std::string& name) {
  Array x = array({0.5, -1.0, 2.0}), y = array({1.0, 2.0, 3.0});
  if (name == "wave")
    return export_(jit([](const Array& a, const Array& b) { return sin(a) * b; }))(x, y)
        .serialize(2);
  if (name == "pair")
    return export_(jit([](const Array& a, const Array& b) {
             return std::tuple{exp(a) + b, std::vector<Array>{sum(b), argmax(a)}};
           }))(x, y)
        .serialize(2);
  if (name == "layer")
    return export_(jit([](const Layer& l, const Array& v) {
             return std::map<std::string, Array>{{"out", tanh(matmul(l.kernel, v) + l.bias)}};
           }))(Layer{reshape(arange(9).astype(DType::kF32), {3, 3}) / 10, y}, x)
        .serialize(2);
  if (name == "loop")
    return export_(jit([](const Array& a) {
             return fori_loop(0, 3, [](const Array&, const Array& c) { return sin(c) * c; }, a);
           }))(x)
        .serialize(2);
  if (name == "ints")
    return export_(jit([](const Array& a, const Array& n) { return std::tuple{a * n, n + 1}; }))(
               x, arange(3))
        .serialize(2);
  if (name == "key")
    return export_(jit([](const random::Key& k) { return random::normal(k, {4}); }))(random::key(3))
        .serialize(0);
  throw UserError(ErrorParts{"export_tool", "a known function", name, "See its source"});
}

void print(const std::vector<Array>& values) {
  for (const Array& v : values) {
    std::string line;
    for (float f : v.astype(DType::kF32).to_vector<float>()) line += fmt::format("{:.9g} ", f);
    std::puts(line.c_str());
  }
}

int run(const std::vector<std::string>& args) {
  if (args.size() == 3 && args[0] == "write") {
    write_file(args[2], exported(args[1]));
    return 0;
  }
  if (args.size() == 3 && args[0] == "call") {
    Exported e = import_(read_file(args[1]));
    std::vector<Array> in;
    for (std::size_t i = 0; i < e.in_avals().size(); ++i)
      in.push_back(array({0.5, -1.0, 2.0}) + static_cast<double>(i));
    if (args[2] == "grad") {
      auto f = [&](const std::vector<Array>& v) {
        Array total = zeros({});
        for (const Array& r : e.call_flat(v)) total = total + sum(r.astype(DType::kF32));
        return total;
      };
      print({grad(f)(in)[0]});
      return 0;
    }
    print(e.call_flat(in));
    return 0;
  }
  std::fputs("usage: export_tool write NAME OUT | call FILE KIND\n", stderr);
  return 2;
}

}  // namespace
}  // namespace xylem

int main(int argc, char** argv) {
  try {
    return xylem::run({argv + 1, argv + argc});
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
