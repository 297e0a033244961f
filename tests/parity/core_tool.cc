// For core_test.py: one-op programs over f64 arrays and their transformations.
//   core_tool list             a line "NAME<tab>SHAPE;SHAPE" per program ("2,3;3"; "-" is a scalar)
//   core_tool run < doubles    for each program, in that order: arguments, tangents, second
//                              tangents, a batch of 3 of the arguments, the cotangent (as many as
//                              the result has elements); writes the result, its tangent, the
//                              cotangents of the arguments, the batched results, and the tangents
//                              of the cotangents

#include <cstdio>
#include <cstring>
#include <exception>
#include <functional>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

#include "xylem/core/core.h"

namespace xylem {
namespace {

using V = std::vector<Array>;

struct Program {
  std::string name;
  std::vector<Dims> shapes;
  std::function<Array(const V&)> f;
};

Array index(std::vector<std::int32_t> v) { return Array(v); }

std::vector<Program> programs() {
  const Dims m{2, 3}, v{3};
  std::vector<Program> r;
  auto one = [&](std::string name, std::function<Array(const Array&)> f) {
    r.push_back({std::move(name), {m}, [f](const V& a) { return f(a[0]); }});
  };
  auto two = [&](std::string name, std::function<Array(const Array&, const Array&)> f) {
    r.push_back({std::move(name), {m, {3}}, [f](const V& a) { return f(a[0], a[1]); }});
  };
#define ONE(name) one(#name, [](const Array& x) { return name(x); })
#define SPECIAL(name) one(#name, [](const Array& x) { return special::name(x); })
#define TWO(name) two(#name, [](const Array& x, const Array& y) { return name(x, y); })
  ONE(abs);
  ONE(negative);
  ONE(exp);
  ONE(exp2);
  ONE(expm1);
  ONE(log);
  ONE(log1p);
  ONE(log2);
  ONE(log10);
  ONE(sqrt);
  ONE(cbrt);
  ONE(square);
  ONE(reciprocal);
  ONE(sin);
  ONE(cos);
  ONE(tan);
  ONE(arcsin);
  ONE(arccos);
  ONE(arctan);
  ONE(sinh);
  ONE(cosh);
  ONE(tanh);
  ONE(arcsinh);
  ONE(arctanh);
  ONE(sign);
  ONE(floor);
  ONE(nan_to_num);
  SPECIAL(erf);
  SPECIAL(erfc);
  SPECIAL(erfinv);
  SPECIAL(expit);
  SPECIAL(logit);
  SPECIAL(ndtr);
  one("arccosh(x + 1)", [](const Array& x) { return arccosh(x + 1.0); });
  one("rsqrt", [](const Array& x) { return lax::rsqrt(x); });
  one("x ** 3", [](const Array& x) { return pow(x, 3); });
  one("x ** -2", [](const Array& x) { return pow(x, -2); });
  TWO(add);
  TWO(subtract);
  TWO(multiply);
  TWO(divide);
  TWO(power);
  TWO(maximum);
  TWO(minimum);
  TWO(arctan2);
  TWO(hypot);
  TWO(logaddexp);
  TWO(mod);
  TWO(fmod);
  two("xlogy", [](const Array& x, const Array& y) { return special::xlogy(x, y); });
  two("where", [](const Array& x, const Array& y) { return where(x > 0.5, x, y); });
  two("clip", [](const Array& x, const Array& y) { return clip(x, 0.4, y); });
  ONE(sum);
  ONE(prod);
  ONE(mean);
  ONE(var);
  ONE(max);
  ONE(min);
  ONE(logsumexp);
  ONE(cumsum);
  ONE(cumprod);
  ONE(sort);
  ONE(ravel);
  ONE(squeeze);
  one("std", [](const Array& x) { return std(x); });
  one("sum 1", [](const Array& x) { return sum(x, 1); });
  one("max 0", [](const Array& x) { return max(x, 0); });
  one("prod 1", [](const Array& x) { return prod(x, 1); });
  one("cumsum 0", [](const Array& x) { return cumsum(x, 0); });
  one("transpose", [](const Array& x) { return transpose(x); });
  one("broadcast_to", [](const Array& x) { return broadcast_to(x, {2, 2, 3}); });
  one("flip", [](const Array& x) { return flip(x); });
  one("roll", [](const Array& x) { return roll(x, 2, 1); });
  one("pad", [](const Array& x) { return pad(x, {{1, 0}, {0, 2}}); });
  one("tril", [](const Array& x) { return tril(x); });
  one("take", [](const Array& x) { return take(x, index({2, 0, 2}), 1); });
  one("take_along_axis", [](const Array& x) {
    return take_along_axis(x, index({1, 0, 1}).reshape({1, 3}), 0);
  });
  one("dynamic_slice", [](const Array& x) {
    return lax::dynamic_slice(x, {index({0})[0], index({1})[0]}, {1, 2});
  });
  one("top_k", [](const Array& x) { return lax::top_k(x, 2).values; });
  one("tile", [](const Array& x) { return tile(x, {2, 2}); });
  one("scan", [](const Array& x) {
    auto [c, y] = scan(
        [](const Array& s, const Array& row) {
          return std::pair{sin(s) * row, s * row};
        },
        x[0], x);
    return concatenate({c.reshape({1, 3}), y});
  });
  one("fori_loop", [](const Array& x) {
    return fori_loop(
        0, 3, [](const Array&, const Array& c) { return sin(c) + c; }, x);
  });
  one("cond", [](const Array& x) {
    return cond(
        sum(x) > 2.0, [](const Array& a) { return sin(a); }, [](const Array& a) { return a * a; },
        x);
  });
  one("remat", [](const Array& x) { return remat([](const Array& a) { return sin(sin(a)); })(x); });
  one("vmap of grad", [](const Array& x) {
    return vmap(grad([](const Array& row) { return prod(sin(row)); }))(x);
  });
  one("grad of grad", [](const Array& x) {
    return grad([](const Array& a) {
      return sum(square(grad([](const Array& b) { return sum(b * b * b); })(a)));
    })(x);
  });
  r.push_back({"matmul", {{2, 3}, {3, 4}}, [](const V& a) { return matmul(a[0], a[1]); }});
  r.push_back({"einsum", {{2, 3, 2}, {2, 4, 3}}, [](const V& a) {
                 return einsum("bij,bki->bkj", {a[0], a[1]});
               }});
  r.push_back({"einsum diagonal", {{3, 3}, {3}}, [](const V& a) {
                 return einsum("ii,i->i", {a[0], a[1]});
               }});
  r.push_back({"outer", {v, v}, [](const V& a) { return outer(a[0], a[1]); }});
  r.push_back({"concatenate", {m, m}, [](const V& a) { return concatenate(a, 1); }});
  r.push_back({"dynamic_update_slice", {m, {1, 2}}, [](const V& a) {
                 return lax::dynamic_update_slice(a[0], a[1], {index({1})[0], index({0})[0]});
               }});
  return r;
}

class Doubles {
 public:
  explicit Doubles(std::string bytes) : bytes_(std::move(bytes)) {}
  Array take(const Dims& shape) {
    HostArray h(DType::kF64, shape);
    if (at_ + h.nbytes() > bytes_.size()) throw std::runtime_error("too few numbers on input");
    std::memcpy(h.data(), bytes_.data() + at_, h.nbytes());
    at_ += h.nbytes();
    return Array(h);
  }
  V take_all(const std::vector<Dims>& shapes, std::int64_t batch = 0) {
    V r;
    for (Dims s : shapes) {
      if (batch > 0) s.insert(0, batch);
      r.push_back(take(s));
    }
    return r;
  }

 private:
  std::string bytes_;
  std::size_t at_ = 0;
};

void put(const Array& a) {
  HostArray h = a.to_host().to_contiguous();
  std::cout.write(reinterpret_cast<const char*>(h.data()),
                  static_cast<std::streamsize>(h.nbytes()));
}

void run(const Program& p, Doubles& in) {
  V x = in.take_all(p.shapes), t = in.take_all(p.shapes), s = in.take_all(p.shapes);
  V batch = in.take_all(p.shapes, 3);
  Array y = p.f(x), ct = in.take(y.shape());
  put(y);
  put(jit([&](const V& a, const V& d) { return jvp(p.f, std::tuple{a}, std::tuple{d}).second; })(
      x, t));
  auto pulled = [&](const V& a) { return std::get<0>(vjp(p.f, a).second(ct)); };
  for (const Array& a : jit(pulled)(x)) put(a);
  put(jit(vmap(p.f))(batch));
  for (const Array& a : jvp(pulled, std::tuple{x}, std::tuple{s}).second) put(a);
}

}  // namespace
}  // namespace xylem

int main(int argc, char** argv) try {
  std::string verb = argc == 2 ? argv[1] : "";
  if (verb == "list") {
    for (const xylem::Program& p : xylem::programs()) {
      std::string shapes;
      for (const xylem::Dims& d : p.shapes) {
        if (!shapes.empty()) shapes += ";";
        for (int i = 0; i < d.ssize(); ++i) shapes += (i ? "," : "") + std::to_string(d[i]);
        if (d.empty()) shapes += "-";
      }
      std::cout << p.name << "\t" << shapes << "\n";
    }
    return 0;
  }
  if (verb != "run") return 2;
  xylem::Doubles in(std::string{std::istreambuf_iterator<char>(std::cin), {}});
  for (const xylem::Program& p : xylem::programs()) {
    try {
      xylem::run(p, in);
    } catch (const std::exception& e) {
      std::fprintf(stderr, "%s: %s\n", p.name.c_str(), e.what());
      return 1;
    }
  }
  return 0;
} catch (const std::exception& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
