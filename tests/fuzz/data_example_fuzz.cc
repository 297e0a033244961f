#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "tests/fuzz/seeds.h"
#include "xylem/base/error.h"
#include "xylem/data/formats/transform.h"

// tf.train.Example and SequenceExample end in fields or in a UserError; fields that were read are
// written and read again with equal values. JSON of fields is read back, too.

namespace {
using xylem::data::Fields;
using xylem::data::Value;

Fields some_fields() {
  using xylem::data::Bytes;
  using xylem::data::List;
  Fields f;
  f.emplace_back("i", List{Value(std::int64_t{1}), Value(std::int64_t{-300})});
  f.emplace_back("f", List{Value(0.5), Value(-2.0)});
  f.emplace_back("b", List{Value(Bytes{"hi"})});
  return f;
}
}  // namespace

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  Fields steps, sequence;
  steps.emplace_back("s", xylem::data::List{Value(xylem::data::List{Value(std::int64_t{1})})});
  sequence.emplace_back("context", Value(some_fields()));
  sequence.emplace_back("feature_lists", Value(steps));
  xylem::fuzz::fill_corpus(
      *argc, *argv,
      {xylem::data::encode_example(some_fields()), xylem::data::encode_sequence_example(sequence),
       xylem::data::to_json(Value(some_fields()))});
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace xylem::data;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  try {
    const std::string once = encode_example(decode_example(bytes));
    if (encode_example(decode_example(once)) != once) __builtin_trap();
  } catch (const xylem::UserError&) {
  }
  try {
    const std::string once = encode_sequence_example(decode_sequence_example(bytes));
    if (encode_sequence_example(decode_sequence_example(once)) != once) __builtin_trap();
  } catch (const xylem::UserError&) {
  }
  try {
    const std::string once = to_json(parse_json(bytes, "fuzz"));
    if (to_json(parse_json(once, "again")) != once) __builtin_trap();
  } catch (const xylem::UserError&) {
  }
  return 0;
}
