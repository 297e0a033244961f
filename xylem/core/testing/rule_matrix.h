#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "xylem/core/testing/rule_rows.h"

// The rule matrix: every row under every transformation and inside loops and branches, in every
// float dtype, on both back ends.
namespace xylem::transform::testing {

// What is done to a row's program. Each gives a program over the row's parameters and, for
// derivatives, tangents or cotangents.
enum class Change : std::uint8_t {
  kValue,
  kJvp,
  kVjp,
  kVmap,  // over each axis
  kJvpOfVjp,
  kVmapOfVjp,
  kVjpOfVmap,
};
// Where the program stands when it is changed.
enum class Place : std::uint8_t { kPlain, kScan, kBranch };

struct Cell {
  std::size_t row = 0;
  Change change = Change::kValue;
  Place place = Place::kPlain;
  std::uint32_t active = 0;  // bits: differentiated (or mapped) parameters
  int axis = 0;              // of kVmap
  DType dtype = DType::kF64;
};
std::string describe(const Cell& cell, const Row& row);

// All cells of the rows.
std::vector<Cell> rule_matrix(const std::vector<Row>& rows);

// Compiles the cell's program and expects the interpreter's results, up to a few units in the last
// place of the largest of them; in dtypes below f64 the interpreter's results also agree with those
// of f64 up to the dtype's rounding. The inputs are drawn from the seed.
void check_cell(const Cell& cell, const Row& row, std::uint64_t seed);

}  // namespace xylem::transform::testing
