#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "xylem/core/transforms.h"

// Policies of remat, and what a differentiated function keeps for its backward pass.

namespace xylem {

// What remat keeps of a function's intermediate values, for RematOptions::policy. As
// jax.checkpoint_policies.
namespace checkpoint_policies {

std::string everything_saveable();
std::string nothing_saveable();
// Results of dot_general and convolutions.
std::string dots_saveable();
std::string checkpoint_dots();
// Results of dot_general without batch dimensions: of layers, not of attention.
std::string dots_with_no_batch_dims_saveable();
std::string checkpoint_dots_with_no_batch_dims();
// Values that checkpoint_name gave one of these names; all named ones but these; everything but
// these (which also keeps what is merely equal to them).
std::string save_only_these_names(std::initializer_list<std::string_view> names);
std::string save_any_names_but_these(std::initializer_list<std::string_view> names);
std::string save_anything_except_these_names(std::initializer_list<std::string_view> names);
// What either of two policies keeps.
std::string save_from_both_policies(const std::string& a, const std::string& b);
// On the CPU the memory of the device is that of the host: what would be moved there is kept. Other
// memories than "device" and "pinned_host" are a UserError.
std::string offload_dot_with_no_batch_dims(std::string_view offload_src,
                                           std::string_view offload_dst);
std::string save_and_offload_only_these_names(
    std::initializer_list<std::string_view> names_which_can_be_saved,
    std::initializer_list<std::string_view> names_which_can_be_offloaded,
    std::string_view offload_src, std::string_view offload_dst);

}  // namespace checkpoint_policies

// A value that the backward pass needs from the forward pass.
struct Residual {
  std::string type;    // "f32[2,2]"
  std::string origin;  // "from the argument [0]", "output of sin from f.cc:3", "named 'a' from …"
};

namespace internal {
std::vector<Residual> saved_residuals(std::span<const Array> args, const Structure& structure,
                                      FlatFunction f, SourceLoc where);
std::string residuals_text(const std::vector<Residual>& residuals);
}  // namespace internal

// The residuals of f at these arguments, differentiated by all float and complex leaves. Nothing is
// run. As jax.ad_checkpoint.saved_residuals.
template <class F, class... Args>
std::vector<Residual> saved_residuals(F&& f, const Args&... args) {
  std::tuple inputs{internal::as_tree(args)...};
  using R = std::decay_t<decltype(std::apply(f, inputs))>;
  std::optional<R> result;
  tree::Flat<Array> flat = tree::flatten<Array>(inputs);
  return internal::saved_residuals(flat.leaves, flat.structure,
                                   internal::recording(f, inputs, result),
                                   internal::current_call_site());
}
// One line each: "f32[2,2] output of dot_general from f.cc:3".
template <class F, class... Args>
std::string print_saved_residuals(F&& f, const Args&... args) {
  return internal::residuals_text(saved_residuals(std::forward<F>(f), args...));
}

}  // namespace xylem
