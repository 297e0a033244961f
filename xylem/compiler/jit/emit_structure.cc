// Ops that move elements between lanes.

#include <algorithm>
#include <cstring>

#include "xylem/base/dtype_cast.h"
#include "xylem/base/error.h"
#include "xylem/compiler/jit/emitter.h"
#include "xylem/ir/ops/all.h"

namespace xylem::jit {

namespace {

// Applies fn to the vectors that a piece is made of. Of a narrow float's two forms one is enough.
template <class F>
Piece map_piece(const Piece& p, F fn) {
  Piece r;
  if (p.v) r.v = fn(p.v);
  if (p.im) r.im = fn(p.im);
  if (p.f && !p.v) r.f = fn(p.f);
  return r;
}

}  // namespace

// Lane i of a vector, found without an instruction where the vector was put together from scalars.
Value* Emitter::lane_of(Value* v, unsigned i) {
  if (!v->getType()->isVectorTy()) return v;
  Value* at = v;
  while (true) {
    if (auto* c = llvm::dyn_cast<llvm::Constant>(at)) return c->getAggregateElement(i);
    if (auto* insert = llvm::dyn_cast<llvm::InsertElementInst>(at)) {
      const auto* k = llvm::dyn_cast<llvm::ConstantInt>(insert->getOperand(2));
      if (!k) break;
      if (k->getZExtValue() == i) return insert->getOperand(1);
      at = insert->getOperand(0);
      continue;
    }
    if (auto* shuffle = llvm::dyn_cast<llvm::ShuffleVectorInst>(at)) {
      const int from = shuffle->getMaskValue(i);
      const unsigned n = PieceOps::lanes_of(shuffle->getOperand(0));
      if (from < 0) break;
      at = shuffle->getOperand(static_cast<unsigned>(from) < n ? 0 : 1);
      i = static_cast<unsigned>(from) % n;
      v = at;
      continue;
    }
    break;
  }
  return b.CreateExtractElement(at, b.getInt64(i));
}

Piece Emitter::lane(Tile& x, std::int64_t flat) {
  const RowLayout& row = layout(x.row_length());
  const std::int64_t column = flat % x.row_length();
  std::size_t k = row.lanes.size() - 1;
  while (row.starts[k] > column) --k;
  const auto i = static_cast<unsigned>(column - row.starts[k]);
  const Piece& p = x.pieces[static_cast<std::size_t>(flat / x.row_length()) * row.lanes.size() + k];
  return map_piece(p, [&](Value* v) { return lane_of(v, i); });
}

Piece Emitter::splat_piece(const Piece& scalar, unsigned lanes) {
  if (lanes == 1) return scalar;
  Piece r;
  const auto repeat = [&](Value* v) -> Value* {
    if (!v) return nullptr;
    if (llvm::isa<llvm::Constant>(v)) return ops_.splat(v, lanes);
    Value*& known = scopes_.back().splats[{v, lanes}];
    if (!known || b.GetInsertBlock() != llvm::cast<llvm::Instruction>(known)->getParent())
      known = ops_.splat(v, lanes);
    return known;
  };
  r.v = repeat(scalar.v);
  r.im = repeat(scalar.im);
  r.f = repeat(scalar.f);
  return r;
}

// Puts pieces of one number of lanes one behind the other; their number is a power of two.
Piece Emitter::join(DType t, std::span<const Piece> parts) {
  if (parts.size() == 1) return parts[0];
  std::vector<Piece> p(parts.begin(), parts.end());
  if (is_narrow_float(t) &&
      !std::all_of(p.begin(), p.end(), [](const Piece& x) { return x.f && !x.v; }))
    for (Piece& x : p) ops_.bits(t, x);
  const auto concat = [&](auto member) -> Value* {
    if (!(p[0].*member)) return nullptr;
    std::vector<Value*> v;
    for (const Piece& x : p) v.push_back(x.*member);
    if (!v[0]->getType()->isVectorTy()) {
      const auto n = static_cast<unsigned>(v.size());
      if (std::all_of(v.begin(), v.end(), [&](Value* x) { return x == v[0]; }))
        return ops_.splat(v[0], n);
      Value* r = llvm::PoisonValue::get(llvm::FixedVectorType::get(v[0]->getType(), n));
      for (unsigned i = 0; i < n; ++i) r = b.CreateInsertElement(r, v[i], b.getInt64(i));
      return r;
    }
    // (The freeze as in load_contiguous.)
    if (std::count(v.begin(), v.end(), v[0]) > 1 && llvm::isa<llvm::LoadInst>(v[0])) {
      Value* frozen = b.CreateFreeze(v[0]);
      std::replace(v.begin(), v.end(), v[0], frozen);
    }
    while (v.size() > 1) {
      const unsigned n = PieceOps::lanes_of(v[0]);
      llvm::SmallVector<int, 64> mask;
      for (unsigned i = 0; i < 2 * n; ++i) mask.push_back(static_cast<int>(i));
      for (std::size_t i = 0; i < v.size() / 2; ++i)
        v[i] = b.CreateShuffleVector(v[2 * i], v[2 * i + 1], mask);
      v.resize(v.size() / 2);
    }
    return v[0];
  };
  Piece r;
  r.v = concat(&Piece::v);
  r.im = concat(&Piece::im);
  if (!r.v) r.f = concat(&Piece::f);
  return r;
}

// Elements start … start + lanes - 1 in row-major order, lanes a power of two.
Piece Emitter::slice_flat(Tile& x, std::int64_t start, unsigned lanes) {
  const RowLayout& row = layout(x.row_length());
  const std::int64_t column = start % x.row_length();
  std::size_t k = row.lanes.size() - 1;
  while (row.starts[k] > column) --k;
  const auto first = static_cast<unsigned>(column - row.starts[k]);
  if (first + lanes <= row.lanes[k]) {
    const std::size_t number =
        static_cast<std::size_t>(start / x.row_length()) * row.lanes.size() + k;
    const Piece& p = x.pieces[number];
    if (lanes == row.lanes[k]) return p;
    if (lanes == 1) return map_piece(p, [&](Value* v) { return lane_of(v, first); });
    llvm::SmallVector<int, 64> mask;
    for (unsigned i = 0; i < lanes; ++i) mask.push_back(static_cast<int>(first + i));
    return map_piece(p, [&](Value* v) { return b.CreateShuffleVector(v, mask); });
  }
  const Piece halves[] = {slice_flat(x, start, lanes / 2),
                          slice_flat(x, start + lanes / 2, lanes / 2)};
  return join(x.dtype, halves);
}

// A tile whose element e is element second of tile first, for source(e) = (first, second).
Tile Emitter::gather_elements(
    DType dtype, const Dims& dims,
    const std::function<std::pair<Tile*, std::int64_t>(std::int64_t)>& source) {
  using Source = std::pair<Tile*, std::int64_t>;
  Tile out = empty_like(dtype, dims);
  const std::function<Piece(std::span<const Source>)> build =
      [&](std::span<const Source> s) -> Piece {
    const auto n = static_cast<unsigned>(s.size());
    bool consecutive = true, equal = true;
    for (unsigned i = 1; i < n; ++i) {
      consecutive = consecutive && s[i].first == s[0].first && s[i].second == s[0].second + i;
      equal = equal && s[i] == s[0];
    }
    if (n == 1) return lane(*s[0].first, s[0].second);
    if (equal) return splat_piece(lane(*s[0].first, s[0].second), n);
    if (consecutive) return slice_flat(*s[0].first, s[0].second, n);
    // Two source pieces of one width: one shuffle.
    const Piece* from[2] = {nullptr, nullptr};
    llvm::SmallVector<int, 64> mask;
    bool fits = true;
    unsigned width = 0;
    for (const Source& e : s) {
      Tile& t = *e.first;
      const RowLayout& row = layout(t.row_length());
      const std::int64_t column = e.second % t.row_length();
      std::size_t k = row.lanes.size() - 1;
      while (row.starts[k] > column) --k;
      const Piece* p =
          &t.pieces[static_cast<std::size_t>(e.second / t.row_length()) * row.lanes.size() + k];
      if (width == 0) width = row.lanes[k];
      const int which = from[0] == p || !from[0] ? 0 : from[1] == p || !from[1] ? 1 : 2;
      if (which == 2 || row.lanes[k] != width || width == 1) {
        fits = false;
        break;
      }
      from[which] = p;
      mask.push_back(static_cast<int>(column - row.starts[k]) + which * static_cast<int>(width));
    }
    if (fits) {
      Piece x = *from[0], y = from[1] ? *from[1] : *from[0];
      if (is_narrow_float(dtype) && !(x.f && y.f && !x.v && !y.v)) {
        ops_.bits(dtype, x);
        ops_.bits(dtype, y);
      }
      Piece r;
      if (x.v) r.v = b.CreateShuffleVector(x.v, y.v, mask);
      if (x.im) r.im = b.CreateShuffleVector(x.im, y.im, mask);
      if (!x.v) r.f = b.CreateShuffleVector(x.f, y.f, mask);
      return r;
    }
    const Piece halves[] = {build(s.first(n / 2)), build(s.last(n / 2))};
    return join(dtype, halves);
  };
  const RowLayout& row = layout(out.row_length());
  std::vector<Source> sources;
  for (std::size_t k = 0; k < out.pieces.size(); ++k) {
    const std::size_t i = k % row.lanes.size();
    const std::int64_t start =
        static_cast<std::int64_t>(k / row.lanes.size()) * out.row_length() + row.starts[i];
    sources.clear();
    for (unsigned j = 0; j < row.lanes[i]; ++j) sources.push_back(source(start + j));
    out.pieces[k] = build(sources);
  }
  return out;
}

Tile Emitter::emit_constant(const HostArray& value) {
  const DType t = value.dtype();
  if (t == DType::kI64 && value.rank() == 0) return constant_index(*value.as<std::int64_t>());
  Tile out = empty_like(t, value.dims());
  const RowLayout& row = layout(out.row_length());
  const int bytes = dtype_bytes(t) / (is_complex(t) ? 2 : 1);
  llvm::Type* type = ops_.element_type(t);
  const auto element = [&](std::int64_t word) -> llvm::Constant* {
    std::uint64_t bits = 0;
    std::memcpy(&bits, value.data() + word * bytes, static_cast<std::size_t>(bytes));
    if (is_sub_byte(t)) {
      const int up = 64 - dtype_bits(t);
      bits <<= up;
      bits = is_signed_int(t) ? static_cast<std::uint64_t>(static_cast<std::int64_t>(bits) >> up)
                              : bits >> up;
    }
    if (type->isFloatTy())
      return llvm::ConstantFP::get(
          context_, llvm::APFloat(llvm::APFloat::IEEEsingle(), llvm::APInt(32, bits)));
    if (type->isDoubleTy())
      return llvm::ConstantFP::get(
          context_, llvm::APFloat(llvm::APFloat::IEEEdouble(), llvm::APInt(64, bits)));
    return llvm::ConstantInt::get(type, bits);
  };
  for (std::size_t k = 0; k < out.pieces.size(); ++k) {
    const std::size_t i = k % row.lanes.size();
    const std::int64_t start =
        static_cast<std::int64_t>(k / row.lanes.size()) * out.row_length() + row.starts[i];
    const auto part = [&](std::int64_t scale, std::int64_t first) -> Value* {
      llvm::SmallVector<llvm::Constant*, 64> c;
      for (unsigned j = 0; j < row.lanes[i]; ++j) c.push_back(element((start + j) * scale + first));
      return c.size() == 1 ? c[0] : llvm::ConstantVector::get(c);
    };
    out.pieces[k].v = part(is_complex(t) ? 2 : 1, 0);
    if (is_complex(t)) out.pieces[k].im = part(2, 1);
  }
  return out;
}

Tile Emitter::emit_iota(const ir::Op& op) {
  const Dims& dims = op.attrs.dims("shape");
  const DType t = *op.attrs.at("result_dtype").get<DType>();
  const std::int64_t d = op.attrs.i64("iota_dimension");
  HostArray counts(DType::kI64, dims);
  const Dims strides = row_major_strides(dims);
  for (std::int64_t i = 0; i < counts.size(); ++i)
    counts.as<std::int64_t>()[i] = i / strides[d] % dims[d];
  HostArray value(t, dims);
  convert_elements(DType::kI64, counts.data(), t, value.data(), counts.size());
  return emit_constant(value);
}

Tile Emitter::emit_broadcast(const ir::Op& op, Tile& x, const Dims& shape) {
  if (x.is_linear && x.pieces.empty()) scalar(x);
  const Dims& to = op.attrs.dims("broadcast_dimensions");
  const Dims from_strides = row_major_strides(x.dims), to_strides = row_major_strides(shape);
  return gather_elements(x.dtype, shape, [&](std::int64_t e) {
    std::int64_t at = 0;
    for (std::size_t d = 0; d < to.size(); ++d)
      if (x.dims[d] != 1) at += e / to_strides[to[d]] % shape[to[d]] * from_strides[d];
    return std::pair{&x, at};
  });
}

Tile Emitter::emit_reshape(Tile& x, const Dims& shape) {
  if (x.is_linear && x.pieces.empty()) scalar(x);
  return gather_elements(x.dtype, shape, [&](std::int64_t e) { return std::pair{&x, e}; });
}

// L pieces of L lanes seen as a square: log2(L) rounds that interleave piece i with piece i + L
// / 2.
std::vector<Piece> Emitter::transpose_square(DType t, std::vector<Piece> rows) {
  const auto n = static_cast<unsigned>(rows.size());
  if (is_narrow_float(t))
    for (Piece& p : rows) ops_.bits(t, p);
  llvm::SmallVector<int, 64> low, high;
  for (unsigned i = 0; i < n / 2; ++i) {
    low.append({static_cast<int>(i), static_cast<int>(n + i)});
    high.append({static_cast<int>(n / 2 + i), static_cast<int>(n + n / 2 + i)});
  }
  for (unsigned round = 1; round < n; round *= 2) {
    std::vector<Piece> next(n);
    for (unsigned i = 0; i < n / 2; ++i) {
      const Piece &p = rows[i], &q = rows[i + n / 2];
      next[2 * i].v = b.CreateShuffleVector(p.v, q.v, low);
      next[2 * i + 1].v = b.CreateShuffleVector(p.v, q.v, high);
      if (!p.im) continue;
      next[2 * i].im = b.CreateShuffleVector(p.im, q.im, low);
      next[2 * i + 1].im = b.CreateShuffleVector(p.im, q.im, high);
    }
    rows = std::move(next);
  }
  return rows;
}

// A matrix [rows, columns] by squares; false if it cannot be cut into such.
bool Emitter::transpose_matrix(Tile& x, Tile* out) {
  const std::int64_t rows = x.dims[0], columns = x.dims[1];
  std::int64_t side = full_lanes_;
  while (side > 1 && (rows % side != 0 || columns % side != 0)) side /= 2;
  if (side < 4) return false;
  *out = empty_like(x.dtype, Dims{columns, rows});
  const auto lanes = static_cast<unsigned>(side);
  // Columns of the result in pieces of `side`, joined to the pieces that its layout wants.
  std::vector<std::vector<Piece>> cut(static_cast<std::size_t>(columns));
  for (std::int64_t c = 0; c < columns; c += side)
    for (std::int64_t r = 0; r < rows; r += side) {
      std::vector<Piece> square;
      for (std::int64_t i = 0; i < side; ++i)
        square.push_back(slice_flat(x, (r + i) * columns + c, lanes));
      square = transpose_square(x.dtype, std::move(square));
      for (std::int64_t i = 0; i < side; ++i)
        cut[static_cast<std::size_t>(c + i)].push_back(square[static_cast<std::size_t>(i)]);
    }
  const RowLayout& row = layout(rows);
  std::size_t k = 0;
  for (const std::vector<Piece>& line : cut) {
    std::size_t used = 0;
    for (unsigned n : row.lanes) {
      const std::size_t count = n / lanes;
      out->pieces[k++] = join(x.dtype, std::span(line).subspan(used, count));
      used += count;
    }
  }
  return true;
}

Tile Emitter::emit_transpose(Tile& x, const Dims& permutation) {
  if (x.is_scalar()) return x;
  Tile matrix;
  if (permutation == Dims{1, 0} && transpose_matrix(x, &matrix)) return matrix;
  Dims shape;
  for (std::int64_t p : permutation) shape.push_back(x.dims[p]);
  const Dims from = row_major_strides(x.dims), to = row_major_strides(shape);
  return gather_elements(x.dtype, shape, [&](std::int64_t e) {
    std::int64_t at = 0;
    for (std::size_t d = 0; d < shape.size(); ++d)
      at += e / to[d] % shape[d] * from[permutation[d]];
    return std::pair{&x, at};
  });
}

Tile Emitter::emit_slice(const ir::Op& op, Tile& x) {
  const Dims& start = op.attrs.dims("start_indices");
  const Dims& limit = op.attrs.dims("limit_indices");
  const Dims step = op.attrs.dims_or("strides", Dims(start.size(), 1));
  if (x.is_scalar()) return x;
  Dims shape;
  for (std::size_t d = 0; d < start.size(); ++d)
    shape.push_back((limit[d] - start[d] + step[d] - 1) / step[d]);
  const Dims from = row_major_strides(x.dims), to = row_major_strides(shape);
  return gather_elements(x.dtype, shape, [&](std::int64_t e) {
    std::int64_t at = 0;
    for (std::size_t d = 0; d < shape.size(); ++d)
      at += (start[d] + e / to[d] % shape[d] * step[d]) * from[d];
    return std::pair{&x, at};
  });
}

Tile Emitter::emit_reverse(const ir::Op& op, Tile& x) {
  if (x.is_scalar()) return x;
  const Dims& dims = op.attrs.dims("dimensions");
  const Dims strides = row_major_strides(x.dims);
  return gather_elements(x.dtype, x.dims, [&](std::int64_t e) {
    std::int64_t at = 0;
    for (std::size_t d = 0; d < x.dims.size(); ++d) {
      const std::int64_t i = e / strides[d] % x.dims[d];
      at += (dims.contains(static_cast<std::int64_t>(d)) ? x.dims[d] - 1 - i : i) * strides[d];
    }
    return std::pair{&x, at};
  });
}

Tile Emitter::emit_concatenate(const ir::Op& op, std::span<Tile* const> in) {
  const std::int64_t axis = op.attrs.i64("dimension");
  Dims shape = in[0]->dims;
  shape[axis] = 0;
  for (const Tile* t : in) shape[axis] += t->dims[axis];
  const Dims to = row_major_strides(shape);
  return gather_elements(in[0]->dtype, shape, [&](std::int64_t e) {
    std::int64_t i = e / to[axis] % shape[axis];
    std::size_t k = 0;
    while (i >= in[k]->dims[axis]) i -= in[k++]->dims[axis];
    const Dims from = row_major_strides(in[k]->dims);
    std::int64_t at = 0;
    for (std::size_t d = 0; d < shape.size(); ++d)
      at += (static_cast<std::int64_t>(d) == axis ? i : e / to[d] % shape[d]) * from[d];
    return std::pair{in[k], at};
  });
}

Tile Emitter::emit_pad(const ir::Op& op, Tile& x, Tile& value, const Dims& shape) {
  for (Tile* t : {&x, &value})
    if (t->is_linear && t->pieces.empty()) scalar(*t);
  if (x.is_scalar()) return x;
  const Dims& low = op.attrs.dims("edge_padding_low");
  const Dims inner = op.attrs.dims_or("interior_padding", Dims(low.size(), 0));
  const Dims from = row_major_strides(x.dims), to = row_major_strides(shape);
  return gather_elements(x.dtype, shape, [&](std::int64_t e) {
    std::int64_t at = 0;
    for (std::size_t d = 0; d < shape.size(); ++d) {
      const std::int64_t i = e / to[d] % shape[d] - low[d];
      if (i < 0 || i % (inner[d] + 1) != 0 || i / (inner[d] + 1) >= x.dims[d])
        return std::pair{&value, std::int64_t{0}};
      at += i / (inner[d] + 1) * from[d];
    }
    return std::pair{&x, at};
  });
}

Tile Emitter::emit_bitcast(const ir::Op& op, Tile& x, const ir::Type& to) {
  if (x.is_linear && x.pieces.empty()) scalar(x);
  const int from_bits = dtype_bits(x.dtype), to_bits = dtype_bits(to.dtype());
  if (from_bits == to_bits) {
    Tile out = empty_like(to.dtype(), x.dims);
    for (std::size_t i = 0; i < x.pieces.size(); ++i)
      out.pieces[i] = ops_.bitcast(x.dtype, to.dtype(), x.pieces[i]);
    return out;
  }
  if (is_complex(x.dtype) || !std::has_single_bit(static_cast<unsigned>(from_bits)) ||
      !std::has_single_bit(static_cast<unsigned>(to_bits)))
    unsupported(op, x.dtype, "Cast between types whose widths are powers of two");
  // Element by element in integers: take a wide one apart, or put narrow ones together.
  const int narrow = std::min(from_bits, to_bits), ratio = std::max(from_bits, to_bits) / narrow;
  const auto integer = [](int bits) {
    switch (bits) {
      case 2: return DType::kU2;
      case 4: return DType::kU4;
      case 8: return DType::kU8;
      case 16: return DType::kU16;
      case 32: return DType::kU32;
      default: return DType::kU64;
    }
  };
  const DType wide_type = integer(std::max(from_bits, to_bits)), narrow_type = integer(narrow);
  std::vector<Piece> elements;
  for (std::int64_t e = 0; e < to.size(); ++e) {
    if (from_bits > to_bits) {
      Value* v = ops_.bitcast(x.dtype, wide_type, lane(x, e / ratio)).v;
      v = b.CreateLShr(v, ops_.int_const(v, e % ratio * narrow));
      v = b.CreateZExtOrTrunc(v, ops_.element_type(narrow_type));
      elements.push_back(ops_.bitcast(narrow_type, to.dtype(), {ops_.wrap(narrow_type, v)}));
    } else {
      Value* sum = nullptr;
      for (int i = 0; i < ratio; ++i) {
        Value* v = ops_.bitcast(x.dtype, narrow_type, lane(x, e * ratio + i)).v;
        v = b.CreateZExt(v, ops_.element_type(wide_type));
        v = b.CreateShl(v, ops_.int_const(v, std::int64_t{i} * narrow));
        sum = sum ? b.CreateOr(sum, v) : v;
      }
      elements.push_back(ops_.bitcast(wide_type, to.dtype(), {sum}));
    }
  }
  Tile out = empty_like(to.dtype(), to.dims());
  const RowLayout& row = layout(out.row_length());
  std::size_t e = 0;
  for (std::size_t k = 0; k < out.pieces.size(); ++k) {
    const unsigned lanes = row.lanes[k % row.lanes.size()];
    out.pieces[k] = join(to.dtype(), std::span(elements).subspan(e, lanes));
    e += lanes;
  }
  return out;
}

}  // namespace xylem::jit
