#pragma once

#include <memory>
#include <span>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "xylem/core/array.h"
#include "xylem/core/internal/function_ref.h"
#include "xylem/core/promotion.h"
#include "xylem/ir/builder.h"
#include "xylem/ir/graph.h"
#include "xylem/runtime/client.h"

namespace xylem::internal {

class Trace;

// What an Array refers to. Immutable but for donation, which releases the buffer.
struct ArrayNode {
  ir::Type type;
  bool weak = false;
  runtime::BufferPtr buffer;     // concrete
  std::shared_ptr<Trace> trace;  // traced, with `value`
  ir::ValueId value = ir::kNoValue;
  HostArray literal;  // a scalar of the program text; no buffer until it is needed
  SourceLoc where;    // of a donated array: the call that took it

  bool concrete() const { return !trace; }
};

Array make_concrete(runtime::BufferPtr buffer, bool weak = false);
// `scalar` may be wider than `dtype` (a double behind a weak f32), so that no digit is lost when
// the literal meets a wider array.
Array make_literal(HostArray scalar, DType dtype, bool weak);
// The type with its weakness.
struct AbstractValue {
  ir::Type type;
  bool weak = false;
  friend bool operator==(const AbstractValue&, const AbstractValue&) = default;
};
AbstractValue abstract(const Array& a);

enum class TraceKind : std::uint8_t {
  kJit,     // abstract values
  kMapped,  // vmap: abstract values of one example
  kBody,    // bodies of loops and branches: abstract values
  kDiff,    // grad, jvp, vjp: values may be evaluated on demand
};

// One program under construction. Values of outer traces and concrete arrays met inside become its
// explicit parameters (captures) behind the arguments.
class Trace : public std::enable_shared_from_this<Trace> {
 public:
  Trace(TraceKind kind, std::string name);

  TraceKind kind() const { return kind_; }
  const std::string& name() const { return name_; }
  ir::Builder& builder() { return builder_; }

  // A parameter; `actual` is its value outside (for kDiff), or undefined.
  Array add_argument(const AbstractValue& t, const Array& actual);
  // The value of `a` in this trace: its own, a constant, or a capture.
  ir::ValueId use(const Array& a, SourceLoc where);
  Array wrap(ir::ValueId v, bool weak);
  // The concrete contents of one of this trace's values, evaluating what was recorded.
  Array concretize(ir::ValueId v, SourceLoc where);

  const std::vector<Array>& captures() const { return captures_; }
  ir::GraphPtr finish(std::vector<ir::ValueId> results);
  bool finished() const { return finished_; }

 private:
  TraceKind kind_;
  std::string name_;
  ir::Builder builder_;
  std::vector<Array> arguments_;  // actual values
  std::vector<Array> captures_;
  std::unordered_map<const ArrayNode*, ir::ValueId> captured_;
  std::vector<Array> known_;  // evaluated values, by id
  std::size_t evaluated_ops_ = 0;
  bool finished_ = false;
  std::thread::id thread_ = std::this_thread::get_id();
};

// The innermost trace of this thread, null outside of any.
Trace* current_trace();

// Makes a trace current for its lifetime.
class TraceScope {
 public:
  explicit TraceScope(std::shared_ptr<Trace> trace);
  ~TraceScope();
  TraceScope(const TraceScope&) = delete;
  TraceScope& operator=(const TraceScope&) = delete;
};
// Suspends tracing (evaluation on demand, callbacks) for its lifetime.
class NoTraceScope {
 public:
  NoTraceScope();
  ~NoTraceScope();

 private:
  std::vector<std::shared_ptr<Trace>> saved_;
};

// The outermost user call, kept while library code makes ops.
class CallSite {
 public:
  explicit CallSite(SourceLoc where);
  ~CallSite();
  static SourceLoc outermost(SourceLoc otherwise);

 private:
  bool set_ = false;
};

// Applies an op: records it in the current trace, or runs it.
std::vector<Array> apply(const ir::OpDef& def, std::span<const Array> operands, ir::Attrs attrs,
                         std::vector<ir::GraphPtr> regions, SourceLoc where,
                         std::span<const bool> weak = {});
Array apply_one(const ir::OpDef& def, std::span<const Array> operands, ir::Attrs attrs = {},
                SourceLoc where = {}, bool weak = false);
// Applies a whole graph: inlines it into the current trace, or runs it op by op.
std::vector<Array> apply_graph(const ir::Graph& g, std::span<const Array> args);
// Compiles and runs a graph on concrete arrays.
runtime::BufferPtr buffer_of(const Array& a, SourceLoc where);

struct Traced {
  ir::GraphPtr graph;           // arguments, then captures
  std::vector<Array> captures;  // of the enclosing context
  std::vector<AbstractValue> outputs;
};
// Traces body(arguments). `actual`: outside values of the arguments for kDiff, empty otherwise.
Traced trace(TraceKind kind, std::string name, std::span<const AbstractValue> inputs,
             std::span<const Array> actual,
             FunctionRef<std::vector<Array>(std::span<const Array>)> body);

}  // namespace xylem::internal
