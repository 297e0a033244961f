#include "xylem/ir/bytecode/program_reader.h"

#include <fmt/format.h>

#include <algorithm>

#include "xylem/base/error.h"
#include "xylem/ir/text/cursor.h"

// Values, blocks and regions: the IR section.

namespace xylem::ir::bytecode {
namespace {

constexpr const char* kDamaged = "The file is damaged: write it again";
constexpr int kMaxErrors = 100;

enum Mask : unsigned {
  kHasAttrs = 0x01,
  kHasResults = 0x02,
  kHasOperands = 0x04,
  kHasSuccessors = 0x08,
  kHasRegions = 0x10,
  kHasUseLists = 0x20,
  kHasProperties = 0x40,
};

constexpr std::uint8_t kIrSection = 4;

// Numbers the values of a region anew: parameters in the given order, then results of ops.
void renumber(Graph& g, std::vector<ValueId> params) {
  std::vector<ValueId> to(g.values.size(), kNoValue);
  std::vector<Value> values;
  values.reserve(g.values.size());
  auto move = [&](ValueId v) {
    to[static_cast<std::size_t>(v)] = static_cast<ValueId>(values.size());
    values.push_back(std::move(g.values[static_cast<std::size_t>(v)]));
    return to[static_cast<std::size_t>(v)];
  };
  auto rename = [&](auto& ids) {
    for (ValueId& v : ids) v = to[static_cast<std::size_t>(v)];
  };
  for (std::size_t i = 0; i < params.size(); ++i) {
    params[i] = move(params[i]);
    values.back().index = static_cast<std::int32_t>(i);
  }
  for (Op& op : g.ops) {
    rename(op.operands);
    for (ValueId& v : op.results) v = move(v);
  }
  rename(g.results);
  g.values = std::move(values);
  g.params = std::move(params);
}

// "return" of every dialect that has one.
bool is_terminator(std::string_view op) {
  return op == "stablehlo.return" || op == "func.return" || op == "sdy.return";
}

}  // namespace

ValueId Body::add_param(Type type) {
  auto id = static_cast<ValueId>(graph->values.size());
  graph->values.push_back(
      {std::move(type), -1, static_cast<std::int32_t>(graph->params.size()), nullptr});
  graph->params.push_back(id);
  return id;
}

ValueId Body::reach(const Body* owner, ValueId v) {
  if (owner == this) return v;
  if (!parent) return kNoValue;
  ValueId outer = parent->reach(owner, v);
  if (outer == kNoValue) return kNoValue;
  auto [known, added] = captured.emplace(outer, static_cast<ValueId>(graph->values.size()));
  if (added) {
    graph->values.push_back({parent->graph->type(outer), -1, 0, nullptr});
    captures.push_back({outer, known->second});
  }
  return known->second;
}

GraphLocations& Body::locations() {
  if (!given) graph->locations = given = std::make_shared<GraphLocations>();
  return *given;
}

ProgramReader::ProgramReader(Source& source, const Frame& frame, const BytecodeOptions& options)
    : source_(source), frame_(frame), options_(options), values_(source, frame) {
  read_names();
}

void ProgramReader::read_names() {
  names_.resize(frame_.op_names.size());
  for (std::size_t i = 0; i < names_.size(); ++i) {
    const OpName& o = frame_.op_names[i];
    Name& n = names_[i];
    n.op = fmt::format("{}.{}", frame_.dialects[o.dialect_index], o.name);
    if (o.dialect != Dialect::kVhlo) {
      n.plain = plain_attrs(n.op);
      n.known = n.plain != nullptr;
      continue;
    }
    n.vhlo = true;
    std::size_t v = o.name.rfind("_v");
    if (v == std::string_view::npos || o.name.size() != v + 3) continue;
    std::string_view base = o.name.substr(0, v);
    n.revision = o.name.back() - '0';
    if (n.revision == 1 && (base == "func" || base == "call" || base == "return")) {
      n.op = base == "return" ? "stablehlo.return" : fmt::format("func.{}", base);
      n.known = true;
      continue;
    }
    n.form = find_vhlo_form(base);
    if (!n.form || n.revision < 1 || n.revision > static_cast<int>(n.form->revisions.size()) + 1)
      continue;
    n.op = n.form->name;
    n.known = true;
  }
}

void ProgramReader::report_line(std::size_t at, const Location& loc, std::string_view message) {
  if (!errors_.empty()) errors_ += '\n';
  errors_ += fmt::format("{}: error: {}", source_.place(at), message);
  if (loc.source.known())
    errors_ += fmt::format(" [from {}:{}:{}]", loc.source.file, loc.source.line, loc.source.column);
  if (++num_errors_ == kMaxErrors) throw UserError(errors_ + "\nfurther errors are not shown");
}

void ProgramReader::report(const FileOp& op, std::string_view operation, std::string_view expected,
                           std::string_view given, std::string_view advice) {
  report_line(op.at, op.loc, UserError(ErrorParts{operation, expected, given, advice}).message());
}

void ProgramReader::skip_use_lists(ByteCursor& c, std::size_t values) {
  std::size_t n = values > 1 ? c.count("use lists") : 1;
  for (std::size_t i = 0; i < n; ++i) {
    if (values > 1) c.varint("use list");
    std::uint64_t v = c.varint("use list");
    if (v >> 1 > c.remaining())
      c.fail("use list", fmt::format("at most {} numbers", c.remaining()),
             fmt::format("{}", v >> 1), kDamaged);
    for (std::uint64_t k = 0; k < v >> 1; ++k) c.varint("use");
  }
}

ProgramReader::FileOp ProgramReader::read_head(ByteCursor& c) {
  FileOp op;
  op.at = c.pos();
  op.name = &names_[c.index("op name", names_.size())];
  unsigned mask = c.byte("op");
  if (mask & 0x80)
    source_.fail(op.at, op.name->op, "parts that the format knows", fmt::format("mask {:#x}", mask),
                 kDamaged);
  op.loc = values_.location(c.index("location", values_.num_attrs()));
  if (op.loc.mlir == "unknown") op.loc = Location();
  if (mask & kHasAttrs) {
    op.has_attrs = true;
    op.attrs = c.index("attributes", values_.num_attrs());
  }
  if (mask & kHasProperties) {
    op.has_record = true;
    op.record = c.index("properties", frame_.properties.size());
  }
  if (mask & kHasResults) {
    std::size_t n = c.count("results");
    op.result_types.reserve(n);
    for (std::size_t i = 0; i < n; ++i)
      op.result_types.push_back(c.index("type", values_.num_types()));
  }
  if (mask & kHasOperands) {
    std::size_t n = c.count("operands");
    op.operands.reserve(n);
    for (std::size_t i = 0; i < n; ++i)
      op.operands.push_back(static_cast<std::size_t>(c.varint("operand")));
  }
  if (mask & kHasSuccessors)
    source_.fail(op.at, op.name->op, "ops of StableHLO have no successor blocks",
                 "this one has some", "Use if, case and while");
  if (mask & kHasUseLists) skip_use_lists(c, op.result_types.size());
  if (mask & kHasRegions) {
    std::uint64_t v = c.varint("regions");
    if (v >> 1 > c.remaining())
      source_.fail(op.at, op.name->op, fmt::format("at most {} regions", c.remaining()),
                   fmt::format("{}", v >> 1), kDamaged);
    op.num_regions = static_cast<std::size_t>(v >> 1);
    op.isolated = v & 1;
  }
  if (!op.name->known)
    source_.fail(
        op.at, op.name->op,
        op.name->vhlo ? "ops of VHLO up to StableHLO 1.20"
                      : "ops are those of StableHLO and CHLO that the op table knows",
        "this one is not among them",
        op.name->vhlo ? "The file is newer, or damaged" : "Legalise the program to such ops");
  return op;
}

// Regions that see nothing outside stand in a section of their own.
void ProgramReader::with_regions(ByteCursor& c, const FileOp& op,
                                 const std::function<void(ByteCursor&)>& body) {
  if (op.num_regions == 0) return;
  if (!op.isolated || frame_.format < 2) return body(c);
  std::size_t at = c.pos();
  if (c.byte("region section") != kIrSection)
    source_.fail(at, op.name->op, "the regions stand in a section of ops", "another section",
                 kDamaged);
  std::uint64_t size = c.varint("region section");
  std::size_t begin = c.pos();
  c.bytes("region section", size);
  ByteCursor inner(source_, begin, c.pos());
  body(inner);
  if (!inner.done())
    inner.fail(op.name->op, "the section ends with its regions", "more bytes", kDamaged);
}

ValueId ProgramReader::use(Body& body, std::size_t number, std::size_t at) {
  bool defined = number < slots_.size() && slots_[number].body;
  ValueId v = defined ? body.reach(slots_[number].body, slots_[number].value) : kNoValue;
  if (v == kNoValue)
    source_.fail(at, "operand", "values are defined before their use",
                 fmt::format("value {} is not", number), kDamaged);
  return v;
}

void ProgramReader::define(Body& body, std::size_t& next, std::size_t limit, ValueId v,
                           std::size_t at) {
  if (next == limit)
    source_.fail(at, "region", "as many values as it announces", "there are more", kDamaged);
  slots_[next++] = {&body, v};
}

void ProgramReader::read_region(ByteCursor& c, Body& body, bool isolated, const FileOp& op) {
  if (region_depth_ >= text::kMaxDepth)
    source_.fail(op.at, op.name->op, fmt::format("regions nest at most {} deep", text::kMaxDepth),
                 "these nest deeper", "Flatten the program");
  ++region_depth_;
  if (function_) function_->depth = std::max(function_->depth, region_depth_);
  std::size_t at = c.pos();
  std::uint64_t blocks = c.varint("blocks");
  if (blocks != 1)
    source_.fail(at, op.name->op, "regions of StableHLO have one block",
                 fmt::format("found {}", blocks), "Use if, case and while");
  // Each value takes a byte at least: its type.
  std::size_t values = c.count("values");
  std::vector<Slot> outer;
  if (isolated) std::swap(outer, slots_);
  std::size_t next = slots_.size(), limit = next + values;
  slots_.resize(limit);
  read_block(c, body, next, limit);
  if (next != limit)
    source_.fail(at, op.name->op, fmt::format("{} values in its region", values),
                 fmt::format("found {}", values - (limit - next)), kDamaged);
  slots_.resize(limit - values);
  if (isolated) std::swap(outer, slots_);
  --region_depth_;
}

void ProgramReader::read_block(ByteCursor& c, Body& body, std::size_t& next, std::size_t limit) {
  std::size_t at = c.pos();
  std::uint64_t v = c.varint("block");
  std::uint64_t ops = v >> 1;
  // An op takes name, mask and location.
  if (ops > c.remaining() / 3 + 1)
    source_.fail(at, "block", fmt::format("at most {} ops", c.remaining() / 3),
                 fmt::format("{}", ops), kDamaged);
  if (v & 1) {
    std::size_t n = c.count("block arguments");
    for (std::size_t i = 0; i < n; ++i) {
      std::size_t arg_at = c.pos();
      bool has_location = true;
      std::size_t type;
      if (frame_.format >= 4) {
        std::uint64_t t = c.varint("argument");
        has_location = t & 1;
        if (t >> 1 >= values_.num_types())
          source_.fail(arg_at, "argument", fmt::format("a type below {}", values_.num_types()),
                       fmt::format("{}", t >> 1), kDamaged);
        type = static_cast<std::size_t>(t >> 1);
      } else {
        type = c.index("type", values_.num_types());
      }
      define(body, next, limit, body.add_param(values_.type(type, arg_at)), arg_at);
      if (!has_location) continue;
      Location loc = values_.location(c.index("location", values_.num_attrs()));
      if (!is_given(loc) || loc.mlir == "unknown") continue;
      std::vector<Location>& params = body.locations().params;
      params.resize(i + 1);
      params[i] = loc;
    }
    if (body.given && !body.given->params.empty()) body.given->params.resize(n);
    if (frame_.format >= 3 && c.byte("block") & kHasUseLists) skip_use_lists(c, n);
  }
  // No more than a file of this length is likely to hold: its counts may be wrong.
  constexpr std::uint64_t kBytesPerOp = 8;
  body.graph->ops.reserve(std::min(ops, c.remaining() / kBytesPerOp));
  body.graph->values.reserve(
      std::min(body.graph->values.size() + limit - next, c.remaining() / kBytesPerOp));
  bool ended = false;
  for (std::uint64_t i = 0; i < ops; ++i) {
    ByteCursor ahead = c;
    std::size_t name = ahead.index("op name", names_.size());
    if (!is_terminator(names_[name].op)) {
      read_op(c, body, next, limit);
      continue;
    }
    FileOp op = read_head(c);
    ended = i + 1 == ops && op.num_regions == 0 && op.result_types.empty();
    for (std::size_t operand : op.operands)
      body.graph->results.push_back(use(body, operand, op.at));
    if (is_given(op.loc)) body.locations().terminator = op.loc;
    if (!ended) break;
  }
  if (!ended)
    source_.fail(at, "block", "it ends with a return", "it does not", "Return its results");
}

void ProgramReader::read_regions(ByteCursor& c, Body& body, FileOp& op) {
  with_regions(c, op, [&](ByteCursor& inner) {
    for (std::size_t i = 0; i < op.num_regions; ++i) {
      op.regions.push_back(std::make_unique<Body>(&body));
      read_region(inner, *op.regions.back(), op.isolated, op);
    }
  });
}

void ProgramReader::read_op(ByteCursor& c, Body& body, std::size_t& next, std::size_t limit) {
  FileOp op = read_head(c);
  read_regions(c, body, op);
  finish_op(body, op, next, limit);
}

// Makes the captures of all regions operands of the op: each region takes all of them, behind its
// own arguments.
void ProgramReader::finish_regions(Body& body, FileOp& op, const OpDef* def,
                                   std::vector<ValueId>& operands, Attrs& attrs,
                                   std::vector<GraphPtr>& regions) {
  std::vector<ValueId> captures;
  std::unordered_map<ValueId, std::size_t> place;
  for (auto& region : op.regions)
    for (const Body::Capture& capture : region->captures)
      if (place.emplace(capture.outer, captures.size()).second) captures.push_back(capture.outer);
  for (auto& region : op.regions) {
    Graph& g = *region->graph;
    if (!captures.empty()) {
      std::vector<ValueId> params = g.params;
      std::size_t own = params.size();
      params.resize(own + captures.size(), kNoValue);
      for (const Body::Capture& capture : region->captures)
        params[own + place[capture.outer]] = capture.local;
      for (std::size_t i = 0; i < captures.size(); ++i) {
        if (params[own + i] != kNoValue) continue;
        params[own + i] = static_cast<ValueId>(g.values.size());
        g.values.push_back({body.graph->type(captures[i]), -1, 0, nullptr});
      }
      renumber(g, std::move(params));
    }
    regions.push_back(region->graph);
  }
  operands.insert(operands.end(), captures.begin(), captures.end());
  if (captures.empty()) return;
  if (!def->find_attr("num_captures"))
    report(op, op.name->op, "its regions see their own arguments only",
           fmt::format("{} outer values are used", captures.size()),
           "Pass them as operands, or define them inside");
  attrs.set("num_captures", static_cast<std::int64_t>(captures.size()));
}

}  // namespace xylem::ir::bytecode
