// The functions of xylem::lax, special, nn, fft and linalg that take and give arrays, by name
// ("lax.rsqrt"): for functions_test.py. See function_cases.h.

#include "tests/parity/function_cases.h"
#include "xylem/nn/functional.h"

namespace xylem::cases {
namespace {

#define DEFINE(space, name, ...) \
  r[#space "." #name] = [](const Call& c) { return out(space::__VA_ARGS__); }
#define UNARY(space, name) DEFINE(space, name, name(c[0]))
#define BINARY(space, name) DEFINE(space, name, name(c[0], c[1]))

void add_lax(Registry& r) {
  UNARY(lax, rsqrt);
  DEFINE(lax, clamp, clamp(c[0], c[1], c[2]));
  DEFINE(lax, bitcast_convert_type, bitcast_convert_type(c[0], c.dtype()));
  DEFINE(lax, reduce_precision, reduce_precision(c[0], c.i("exponent"), c.i("mantissa")));
  DEFINE(lax, iota, iota(c.dtype(), c.dims("shape"), 0));
  DEFINE(lax, broadcasted_iota, broadcasted_iota(c.dtype(), c.dims("shape"), c.i("dimension")));
  DEFINE(lax, broadcast_in_dim, broadcast_in_dim(c[0], c.dims("shape"), c.dims("dimensions")));
  DEFINE(lax, slice, slice(c[0], c.dims("start"), c.dims("limit"), c.dims("strides")));
  DEFINE(lax, dynamic_slice, dynamic_slice(c[0], {c[1], c[2]}, c.dims("sizes")));
  DEFINE(lax, dynamic_update_slice, dynamic_update_slice(c[0], c[1], {c[2], c[3]}));
  DEFINE(lax, slice_in_dim,
         slice_in_dim(c[0], c.n("start"), c.n("limit"), c.i("axis"), c.n("stride", 1)));
  DEFINE(lax, index_in_dim, index_in_dim(c[0], c.n("index"), c.i("axis"), c.keepdims()));
  DEFINE(lax, dynamic_slice_in_dim, dynamic_slice_in_dim(c[0], c[1], c.n("size"), c.i("axis")));
  DEFINE(lax, dynamic_index_in_dim, dynamic_index_in_dim(c[0], c[1], c.i("axis"), c.keepdims()));
  DEFINE(lax, dynamic_update_slice_in_dim,
         dynamic_update_slice_in_dim(c[0], c[1], c[2], c.i("axis")));
  DEFINE(lax, dynamic_update_index_in_dim,
         dynamic_update_index_in_dim(c[0], c[1], c[2], c.i("axis")));
  DEFINE(lax, collapse, collapse(c[0], c.i("start"), c.i("stop")));
  UNARY(lax, population_count);
  UNARY(lax, clz);
  DEFINE(lax, cummax, cummax(c[0], c.i("axis"), c.flag("reverse")));
  DEFINE(lax, cummin, cummin(c[0], c.i("axis"), c.flag("reverse")));
  DEFINE(lax, cumsum, cumsum(c[0], c.i("axis"), c.flag("reverse")));
  DEFINE(lax, cumprod, cumprod(c[0], c.i("axis"), c.flag("reverse")));
  DEFINE(lax, cumlogsumexp, cumlogsumexp(c[0], c.i("axis"), c.flag("reverse")));
  DEFINE(lax, argmax, argmax(c[0], c.i("axis"), c.dtype(DType::kI32)));
  DEFINE(lax, argmin, argmin(c[0], c.i("axis"), c.dtype(DType::kI32)));
  DEFINE(
      lax, dot_general,
      dot_general(c[0], c[1], c.dims("x_contracting"), c.dims("y_contracting"), c.dims("x_batch"),
                  c.dims("y_batch"), {.preferred_element_type = c.maybe_dtype()}));
  BINARY(lax, batch_matmul);
  DEFINE(lax, ragged_dot, ragged_dot(c[0], c[1], c[2]));
  r["lax.sort"] = [](const Call& c) {
    return out(lax::sort(c.a, c.i("axis", -1), true, c.i("num_keys", 1)));
  };
  DEFINE(lax, sort_key_val, sort_key_val(c[0], c[1], c.i("axis", -1)));
  r["lax.top_k"] = [](const Call& c) {
    lax::TopK t = lax::top_k(c[0], c.n("k"), c.i("axis", -1));
    return V{t.values, t.indices};
  };
  r["lax.approx_max_k"] = [](const Call& c) {
    lax::TopK t = lax::approx_max_k(c[0], c.n("k"), {.reduction_dimension = c.i("axis", -1)});
    return V{t.values, t.indices};
  };
  r["lax.approx_min_k"] = [](const Call& c) {
    lax::TopK t = lax::approx_min_k(c[0], c.n("k"), {.reduction_dimension = c.i("axis", -1)});
    return V{t.values, t.indices};
  };
  DEFINE(lax, broadcast, broadcast(c[0], c.dims("sizes")));
  DEFINE(lax, broadcast_to_rank, broadcast_to_rank(c[0], c.i("rank")));
  r["lax.select_n"] = [](const Call& c) { return out(lax::select_n(c[0], c.from(1))); };
  BINARY(lax, shift_right_logical);
  BINARY(lax, shift_right_arithmetic);
  BINARY(lax, mulhi);
  BINARY(lax, complex);
  DEFINE(lax, reduce_sum, reduce_sum(c[0], c.ints("axes")));
  DEFINE(lax, reduce_prod, reduce_prod(c[0], c.ints("axes")));
  DEFINE(lax, reduce_max, reduce_max(c[0], c.ints("axes")));
  DEFINE(lax, reduce_min, reduce_min(c[0], c.ints("axes")));
  DEFINE(lax, reduce_and, reduce_and(c[0], c.ints("axes")));
  DEFINE(lax, reduce_or, reduce_or(c[0], c.ints("axes")));
  DEFINE(lax, reduce_xor, reduce_xor(c[0], c.ints("axes")));
  r["lax.pad"] = [](const Call& c) {
    Dims low = c.dims("low"), high = c.dims("high"), interior = c.dims("interior");
    std::vector<lax::PaddingConfig> config;
    for (std::size_t i = 0; i < low.size(); ++i) config.push_back({low[i], high[i], interior[i]});
    return out(lax::pad(c[0], c[1], config));
  };
  UNARY(lax, optimization_barrier);
  BINARY(lax, igamma);
  BINARY(lax, igammac);
  BINARY(lax, igamma_grad_a);
  BINARY(lax, random_gamma_grad);
}

void add_special(Registry& r) {
  UNARY(special, erf);
  UNARY(special, erfc);
  UNARY(special, erfinv);
  UNARY(special, expit);
  UNARY(special, logit);
  BINARY(special, xlogy);
  BINARY(special, xlog1py);
  UNARY(special, entr);
  BINARY(special, kl_div);
  BINARY(special, rel_entr);
  UNARY(special, gammaln);
  UNARY(special, digamma);
  BINARY(special, polygamma);
  BINARY(special, betaln);
  BINARY(special, zeta);
  UNARY(special, i1e);
  UNARY(special, ndtr);
  BINARY(special, gammainc);
  BINARY(special, gammaincc);
}

void add_nn(Registry& r) {
  UNARY(nn, relu);
  DEFINE(nn, gelu, gelu(c[0], c.flag("approximate")));
  UNARY(nn, silu);
  UNARY(nn, sigmoid);
  UNARY(nn, softplus);
  UNARY(nn, log_sigmoid);
  DEFINE(nn, elu, elu(c[0], c.d("alpha", 1)));
  DEFINE(nn, leaky_relu, leaky_relu(c[0], c.d("slope", 0.01)));
  DEFINE(nn, softmax, softmax(c[0], c.i("axis", -1)));
  DEFINE(nn, log_softmax, log_softmax(c[0], c.i("axis", -1)));
  DEFINE(nn, one_hot, one_hot(c[0], c.n("n"), c.dtype()));
  DEFINE(nn, dot_product_attention,
         dot_product_attention(c[0], c[1], c[2],
                               {.is_causal = c.flag("causal"), .mask = c.or_none(3)}));
}

void add_fft(Registry& r) {
#define ALONG(name) \
  DEFINE(fft, name, name(c[0], c.maybe_n("n"), c.i("axis", -1), c.s("norm", "backward")))
#define OVER(name) DEFINE(fft, name, name(c[0], c.ints("axes"), c.s("norm", "backward")))
#define PLANE(name) DEFINE(fft, name, name(c[0], c.s("norm", "backward")))
  ALONG(fft);
  ALONG(ifft);
  ALONG(rfft);
  ALONG(irfft);
  OVER(fftn);
  OVER(ifftn);
  OVER(rfftn);
  OVER(irfftn);
  PLANE(fft2);
  PLANE(ifft2);
  PLANE(rfft2);
  PLANE(irfft2);
  DEFINE(fft, fftfreq, fftfreq(c.n("n"), c.d("d", 1)));
  DEFINE(fft, rfftfreq, rfftfreq(c.n("n"), c.d("d", 1)));
  DEFINE(fft, fftshift, fftshift(c[0], c.axes()));
  DEFINE(fft, ifftshift, ifftshift(c[0], c.axes()));
}

// Results that are unique, or made so by the caller: vectors of decompositions are held by
// linalg_test.cc.
void add_linalg(Registry& r) {
  r["linalg.norm"] = [](const Call& c) {
    std::optional<linalg::Order> order;
    std::string name = c.s("name");
    if (c.has("ord")) order = linalg::Order(c.d("ord"));
    if (c.has("name")) order = linalg::Order(name.c_str());
    auto axes = c.ints("axis");
    if (axes.size() == 2)
      return out(linalg::norm(c[0], order, std::pair(axes[0], axes[1]), c.keepdims()));
    return out(linalg::norm(c[0], order, c.maybe_i("axis"), c.keepdims()));
  };
  DEFINE(linalg, vector_norm, vector_norm(c[0], c.axes(), c.keepdims(), c.d("ord", 2)));
  DEFINE(linalg, matrix_norm, matrix_norm(c[0], "fro", c.keepdims()));
  UNARY(linalg, cond);
  UNARY(linalg, matrix_rank);
  DEFINE(linalg, matrix_power, matrix_power(c[0], c.i("n")));
  DEFINE(linalg, multi_dot, multi_dot(c.a));
  BINARY(linalg, outer);
  DEFINE(linalg, trace, trace(c[0], c.i("offset")));
  DEFINE(linalg, diagonal, diagonal(c[0], c.i("offset")));
  UNARY(linalg, matrix_transpose);
  DEFINE(linalg, vecdot, vecdot(c[0], c[1], c.i("axis", -1)));
  DEFINE(linalg, cross, cross(c[0], c[1], c.i("axis", -1)));
  DEFINE(linalg, cholesky, cholesky(c[0], c.flag("upper")));
  DEFINE(linalg, svdvals, svdvals(c[0]));
  DEFINE(linalg, eigvalsh, eigvalsh(c[0]));
  DEFINE(linalg, solve_triangular,
         solve_triangular(c[0], c[1],
                          {.lower = c.flag("lower"),
                           .transpose = c.flag("transpose"),
                           .unit_diagonal = c.flag("unit")}));
  BINARY(linalg, solve);
  UNARY(linalg, inv);
  UNARY(linalg, pinv);
  UNARY(linalg, det);
  r["linalg.slogdet"] = [](const Call& c) {
    auto s = linalg::slogdet(c[0]);
    return V{s.sign, s.logabsdet};
  };
  r["linalg.lu_factor"] = [](const Call& c) {
    auto f = linalg::lu_factor(c[0]);
    return V{f.lu, f.pivots};
  };
  r["linalg.lu"] = [](const Call& c) {
    auto f = linalg::lu(c[0]);
    return V{f.p, f.l, f.u};
  };
  r["linalg.qr"] = [](const Call& c) {
    auto f = linalg::qr(c[0], c.s("mode", "reduced"));
    return all_of(f.q, f.r);
  };
  r["linalg.lstsq"] = [](const Call& c) {
    auto f = linalg::lstsq(c[0], c[1]);
    return V{f.x, f.residuals, f.rank, f.s};
  };
  UNARY(linalg, expm);
  DEFINE(linalg, block_diag, block_diag(c.a));
  UNARY(linalg, circulant);
  UNARY(linalg, companion);
  DEFINE(linalg, toeplitz, toeplitz(c[0], c.size() > 1 ? std::optional(c[1]) : std::nullopt));
  DEFINE(linalg, hankel, hankel(c[0], c.size() > 1 ? std::optional(c[1]) : std::nullopt));
  DEFINE(linalg, hilbert, hilbert(c.n("n")));
  DEFINE(linalg, pascal, pascal(c.n("n"), c.s("kind", "symmetric")));
  DEFINE(linalg, hadamard, hadamard(c.n("n"), c.dtype(DType::kI32)));
  DEFINE(linalg, dft, dft(c.n("n"), c.s("scale")));
}

}  // namespace
}  // namespace xylem::cases

int main(int argc, char** argv) {
  xylem::cases::Registry r;
  xylem::cases::add_lax(r);
  xylem::cases::add_special(r);
  xylem::cases::add_nn(r);
  xylem::cases::add_fft(r);
  xylem::cases::add_linalg(r);
  return xylem::cases::main_of(r, argc, argv);
}
