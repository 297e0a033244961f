#pragma once

#include <string>
#include <string_view>

#include "xylem/data/formats/value.h"

namespace xylem::data {

// Fields that the bytes of a record hold. `as`: "example" and "sequence_example" (tf.train's),
// "json" (an object, or {"value": …}), "text" ({"text": …}). UserError if the bytes are not that.
Fields decode_bytes(std::string_view as, std::string_view bytes);

// The reverse. `as`: "json", "example", or "field:NAME", the bytes or text of one field.
std::string encode_fields(std::string_view as, const Fields& fields);

// tf.train.Example. Lists of int64, float and bytes become lists of integers, doubles and Bytes, in
// the order of the message's map entries; a repeated key counts once, with its last value. A
// feature without a kind is an empty list. tensorflow/core/example/example.proto.
Fields decode_example(std::string_view bytes);
// Numbers, text, bytes, arrays (row-major), and lists of them. Booleans and integers become int64
// lists, floats float lists, text and bytes bytes lists. Entries are sorted by name, as in
// deterministic serialisation.
std::string encode_example(const Fields& fields);
// tf.train.SequenceExample: {"context": {name: list}, "feature_lists": {name: list of lists}}.
Fields decode_sequence_example(std::string_view bytes);
std::string encode_sequence_example(const Fields& fields);

}  // namespace xylem::data
