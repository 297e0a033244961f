// jax.export's serialization: a FlatBuffer around a portable artifact. Field numbers are those of
// its schema, which has no file in the installed package: they were read off the generated code.

#include <fmt/format.h>

#include <algorithm>

#include "xylem/base/error.h"
#include "xylem/core/export/exported.h"
#include "xylem/core/export/flatbuffer.h"
#include "xylem/ir/bytecode.h"

namespace xylem::internal {

using flatbuffer::Table;
using flatbuffer::Value;

namespace {

struct DTypeCode {
  DType dtype;
  std::uint8_t code;
};
constexpr DTypeCode kDTypes[] = {
    {DType::kBool, 0},        {DType::kI8, 1},          {DType::kI16, 2},
    {DType::kI32, 3},         {DType::kI64, 4},         {DType::kU8, 5},
    {DType::kU16, 6},         {DType::kU32, 7},         {DType::kU64, 8},
    {DType::kF16, 9},         {DType::kF32, 10},        {DType::kF64, 11},
    {DType::kC64, 12},        {DType::kC128, 13},       {DType::kBF16, 14},
    {DType::kI4, 15},         {DType::kU4, 16},         {DType::kF8E4M3B11FNUZ, 17},
    {DType::kF8E4M3FN, 18},   {DType::kF8E4M3FNUZ, 19}, {DType::kF8E5M2, 20},
    {DType::kF8E5M2FNUZ, 21}, {DType::kFloat0, 22},     {DType::kF8E4M3, 23},
    {DType::kF8E3M4, 24},     {DType::kF8E8M0FNU, 25},  {DType::kF4E2M1FN, 26}};

// PRNG keys: name and number of u32 words.
struct KeyCode {
  std::uint8_t code;
  const char* name;
  int words;
};
constexpr KeyCode kKeys[] = {{27, "key<fry>", 2}, {28, "key<rbg>", 4}, {29, "key<unsafe_rbg>", 4}};

// Fields of the root table.
enum Field : int {
  kSerializationVersion = 0,
  kFunctionName = 1,
  kInTree = 2,
  kInAvals = 3,
  kOutTree = 4,
  kOutAvals = 5,
  kNrDevicesShort = 6,
  kInShardings = 7,
  kOutShardings = 8,
  kPlatforms = 9,
  kOrderedEffects = 10,
  kUnorderedEffects = 11,
  kDisabledChecks = 12,
  kModule = 13,
  kCallingConvention = 14,
  kModuleKept = 15,
  kUsesGlobalConstants = 16,
  kVjp = 17,
  kNrDevices = 18,
  kUniqueAvals = 19,
  kInAvalsIdxs = 22,
  kOutAvalsIdxs = 23,
  kInShardingsIdxs = 24,
  kOutShardingsIdxs = 25,
};

constexpr int kOldestConvention = 9, kNewestConvention = 10;
constexpr int kMostNodes = 1 << 20, kDeepest = 256;

[[noreturn]] void refuse(std::string_view expected, std::string_view given,
                         std::string_view advice) {
  throw_user_error({"import_", expected, given, advice});
}

// --- writing -----------------------------------------------------------------------------------

Value aval_value(const ExportedAval& a) {
  return Value::table({{0, Value::scalar<std::int8_t>(0)},
                       {1, Value::strings(a.shape)},
                       {2, Value::scalar(static_cast<std::int8_t>(a.dtype))},
                       {3, Value::scalar(static_cast<std::int8_t>(a.memory_space))}});
}

Value avals_value(const std::vector<ExportedAval>& avals) {
  std::vector<Value> items;
  for (const ExportedAval& a : avals) items.push_back(aval_value(a));
  return Value::list(std::move(items));
}

Value tree_value(const PyTree& t) {
  std::vector<std::pair<int, Value>> fields;
  fields.emplace_back(0, Value::scalar(static_cast<std::int8_t>(t.kind)));
  if (!t.children.empty()) {
    std::vector<Value> children;
    for (const PyTree& c : t.children) children.push_back(tree_value(c));
    fields.emplace_back(1, Value::list(std::move(children)));
    if (t.kind == PyTree::Kind::kDict) fields.emplace_back(2, Value::strings(t.keys));
  }
  if (t.kind == PyTree::Kind::kCustom) {
    fields.emplace_back(3, Value::string(t.custom_name));
    fields.emplace_back(4, Value::data(t.custom_data));
  }
  return Value::table(std::move(fields));
}

Value effects_value(const std::vector<std::string>& names) {
  std::vector<Value> items;
  for (const std::string& n : names) items.push_back(Value::table({{0, Value::string(n)}}));
  return Value::list(std::move(items));
}

Value program_value(const ExportedProgram& p, int vjp_order) {
  std::vector<ExportedAval> all = p.in_avals;
  all.insert(all.end(), p.out_avals.begin(), p.out_avals.end());
  std::vector<std::uint32_t> in, out;
  for (std::size_t i = 0; i < all.size(); ++i)
    (i < p.in_avals.size() ? in : out).push_back(static_cast<std::uint32_t>(i));
  // One table without fields for each unspecified sharding, and index 0.
  auto shardings = [](std::size_t n) {
    return Value::list(std::vector<Value>(n, Value::table({})));
  };
  auto none = [](std::size_t n) { return Value::scalars(std::vector<std::uint32_t>(n, 0)); };
  std::vector<std::pair<int, Value>> fields = {
      {kSerializationVersion, Value::scalar<std::uint16_t>(3)},
      {kFunctionName, Value::string(p.fun_name)},
      {kInTree, tree_value(p.in_tree)},
      {kInAvals, avals_value(p.in_avals)},
      {kOutTree, tree_value(p.out_tree)},
      {kOutAvals, avals_value(p.out_avals)},
      {kInShardings, shardings(p.in_avals.size())},
      {kOutShardings, shardings(p.out_avals.size())},
      {kPlatforms, Value::strings(p.platforms)},
      {kOrderedEffects, effects_value(p.ordered_effects)},
      {kUnorderedEffects, effects_value(p.unordered_effects)},
      {kDisabledChecks, Value::list({})},
      {kModule, Value::data(p.module)},
      {kCallingConvention, Value::scalar(static_cast<std::uint16_t>(p.calling_convention_version))},
      {kModuleKept, Value::scalars(p.kept)},
      {kUsesGlobalConstants, Value::scalar(static_cast<std::uint8_t>(p.uses_global_constants))}};
  if (vjp_order > 0) fields.emplace_back(kVjp, program_value(*p.vjp(), vjp_order - 1));
  fields.emplace_back(kNrDevices, Value::scalar(static_cast<std::uint32_t>(p.nr_devices)));
  fields.emplace_back(kUniqueAvals, avals_value(all));
  fields.emplace_back(kInAvalsIdxs, Value::scalars(in));
  fields.emplace_back(kOutAvalsIdxs, Value::scalars(out));
  fields.emplace_back(kInShardingsIdxs, none(p.in_avals.size()));
  fields.emplace_back(kOutShardingsIdxs, none(p.out_avals.size()));
  return Value::table(std::move(fields));
}

// --- reading -----------------------------------------------------------------------------------

ExportedAval read_aval(const Table& t) {
  ExportedAval a;
  if (t.scalar<std::int8_t>(0, 0) != 0)
    refuse("arguments and results that are arrays", "one is a token",
           "Export the function without ordered effects");
  for (std::string_view s : t.strings(1)) a.shape.emplace_back(s);
  a.dtype = static_cast<std::uint8_t>(t.scalar<std::int8_t>(2, 0));
  a.memory_space = static_cast<std::uint8_t>(t.scalar<std::int8_t>(3, 1));
  a.type();  // refuses unknown dtypes
  return a;
}

std::vector<ExportedAval> read_avals(const Table& t, int plain, int indices) {
  std::vector<ExportedAval> out;
  std::vector<std::uint32_t> idxs = t.scalars<std::uint32_t>(indices);
  if (idxs.empty()) {
    for (const Table& a : t.tables(plain)) out.push_back(read_aval(a));
    return out;
  }
  std::vector<Table> unique = t.tables(kUniqueAvals);
  for (std::uint32_t i : idxs) {
    if (i >= unique.size())
      refuse("a serialization of jax.export", "a type's number points outside of its list",
             "Serialize the program again");
    out.push_back(read_aval(unique[i]));
  }
  return out;
}

PyTree read_tree(const std::optional<Table>& t, int depth, int& nodes) {
  PyTree out;
  if (!t || depth > kDeepest || ++nodes > kMostNodes)
    refuse("a serialization of jax.export with trees of at most 2^20 nodes, 256 deep",
           t ? "a larger tree" : "one without a tree", "Serialize the program again");
  const int kind = t->scalar<std::int8_t>(0, 0);
  if (kind < 0 || kind > 5)
    refuse("trees of leaves, None, tuples, lists, dicts and registered types",
           fmt::format("node kind {}", kind), "Export with a version of JAX up to 0.10");
  out.kind = static_cast<PyTree::Kind>(kind);
  for (const Table& c : t->tables(1)) out.children.push_back(read_tree(c, depth + 1, nodes));
  for (std::string_view k : t->strings(2)) out.keys.emplace_back(k);
  if (out.kind == PyTree::Kind::kDict && out.keys.size() != out.children.size())
    refuse("a dict with one name for each child", "names and children differ in number",
           "Serialize the program again");
  out.custom_name = t->string(3);
  out.custom_data = t->string(4);
  return out;
}

std::shared_ptr<ExportedProgram> read_program(const Table& t, int depth) {
  if (depth > 16)
    refuse("derivatives up to order 16", "a higher order", "Serialize with a lower vjp_order");
  auto p = std::make_shared<ExportedProgram>();
  p->calling_convention_version = t.scalar<std::uint16_t>(kCallingConvention, 0);
  if (p->calling_convention_version < kOldestConvention ||
      p->calling_convention_version > kNewestConvention)
    refuse(fmt::format("calling convention {} to {}", kOldestConvention, kNewestConvention),
           fmt::format("calling convention {}", p->calling_convention_version),
           "Export the function again with a version of JAX that writes one of these");
  p->fun_name = t.string(kFunctionName);
  p->in_avals = read_avals(t, kInAvals, kInAvalsIdxs);
  p->out_avals = read_avals(t, kOutAvals, kOutAvalsIdxs);
  int nodes = 0;
  p->in_tree = read_tree(t.table(kInTree), 0, nodes);
  p->out_tree = read_tree(t.table(kOutTree), 0, nodes);
  if (p->in_tree.num_leaves() != p->in_avals.size() ||
      p->out_tree.num_leaves() != p->out_avals.size())
    refuse("one type for each leaf of its trees", "types and leaves differ in number",
           "Serialize the program again");
  for (std::string_view s : t.strings(kPlatforms)) p->platforms.emplace_back(s);
  for (const Table& e : t.tables(kOrderedEffects)) p->ordered_effects.emplace_back(e.string(0));
  for (const Table& e : t.tables(kUnorderedEffects)) p->unordered_effects.emplace_back(e.string(0));
  for (const Table& c : t.tables(kDisabledChecks))
    p->any_platform = p->any_platform || c.scalar<std::int8_t>(0, 0) == 0;
  p->nr_devices = static_cast<int>(t.scalar<std::uint32_t>(kNrDevices, 0));
  if (p->nr_devices == 0) p->nr_devices = t.scalar<std::int16_t>(kNrDevicesShort, 1);
  if (p->nr_devices != 1)
    refuse("a program for one device", fmt::format("one for {} devices", p->nr_devices),
           "Export the function without shardings over several devices");
  p->module = t.string(kModule);
  p->kept = t.scalars<std::uint16_t>(kModuleKept);
  for (std::size_t i = 0; i < p->kept.size(); ++i)
    if (p->kept[i] >= p->in_avals.size() || (i && p->kept[i] <= p->kept[i - 1]))
      refuse("a serialization of jax.export", "the list of kept arguments is damaged",
             "Serialize the program again");
  p->uses_global_constants = t.scalar<std::uint8_t>(kUsesGlobalConstants, 0) != 0;
  if (auto vjp = t.table(kVjp)) p->set_vjp(read_program(*vjp, depth + 1));
  return p;
}

}  // namespace

std::uint8_t exported_dtype(DType t) {
  for (const DTypeCode& d : kDTypes)
    if (d.dtype == t) return d.code;
  throw_user_error({"export_", "dtypes that jax.export knows", dtype_name(t),
                    "Convert the array with astype before it leaves the function"});
}

ir::Type ExportedAval::type() const {
  Dims dims;
  for (const std::string& s : shape) {
    bool number = !s.empty() && s.size() < 19 &&
                  std::all_of(s.begin(), s.end(), [](char c) { return c >= '0' && c <= '9'; });
    dims.push_back(number ? std::stoll(s) : ir::kDynamic);
  }
  for (const KeyCode& k : kKeys)
    if (k.code == dtype) {
      dims.push_back(k.words);
      return ir::Type::tensor(DType::kU32, dims);
    }
  for (const DTypeCode& d : kDTypes)
    if (d.code == dtype)
      return ir::Type::tensor(d.dtype == DType::kFloat0 ? DType::kBool : d.dtype, dims);
  refuse("dtypes numbered 0 to 29", fmt::format("dtype number {}", dtype),
         "Export with a version of JAX up to 0.10");
}

std::string ExportedAval::to_string() const {
  std::string name;
  for (const KeyCode& k : kKeys)
    if (k.code == dtype) name = k.name;
  for (const DTypeCode& d : kDTypes)
    if (d.code == dtype) name = dtype_info(d.dtype).numpy_name;
  return fmt::format("{}[{}]", name, fmt::join(shape, ","));
}

std::string encode_export(const ExportedProgram& p, int vjp_order) {
  return flatbuffer::write(program_value(p, vjp_order));
}

std::shared_ptr<ExportedProgram> decode_export(std::string_view bytes) {
  if (!ir::is_jax_export(bytes))
    refuse("a serialization of jax.export", "bytes of another form, or cut off",
           "Pass what Exported::serialize or jax.export wrote");
  return read_program(Table(bytes), 0);
}

}  // namespace xylem::internal
