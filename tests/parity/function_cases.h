#pragma once

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <functional>
#include <iostream>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "xylem/core/core.h"

// How the function tools (numpy_functions_tool.cc and its kin) are called by functions_test.py.
//
//   TOOL list              a name per line
//   TOOL run < cases       a case is a line "NAME MODE OPERANDS ATTRIBUTES" followed by the bytes
//   of
//                          its arrays. MODE: "eager" or "jit". An operand is "DTYPE:2,3" or a weak
//                          C++ scalar "weak_int:3", "weak_float:0.5", "weak_bool:1",
//                          "weak_complex:1,2"; operands are joined by ";", "-" is none. Attributes
//                          are "key=value" tokens.
//
// A case is answered by "ok N" and N times "DTYPE:SHAPE" with bytes, by "refused MESSAGE" for a
// UserError, or by "broken MESSAGE" for any other.
namespace xylem::cases {

using V = std::vector<Array>;

inline std::vector<std::string> split_text(const std::string& s, char by) {
  std::vector<std::string> r;
  std::istringstream in(s);
  for (std::string part; std::getline(in, part, by);) r.push_back(part);
  return r;
}

// A call's operands and attributes.
struct Call {
  V a;
  std::map<std::string, std::string> attrs;

  const Array& operator[](std::size_t i) const {
    if (i >= a.size()) throw std::runtime_error("too few operands in the case");
    return a[i];
  }
  Array or_none(std::size_t i) const { return i < a.size() ? a[i] : Array(); }
  V from(std::size_t i) const { return V(a.begin() + static_cast<std::ptrdiff_t>(i), a.end()); }
  std::size_t size() const { return a.size(); }
  bool has(const char* k) const { return attrs.contains(k); }
  std::string s(const char* k, const char* otherwise = "") const {
    auto it = attrs.find(k);
    return it == attrs.end() ? otherwise : it->second;
  }
  std::int64_t n(const char* k, std::int64_t otherwise = 0) const {
    return has(k) ? std::stoll(s(k)) : otherwise;
  }
  int i(const char* k, int otherwise = 0) const { return static_cast<int>(n(k, otherwise)); }
  double d(const char* k, double otherwise = 0) const {
    return has(k) ? std::stod(s(k)) : otherwise;
  }
  bool flag(const char* k) const { return s(k) == "1"; }
  std::optional<std::int64_t> maybe_n(const char* k) const {
    return has(k) ? std::optional(n(k)) : std::nullopt;
  }
  std::optional<int> maybe_i(const char* k) const {
    return has(k) ? std::optional(i(k)) : std::nullopt;
  }
  std::optional<double> maybe_d(const char* k) const {
    return has(k) ? std::optional(d(k)) : std::nullopt;
  }
  Dims dims(const char* k) const {
    Dims r;
    for (const std::string& part : split_text(s(k), ',')) r.push_back(std::stoll(part));
    return r;
  }
  std::vector<int> ints(const char* k) const {
    std::vector<int> r;
    for (const std::string& part : split_text(s(k), ',')) r.push_back(std::stoi(part));
    return r;
  }
  // "axis": absent (all), one, or "1,0"; "()" is no axis.
  AxisArg axes(const char* k = "axis") const {
    if (!has(k)) return {};
    if (s(k) == "()") return std::vector<int>{};
    std::vector<int> r = ints(k);
    return r.size() == 1 ? AxisArg(r[0]) : AxisArg(r);
  }
  bool keepdims() const { return flag("keepdims"); }
  std::optional<DType> maybe_dtype(const char* k = "dtype") const {
    return has(k) ? parse_dtype(s(k)) : std::nullopt;
  }
  DType dtype(DType otherwise = DType::kF32) const { return maybe_dtype().value_or(otherwise); }
  // "1,2;0,0": pairs of numbers.
  std::vector<std::pair<std::int64_t, std::int64_t>> pairs(const char* k) const {
    std::vector<std::pair<std::int64_t, std::int64_t>> r;
    for (const std::string& part : split_text(s(k), ';')) {
      auto two = split_text(part, ',');
      r.emplace_back(std::stoll(two.at(0)), std::stoll(two.at(1)));
    }
    return r;
  }
};

inline V out(Array x) { return {std::move(x)}; }
inline V out(V x) { return x; }
inline V out(std::pair<Array, Array> x) { return {x.first, x.second}; }
template <class... A>
V all_of(const A&... a) {
  V r;
  for (const Array& x : {a...})
    if (x.defined()) r.push_back(x);
  return r;
}

using Function = std::function<V(const Call&)>;
using Registry = std::map<std::string, Function>;

inline HostArray take_bytes(std::istream& in, DType dtype, Dims shape) {
  HostArray h(dtype, std::move(shape));
  in.read(reinterpret_cast<char*>(h.data()), static_cast<std::streamsize>(h.nbytes()));
  if (static_cast<std::size_t>(in.gcount()) != h.nbytes())
    throw std::runtime_error("a case ends within an array");
  return h;
}

inline Array weak_scalar(const std::string& kind, const std::string& text) {
  if (kind == "weak_int") return ArrayArg(static_cast<std::int64_t>(std::stoll(text))).array;
  if (kind == "weak_bool") return ArrayArg(text == "1").array;
  if (kind == "weak_float") return ArrayArg(std::stod(text)).array;
  auto parts = split_text(text, ',');
  return ArrayArg(std::complex<double>(std::stod(parts.at(0)), std::stod(parts.at(1)))).array;
}

inline std::string one_line(std::string s) {
  for (char& c : s)
    if (c == '\n') c = ' ';
  return s;
}

inline void answer(std::ostream& o, const V& results) {
  std::vector<HostArray> host;
  for (const Array& r : results) host.push_back(r.to_host().to_contiguous());
  o << "ok " << host.size() << "\n";
  for (const HostArray& h : host) {
    o << dtype_info(h.dtype()).numpy_name << ":";
    for (int i = 0; i < h.dims().ssize(); ++i) o << (i ? "," : "") << h.dims()[i];
    o << "\n";
    o.write(reinterpret_cast<const char*>(h.data()), static_cast<std::streamsize>(h.nbytes()));
  }
}

inline void run_case(const Registry& functions, const std::string& line) {
  auto words = split_text(line, ' ');
  Call call;
  std::vector<bool> traced;
  if (words.at(2) != "-")
    for (const std::string& operand : split_text(words[2], ';')) {
      auto colon = operand.find(':');
      std::string kind = operand.substr(0, colon), rest = operand.substr(colon + 1);
      bool weak = kind.starts_with("weak_");
      if (weak) {
        call.a.push_back(weak_scalar(kind, rest));
      } else {
        Dims shape;
        for (const std::string& part : split_text(rest, ',')) shape.push_back(std::stoll(part));
        call.a.push_back(Array(take_bytes(std::cin, *parse_dtype(kind), shape)));
      }
      traced.push_back(!weak);
    }
  for (std::size_t i = 3; i < words.size(); ++i) {
    auto at = words[i].find('=');
    call.attrs[words[i].substr(0, at)] = words[i].substr(at + 1);
  }
  try {
    const Function& f = functions.at(words[0]);
    V results;
    if (words[1] == "jit") {
      V inputs;
      for (std::size_t i = 0; i < call.a.size(); ++i)
        if (traced[i]) inputs.push_back(call.a[i]);
      results = jit([&](const V& in) {
        Call inner = call;
        for (std::size_t i = 0, at = 0; i < inner.a.size(); ++i)
          if (traced[i]) inner.a[i] = in[at++];
        return f(inner);
      })(inputs);
    } else {
      results = f(call);
    }
    answer(std::cout, results);
  } catch (const UserError& e) {
    std::cout << "refused " << one_line(e.what()) << "\n";
  } catch (const std::exception& e) {
    std::cout << "broken " << one_line(e.what()) << "\n";
  }
  std::cout.flush();
}

inline int main_of(const Registry& functions, int argc, char** argv) try {
  std::string verb = argc == 2 ? argv[1] : "";
  if (verb == "list") {
    for (const auto& [name, f] : functions) std::cout << name << "\n";
    return 0;
  }
  if (verb != "run") return 2;
  for (std::string line; std::getline(std::cin, line);) run_case(functions, line);
  return 0;
} catch (const std::exception& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}

}  // namespace xylem::cases
