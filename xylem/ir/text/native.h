#pragma once

#include <string>

#include "xylem/ir/graph.h"
#include "xylem/ir/text/cursor.h"

// Pieces of the native text, for the texts that embed it (kernels).
//
//   module  = "module" [@name] ["attributes" dict] "{" {function} "}" | {function}
//   function= ["private"] graph | "declare" @name
//   graph   = "graph" [@name] "(" {%v ":" type [sharding] [dict]} ")" "->" "(" {type [dict]} ")"
//             ["attributes" dict] "{" {op} "return" {%v} "}"
//   op      = [{%v} "="] name "(" {%v} ")" [dict] ["[" {graph} "]"] [":" {type [sharding]}] [loc]
//   sharding= "sharding" "(" string ")"
//   loc     = "loc" "(" [string ":" line [":" column]] ["in" string] ["at" string] ")"
//   dict    = "{" {name ["=" attr]} "}"                  a name alone is the unit attribute
//   type    = dtype dims [<bounds=dims>] [<!quant.uniform<…>>] [<encoding>] | "token"
//           | "(" {type} ")" | "ref<" dtype dims [, space] ">" | "key<" name ">" dims
//   attr    = "unit" | "true" | "false" | 3 | 0.5 | "text" | [1, 2] (dims; "?" is dynamic)
//           | #MEMBER | 3 : i32 | @symbol | dtype f32 | type f32[2] | list[attr, …] | dict
//           | dense f32[2] [1, 2]  (elements in row-major order; one element alone is repeated;
//             a string "0x…" holds the bytes) | opaque "foreign text"
//
// Lists are separated by commas. Types are not inferred on reading: `verify` checks them.

namespace xylem::ir::text {

struct NativeOptions {
  bool locations = false;
  int indent = 0;
};

void write_graph(std::string& out, const Graph& graph, const NativeOptions& options);
void write_attr(std::string& out, const Attr& attr);
// "{a = 1, b = 2}".
void write_attrs(std::string& out, const Attrs& attrs);

// Each reads one piece at the cursor. Errors as in text.h.
Type read_type(Cursor& c);
Dims read_dims(Cursor& c);
Attr read_attr(Cursor& c);
Attrs read_attrs(Cursor& c);
GraphPtr read_graph(Cursor& c);

// The parameters of a quantised element behind "!quant.uniform<", up to and with its ">"; also
// gives the expressed type.
QuantParams read_quant(Cursor& c, DType& expressed);

}  // namespace xylem::ir::text
