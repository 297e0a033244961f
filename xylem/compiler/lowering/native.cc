#include <complex>
#include <cstring>
#include <functional>
#include <numeric>

#include "xylem/compiler/lowering/callback.h"
#include "xylem/compiler/lowering/lowering.h"
#include "xylem/compiler/native/fft.h"
#include "xylem/compiler/native/linalg.h"
#include "xylem/compiler/native/random.h"
#include "xylem/ir/host_function.h"
#include "xylem/ir/lapack/call.h"
#include "xylem/ir/op_def.h"
#include "xylem/ir/ops/all.h"
#include "xylem/ir/ops/linalg.h"

// Ops that are calls of routines in native/.

namespace xylem::compiler {
namespace {

using ir::Op;

class NativeCall final : public Action {
 public:
  using Function = std::function<void(void* const*)>;
  NativeCall(std::string name, Function f) : name_(std::move(name)), f_(std::move(f)) {}
  void run(void* const* operands) const override { f_(operands); }
  std::string text() const override { return name_; }

 private:
  std::string name_;
  Function f_;
};

// Operands first, results behind them.
void call(Lowering& l, const Op& op, NativeCall::Function f, double ns) {
  std::vector<Use> uses;
  for (ir::ValueId v : op.operands) uses.push_back({l.buffer(v)});
  for (ir::ValueId v : op.results) uses.push_back({l.buffer(v), true});
  const std::string name(op.def->name);
  l.action(std::make_shared<NativeCall>(name, std::move(f)), std::move(uses), name, ns);
}

// f.operator()<T>() for the C++ type of a float or complex dtype of at least 32 bits.
template <class F>
void with_type(const Op& op, DType t, F&& f) {
  switch (t) {
    case DType::kF32: return f.template operator()<float>();
    case DType::kF64: return f.template operator()<double>();
    case DType::kC64: return f.template operator()<std::complex<float>>();
    case DType::kC128: return f.template operator()<std::complex<double>>();
    default: refuse(op, "this dtype has no code: convert it to f32 first");
  }
}

std::int64_t batch_of(const ir::Type& t, int inner) {
  std::int64_t n = 1;
  for (int d = 0; d + inner < t.rank(); ++d) n *= t.dim(d);
  return n;
}

}  // namespace

void lower_cholesky(Lowering& l, const Op& op) {
  const ir::Type& t = l.graph().type(op.operands[0]);
  const std::int64_t n = t.dim(t.rank() - 1), batch = batch_of(t, 2);
  const bool lower = op.attrs.flag("lower");
  const double work = static_cast<double>(t.size()) * static_cast<double>(n) / 3;
  with_type(op, t.dtype(), [&]<class T>() {
    call(
        l, op,
        [=](void* const* p) {
          cholesky(static_cast<const T*>(p[0]), static_cast<T*>(p[1]), batch, n, lower);
        },
        work);
  });
}

void lower_triangular_solve(Lowering& l, const Op& op) {
  const ir::Type& t = l.graph().type(op.operands[1]);
  const std::int64_t rows = t.dim(t.rank() - 2), columns = t.dim(t.rank() - 1),
                     batch = batch_of(t, 2);
  const bool left = op.attrs.flag("left_side"), lower = op.attrs.flag("lower"),
             unit = op.attrs.flag("unit_diagonal");
  const std::string_view mode = op.attrs.at("transpose_a").get<ir::EnumAttr>()->value;
  const Transpose transpose = mode == "TRANSPOSE" ? Transpose::kTranspose
                              : mode == "ADJOINT" ? Transpose::kAdjoint
                                                  : Transpose::kNone;
  const double work =
      static_cast<double>(t.size()) * static_cast<double>(left ? rows : columns) / 2;
  with_type(op, t.dtype(), [&]<class T>() {
    call(
        l, op,
        [=](void* const* p) {
          triangular_solve(static_cast<const T*>(p[0]), static_cast<const T*>(p[1]),
                           static_cast<T*>(p[2]), batch, rows, columns, left, lower, unit,
                           transpose);
        },
        work);
  });
}

void lower_fft(Lowering& l, const Op& op) {
  const ir::Type& t = l.graph().type(op.operands[0]);
  const Dims& dims = op.attrs.dims("fft_length");
  const std::vector<std::int64_t> length(dims.begin(), dims.end());
  if (length.empty()) refuse(op, "a transform over no dimension");
  const std::int64_t batch = batch_of(t, static_cast<int>(length.size()));
  const std::string_view type = op.attrs.at("fft_type").get<ir::EnumAttr>()->value;
  const FftKind kind = type == "FFT"    ? FftKind::kFft
                       : type == "IFFT" ? FftKind::kIfft
                       : type == "RFFT" ? FftKind::kRfft
                                        : FftKind::kIrfft;
  const bool wide = t.dtype() == DType::kF64 || t.dtype() == DType::kC128;
  call(
      l, op,
      [=](void* const* p) { (wide ? fft<double> : fft<float>)(kind, p[0], p[1], batch, length); },
      static_cast<double>(t.size()) * 20);
}

// As xylem.lu_pivots_to_permutation is evaluated, without its loop over whole rows.
void lower_lu_pivots(Lowering& l, const Op& op) {
  const ir::Type &pivots = l.graph().type(op.operands[0]), &out = l.graph().type(op.results[0]);
  const std::int64_t k = pivots.dim(pivots.rank() - 1), n = out.dim(out.rank() - 1);
  const std::int64_t batch = n == 0 ? 0 : out.size() / n;
  call(
      l, op,
      [=](void* const* p) {
        const auto* swaps = static_cast<const std::int32_t*>(p[0]);
        auto* order = static_cast<std::int32_t*>(p[1]);
        for (std::int64_t b = 0; b < batch; ++b, swaps += k, order += n) {
          std::iota(order, order + n, 0);
          for (std::int64_t i = 0; i < k; ++i) {
            const std::int64_t j = swaps[i];
            if (j >= 0 && j < n)
              std::swap(order[i], order[j]);
            else
              order[i] = 0;
          }
        }
      },
      static_cast<double>(out.size()) * 2);
}

// A routine of LAPACK; other targets have no code.
void lower_custom_call(Lowering& l, const Op& op) {
  if (!ir::lapack::is_call(op)) refuse(op, "no code is known for its target");
  std::vector<ir::Type> operands, results;
  for (ir::ValueId v : op.operands) operands.push_back(l.graph().type(v));
  for (ir::ValueId v : op.results) results.push_back(l.graph().type(v));
  std::shared_ptr<const ir::lapack::Call> routine = ir::lapack::make_call(op, operands, results);
  call(
      l, op, [routine](void* const* p) { routine->run(p); }, routine->work());
}

// THREE_FRY is arithmetic (expand_ops); what comes here is PHILOX, which DEFAULT is.
void lower_rng_bit_generator(Lowering& l, const Op& op) {
  const ir::Type& out = l.graph().type(op.results[1]);
  const std::int64_t words = l.graph().type(op.operands[0]).size(), n = out.size();
  const DType dtype = out.dtype();
  call(
      l, op,
      [=](void* const* p) {
        philox_bits(static_cast<const std::uint64_t*>(p[0]), words,
                    static_cast<std::uint64_t*>(p[1]), dtype, p[2], n);
      },
      static_cast<double>(n) * 3);
}

void lower_rng(Lowering& l, const Op& op) {
  const ir::Type& out = l.graph().type(op.results[0]);
  const bool normal = op.attrs.str_or("rng_distribution", "") == "NORMAL";
  const std::int64_t n = out.size();
  const DType dtype = out.dtype();
  call(
      l, op, [=](void* const* p) { random_numbers(normal, dtype, p[0], p[1], p[3], n); },
      static_cast<double>(n) * 30);
}

// The function gets copies: what it keeps outlives the buffers of this run.
void lower_callback(Lowering& l, const Op& op) {
  std::vector<ir::Type> in, out;
  for (ir::ValueId v : op.operands) in.push_back(l.graph().type(v));
  for (ir::ValueId v : op.results) out.push_back(l.graph().type(v));
  const HostArray handle = op.attrs.array("function");
  call(
      l, op,
      [=](void* const* p) {
        std::vector<HostArray> args;
        for (std::size_t i = 0; i < in.size(); ++i) {
          args.emplace_back(in[i].dtype(), in[i].dims());
          std::memcpy(args[i].data(), p[i], args[i].nbytes());
        }
        const std::vector<HostArray> results = ir::call_host_function(handle, args, out);
        for (std::size_t i = 0; i < out.size(); ++i)
          std::memcpy(p[in.size() + i], results[i].data(), results[i].nbytes());
      },
      5000);
}

}  // namespace xylem::compiler
