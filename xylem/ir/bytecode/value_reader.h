#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "xylem/ir/bytecode/frame.h"
#include "xylem/ir/graph.h"

namespace xylem::ir::bytecode {

// A type as the file has it: of a value, of an element, of a function, or none of these.
struct FileType {
  enum class Kind : std::uint8_t {
    kValue,     // tensor, token, tuple, future, memref: `type`
    kElement,   // `type` is a scalar tensor of it, quantisation included
    kIndex,     // an element too, read as i64
    kFunction,  // `inputs` and `results` are type numbers
    kNone,
    kOther,  // only a name: `text`
  };
  Kind kind = Kind::kOther;
  Type type;
  std::vector<std::uint32_t> inputs, results;
  std::string text;
  bool is_signed = false;  // builtin "si8"

  bool is_element() const { return kind == Kind::kElement || kind == Kind::kIndex; }
};

// Attributes, types and locations of a file, decoded when they are asked for and kept.
class ValueReader {
 public:
  ValueReader(Source& source, const Frame& frame);

  // As an op's own attribute (members of enumerations and structures are decoded) or as any other
  // (what has no counterpart is kept as text): MlirReader::Mode.
  enum class Mode { kForeign, kInherent };

  std::size_t num_attrs() const { return frame_.attrs.size(); }
  std::size_t num_types() const { return frame_.types.size(); }
  const Attr& attr(std::size_t index, Mode mode);
  const FileType& file_type(std::size_t index);
  // A value's type; fails at `at` if it is something else.
  const Type& type(std::size_t index, std::size_t at);
  // The text of a place in a file is not kept: its fields say the same.
  Location location(std::size_t index);
  // The dictionary that attribute `index` is.
  Attrs dictionary(std::size_t index, Mode mode);
  // Its entries as names and numbers of attributes.
  std::vector<std::pair<std::string_view, std::size_t>> dictionary_refs(std::size_t index);
  // The file's type of a type attribute (VHLO's or builtin), null if it is none.
  const FileType* type_of_attr(std::size_t index);
  std::size_t attr_offset(std::size_t index) const { return frame_.attrs[index].part.begin; }
  Source& source() { return source_; }

 private:
  enum class State : std::uint8_t { kUnread, kBusy, kRead };
  // Counts how deep attributes and types nest; throws where that is too deep.
  class Nesting {
   public:
    Nesting(ValueReader& reader, std::size_t at);
    ~Nesting() { --reader_.depth_; }
    Nesting(const Nesting&) = delete;
    Nesting& operator=(const Nesting&) = delete;

   private:
    ValueReader& reader_;
  };

  Attr read_attr(std::size_t index, Mode mode);
  Attr read_builtin(std::size_t index, ByteCursor& c, Mode mode);
  Attr read_vhlo(std::size_t index, ByteCursor& c, Mode mode);
  Attr read_stablehlo(std::size_t index, ByteCursor& c, Mode mode);
  Attr read_enum(ByteCursor& c, const struct Enumeration& e, Mode mode);
  Attr read_assembly(ByteCursor& c, Mode mode);
  Attr from_text(const std::string& text, Mode mode, std::size_t at);
  Attr read_dense_array(ByteCursor& c, Mode mode);
  Attr read_dense_strings(ByteCursor& c);
  Attr read_resource(ByteCursor& c, Mode mode);
  Attr read_integer(ByteCursor& c);
  Attr read_float(ByteCursor& c);
  Attr type_attr(const FileType& t);
  Attr tensor(const FileType& t, std::string_view blob, Mode mode, std::size_t at);
  double read_double(ByteCursor& c);
  Attr read_alias(ByteCursor& c, Mode mode);
  Attr read_accuracy(ByteCursor& c, Mode mode);
  Dims read_dims(ByteCursor& c);
  AttrList read_list(ByteCursor& c, Mode mode);
  Attrs read_entries(ByteCursor& c, Mode mode);
  std::string_view string(ByteCursor& c);
  std::size_t attr_ref(ByteCursor& c) { return c.index("attribute", num_attrs()); }
  std::size_t type_ref(ByteCursor& c) { return c.index("type", num_types()); }
  const std::string& string_attr(ByteCursor& c);

  FileType read_type(std::size_t index);
  FileType read_builtin_type(ByteCursor& c);
  FileType read_vhlo_type(ByteCursor& c);
  FileType read_shaped(ByteCursor& c, bool memref, bool encoded);
  FileType read_tuple(ByteCursor& c, bool future);
  FileType read_function_type(ByteCursor& c);
  FileType read_complex(ByteCursor& c);
  FileType read_quantized(ByteCursor& c, bool per_axis);
  FileType type_from_text(const std::string& text, std::size_t at);
  void read_encoding(std::size_t attr, const Type& t, TypeExtra& extra, std::size_t at);

  Location read_location(std::size_t index);
  // Whether it is "file":line:column and nothing else.
  bool is_place(std::size_t index) const;
  Location read_place(ByteCursor& c);
  // Its MLIR text; empty if that was too long to be kept.
  std::string location_text(std::size_t index);
  // Appends the text of a part of a location.
  Location read_location_part(ByteCursor& c, std::string& out);

  // Attributes that are kept as text (value_text.cc). `nested`: as parts of others write them.
  std::string sdy_text(std::size_t index, bool nested);
  std::string sdy_parts(ByteCursor& c, const char* open, const char* close);
  std::string sdy_rule(ByteCursor& c);
  std::string sdy_mappings(ByteCursor& c);
  std::string mesh_text(std::size_t index);
  std::string symbol_text(std::size_t index);

  void charge_weight(std::size_t at, std::uint64_t weight);

  Source& source_;
  const Frame& frame_;
  // Null until they are read: most attributes of a file are locations.
  std::vector<std::unique_ptr<const Attr>> attrs_[2];
  std::vector<State> attr_states_[2];
  std::vector<std::uint32_t> weights_;  // nodes below an attribute when spelled out
  std::uint64_t weight_ = 1;            // of what is being read
  std::vector<FileType> types_;
  std::vector<State> type_states_;
  std::vector<std::uint64_t> type_weights_;  // types below a type when spelled out
  // Locations that are made of others; nearly all places stand alone and are used once.
  std::unordered_map<std::size_t, Location> locations_;
  std::vector<State> location_states_;
  int depth_ = 0;
};

// Elements as an attribute's blob holds them (StableHLO docs/bytecode.md): little-endian, one
// element alone repeated, i1 packed or not. Copies once.
HostArray read_elements(Source& source, DType dtype, const Dims& dims, std::string_view blob,
                        std::size_t at);

}  // namespace xylem::ir::bytecode
