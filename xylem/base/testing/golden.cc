#include "xylem/base/testing/golden.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "xylem/base/dtype.h"
#include "xylem/base/error.h"

namespace xylem::testing {

struct Golden::Node {
  std::shared_ptr<const nlohmann::json> root;  // keeps `value` alive
  const nlohmann::json* value;
};

Golden Golden::load(const std::string& name) {
  std::string path = std::string(XYLEM_SOURCE_DIR) + "/tests/goldens/" + name;
  std::ifstream in(path);
  if (!in) throw UserError("golden: cannot read " + path);
  auto root = std::make_shared<nlohmann::json>(nlohmann::json::parse(in));
  return Golden(std::make_shared<const Node>(Node{root, root.get()}));
}

Golden Golden::operator[](std::string_view key) const {
  auto it = node_->value->find(std::string(key));
  if (it == node_->value->end()) throw UserError("golden: no key " + std::string(key));
  return Golden(std::make_shared<const Node>(Node{node_->root, &*it}));
}

bool Golden::has(std::string_view key) const { return node_->value->contains(std::string(key)); }

std::vector<std::string> Golden::keys() const {
  std::vector<std::string> r;
  for (const auto& item : node_->value->items()) r.push_back(item.key());
  return r;
}

std::size_t Golden::size() const { return node_->value->size(); }
Golden Golden::at(std::size_t i) const {
  return Golden(std::make_shared<const Node>(Node{node_->root, &node_->value->at(i)}));
}
std::string Golden::str() const { return node_->value->get<std::string>(); }
double Golden::number() const { return node_->value->get<double>(); }
bool Golden::flag() const { return node_->value->get<bool>(); }

namespace {

unsigned digit(char c) { return static_cast<unsigned>(c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10); }

}  // namespace

HostArray Golden::array() const {
  const nlohmann::json& v = *node_->value;
  DType dtype = parse_dtype(v.at("dtype").get<std::string>()).value();
  Dims dims(v.at("shape").get<std::vector<std::int64_t>>());
  if (v.contains("values"))
    return HostArray::from(v.at("values").get<std::vector<std::int64_t>>(), dims).astype(dtype);
  HostArray a(dtype, dims);
  const std::string& hex = v.at("hex").get_ref<const std::string&>();
  // Complex elements are two numbers, each most significant byte first.
  std::size_t width = static_cast<std::size_t>(dtype_bytes(dtype)) / (is_complex(dtype) ? 2 : 1);
  if (hex.size() != 2 * a.nbytes()) throw UserError("golden: hex of the wrong length");
  for (std::size_t i = 0; i < a.nbytes(); ++i) {
    std::size_t from = i / width * width + (width - 1 - i % width);
    a.data()[i] = static_cast<std::byte>(digit(hex[2 * from]) * 16 + digit(hex[2 * from + 1]));
  }
  return a;
}

double relative_error(const HostArray& a, const HostArray& b) {
  if (a.dims() != b.dims()) return std::numeric_limits<double>::infinity();
  double top = 0, off = 0;
  for (std::int64_t i = 0; i < b.size(); ++i) {
    top = std::max(top, std::abs(b.at(i)));
    double d = std::abs(a.at(i) - b.at(i));
    if (std::isnan(d) && !(std::isnan(a.at(i)) && std::isnan(b.at(i))))
      return std::numeric_limits<double>::infinity();
    if (!std::isnan(d)) off = std::max(off, d);
  }
  return top == 0 ? off : off / top;
}

double max_ulp(const HostArray& a, const HostArray& b) {
  if (a.dims() != b.dims() || a.dtype() != b.dtype())
    return std::numeric_limits<double>::infinity();
  const DTypeInfo& info = dtype_info(b.dtype());
  const int least = 1 - info.bias;  // of normal numbers
  double worst = 0;
  for (std::int64_t i = 0; i < b.size(); ++i) {
    double x = a.at(i), y = b.at(i);
    if (x == y || (std::isnan(x) && std::isnan(y))) continue;
    if (!std::isfinite(x) || !std::isfinite(y)) return std::numeric_limits<double>::infinity();
    int exponent = y == 0 ? least : std::max(std::ilogb(y), least);
    double ulp = std::ldexp(1, exponent - info.mantissa_bits);
    worst = std::max(worst, std::abs(x - y) / ulp);
  }
  return worst;
}

}  // namespace xylem::testing
