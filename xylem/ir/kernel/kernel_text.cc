// Native text of kernels: a header line by line, then the body as a graph.
//
//   kernel "name"
//   axis parallel 64
//   axis ordered scalar 0
//   param read f32[64,1024] block 8,1024 coef 8,0,0,0 offset 0,0
//   param write f32[64,1024] alias 0
//   param scratch f32[1024]
//   scalars 1
//   body
//   …

#include <fmt/format.h>

#include <charconv>
#include <string>

#include "xylem/base/error.h"
#include "xylem/ir/kernel.h"
#include "xylem/ir/text.h"

namespace xylem::ir {
namespace {

std::string numbers(const Dims& d) {
  std::string s;
  for (std::size_t i = 0; i < d.size(); ++i) s += fmt::format("{}{}", i ? "," : "", d[i]);
  return s.empty() ? "-" : s;
}

const char* access_name(const Kernel::Param& p) {
  if (p.space == MemorySpace::kScratch) return "scratch";
  switch (p.access) {
    case Kernel::Access::kRead: return "read";
    case Kernel::Access::kWrite: return "write";
    case Kernel::Access::kReadWrite: return "read_write";
  }
  return "read";
}

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  Kernel read() {
    Kernel k;
    bool named = false;
    while (next_line()) {
      if (line_.empty() || line_.starts_with("//")) continue;
      const std::string_view key = word();
      if (key == "kernel") {
        k.name = quoted();
        named = true;
      } else if (!named) {
        fail("kernel \"name\" first");
      } else if (key == "axis") {
        k.grid.push_back(axis());
      } else if (key == "param") {
        k.params.push_back(param());
      } else if (key == "scalars") {
        k.num_scalars = static_cast<int>(number(word()));
      } else if (key == "body") {
        end_of_line();
        k.body = parse_graph(text_, "<kernel body>");
        verify_kernel(k);
        return k;
      } else {
        fail("kernel, axis, param, scalars or body");
      }
      end_of_line();
    }
    fail("a line \"body\"");
  }

 private:
  [[noreturn]] void fail(const std::string& expected) const {
    throw_user_error({fmt::format("kernel text, line {}", line_number_), expected,
                      fmt::format("\"{}\"", whole_line_),
                      "Write a kernel as Kernel::to_string does."});
  }

  bool next_line() {
    if (text_.empty()) return false;
    const std::size_t end = text_.find('\n');
    whole_line_ = line_ = text_.substr(0, end);
    text_ = end == std::string_view::npos ? std::string_view() : text_.substr(end + 1);
    ++line_number_;
    skip_blanks();
    return true;
  }

  void skip_blanks() {
    while (!line_.empty() && (line_[0] == ' ' || line_[0] == '\t' || line_[0] == '\r'))
      line_.remove_prefix(1);
  }

  std::string_view word() {
    std::size_t n = 0;
    while (n < line_.size() && line_[n] != ' ' && line_[n] != '\t' && line_[n] != '\r') ++n;
    const std::string_view w = line_.substr(0, n);
    line_.remove_prefix(n);
    skip_blanks();
    return w;
  }

  std::string quoted() {
    if (line_.empty() || line_[0] != '"') fail("a name in double quotes");
    std::string s;
    std::size_t i = 1;
    for (; i < line_.size() && line_[i] != '"'; ++i) {
      if (line_[i] == '\\' && i + 1 < line_.size()) {
        ++i;
        s += line_[i] == 'n' ? '\n' : line_[i];
      } else {
        s += line_[i];
      }
    }
    if (i >= line_.size()) fail("a closing quote");
    line_.remove_prefix(i + 1);
    skip_blanks();
    return s;
  }

  std::int64_t number(std::string_view w) const {
    std::int64_t v = 0;
    const auto [end, error] = std::from_chars(w.data(), w.data() + w.size(), v);
    if (error != std::errc() || end != w.data() + w.size() || w.empty()) fail("a number");
    return v;
  }

  Dims list(std::string_view w) const {
    Dims d;
    if (w == "-") return d;
    while (true) {
      const std::size_t comma = w.find(',');
      d.push_back(number(w.substr(0, comma)));
      if (comma == std::string_view::npos) return d;
      w.remove_prefix(comma + 1);
    }
  }

  void end_of_line() const {
    if (!line_.empty()) fail("the end of the line");
  }

  Kernel::Axis axis() {
    Kernel::Axis a;
    const std::string_view kind = word();
    if (kind != "parallel" && kind != "ordered") fail("parallel or ordered");
    a.kind = kind == "parallel" ? Kernel::AxisKind::kParallel : Kernel::AxisKind::kOrdered;
    const std::string_view size = word();
    if (size == "scalar") {
      a.size = -1;
      a.scalar = static_cast<int>(number(word()));
    } else {
      a.size = number(size);
    }
    return a;
  }

  Kernel::Param param() {
    Kernel::Param p;
    const std::string_view access = word();
    if (access == "scratch") {
      p.space = MemorySpace::kScratch;
      p.access = Kernel::Access::kReadWrite;
    } else if (access == "write") {
      p.access = Kernel::Access::kWrite;
    } else if (access == "read_write") {
      p.access = Kernel::Access::kReadWrite;
    } else if (access != "read") {
      fail("read, write, read_write or scratch");
    }
    const std::string_view type = word();
    const std::size_t open = type.find('[');
    const auto dtype = parse_dtype(type.substr(0, open));
    if (!dtype || open == std::string_view::npos || type.back() != ']') fail("a type as f32[2,3]");
    p.dtype = *dtype;
    const std::string_view dims = type.substr(open + 1, type.size() - open - 2);
    if (!dims.empty()) p.dims = list(dims);
    while (!line_.empty()) {
      const std::string_view key = word();
      if (key == "block")
        p.map.block = list(word());
      else if (key == "coef")
        p.map.coef = list(word());
      else if (key == "offset")
        p.map.offset = list(word());
      else if (key == "alias")
        p.alias = static_cast<int>(number(word()));
      else
        fail("block, coef, offset or alias");
    }
    return p;
  }

  std::string_view text_;
  std::string_view line_;
  std::string_view whole_line_;
  int line_number_ = 0;
};

}  // namespace

std::string Kernel::to_string() const {
  std::string s = "kernel \"";
  for (char c : name) {
    if (c == '"' || c == '\\') s += '\\';
    if (c == '\n')
      s += "\\n";
    else
      s += c;
  }
  s += "\"\n";
  for (const Axis& a : grid) {
    s += a.kind == AxisKind::kParallel ? "axis parallel " : "axis ordered ";
    s += a.size >= 0 ? fmt::format("{}\n", a.size) : fmt::format("scalar {}\n", a.scalar);
  }
  for (const Param& p : params) {
    s += fmt::format("param {} {}", access_name(p), shape_string(p.dtype, p.dims));
    if (!p.map.block.empty())
      s += fmt::format(" block {} coef {} offset {}", numbers(p.map.block), numbers(p.map.coef),
                       numbers(p.map.offset));
    if (p.alias >= 0) s += fmt::format(" alias {}", p.alias);
    s += '\n';
  }
  if (num_scalars != 0) s += fmt::format("scalars {}\n", num_scalars);
  s += "body\n";
  if (body) s += print(*body);
  return s;
}

Kernel parse_kernel(std::string_view text) { return Reader(text).read(); }

}  // namespace xylem::ir
