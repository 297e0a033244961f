#include "xylem/compiler/lowering/product.h"

#include "xylem/compiler/fusion/buffer_elemental.h"

namespace xylem::compiler {

using ir::ValueId;

bool find_place(Lowering& l, ValueId v, const Forms& index, const Dims& axes, BufferId* buffer,
                Form* place) {
  BufferElemental e(l.graph(), l.plan(), axes, nullptr);
  e.eval(v, index, {});
  if (e.reads().size() != 1 || !e.splits.empty() || e.cost > 1) return false;
  const Form& f = e.reads()[0].flat;
  for (const Term& t : f.terms)
    if (t.axis >= axes.ssize() || t.coef < 0) return false;
  if (f.constant != 0) return false;
  *buffer = e.reads()[0].v;
  *place = f;
  return true;
}

BufferId make_dense(Lowering& l, ValueId v, const Dims& order) {
  const ir::Type& t = l.graph().type(v);
  Dims shape;
  for (std::int64_t d : order) shape.push_back(t.dims()[d]);
  Forms index(shape.size());
  for (int i = 0; i < order.ssize(); ++i)
    if (shape[i] != 1) index[static_cast<std::size_t>(order[i])] = Form::axis(i);
  BufferElemental look(l.graph(), l.plan(), shape, nullptr);
  look.eval(v, index, {});

  ir::KernelBuilder k("layout");
  TileLoops loops;
  loops.declare(k, shape, dtype_bytes(t.dtype()));
  BufferElemental e(l.graph(), l.plan(), shape, &k);
  for (const auto& r : look.reads()) e.read(r.v);
  const ir::KernelValue out = k.write(t.dtype(), {t.size()});
  loops.run(e, shape, [&](const Elemental::Guard& guard) {
    Forms own;
    for (int i = 0; i < shape.ssize(); ++i) own.push_back(shape[i] == 1 ? Form() : Form::axis(i));
    e.store(out, flatten(own, shape), e.eval(v, index, guard), guard);
  });
  const BufferId made = l.temp(t.nbytes());
  std::vector<Use> uses;
  for (ValueId input : e.inputs()) uses.push_back({input});
  uses.push_back({made, true});
  l.kernel(k.finish(), std::move(uses), loops.points, static_cast<double>(t.size()) * 0.5 + 20, 0,
           2.0 * static_cast<double>(t.nbytes()));
  return made;
}

void emit_product(Lowering& l, const GemmShape& shape, const Operand& a, const Operand& b,
                  BufferId out) {
  const std::int64_t bytes = dtype_bytes(shape.dtype), m = shape.m(), k = shape.k();
  const GemmTile tile = choose_tile(shape);
  const bool packed = !reads_in_place(shape, b.layout, tile);
  BufferId right = b.buffer;
  if (packed) {
    PackKernel pack = make_pack_kernel(shape, b.layout, tile);
    right = l.temp(pack.elements * bytes);
    const auto work = static_cast<double>(pack.elements);
    l.kernel(std::move(pack.kernel), {{b.buffer}, {right, true}}, pack.points,
             work * (b.layout.column.back() == 1 ? 0.05 : 0.4) + 20, 0, 8 * work);
  }
  GemmKernel product = make_gemm_kernel(shape, a.layout, b.layout, packed, tile);
  const double flops = 2.0 * static_cast<double>(num_elements(shape.batch)) *
                       static_cast<double>(m) * static_cast<double>(shape.n) *
                       static_cast<double>(k);
  l.kernel(std::move(product.kernel), {{a.buffer}, {right}, {out, true}}, product.points,
           flops / 200 + 20, flops,
           static_cast<double>((m * k + k * shape.n + m * shape.n) * bytes));
}

}  // namespace xylem::compiler
