#pragma once

#include <cstdint>
#include <vector>

#include "xylem/base/dims.h"

namespace xylem::compiler {

// A term of a form: coefficient times an axis.
struct Term {
  int axis = 0;
  std::int64_t coef = 0;
  friend bool operator==(const Term&, const Term&) = default;
};

// An index as a linear form over axes: constant + sum of terms. Terms are sorted by axis and have
// non-zero coefficients, so equal indices have equal forms.
struct Form {
  SmallVec<Term, 4> terms;
  std::int64_t constant = 0;

  static Form number(std::int64_t c) {
    Form f;
    f.constant = c;
    return f;
  }
  static Form axis(int a, std::int64_t coef = 1) {
    Form f;
    if (coef != 0) f.terms.push_back({a, coef});
    return f;
  }
  std::int64_t coef(int a) const;
  friend bool operator==(const Form&, const Form&) = default;
};
using Forms = std::vector<Form>;

Form operator+(const Form& a, const Form& b);
Form operator*(const Form& a, std::int64_t c);
std::size_t hash(const Form& f);
std::size_t hash(const Forms& f);

// Where the axes of forms come from. A loop axis takes 0 … size - 1; an opaque axis stands for a
// value that is only known at run time (a gathered index, a quotient), in the same range.
struct AxisTable {
  struct Axis {
    std::int64_t size = 1;
    bool loop = true;
    // Opaque: whether the value differs between the lanes of a tile.
    bool lanes = false;
  };
  std::vector<Axis> axes;

  // Least and greatest value of a form.
  std::int64_t least(const Form& f) const;
  std::int64_t greatest(const Form& f) const;
};

// The row-major element number of an index.
Form flatten(const Forms& index, const Dims& dims);

// A cut of a loop axis into (outer, inner) that would make a form separable.
struct AxisSplit {
  int axis = -1;
  std::int64_t inner = 0;
};

// The index of element number `flat` in an array of shape `dims`, if each term belongs to one
// dimension. Otherwise false; *split names the cut that would help, if there is one.
bool unflatten(const AxisTable& table, const Form& flat, const Dims& dims, Forms* index,
               AxisSplit* split);

}  // namespace xylem::compiler
