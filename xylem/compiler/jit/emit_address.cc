// Index scalars and addresses.

#include <algorithm>
#include <numeric>

#include "xylem/compiler/jit/emitter.h"

namespace xylem::jit {

Tile Emitter::scalar_tile(Value* v, int at) {
  Tile t;
  t.dtype = DType::kI64;
  t.level = at;
  t.pieces = {Piece{v}};
  t.is_linear = true;
  if (auto* c = llvm::dyn_cast<llvm::ConstantInt>(v)) {
    t.linear.constant = c->getSExtValue();
    t.level = 0;
  } else {
    t.linear.terms = {{v, 1, at}};
  }
  return t;
}

Tile Emitter::constant_index(std::int64_t v) {
  Tile t;
  t.dtype = DType::kI64;
  t.is_linear = true;
  t.linear.constant = v;
  return t;
}

Linear Emitter::linear_of(Tile& t) {
  if (t.is_linear) return t.linear;
  Linear l;
  l.terms = {{t.pieces[0].v, 1, t.level}};
  return l;
}

void Emitter::add_scaled(Linear& sum, const Linear& part, std::int64_t factor) {
  const auto times = [](std::int64_t a, std::int64_t c) {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(c));
  };
  const auto plus = [](std::int64_t a, std::int64_t c) {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(c));
  };
  sum.constant = plus(sum.constant, times(part.constant, factor));
  for (const Linear::Term& t : part.terms) {
    const std::int64_t coef = times(t.coef, factor);
    if (coef == 0) continue;
    auto same = std::find_if(sum.terms.begin(), sum.terms.end(),
                             [&](const Linear::Term& s) { return s.value == t.value; });
    if (same == sum.terms.end()) {
      const auto place =
          std::upper_bound(sum.terms.begin(), sum.terms.end(), t.level,
                           [](int at, const Linear::Term& s) { return at < s.level; });
      sum.terms.insert(place, {t.value, coef, t.level});
    } else {
      same->coef = plus(same->coef, coef);
      if (same->coef == 0) sum.terms.erase(same);
    }
  }
}

Value* Emitter::scalar(Tile& t) {
  if (t.pieces.empty()) {
    int at = 0;
    t.pieces = {Piece{materialise(t.linear, &at)}};
  }
  return t.pieces[0].v;
}

Value* Emitter::materialise(const Linear& l, int* at) {
  *at = l.terms.empty() ? 0 : l.terms.back().level;
  if (l.terms.empty()) return b.getInt64(static_cast<std::uint64_t>(l.constant));
  std::vector<std::pair<Value*, std::int64_t>> key;
  for (const Linear::Term& t : l.terms) key.emplace_back(t.value, t.coef);
  key.emplace_back(nullptr, l.constant);
  Value*& known = scopes_[static_cast<std::size_t>(*at)].sums[{nullptr, std::move(key)}];
  if (!known) {
    known = at_level(*at, [&] {
      Value* sum = nullptr;
      for (const Linear::Term& t : l.terms) {
        Value* v = scaled_term(t, t.coef);
        sum = sum ? b.CreateAdd(sum, v) : v;
      }
      if (l.constant == 0) return sum;
      return b.CreateAdd(sum, b.getInt64(static_cast<std::uint64_t>(l.constant)));
    });
  }
  return known;
}

Value* Emitter::scaled_term(const Linear::Term& t, std::int64_t coef) {
  if (coef == 1) return t.value;
  return b.CreateMul(t.value, b.getInt64(static_cast<std::uint64_t>(coef)));
}

Value* Emitter::displaced(Value* p, std::int64_t bytes) {
  if (bytes == 0) return p;
  return b.CreateGEP(b.getInt8Ty(), p, b.getInt64(static_cast<std::uint64_t>(bytes)));
}

std::int64_t Emitter::multiple_of(Value* v) const {
  const auto loop = loop_of_.find(v);
  if (loop == loop_of_.end()) return 1;
  const auto* lo = llvm::dyn_cast<llvm::ConstantInt>(loop->second->lo);
  if (!lo) return 1;
  return std::gcd(loop->second->step, lo->getSExtValue());
}

std::uint64_t Emitter::alignment(const Linear& elements, std::int64_t bytes) const {
  // Buffers are aligned to 64 bytes.
  auto all = static_cast<std::uint64_t>(elements.constant * bytes) | 64;
  for (const Linear::Term& t : elements.terms)
    all |= static_cast<std::uint64_t>(t.coef * multiple_of(t.value) * bytes);
  return all & (~all + 1);
}

// The terms of each scope are added there; the innermost ones become part of the access's address.
Value* Emitter::pointer(const Ref& ref, const Linear& elements, std::int64_t* displacement) {
  const std::int64_t bytes = dtype_bytes(ref.dtype);
  *displacement = elements.constant * bytes;
  Value* p = ref.base;
  for (std::size_t first = 0; first < elements.terms.size();) {
    const int at = elements.terms[first].level;
    std::size_t last = first;
    std::vector<std::pair<Value*, std::int64_t>> key;
    for (; last < elements.terms.size() && elements.terms[last].level == at; ++last)
      key.emplace_back(elements.terms[last].value, elements.terms[last].coef * bytes);
    Value*& known = scopes_[static_cast<std::size_t>(at)].sums[{p, key}];
    if (!known) {
      known = at_level(at, [&] {
        Value* sum = p;
        for (const auto& [value, coef] : key) {
          const bool scales = coef == 1 || coef == 2 || coef == 4 || coef == 8;
          const auto loop = loop_of_.find(value);
          if (scales) {
            sum = b.CreateGEP(b.getIntNTy(static_cast<unsigned>(coef) * 8), sum, value);
          } else if (loop != loop_of_.end() && at == level()) {
            // A multiple of the loop's counter is counted on its own.
            llvm::PHINode*& phi = loop->second->scaled[coef];
            if (!phi) {
              llvm::IRBuilderBase::InsertPointGuard guard(b);
              b.SetInsertPoint(loop->second->body, loop->second->body->begin());
              phi = b.CreatePHI(b.getInt64Ty(), 2);
            }
            sum = b.CreateGEP(b.getInt8Ty(), sum, phi);
          } else {
            sum = b.CreateGEP(b.getInt8Ty(), sum, scaled_term({value, 1, at}, coef));
          }
        }
        return sum;
      });
    }
    p = known;
    first = last;
  }
  return p;
}

}  // namespace xylem::jit
