#pragma once

#include "xylem/ir/op_def.h"

// Communication between the processes of a grid of replicas by partitions (process.h), and with the
// host. Replica groups are i64[groups, members], shorter ones filled with -1, none at all for one
// group of all; or {mesh, axes} of a mesh whose definition stands in the attribute. A channel
// handle is {handle, type}. Reductions take region (a, b, captures) -> value on scalars, whose
// dtype may be wider than the operands'; they go through the group in order.
//
// Groups are those of replicas in one partition (no channel), of replicas in all partitions
// (channel), or of ids replica * partitions + partition (use_global_device_ids); for all_to_all,
// broadcast, permute and reduce-to-one, a channel means partitions of one replica.

namespace xylem::ir::ops {

// all_gather(operands × N) {all_gather_dim, replica_groups, channel_handle, use_global_device_ids,
// result_types}: concatenation in group order.
extern const OpDef kAllGather;
// all_reduce(operands × N, captures) {replica_groups, channel_handle, use_global_device_ids}
extern const OpDef kAllReduce;
// reduce_scatter(x, captures) {scatter_dimension, replica_groups, …, result_types}: part i of the
// reduced value goes to member i.
extern const OpDef kReduceScatter;
// all_to_all(operands × N) {split_dimension, concat_dimension, split_count, replica_groups,
// channel_handle}
extern const OpDef kAllToAll;
// collective_permute(x) {source_target_pairs i64[n, 2], channel_handle}: zeros without a source.
extern const OpDef kCollectivePermute;
// collective_broadcast(operands × N, roots i32[N] if has_dynamic_root) {replica_groups,
// channel_handle, has_dynamic_root}: zeros outside of all groups.
extern const OpDef kCollectiveBroadcast;
// collective_reduce(operands × N, roots, captures) {replica_groups, channel_handle,
// has_dynamic_root}: the result at the root, zeros elsewhere.
extern const OpDef kCollectiveReduce;
// replica_id() -> ui32[], partition_id() -> ui32[]
extern const OpDef kReplicaId;
extern const OpDef kPartitionId;
// async_start(args): a region with one collective or slice -> future of its results; async_done
// (future) -> results. Evaluated where it starts.
extern const OpDef kAsyncStart;
extern const OpDef kAsyncDone;

// infeed(token) {infeed_config, layout, result_types} -> (tensors, token)
extern const OpDef kInfeed;
// outfeed(tensors, token) {outfeed_config} -> token
extern const OpDef kOutfeed;
// send(tensors, token) {channel_handle, is_host_transfer, source_target_pairs} -> token
extern const OpDef kSend;
// recv(token) {channel_handle, is_host_transfer, source_target_pairs, result_types}
// -> (tensors, token)
extern const OpDef kRecv;

}  // namespace xylem::ir::ops
