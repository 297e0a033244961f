#include "xylem/compiler/fusion/form.h"

namespace xylem::compiler {

std::int64_t Form::coef(int a) const {
  for (const Term& t : terms)
    if (t.axis == a) return t.coef;
  return 0;
}

Form operator+(const Form& a, const Form& b) {
  Form r;
  r.constant = a.constant + b.constant;
  std::size_t i = 0, j = 0;
  while (i < a.terms.size() || j < b.terms.size()) {
    if (j == b.terms.size() || (i < a.terms.size() && a.terms[i].axis < b.terms[j].axis)) {
      r.terms.push_back(a.terms[i++]);
    } else if (i == a.terms.size() || b.terms[j].axis < a.terms[i].axis) {
      r.terms.push_back(b.terms[j++]);
    } else {
      const std::int64_t c = a.terms[i].coef + b.terms[j].coef;
      if (c != 0) r.terms.push_back({a.terms[i].axis, c});
      ++i;
      ++j;
    }
  }
  return r;
}

Form operator*(const Form& a, std::int64_t c) {
  Form r;
  if (c == 0) return r;
  r = a;
  r.constant *= c;
  for (Term& t : r.terms) t.coef *= c;
  return r;
}

namespace {
std::size_t mix(std::size_t h, std::size_t v) {
  h = (h ^ v) * 0x9E3779B97F4A7C15ull;
  return h ^ (h >> 32);
}
}  // namespace

std::size_t hash(const Form& f) {
  std::size_t h = static_cast<std::size_t>(f.constant);
  for (const Term& t : f.terms)
    h = mix(mix(h, static_cast<std::size_t>(t.axis)), static_cast<std::size_t>(t.coef));
  return h;
}

std::size_t hash(const Forms& f) {
  std::size_t h = f.size();
  for (const Form& x : f) h = mix(h, hash(x));
  return h;
}

std::int64_t AxisTable::least(const Form& f) const {
  std::int64_t v = f.constant;
  for (const Term& t : f.terms)
    if (t.coef < 0) v += t.coef * (axes[static_cast<std::size_t>(t.axis)].size - 1);
  return v;
}

std::int64_t AxisTable::greatest(const Form& f) const {
  std::int64_t v = f.constant;
  for (const Term& t : f.terms)
    if (t.coef > 0) v += t.coef * (axes[static_cast<std::size_t>(t.axis)].size - 1);
  return v;
}

Form flatten(const Forms& index, const Dims& dims) {
  Form flat;
  const Dims strides = row_major_strides(dims);
  for (std::size_t i = 0; i < index.size(); ++i)
    if (dims[i] != 1) flat = flat + index[i] * strides[i];
  return flat;
}

bool unflatten(const AxisTable& table, const Form& flat, const Dims& dims, Forms* index,
               AxisSplit* split) {
  index->assign(dims.size(), Form());
  Form rest = flat;
  const Dims strides = row_major_strides(dims);
  for (std::size_t d = 0; d + 1 < dims.size(); ++d) {
    if (dims[d] == 1) continue;
    const std::int64_t stride = strides[d];
    if (stride == 1) {  // only size-1 dimensions follow
      (*index)[d] = rest;
      return true;
    }
    Form here, below;
    for (const Term& t : rest.terms) {
      const auto& axis = table.axes[static_cast<std::size_t>(t.axis)];
      if (t.coef % stride == 0) {
        here.terms.push_back({t.axis, t.coef / stride});
        continue;
      }
      below.terms.push_back(t);
      if (t.coef > 0 && t.coef < stride && t.coef * (axis.size - 1) >= stride && axis.loop &&
          stride % t.coef == 0 && axis.size % (stride / t.coef) == 0) {
        if (split->axis < 0) *split = {t.axis, stride / t.coef};
      }
    }
    // Floor division of the constant.
    std::int64_t q = rest.constant / stride, r = rest.constant % stride;
    if (r < 0) {
      r += stride;
      --q;
    }
    here.constant = q;
    below.constant = r;
    if (split->axis >= 0) return false;
    if (table.least(below) < 0 || table.greatest(below) >= stride) return false;
    (*index)[d] = here;
    rest = below;
  }
  if (!dims.empty()) (*index)[dims.size() - 1] = rest;
  return true;
}

}  // namespace xylem::compiler
