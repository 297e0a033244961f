#pragma once

#include "xylem/ir/op_def.h"

// Shardy's ops: where values lie on a mesh of devices. They are carried as they stand; on one
// device all are the identity, or their body. Their attributes are Shardy's own text
// (`#sdy.sharding<@mesh, [{"x"}, {}]>`), kept as it was written. Source: Shardy's dialect
// reference, docs/sdy_dialect.md.

namespace xylem::ir::ops {

extern const OpDef kSdyShardingConstraint;     // x; {sharding}
extern const OpDef kSdyReshard;                // x; {sharding}
extern const OpDef kSdyPropagationBarrier;     // x; {allowed_direction: i32}
extern const OpDef kSdyDataFlowEdge;           // x; {sharding?}
extern const OpDef kSdyFuncDataFlowEdge;       // x
extern const OpDef kSdyAllGather;              // x; {gathering_axes, out_sharding}
extern const OpDef kSdyAllSlice;               // x; {slicing_axes, out_sharding}
extern const OpDef kSdyAllToAll;               // x; {params, out_sharding}
extern const OpDef kSdyCollectivePermute;      // x; {out_sharding}
extern const OpDef kSdyAllReduce;              // x; {reduction_axes, out_sharding}
extern const OpDef kSdyReduceScatter;          // x; {reduce_scatter_axes, out_sharding}
extern const OpDef kSdyReplicatedToUnreduced;  // x; {axes, out_sharding}
extern const OpDef kSdyShardedToUnreduced;     // x; {axes, out_sharding}
extern const OpDef kSdyShardingGroup;          // x, no result; {group_id, type?}
extern const OpDef kSdyConstant;               // {value}
// {name, in_shardings?, out_shardings?} and a body from operands to results.
extern const OpDef kSdyNamedComputation;
// {in_shardings, out_shardings, manual_axes}: the body sees the local parts. Evaluated where these
// are the whole values.
extern const OpDef kSdyManualComputation;

}  // namespace xylem::ir::ops
