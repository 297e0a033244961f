#include "xylem/core/callback.h"

#include <fmt/format.h>

#include <cstdio>
#include <mutex>

#include "xylem/base/error.h"
#include "xylem/core/internal/format.h"
#include "xylem/core/internal/trace.h"
#include "xylem/ir/host_function.h"
#include "xylem/ir/ops/callback.h"

namespace xylem {
namespace internal {

using ir::Attr;
using ir::Attrs;

namespace {

const char* kind_name(CallbackKind kind) {
  return kind == CallbackKind::kPure ? "pure_callback"
         : kind == CallbackKind::kIo ? "io_callback"
                                     : "debug_callback";
}

void check_method(const std::string& method, SourceLoc where) {
  for (const char* known :
       {"", "sequential", "sequential_unrolled", "expand_dims", "broadcast_all"})
    if (method == known) return;
  throw UserError(ErrorParts{"pure_callback: vmap_method", "a known method", method,
                             "Use sequential, sequential_unrolled, expand_dims or broadcast_all"},
                  where);
}

// The user's function on host arrays; what it throws becomes a UserError.
ir::HostFunction guarded(CallbackKind kind, std::string name, FlatCallback f, SourceLoc where) {
  return [=](std::span<const HostArray> in) {
    NoTraceScope none;
    try {
      std::vector<Array> args;
      for (const HostArray& a : in) args.emplace_back(a);
      std::vector<HostArray> out;
      for (const Array& a : f(args)) out.push_back(a.to_host());
      return out;
    } catch (const std::exception& e) {
      throw UserError(ErrorParts{fmt::format("{} '{}'", kind_name(kind), name),
                                 "a function that returns", fmt::format("it threw: {}", e.what()),
                                 "Handle the error in the function, or mend its cause"},
                      where);
    }
  };
}

}  // namespace

std::vector<Array> callback(CallbackKind kind, const std::string& name,
                            const std::string& vmap_method, bool ordered, FlatCallback f,
                            std::span<const Array> args, std::span<const Array> results,
                            SourceLoc where) {
  CallSite site(where);
  check_method(vmap_method, where);
  ir::AttrList types;
  std::vector<bool> weak;
  for (const Array& r : results) {
    if (!r.defined())
      throw UserError(ErrorParts{fmt::format("{}: declared results", kind_name(kind)),
                                 "arrays with a shape and dtype", "one is undefined",
                                 "Give shape_dtype_struct(shape, dtype)"},
                      where);
    types.emplace_back(r.node()->type);
  }
  // Undefined arguments come back undefined.
  std::vector<bool> defined;
  std::vector<Array> given;
  for (const Array& a : args) {
    defined.push_back(a.defined());
    if (a.defined()) given.push_back(a);
  }
  FlatCallback full = [f = std::move(f), defined](std::span<const Array> in) {
    std::vector<Array> all;
    std::size_t next = 0;
    for (bool d : defined) all.push_back(d ? in[next++] : Array());
    return f(all);
  };
  ir::HostFunction host = guarded(kind, name, std::move(full), where);
  if (!current_trace()) {
    std::vector<HostArray> in;
    for (const Array& a : given) in.push_back(a.to_host(where).to_contiguous());
    std::vector<ir::Type> want;
    for (const Array& r : results) want.push_back(r.node()->type);
    std::vector<Array> out;
    Attr handle = ir::keep_host_function(std::move(host));
    for (const HostArray& a : ir::call_host_function(*handle.get<HostArray>(), in, want))
      out.emplace_back(a);
    return out;
  }
  Attrs attrs{{"function", ir::keep_host_function(std::move(host))},
              {"name", Attr(name)},
              {"result_types", Attr(std::move(types))}};
  if (kind == CallbackKind::kPure) {
    if (!vmap_method.empty()) attrs.set("vmap_method", Attr(vmap_method));
    return apply(ir::ops::kPureCallback, given, std::move(attrs), {}, where);
  }
  if (ordered) attrs.set("ordered", Attr(true));
  if (kind == CallbackKind::kDebug) attrs.set("debug", Attr(true));
  return apply(ir::ops::kIoCallback, given, std::move(attrs), {}, where);
}

namespace {

std::mutex output_mutex;
std::function<void(std::string_view)>& output() {
  static auto* sink = new std::function<void(std::string_view)>;
  return *sink;
}

[[noreturn]] void bad_format(std::string_view what, std::string_view format,
                             const std::string& given, SourceLoc where) {
  throw UserError(
      ErrorParts{what, "a format whose fields {} and {name} fit the values, each used once",
                 fmt::format("\"{}\": {}", format, given),
                 "Name the values as the fields are, and write {{ for a brace"},
      where);
}

}  // namespace

std::vector<Piece> parse_format(std::string_view what, std::string_view format,
                                std::span<const DebugValue> values, SourceLoc where) {
  std::vector<Piece> out(1);
  std::vector<bool> used(values.size(), false);
  std::size_t next = 0;
  for (std::size_t i = 0; i < format.size(); ++i) {
    char c = format[i];
    if ((c == '{' || c == '}') && i + 1 < format.size() && format[i + 1] == c) {
      out.back().text += c;
      ++i;
      continue;
    }
    if (c == '}') bad_format(what, format, "a single }", where);
    if (c != '{') {
      out.back().text += c;
      continue;
    }
    std::size_t end = format.find('}', i);
    if (end == std::string_view::npos) bad_format(what, format, "a { without }", where);
    std::string_view name = format.substr(i + 1, end - i - 1);
    std::size_t k = 0;
    if (name.empty()) {
      while (next < values.size() && !values[next].name.empty()) ++next;
      k = next++;
    } else {
      while (k < values.size() && values[k].name != name) ++k;
    }
    if (k >= values.size())
      bad_format(what, format, fmt::format("no value for {{{}}}", name), where);
    used[k] = true;
    out.push_back({"", static_cast<int>(k)});
    out.emplace_back();
    i = end;
  }
  for (std::size_t k = 0; k < used.size(); ++k)
    if (!used[k]) bad_format(what, format, fmt::format("value {} is not used", k), where);
  return out;
}

std::string fill_format(std::span<const Piece> pieces, std::span<const Array> values) {
  std::string line;
  for (const Piece& p : pieces)
    line += p.value < 0 ? p.text : values[static_cast<std::size_t>(p.value)].to_string();
  return line;
}

}  // namespace internal

std::function<void(std::string_view)> set_debug_output(std::function<void(std::string_view)> sink) {
  std::lock_guard lock(internal::output_mutex);
  return std::exchange(internal::output(), std::move(sink));
}

void debug_print(std::string_view format, std::initializer_list<DebugValue> values, bool ordered,
                 SourceLoc where) {
  std::vector<Array> args;
  for (const DebugValue& v : values) args.push_back(v.array);
  std::vector<internal::Piece> pieces =
      internal::parse_format("debug_print", format, {values.begin(), values.size()}, where);
  internal::callback(
      internal::CallbackKind::kDebug, "debug_print", "", ordered,
      [pieces](std::span<const Array> in) {
        const std::string line = internal::fill_format(pieces, in);
        std::lock_guard lock(internal::output_mutex);
        if (internal::output()) {
          internal::output()(line);
        } else {
          std::fwrite(line.data(), 1, line.size(), stdout);
          std::fputc('\n', stdout);
          std::fflush(stdout);
        }
        return std::vector<Array>();
      },
      args, {}, internal::CallSite::outermost(where));
}

}  // namespace xylem
