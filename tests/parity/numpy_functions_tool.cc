// The functions of xylem:: that take and give arrays, by name: for functions_test.py. See
// function_cases.h.

#include "tests/parity/function_cases.h"

namespace xylem::cases {
namespace {

#define UNARY(name) r[#name] = [](const Call& c) { return out(name(c[0])); }
#define BINARY(name) r[#name] = [](const Call& c) { return out(name(c[0], c[1])); }
#define REDUCTION(name) \
  r[#name] = [](const Call& c) { return out(name(c[0], c.axes(), c.keepdims())); }
#define ONE_AXIS(name) r[#name] = [](const Call& c) { return out(name(c[0], c.maybe_i("axis"))); }
#define DEFINE(name, ...) r[#name] = [](const Call& c) { return out(__VA_ARGS__); }

void add_elementwise(Registry& r) {
  UNARY(logical_not);
  UNARY(invert);
  UNARY(negative);
  UNARY(fabs);
  UNARY(signbit);
  UNARY(sinc);
  UNARY(deg2rad);
  UNARY(rad2deg);
  UNARY(angle);
  UNARY(rint);
  UNARY(isposinf);
  UNARY(isneginf);
  UNARY(isreal);
  UNARY(iscomplex);
  UNARY(bitwise_count);
  UNARY(bitwise_not);
  UNARY(conjugate);
  UNARY(positive);
  UNARY(abs);
  UNARY(sign);
  UNARY(exp);
  UNARY(exp2);
  UNARY(expm1);
  UNARY(log);
  UNARY(log2);
  UNARY(log10);
  UNARY(log1p);
  UNARY(sqrt);
  UNARY(cbrt);
  UNARY(square);
  UNARY(reciprocal);
  UNARY(sin);
  UNARY(cos);
  UNARY(tan);
  UNARY(arcsin);
  UNARY(arccos);
  UNARY(arctan);
  UNARY(sinh);
  UNARY(cosh);
  UNARY(tanh);
  UNARY(arcsinh);
  UNARY(arccosh);
  UNARY(arctanh);
  UNARY(floor);
  UNARY(ceil);
  UNARY(trunc);
  UNARY(real);
  UNARY(imag);
  UNARY(conj);
  UNARY(isnan);
  UNARY(isinf);
  UNARY(isfinite);
  UNARY(modf);
  UNARY(stop_gradient);
  DEFINE(round, round(c[0], c.i("decimals")));
  DEFINE(nan_to_num, nan_to_num(c[0], c.d("nan"), c.maybe_d("posinf"), c.maybe_d("neginf")));
  BINARY(add);
  BINARY(subtract);
  BINARY(multiply);
  BINARY(divide);
  BINARY(floor_divide);
  BINARY(mod);
  BINARY(fmod);
  BINARY(power);
  BINARY(maximum);
  BINARY(minimum);
  BINARY(arctan2);
  BINARY(hypot);
  BINARY(logaddexp);
  BINARY(equal);
  BINARY(not_equal);
  BINARY(less);
  BINARY(less_equal);
  BINARY(greater);
  BINARY(greater_equal);
  BINARY(logical_and);
  BINARY(logical_or);
  BINARY(logical_xor);
  BINARY(bitwise_and);
  BINARY(bitwise_or);
  BINARY(bitwise_xor);
  BINARY(left_shift);
  BINARY(right_shift);
  BINARY(bitwise_left_shift);
  BINARY(bitwise_right_shift);
  BINARY(remainder);
  BINARY(float_power);
  BINARY(fmax);
  BINARY(fmin);
  BINARY(logaddexp2);
  BINARY(heaviside);
  BINARY(copysign);
  BINARY(nextafter);
  BINARY(ldexp);
  BINARY(gcd);
  BINARY(lcm);
  BINARY(divmod);
  BINARY(polyval);
  BINARY(array_equiv);
  DEFINE(pow, pow(c[0], c.i("n")));
  DEFINE(isclose, isclose(c[0], c[1], 1e-5, 1e-8, c.flag("equal_nan")));
  DEFINE(allclose, allclose(c[0], c[1], 1e-5, 1e-8, c.flag("equal_nan")));
  DEFINE(array_equal, array_equal(c[0], c[1], c.flag("equal_nan")));
  DEFINE(where, where(c[0], c[1], c[2]));
  DEFINE(clip, clip(c[0], c[1], c[2]));
  DEFINE(select, select(V{c[0], c[1]}, V{c[2], c[3]}, c[4]));
  DEFINE(view, view(c[0], c.dtype()));
  DEFINE(astype, astype(c[0], c.dtype()));
  DEFINE(checkpoint_name, checkpoint_name(c[0], "x"));
}

void add_reductions(Registry& r) {
  REDUCTION(sum);
  REDUCTION(prod);
  REDUCTION(mean);
  REDUCTION(max);
  REDUCTION(min);
  REDUCTION(any);
  REDUCTION(all);
  REDUCTION(logsumexp);
  REDUCTION(count_nonzero);
  REDUCTION(median);
  REDUCTION(ptp);
  REDUCTION(nansum);
  REDUCTION(nanprod);
  REDUCTION(nanmean);
  REDUCTION(nanmax);
  REDUCTION(nanmin);
  DEFINE(var, var(c[0], c.axes(), c.d("ddof"), c.keepdims()));
  DEFINE(std, xylem::std(c[0], c.axes(), c.d("ddof"), c.keepdims()));
  DEFINE(nanvar, nanvar(c[0], c.axes(), c.d("ddof"), c.keepdims()));
  DEFINE(nanstd, nanstd(c[0], c.axes(), c.d("ddof"), c.keepdims()));
  DEFINE(argmax, argmax(c[0], c.maybe_i("axis"), c.keepdims()));
  DEFINE(argmin, argmin(c[0], c.maybe_i("axis"), c.keepdims()));
  ONE_AXIS(nanargmax);
  ONE_AXIS(nanargmin);
  ONE_AXIS(cumsum);
  ONE_AXIS(cumprod);
  ONE_AXIS(nancumsum);
  DEFINE(cumulative_sum, cumulative_sum(c[0], c.maybe_i("axis"), c.flag("include_initial")));
  DEFINE(cumulative_prod, cumulative_prod(c[0], c.maybe_i("axis"), c.flag("include_initial")));
  DEFINE(diff, diff(c[0], c.i("n", 1), c.i("axis", -1)));
  UNARY(ediff1d);
  DEFINE(trapezoid, c.size() > 1 ? trapezoid(c[0], c[1], c.i("axis", -1))
                                 : trapezoid(c[0], c.d("dx", 1), c.i("axis", -1)));
  DEFINE(gradient, gradient(c[0], c.d("spacing", 1), c.i("axis")));
  DEFINE(average, average(c[0], c.maybe_i("axis"), c.or_none(1), c.keepdims()));
  auto method = [](const Call& c) {
    std::string s = c.s("method", "linear");
    return s == "linear"     ? QuantileMethod::kLinear
           : s == "lower"    ? QuantileMethod::kLower
           : s == "higher"   ? QuantileMethod::kHigher
           : s == "midpoint" ? QuantileMethod::kMidpoint
                             : QuantileMethod::kNearest;
  };
  r["quantile"] = [=](const Call& c) {
    return out(quantile(c[0], c[1], c.axes(), method(c), c.keepdims()));
  };
  r["percentile"] = [=](const Call& c) {
    return out(percentile(c[0], c[1], c.axes(), method(c), c.keepdims()));
  };
  UNARY(cov);
  UNARY(corrcoef);
}

void add_creation(Registry& r) {
  DEFINE(zeros, zeros(c.dims("shape"), c.dtype()));
  DEFINE(ones, ones(c.dims("shape"), c.dtype()));
  DEFINE(empty, empty(c.dims("shape"), c.dtype()));
  DEFINE(full, full(c.dims("shape"), c[0], c.maybe_dtype()));
  DEFINE(zeros_like, zeros_like(c[0], c.maybe_dtype()));
  DEFINE(ones_like, ones_like(c[0], c.maybe_dtype()));
  DEFINE(full_like, full_like(c[0], c[1]));
  UNARY(empty_like);
  DEFINE(arange, arange(c.n("start"), c.n("stop"), c.n("step", 1), c.dtype(DType::kI32)));
  DEFINE(linspace, linspace(c.d("start"), c.d("stop"), c.n("num", 50), c.flag("endpoint")));
  DEFINE(logspace,
         logspace(c.d("start"), c.d("stop"), c.n("num", 50), c.flag("endpoint"), c.d("base", 10)));
  DEFINE(geomspace, geomspace(c.d("start"), c.d("stop"), c.n("num", 50), c.flag("endpoint")));
  DEFINE(identity, identity(c.n("n"), c.dtype()));
  DEFINE(eye, eye(c.n("n"), c.n("m", -1), c.i("k"), c.dtype()));
  DEFINE(tri, tri(c.n("n"), c.n("m"), c.i("k"), c.dtype()));
  DEFINE(asarray, asarray(c[0], c.maybe_dtype()));
  UNARY(copy);
  DEFINE(meshgrid, meshgrid(c.a, c.s("indexing", "xy")));
  DEFINE(indices, indices(c.dims("shape")));
  DEFINE(tril_indices, tril_indices(c.n("n"), c.i("k"), c.n("m", -1)));
  DEFINE(triu_indices, triu_indices(c.n("n"), c.i("k"), c.n("m", -1)));
  DEFINE(diag_indices, diag_indices(c.n("n")));
  DEFINE(vander, vander(c[0], c.n("n", -1), c.flag("increasing")));
}

void add_shapes(Registry& r) {
  DEFINE(reshape, reshape(c[0], c.dims("shape")));
  UNARY(ravel);
  DEFINE(permute_dims, permute_dims(c[0], c.dims("axes")));
  UNARY(matrix_transpose);
  DEFINE(moveaxis, moveaxis(c[0], c.ints("from"), c.ints("to")));
  DEFINE(rollaxis, rollaxis(c[0], c.i("axis"), c.i("start")));
  UNARY(atleast_1d);
  UNARY(atleast_2d);
  UNARY(atleast_3d);
  DEFINE(broadcast_arrays, broadcast_arrays(c.a));
  DEFINE(concat, concat(c.a, c.i("axis")));
  DEFINE(concatenate, concatenate(c.a, c.i("axis")));
  DEFINE(append, append(c[0], c[1], c.maybe_i("axis")));
  DEFINE(vstack, vstack(c.a));
  DEFINE(hstack, hstack(c.a));
  DEFINE(dstack, dstack(c.a));
  DEFINE(column_stack, column_stack(c.a));
  DEFINE(block, block({{c[0], c[1]}, {c[2], c[3]}}));
  DEFINE(array_split, array_split(c[0], c.i("n"), c.i("axis")));
  DEFINE(vsplit, vsplit(c[0], c.i("n")));
  DEFINE(hsplit, hsplit(c[0], c.i("n")));
  DEFINE(transpose, c.has("axes") ? transpose(c[0], c.dims("axes")) : transpose(c[0]));
  DEFINE(swapaxes, swapaxes(c[0], c.i("a"), c.i("b")));
  DEFINE(expand_dims, expand_dims(c[0], c.axes()));
  DEFINE(squeeze, squeeze(c[0], c.axes()));
  DEFINE(broadcast_to, broadcast_to(c[0], c.dims("shape")));
  DEFINE(stack, stack(c.a, c.i("axis")));
  r["split"] = [](const Call& c) {
    if (c.has("n")) return split(c[0], c.i("n"), c.i("axis"));
    Dims at = c.dims("at");
    return split(c[0], std::vector<std::int64_t>(at.begin(), at.end()), c.i("axis"));
  };
  DEFINE(unstack, unstack(c[0], c.i("axis")));
  DEFINE(tile, tile(c[0], c.dims("reps")));
  DEFINE(repeat, c.size() > 1 ? repeat(c[0], c[1], c.i("axis"), c.maybe_n("total"))
                              : repeat(c[0], c.n("n"), c.i("axis")));
  UNARY(fliplr);
  UNARY(flipud);
  DEFINE(rot90, rot90(c[0], c.i("k", 1), c.i("axis0"), c.i("axis1", 1)));
  DEFINE(roll, c.has("axis") ? roll(c[0], c.n("shift"), c.i("axis")) : roll(c[0], c.n("shift")));
  DEFINE(flip, flip(c[0], c.axes()));
  DEFINE(pad, c.has("mode")
                  ? pad(c[0], c.pairs("widths"), c.s("mode"))
                  : pad(c[0], c.pairs("widths"), c.size() > 1 ? ArrayArg(c[1]) : ArrayArg(0)));
  DEFINE(insert, insert(c[0], c.n("index"), c[1], c.i("axis")));
  DEFINE(delete_, delete_(c[0], c.n("index"), c.i("axis")));
  DEFINE(resize, resize(c[0], c.dims("shape")));
  DEFINE(tril, tril(c[0], c.i("k")));
  DEFINE(triu, triu(c[0], c.i("k")));
  DEFINE(diag, diag(c[0], c.i("k")));
  DEFINE(diagflat, diagflat(c[0], c.i("k")));
  DEFINE(diagonal, diagonal(c[0], c.i("offset"), c.i("axis0"), c.i("axis1", 1)));
  DEFINE(trace, trace(c[0], c.i("offset"), c.i("axis0"), c.i("axis1", 1)));
  DEFINE(unravel_index, unravel_index(c[0], c.dims("shape")));
  DEFINE(ravel_multi_index, ravel_multi_index(c.a, c.dims("shape")));
  DEFINE(packbits, packbits(c[0], c.maybe_i("axis"), c.flag("little")));
  DEFINE(unpackbits, unpackbits(c[0], c.maybe_i("axis"), c.flag("little")));
}

void add_products(Registry& r) {
  BINARY(matmul);
  BINARY(dot);
  BINARY(vdot);
  BINARY(inner);
  BINARY(outer);
  BINARY(matvec);
  BINARY(vecmat);
  BINARY(kron);
  DEFINE(tensordot, c.has("n") ? tensordot(c[0], c[1], c.i("n"))
                               : tensordot(c[0], c[1], c.ints("x_axes"), c.ints("y_axes")));
  DEFINE(vecdot, vecdot(c[0], c[1], c.i("axis", -1)));
  DEFINE(cross, cross(c[0], c[1], c.i("axis", -1)));
  DEFINE(einsum, c.size() == 1   ? einsum(c.s("subscripts"), {c[0]})
                 : c.size() == 2 ? einsum(c.s("subscripts"), {c[0], c[1]})
                                 : einsum(c.s("subscripts"), {c[0], c[1], c[2]}));
}

IndexMode mode_of(const Call& c) {
  std::string s = c.s("mode");
  return s == "fill"   ? IndexMode::kFill
         : s == "clip" ? IndexMode::kClip
         : s == "wrap" ? IndexMode::kWrap
                       : IndexMode::kDefault;
}

void add_searches(Registry& r) {
  DEFINE(take, take(c[0], c[1], c.maybe_i("axis"), mode_of(c), c.maybe_d("fill")));
  DEFINE(take_along_axis, take_along_axis(c[0], c[1], c.i("axis"), mode_of(c), c.maybe_d("fill")));
  DEFINE(sort, sort(c[0], c.i("axis", -1), c.flag("descending")));
  DEFINE(argsort, argsort(c[0], c.i("axis", -1), c.flag("descending")));
  DEFINE(searchsorted, searchsorted(c[0], c[1], c.flag("right")));
  DEFINE(put_along_axis, put_along_axis(c[0], c[1], c[2], c.i("axis")));
  DEFINE(partition, partition(c[0], c.i("kth"), c.i("axis", -1)));
  DEFINE(argpartition, argpartition(c[0], c.i("kth"), c.i("axis", -1)));
  DEFINE(choose, choose(c[0], c.from(1)));
  DEFINE(bincount, bincount(c[0], c.or_none(1), c.n("minlength"), c.maybe_n("length")));
  auto range = [](const Call& c) -> std::optional<std::pair<double, double>> {
    if (!c.has("lo")) return std::nullopt;
    return std::pair(c.d("lo"), c.d("hi"));
  };
  r["histogram_bin_edges"] = [=](const Call& c) {
    return out(histogram_bin_edges(c[0], c.n("bins", 10), range(c)));
  };
  r["histogram"] = [=](const Call& c) {
    Histogram h = histogram(c[0], c.n("bins", 10), range(c), c.or_none(1), c.flag("density"));
    return V{h.counts, h.edges};
  };
  DEFINE(digitize, digitize(c[0], c[1], c.flag("right")));
  DEFINE(nonzero, nonzero(c[0], c.maybe_n("size"), c.n("fill")));
  DEFINE(flatnonzero, flatnonzero(c[0], c.maybe_n("size"), c.n("fill")));
  DEFINE(argwhere, argwhere(c[0], c.maybe_n("size"), c.n("fill")));
  r["unique_all"] = [](const Call& c) {
    Unique u = unique_all(c[0], c.maybe_n("size"), c.maybe_d("fill"));
    return V{u.values, u.indices, u.inverse, u.counts};
  };
  DEFINE(unique, unique(c[0], c.maybe_n("size"), c.maybe_d("fill")));
  DEFINE(isin, isin(c[0], c[1], c.flag("invert")));
  DEFINE(union1d, union1d(c[0], c[1], c.maybe_n("size")));
  BINARY(intersect1d);
  BINARY(setdiff1d);
  DEFINE(lexsort, lexsort(c.a, c.i("axis", -1)));
  DEFINE(interp, interp(c[0], c[1], c[2], c.maybe_d("left"), c.maybe_d("right")));
}

}  // namespace
}  // namespace xylem::cases

int main(int argc, char** argv) {
  xylem::cases::Registry r;
  xylem::cases::add_elementwise(r);
  xylem::cases::add_reductions(r);
  xylem::cases::add_creation(r);
  xylem::cases::add_shapes(r);
  xylem::cases::add_products(r);
  xylem::cases::add_searches(r);
  return xylem::cases::main_of(r, argc, argv);
}
