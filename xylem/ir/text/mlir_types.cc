#include <fmt/format.h>

#include <array>
#include <cstring>
#include <optional>

#include "xylem/base/error.h"
#include "xylem/ir/quant.h"
#include "xylem/ir/text/mlir_reader.h"
#include "xylem/ir/text/native.h"

namespace xylem::ir::text {
namespace {

// StableHLO's names only, not NumPy's.
std::optional<DType> element_type_named(std::string_view name) {
  static const auto kNames = [] {
    std::array<std::string_view, kNumDTypes> names;
    for (int i = 0; i < kNumDTypes; ++i)
      names[static_cast<std::size_t>(i)] = dtype_name(static_cast<DType>(i));
    return names;
  }();
  for (std::size_t i = 0; i < kNames.size(); ++i)
    if (kNames[i] == name) return static_cast<DType>(i);
  return std::nullopt;
}

// Numbers of MLIR that StableHLO lacks: values of them are carried, ops refuse them.
bool is_other_element(std::string_view name) {
  if (name == "f80" || name == "f128" || name == "tf32") return true;
  std::size_t i = name.starts_with('s') || name.starts_with('u') ? 1 : 0;
  if (i >= name.size() || name[i] != 'i' || i + 1 == name.size() || name.size() > i + 9)
    return false;
  return name.find_first_not_of("0123456789", i + 1) == std::string_view::npos;
}

bool is_alias_start(std::string_view line) {
  if (line.size() < 2 || (line[0] != '#' && line[0] != '!') || !is_identifier_start(line[1]))
    return false;
  std::size_t end = 1;
  while (end < line.size() && is_identifier_char(line[end]) && line[end] != '.') ++end;
  while (end < line.size() && line[end] == ' ') ++end;
  return end < line.size() && line[end] == '=' && line.substr(end, 2) != "==";
}

}  // namespace

MlirReader::MlirReader(std::string_view text, std::string_view file, const ParseOptions& options)
    : c_(text, file, "StableHLO text", options.first_line),
      allow_unregistered_(options.allow_unregistered) {
  find_aliases();
}

// Aliases may stand behind their uses, so their places are found first. They begin a line, which
// nothing else that starts with '#' or '!' and has '=' behind the name does.
void MlirReader::find_aliases() {
  std::string_view text = c_.text();
  for (std::size_t at = 0; at < text.size();) {
    std::size_t start = text.find_first_not_of(" \t", at);
    if (start == std::string_view::npos) break;
    const void* newline = std::memchr(text.data() + start, '\n', text.size() - start);
    std::size_t end =
        newline ? static_cast<std::size_t>(static_cast<const char*>(newline) - text.data())
                : text.size();
    std::string_view line = text.substr(start, end - start);
    if (is_alias_start(line)) {
      std::size_t stop = 1;
      while (is_identifier_char(line[stop])) ++stop;
      Alias alias;
      alias.pos = start + line.find('=') + 1;
      aliases_.emplace(line.substr(0, stop), alias);
    } else if (line.starts_with("{-#")) {
      resources_pos_ = start;
    }
    at = end + 1;
  }
}

MlirReader::Alias& MlirReader::alias(std::string_view name, std::size_t at) {
  auto it = aliases_.find(name);
  if (it == aliases_.end())
    c_.fail(at, "alias", "aliases are defined at the top level of the text",
            fmt::format("{} is not", name), "Define it before or behind the module");
  if (it->second.busy)
    c_.fail(at, "alias", "aliases do not refer to themselves", fmt::format("{} does", name),
            "Break the cycle");
  return it->second;
}

MlirReader::Resolving::Resolving(MlirReader& r, Alias& a, std::size_t at) : r_(r), a_(a) {
  constexpr int kMaxNestedAliases = 200'000;
  if (r.alias_depth_ > 0 && ++r.nested_aliases_ > kMaxNestedAliases)
    r.c_.fail(at, "alias",
              fmt::format("aliases name one another at most {} times", kMaxNestedAliases),
              "these do so more often", "Write the attribute out");
  a.busy = true;
  ++r.alias_depth_;
}

bool MlirReader::accept_top_level_extra() {
  char mark = c_.peek();
  if (mark == '#' || mark == '!') {
    std::size_t at = c_.token_pos();
    c_.step();
    c_.identifier("alias");
    c_.expect('=', "alias");
    Location loc;
    if (mark == '!') {
      read_type();
    } else if (!accept_location(loc)) {
      read_attr(Mode::kForeign);
    }
    // Also reached by names that the first look did not take for an alias.
    if (c_.pos() == at) c_.fail_here("alias", "expected a definition", "Remove it");
    return true;
  }
  if (c_.accept("{-#")) {
    std::size_t end = c_.text().find("#-}", c_.pos());
    if (end == std::string_view::npos)
      c_.fail_here("resources", "'{-#' is closed by '#-}'", "Close the section");
    c_.seek(end + 3);
    return true;
  }
  return false;
}

bool MlirReader::at_type() {
  return c_.looking_at("tensor<") || c_.looking_at("!stablehlo.token") || c_.looking_at("tuple<") ||
         c_.looking_at("memref<") || (c_.peek() == '!' && is_identifier_start(c_.raw(1)));
}

Type MlirReader::read_type() {
  Cursor::Depth depth(c_);
  std::size_t at = c_.token_pos();
  if (c_.accept("tensor<")) return read_tensor();
  if (c_.accept("memref<")) return read_shaped(true);
  if (c_.accept("!stablehlo.token")) return Type::token();
  bool future = c_.accept("!stablehlo.future<");
  if (future || c_.accept("tuple<")) {
    std::vector<Type> elements;
    while (!c_.accept('>')) {
      if (!elements.empty()) c_.expect(',', "tuple type");
      elements.push_back(read_type());
    }
    for (const Type& t : elements)
      if (future && !t.is_tensor())
        c_.fail(at, "future type", "its elements are tensors", fmt::format("found {}", t.to_mlir()),
                "Use tensors");
    return future ? Type::future(std::move(elements)) : Type::tuple(std::move(elements));
  }
  if (c_.raw() == '!' && is_identifier_start(c_.raw(1))) {
    c_.step();
    c_.identifier("type");
    std::string_view name = c_.text().substr(at, c_.pos() - at);
    if (aliases_.contains(name)) {
      Alias& a = alias(name, at);
      std::size_t back = c_.pos();
      c_.seek(a.pos);
      Resolving resolving(*this, a, at);
      Type t = read_type();
      c_.seek(back);
      return t;
    }
  }
  std::string_view rest = c_.text().substr(at, 40);
  bool known = rest.starts_with("!stablehlo.") || rest.starts_with("!chlo.");
  std::string_view word = rest.substr(0, std::min(rest.find_first_of(" <,)>:{\n"), rest.size()));
  bool builtin = word == "index" || word == "none" || word == "vector" || word == "complex" ||
                 is_other_element(word) || element_type_named(word);
  bool foreign =
      allow_unregistered_ && !rest.empty() && (rest[0] == '!' || is_identifier_start(rest[0]));
  if (!known && (builtin || foreign)) {
    c_.seek(at);
    return Type::foreign(read_foreign(at).get<OpaqueAttr>()->text);
  }
  c_.fail(at, "type", "types are tensor, tuple, memref and !stablehlo.token",
          fmt::format("found {}", c_.found(at)), "Use one of them");
}

DType MlirReader::read_element_type(TypeExtra& extra) {
  std::size_t at = c_.token_pos();
  if (c_.accept("!quant.uniform<")) {
    DType expressed = DType::kF32;
    extra.quant = std::make_shared<const QuantParams>(read_quant(c_, expressed));
    return expressed;
  }
  if (c_.accept("complex<")) {
    TypeExtra none;
    std::size_t part_at = c_.token_pos();
    DType part = read_element_type(none);
    c_.expect('>', "complex type");
    if (none.quant)
      c_.fail(part_at, "complex type", "the parts are f32 or f64", "found a quantised type",
              "Use complex<f32> or complex<f64>");
    if (part != DType::kF32 && part != DType::kF64) {
      other_element_ = true;
      return DType::kC64;
    }
    return complex_dtype(part);
  }
  std::string_view name = c_.identifier("element type");
  if (name == "index") {
    saw_index_ = true;
    return DType::kI64;
  }
  std::optional<DType> d = element_type_named(name);
  if (!d && is_other_element(name)) {
    other_element_ = true;
    return DType::kI64;
  }
  if (!d || is_complex(*d) || *d == DType::kFloat0)
    c_.fail(at, "element type", "expected an element type of StableHLO",
            fmt::format("found '{}'", name), "Use i1, i8, ui8, f32, bf16, complex<f32>, …");
  return *d;
}

Type MlirReader::read_tensor() {
  std::string_view rest = c_.text().substr(c_.pos(), 48);
  std::size_t end = rest.find_first_of("<>");
  std::string_view text = rest.substr(0, end == std::string_view::npos ? 0 : end);
  bool plain = !text.empty() && rest[end] == '>';
  if (plain)
    for (const KnownType& k : known_types_)
      if (k.text == text) {
        c_.seek(c_.pos() + end + 1);
        return k.type;
      }
  Type t = read_shaped(false);
  // An index type is noted by its reader.
  if (plain && t.is_tensor() && !t.extra() && !text.ends_with("index"))
    known_types_[next_known_++ % known_types_.size()] = {text, t};
  return t;
}

Type MlirReader::read_shaped(bool memref) {
  const std::size_t start = c_.pos() - 7;  // of "tensor<"
  std::size_t at = c_.token_pos();
  Dims dims;
  std::int64_t elements = 1;
  bool unranked = false;
  for (;;) {
    std::size_t dim_at = c_.token_pos();
    char ch = c_.raw();
    std::int64_t d = 0;
    if (ch == '*' && dims.empty() && !unranked) {
      c_.step();
      unranked = true;
      if (c_.raw() != 'x') c_.fail_here("type", "expected 'x' behind '*'", "Put it there");
      c_.step();
      break;
    }
    if (ch == '?') {
      c_.step();
      d = kDynamic;
    } else if (ch >= '0' && ch <= '9') {
      // By hand: "0x" is a dimension here and no hexadecimal number.
      bool overflow = false;
      for (; c_.raw() >= '0' && c_.raw() <= '9'; c_.step())
        overflow = overflow || __builtin_mul_overflow(d, 10, &d) ||
                   __builtin_add_overflow(d, c_.raw() - '0', &d);
      // Sizes of whole tensors must fit also in bytes.
      if (!overflow && d > 0) overflow = __builtin_mul_overflow(elements, d, &elements);
      if (overflow || elements > INT64_MAX / 16)
        c_.fail(dim_at, "type", "the size of a tensor fits 63 bits", "this one is larger",
                "Use smaller dimensions");
    } else {
      break;
    }
    if (c_.raw() != 'x') c_.fail_here("type", "expected 'x' behind a dimension", "Put it there");
    c_.step();
    dims.push_back(d);
  }
  TypeExtra extra;
  other_element_ = false;
  DType dtype = read_element_type(extra);
  bool other = other_element_;
  Type t = memref ? Type::ref(dtype, dims) : Type::tensor(dtype, dims);
  if (!memref && !unranked && c_.accept(',')) read_encoding(t, extra);
  c_.expect('>', "type");
  // Carried for the ops that take any value.
  if (other || unranked) return Type::foreign(c_.text().substr(start, c_.pos() - start));
  if (memref) return t;
  t = Type::with_extra(std::move(t), std::move(extra));
  QuantFault fault;
  if (t.quant() && !check_quant(t, fault))
    c_.fail(at, "quantised type", fault.expected, fault.given, "Correct the type");
  return t;
}

void MlirReader::read_encoding(const Type& t, TypeExtra& extra) {
  std::size_t at = c_.token_pos();
  bool bounds = c_.accept("#stablehlo.bounds<");
  bool long_form = !bounds && c_.accept("#stablehlo.type_extensions<");
  if (!bounds && !long_form) {
    read_attr(Mode::kForeign);
    extra.encoding = c_.text().substr(at, c_.pos() - at);
    return;
  }
  if (long_form) {
    c_.expect_word("bounds", "bounds");
    c_.expect('=', "bounds");
    c_.expect('[', "bounds");
  }
  char close = long_form ? ']' : '>';
  while (!c_.accept(close)) {
    if (!extra.bounds.empty()) c_.expect(',', "bounds");
    extra.bounds.push_back(c_.accept('?') ? kDynamic : c_.integer("bounds"));
  }
  if (long_form) c_.expect('>', "bounds");
  if (extra.bounds.size() != t.dims().size())
    c_.fail(at, "bounds", fmt::format("there is one entry per dimension ({})", t.rank()),
            fmt::format("found {}", extra.bounds.size()), "Write '?' where there is no bound");
  for (int i = 0; i < t.rank(); ++i)
    if (extra.bounds[i] != kDynamic && t.dim(i) != kDynamic)
      c_.fail(at, "bounds", "only dynamic dimensions have bounds",
              fmt::format("dimension {} is {}", i, t.dim(i)), "Write '?' for it");
}

std::vector<Type> MlirReader::read_type_list() {
  std::vector<Type> types;
  do types.push_back(read_type());
  while (c_.accept(','));
  return types;
}

std::vector<Type> MlirReader::read_result_types() {
  if (!c_.accept('(')) return {read_type()};
  if (c_.accept(')')) return {};
  std::vector<Type> types = read_type_list();
  c_.expect(')', "types");
  return types;
}

}  // namespace xylem::ir::text
