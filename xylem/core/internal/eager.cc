#include "xylem/core/internal/eager.h"

#include <array>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "xylem/base/bounded_cache.h"
#include "xylem/core/internal/finite.h"
#include "xylem/core/internal/trace.h"
#include "xylem/ir/builder.h"

namespace xylem::internal {
namespace {

// Programs that the process keeps, and slots of each thread's own table in front of them.
constexpr std::size_t kMaxPrograms = 4096;
constexpr std::size_t kSlots = 512;

std::uint64_t mix(std::uint64_t h, std::uint64_t v) { return (h ^ v) * 0x9E3779B97F4A7C15ull; }

// An op with everything that its program depends on.
struct OneOp {
  const ir::OpDef* def = nullptr;
  std::vector<ir::Type> operands;
  ir::Attrs attrs;
  std::vector<ir::GraphPtr> regions;
  std::uint64_t hash = 0;

  friend bool operator==(const OneOp& a, const OneOp& b) {
    if (a.hash != b.hash || a.def != b.def || a.operands != b.operands || !(a.attrs == b.attrs) ||
        a.regions.size() != b.regions.size())
      return false;
    for (std::size_t i = 0; i < a.regions.size(); ++i)
      if (!ir::structurally_equal(*a.regions[i], *b.regions[i])) return false;
    return true;
  }
};
struct OneOpHash {
  std::size_t operator()(const OneOp& k) const { return k.hash; }
};

std::uint64_t hash_of(const ir::OpDef& def, std::span<const Array> operands, const ir::Attrs& attrs,
                      const std::vector<ir::GraphPtr>& regions) {
  std::uint64_t h = reinterpret_cast<std::uintptr_t>(&def);
  for (const Array& a : operands) h = mix(h, a.node()->type.hash());
  for (const auto& [name, value] : attrs.entries())  // names are interned
    h = mix(mix(h, reinterpret_cast<std::uintptr_t>(name.data())), value.hash());
  for (const ir::GraphPtr& r : regions) h = mix(h, ir::structural_hash(*r));
  return h ^ (h >> 29);
}

bool same(const OneOp& k, const ir::OpDef& def, std::span<const Array> operands,
          const ir::Attrs& attrs, const std::vector<ir::GraphPtr>& regions) {
  if (k.def != &def || k.operands.size() != operands.size() || k.regions.size() != regions.size())
    return false;
  for (std::size_t i = 0; i < operands.size(); ++i)
    if (!(k.operands[i] == operands[i].node()->type)) return false;
  if (!(k.attrs == attrs)) return false;
  for (std::size_t i = 0; i < regions.size(); ++i)
    if (!ir::structurally_equal(*k.regions[i], *regions[i])) return false;
  return true;
}

struct Program {
  OneOp key;
  runtime::ExecutablePtr executable;
};
using ProgramPtr = std::shared_ptr<const Program>;

ProgramPtr shared_program(OneOp key, SourceLoc where) {
  static auto* cache = new BoundedCache<OneOp, ProgramPtr, OneOpHash>(kMaxPrograms);
  if (auto found = cache->find(key)) return *found;
  ir::Builder b{std::string(key.def->name)};
  b.set_location(where);
  std::vector<ir::ValueId> ids;
  for (const ir::Type& t : key.operands) ids.push_back(b.param(t));
  ir::ValueIds r = b.op(*key.def, ids, key.attrs, key.regions);
  ir::GraphPtr g = b.finish({r.begin(), r.end()});
  auto p = std::make_shared<Program>();
  p->executable =
      runtime::default_client().compile(g, {.quick = true, .name = g->name, .donated = {}});
  p->key = key;
  return cache->insert(std::move(key), std::move(p));
}

const Program& program(const ir::OpDef& def, std::span<const Array> operands,
                       const ir::Attrs& attrs, const std::vector<ir::GraphPtr>& regions,
                       SourceLoc where) {
  static thread_local auto slots = std::make_unique<std::array<ProgramPtr, kSlots>>();
  const std::uint64_t hash = hash_of(def, operands, attrs, regions);
  ProgramPtr& slot = (*slots)[hash % kSlots];
  if (slot && slot->key.hash == hash && same(slot->key, def, operands, attrs, regions))
    return *slot;
  OneOp key{&def, {}, attrs, regions, hash};
  for (const Array& a : operands) key.operands.push_back(a.node()->type);
  slot = shared_program(std::move(key), where);
  return *slot;
}

}  // namespace

std::vector<Array> run_op(const ir::OpDef& def, std::span<const Array> operands,
                          const ir::Attrs& attrs, const std::vector<ir::GraphPtr>& regions,
                          SourceLoc where, std::span<const bool> weak) {
  constexpr std::size_t kInline = 8;
  runtime::BufferPtr few[kInline];
  const runtime::BufferPtr* few_args[kInline];
  std::vector<runtime::BufferPtr> many;
  std::vector<const runtime::BufferPtr*> many_args;
  runtime::BufferPtr* made = few;  // of literals
  const runtime::BufferPtr** args = few_args;
  if (operands.size() > kInline) {
    many.resize(operands.size());
    many_args.resize(operands.size());
    made = many.data();
    args = many_args.data();
  }
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const ArrayNode& n = *operands[i].node();
    if (n.buffer && !n.buffer->released()) {
      args[i] = &n.buffer;
    } else {
      made[i] = buffer_of(operands[i], where);
      args[i] = &made[i];
    }
  }
  // The slot may be filled anew by a callback of this very run, so the program is held.
  const runtime::ExecutablePtr e = program(def, operands, attrs, regions, where).executable;
  std::vector<runtime::BufferPtr> out = e->execute_borrowed({args, operands.size()});
  std::vector<Array> results;
  results.reserve(out.size());
  for (std::size_t i = 0; i < out.size(); ++i)
    results.push_back(make_concrete(std::move(out[i]), i < weak.size() && weak[i]));
  if (checks_values()) [[unlikely]]
    check_values(results, def.name.substr(def.name.find('.') + 1), where);
  return results;
}

runtime::BufferPtr literal_buffer(const HostArray& literal, DType dtype) {
  // Numbers of the program text come again and again.
  struct Slot {
    DType from = DType::kF32, to = DType::kF32;
    std::array<std::byte, 16> bytes{};
    runtime::BufferPtr buffer;
  };
  static thread_local auto slots = std::make_unique<std::array<Slot, 128>>();
  if (literal.rank() != 0 || literal.nbytes() > 16)
    return runtime::default_client().from_host(literal.astype(dtype));
  std::array<std::byte, 16> bytes{};
  std::memcpy(bytes.data(), literal.data(), literal.nbytes());
  std::uint64_t words[2];
  std::memcpy(words, bytes.data(), 16);
  std::uint64_t h = mix(mix(words[0], words[1]), static_cast<std::uint64_t>(dtype) * 64 +
                                                     static_cast<std::uint64_t>(literal.dtype()));
  Slot& s = (*slots)[(h >> 32) % slots->size()];
  if (!s.buffer || s.from != literal.dtype() || s.to != dtype || s.bytes != bytes)
    s = {literal.dtype(), dtype, bytes, runtime::default_client().from_host(literal.astype(dtype))};
  return s.buffer;
}

}  // namespace xylem::internal
