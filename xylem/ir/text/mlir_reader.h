#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "xylem/ir/graph.h"
#include "xylem/ir/op_def.h"
#include "xylem/ir/text.h"
#include "xylem/ir/text/cursor.h"

namespace xylem::ir::text {

// Types, attributes, locations and aliases of MLIR text: everything below ops.
class MlirReader {
 public:
  MlirReader(std::string_view text, std::string_view file, const ParseOptions& options);

  Cursor& cursor() { return c_; }

  // How dialect attributes ("#stablehlo…") are read.
  enum class Mode {
    kForeign,   // kept as they stand: OpaqueAttr
    kInherent,  // of an op we know: members of enumerations and structures are decoded
  };

  // tensor, token, tuple, memref; types of other dialects if the options allow them. `index` reads
  // as i64.
  Type read_type();
  bool at_type();
  // "T, U".
  std::vector<Type> read_type_list();
  // "(T, U)" or one type without parentheses.
  std::vector<Type> read_result_types();
  Attr read_attr(Mode mode);
  // "{a = 1, b}". `def` may be null; names that are inherent to it are read as such.
  Attrs read_dict(const OpDef* def);
  // The entries of a dictionary up to `close`, whose opening bracket is read already.
  Attrs read_entries(const OpDef* def, std::string_view close);
  // "dense<…> : type".
  HostArray read_dense();
  // The same as an attribute, which short constants of equal text share, and its type.
  std::pair<Attr, Type> read_constant();
  // Lets the next "dense<x> : type" of a large type give x alone; take_large_splat then has the
  // type.
  void allow_large_splat(bool yes) {
    allow_large_splat_ = yes;
    large_splat_.reset();
  }
  std::optional<Type> take_large_splat() { return std::exchange(large_splat_, std::nullopt); }
  // "[0, 1]" of integers.
  Dims read_int_list();
  // "[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]": the fields of #stablehlo.conv.
  Attrs read_conv_dims();
  std::string read_symbol();
  // Checks the fields of "<…>" of a StableHLO structure as its own parser does; reads it.
  void check_structure(std::string_view mnemonic, std::size_t at);

  // Reads "loc(…)" if it is there.
  bool accept_location(Location& loc);

  // "#name = …", "!name = …" and "{-# … #-}" at the top level; true if one was there.
  bool accept_top_level_extra();

 private:
  friend class DenseReader;
  struct Alias {
    std::size_t pos = 0;
    bool busy = false;  // being resolved: a cycle
    bool has_location = false;
    Location location;
  };

  // An alias being resolved. Aliases that name others twice multiply, so those inside of others
  // are counted.
  class Resolving {
   public:
    Resolving(MlirReader& r, Alias& a, std::size_t at);
    ~Resolving() {
      a_.busy = false;
      --r_.alias_depth_;
    }
    Resolving(const Resolving&) = delete;
    Resolving& operator=(const Resolving&) = delete;

   private:
    MlirReader& r_;
    Alias& a_;
  };

  void find_aliases();
  Alias& alias(std::string_view name, std::size_t at);
  DType read_element_type(TypeExtra& extra);
  // Types that were read last, by the text behind "tensor<": programs write few types often.
  struct KnownType {
    std::string_view text;
    Type type;
  };
  struct KnownConstant {
    std::string_view text;
    Attr value;
    Type type;
  };
  Type read_tensor();
  Type read_shaped(bool memref);
  void read_encoding(const Type& t, TypeExtra& extra);
  Attr read_hash_attr(Mode mode);
  Attr read_structure(std::size_t start, Mode mode);
  Attr read_number_attr();
  Attr read_dense_array(Mode mode);
  Attr read_foreign(std::size_t start);
  void check_precisions(const Attr& config, std::size_t at) const;
  // Checks "<…>" at the cursor, behind "#" and the name, if it is one of StableHLO's; goes back.
  void check_stablehlo_attr(std::size_t at, std::string_view name);
  HostArray read_dense_resource();
  void skip_literal();
  Location read_location_body(std::string& out);
  Location read_location_alias();

  Cursor c_;
  std::unordered_map<std::string_view, Alias> aliases_;  // "#loc", "!t"
  std::array<KnownType, 8> known_types_;
  std::size_t next_known_ = 0;
  std::array<KnownConstant, 8> known_constants_;
  std::size_t next_known_constant_ = 0;
  int alias_depth_ = 0;
  int nested_aliases_ = 0;
  std::size_t resources_pos_ = 0;  // of "{-#", 0: none
  bool saw_index_ = false;
  bool allow_large_splat_ = false;
  std::optional<Type> large_splat_;
  std::int64_t splat_budget_ = kMaxListedSplatBytes;  // for repeated values that are spelled out
  bool other_element_ = false;                        // the type has elements that StableHLO lacks
  bool allow_unregistered_ = false;
};

}  // namespace xylem::ir::text
