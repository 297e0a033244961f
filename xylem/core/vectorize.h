#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "xylem/core/transforms.h"

namespace xylem {
namespace internal {

// What vectorize does with its arguments: those with loop axes have them as one axis in front.
struct VectorizePlan {
  std::vector<Array> args;
  std::vector<int> axes;  // 0, or no_axis for arguments without loop axes
  Dims loop;              // sizes of the loop axes of the result
  std::int64_t size = 1;  // their product
  bool mapped = false;
};
// UserError if the signature is malformed or does not fit the arguments.
VectorizePlan plan_vectorize(std::string_view signature, std::span<const Array> args,
                             SourceLoc where);
// A result with its loop axes apart again; checked against the signature's result k of `count`.
Array finish_vectorize(const VectorizePlan& plan, std::string_view signature, const Array& result,
                       std::size_t k, std::size_t count, SourceLoc where);

}  // namespace internal

// f, written for arguments of few axes, over any number of further axes in front, which are
// broadcast against each other as NumPy does. `signature`, as in NumPy's generalised ufuncs, says
// how many axes f takes and gives, "(n,m),(m)->(n)"; without it f takes scalars. Axes of one name
// have one size.
//
//   auto solve_all = vectorize([](const Array& a, const Array& b) { return linalg::solve(a, b); },
//                              "(n,n),(n)->(n)");
//
// f may return an array, or a tuple or struct of arrays. UserError if arguments or results do not
// fit the signature.
template <class F>
auto vectorize(F&& f, std::string signature = {}) {
  return [f = std::decay_t<F>(std::forward<F>(f)),
          signature = std::move(signature)](const auto&... args) mutable {
    std::vector<Array> in{Array(args)...};
    SourceLoc where = internal::current_call_site();
    internal::VectorizePlan plan = internal::plan_vectorize(signature, in, where);
    auto call = [&](std::span<const Array> a) {
      return [&]<std::size_t... I>(std::index_sequence<I...>) { return f(a[I]...); }
      (std::make_index_sequence<sizeof...(args)>());
    };
    using R = std::decay_t<decltype(call(std::span<const Array>()))>;
    std::optional<R> result;
    auto flat = [&](std::span<const Array> a) {
      result.emplace(call(a));
      return tree::leaves<Array>(*result);
    };
    std::vector<Array> r = plan.mapped
                               ? internal::vmap(
                                     plan.args, plan.axes, plan.size, "", flat,
                                     [](std::size_t n) { return std::vector<int>(n, 0); }, where)
                               : flat(plan.args);
    std::size_t count = r.size(), k = 0;
    for (Array& a : r) a = internal::finish_vectorize(plan, signature, a, k++, count, where);
    return tree::unflatten<Array>(std::move(*result), std::span<const Array>(r));
  };
}

}  // namespace xylem
