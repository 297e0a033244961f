#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "xylem/base/tree.h"
#include "xylem/core/array.h"

// Collectives over named axes of the functions that vmap maps:
//
//   vmap([](const Array& x) { return x / lax::psum(x, "i"); }, {.axis_name = "i"})(values);
//
// Several names mean their product, the first one outermost. UserError where a name is not bound.
namespace xylem::lax {

// One axis name or several.
class AxisNames {
 public:
  AxisNames(const char* name) : names_{name} {}
  AxisNames(std::string_view name) : names_{std::string(name)} {}
  AxisNames(const std::string& name) : names_{name} {}
  AxisNames(std::initializer_list<const char*> names) : names_(names.begin(), names.end()) {}
  const std::vector<std::string>& names() const { return names_; }

 private:
  std::vector<std::string> names_;
};

// Sum over all positions; the result is the same everywhere. Bools are summed as i32, a number
// gives a number. psum is its own transpose.
Array psum(const ArrayArg& x, const AxisNames& axis);
// psum / size; integers become f32.
Array pmean(const ArrayArg& x, const AxisNames& axis);
// No derivatives.
Array pmax(const ArrayArg& x, const AxisNames& axis);
Array pmin(const ArrayArg& x, const AxisNames& axis);
// The values of all positions along a new axis, or one behind the other along an axis (tiled).
Array all_gather(const ArrayArg& x, const AxisNames& axis_name, int axis = 0, bool tiled = false);
// The own slice of the sum along an axis of the size of the named one, which goes away; or the own
// block of it (tiled).
Array psum_scatter(const ArrayArg& x, std::string_view axis_name, int scatter_dimension = 0,
                   bool tiled = false);
// Slice i along split_axis goes to position i; what is received stands along concat_axis.
Array all_to_all(const ArrayArg& x, std::string_view axis_name, int split_axis, int concat_axis,
                 bool tiled = false);
// The value of position `source` goes to `target` for each (source, target); every position must
// have both.
Array ppermute(const ArrayArg& x, std::string_view axis_name,
               const std::vector<std::pair<int, int>>& pairs);
// Position i gets the value of position perm[i].
Array pshuffle(const ArrayArg& x, std::string_view axis_name, const std::vector<int>& perm);
// The own position, i32.
Array axis_index(const AxisNames& axis);
std::int64_t axis_size(const AxisNames& axis, SourceLoc where = SourceLoc::current());

// Of every leaf of a tree.
template <class T>
T psum_tree(const T& t, const AxisNames& axis) {
  return tree::map<Array>([&](const Array& a) { return psum(a, axis); }, t);
}
template <class T>
T pmean_tree(const T& t, const AxisNames& axis) {
  return tree::map<Array>([&](const Array& a) { return pmean(a, axis); }, t);
}

}  // namespace xylem::lax
