// Random programs for tests/parity/random_test.py: their text, arguments and the interpreter's
// results in files.
//
//   random_tool draw FOLDER FIRST COUNT exact|close
//       SEED.mlir, SEED.inK.npy, SEED.outK.npy for each seed whose program StableHLO can express
//   random_tool shrink FOLDER SEED exact|close
//       writes smaller and smaller programs as FOLDER/try.*; says "TRY" and reads "fails" or
//       "agrees"; ends in "DONE" and the least one's text

#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <iostream>
#include <random>
#include <string>

#include "xylem/base/dtype_cast.h"
#include "xylem/base/error.h"
#include "xylem/base/file.h"
#include "xylem/base/npy.h"
#include "xylem/ir/interpreter.h"
#include "xylem/ir/legalize.h"
#include "xylem/ir/testing/minimise.h"
#include "xylem/ir/testing/random_program.h"
#include "xylem/ir/text.h"

namespace {

using namespace xylem;
using ir::testing::ProgramCase;

// Small numbers of either sign: multiples of 1/8, so that a few sums and products of them are
// exact.
ProgramCase drawn(std::uint64_t seed, bool exact) {
  ProgramCase c;
  c.graph = ir::legalize(
      ir::testing::random_program(seed, {.exact = exact, .portable = true, .num_ops = 10}));
  std::mt19937_64 random(seed * 6364136223846793005ull + 1);
  for (ir::ValueId v : c.graph->params) {
    const ir::Type& t = c.graph->type(v);
    HostArray a = HostArray::zeros(t.dtype(), t.dims());
    DType part = is_complex(t.dtype()) ? real_dtype(t.dtype()) : t.dtype();
    auto step = static_cast<std::size_t>(dtype_bytes(part));
    for (std::size_t at = 0; at < a.nbytes(); at += step) {
      double x = is_bool(part)      ? static_cast<double>(random() % 2)
                 : is_inexact(part) ? (static_cast<double>(random() % 65) - 32) / 8
                                    : static_cast<double>(random() % 7);
      double_to_element(x, part, a.data() + at);
    }
    c.args.push_back(std::move(a));
  }
  return c;
}

void write_case(const ProgramCase& c, const std::string& stem) {
  ir::Module m;
  m.functions.push_back({"main", false, c.graph});
  const std::vector<HostArray> results = ir::evaluate(*c.graph, c.args);
  write_file_atomic(stem + ".mlir", ir::print_stablehlo(m));
  for (std::size_t i = 0; i < c.args.size(); ++i)
    write_npy(fmt::format("{}.in{}.npy", stem, i), c.args[i]);
  for (std::size_t i = 0; i < results.size(); ++i)
    write_npy(fmt::format("{}.out{}.npy", stem, i), results[i]);
}

int draw(const std::string& folder, std::uint64_t first, int count, bool exact) {
  for (int i = 0; i < count; ++i) {
    std::uint64_t seed = first + static_cast<std::uint64_t>(i);
    try {
      write_case(drawn(seed, exact), fmt::format("{}/{}", folder, seed));
    } catch (const UserError&) {
      // What the interpreter refuses cannot be compared.
    }
  }
  return 0;
}

int shrink(const std::string& folder, std::uint64_t seed, bool exact) {
  ProgramCase least = ir::testing::minimise(drawn(seed, exact), [&](const ProgramCase& c) {
    write_case(c, folder + "/try");
    fmt::print("TRY\n");
    std::fflush(stdout);
    std::string answer;
    std::getline(std::cin, answer);
    return answer == "fails";
  });
  fmt::print("DONE\n{}", ir::testing::case_text(least));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  std::string command = argc > 1 ? argv[1] : "";
  try {
    if (command == "draw" && argc == 6)
      return draw(argv[2], std::strtoull(argv[3], nullptr, 10), std::atoi(argv[4]),
                  std::string(argv[5]) == "exact");
    if (command == "shrink" && argc == 5)
      return shrink(argv[2], std::strtoull(argv[3], nullptr, 10), std::string(argv[4]) == "exact");
  } catch (const Error& e) {
    fmt::print(stderr, "{}\n", e.what());
    return 1;
  }
  fmt::print(
      stderr,
      "usage: random_tool draw FOLDER FIRST COUNT exact|close | shrink FOLDER SEED exact|close\n");
  return 2;
}
