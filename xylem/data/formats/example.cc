#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "xylem/base/error.h"
#include "xylem/data/formats/internal/protobuf.h"
#include "xylem/data/formats/transform.h"

namespace xylem::data {
namespace {

using internal::ProtoField;
using internal::ProtoReader;

[[noreturn]] void malformed(std::string_view what, std::string_view reason) {
  throw_user_error({fmt::format("decode tf.train.{}", what), "a serialised message",
                    std::string(reason), "The records hold something else, or are damaged"});
}

// A later list of the same kind adds to the earlier, as protobuf merges messages; one of another
// kind replaces it.
struct Feature {
  std::uint32_t kind = 0;
  List values;
};

void read_values(std::string_view what, std::uint32_t kind, std::string_view list, List& out) {
  ProtoReader r(list);
  ProtoField f;
  while (r.next(f)) {
    if (f.number != 1) continue;
    if (kind == 1) {
      if (f.type != 2) malformed(what, "a bytes list holds numbers");
      out.emplace_back(Bytes{std::string(f.bytes)});
    } else if (kind == 2) {
      const auto add = [&](const char* p) {
        float v;
        std::memcpy(&v, p, 4);
        out.emplace_back(static_cast<double>(v));
      };
      if (f.type == 5) {
        const auto bits = static_cast<std::uint32_t>(f.value);
        add(reinterpret_cast<const char*>(&bits));
      } else if (f.type == 2 && f.bytes.size() % 4 == 0) {
        for (std::size_t i = 0; i < f.bytes.size(); i += 4) add(f.bytes.data() + i);
      } else {
        malformed(what, "a float list is malformed");
      }
    } else {
      if (f.type == 0) {
        out.emplace_back(static_cast<std::int64_t>(f.value));
      } else if (f.type == 2) {
        std::string_view packed = f.bytes;
        std::uint64_t v = 0;
        while (!packed.empty()) {
          if (!internal::take_varint(packed, v)) malformed(what, "an int64 list is malformed");
          out.emplace_back(static_cast<std::int64_t>(v));
        }
      } else {
        malformed(what, "an int64 list is malformed");
      }
    }
  }
  if (r.failed()) malformed(what, "a list is malformed");
}

List read_feature(std::string_view what, std::string_view bytes) {
  Feature feature;
  ProtoReader r(bytes);
  ProtoField f;
  while (r.next(f)) {
    if (f.number < 1 || f.number > 3) continue;
    if (f.type != 2) malformed(what, "a feature is malformed");
    if (feature.kind != f.number) feature = {f.number, {}};
    read_values(what, f.number, f.bytes, feature.values);
  }
  if (r.failed()) malformed(what, "a feature is malformed");
  return std::move(feature.values);
}

// Entries of a map<string, message>; the last of equal keys stands, at the place of the first.
template <class Read>
void read_map(std::string_view what, std::string_view bytes, Fields& out, Read read) {
  ProtoReader r(bytes);
  ProtoField f;
  while (r.next(f)) {
    if (f.number != 1) continue;
    if (f.type != 2) malformed(what, "a map entry is malformed");
    std::string key;
    std::string_view value;
    ProtoReader entry(f.bytes);
    ProtoField g;
    while (entry.next(g)) {
      if (g.number == 1 && g.type == 2) key = g.bytes;
      if (g.number == 2 && g.type == 2) value = g.bytes;
    }
    if (entry.failed()) malformed(what, "a map entry is malformed");
    Value v(read(value));
    const auto old =
        std::find_if(out.begin(), out.end(), [&](const auto& e) { return e.first == key; });
    if (old != out.end())
      old->second = std::move(v);
    else
      out.emplace_back(std::move(key), std::move(v));
  }
  if (r.failed()) malformed(what, "a map is malformed");
}

// ---- encoding

[[noreturn]] void unfit(std::string_view name, const Value& v) {
  throw_user_error({fmt::format("encode feature \"{}\"", name),
                    "numbers of one kind, text, bytes, or lists of them", to_json(v).substr(0, 60),
                    "Leave the field out, or encode as json"});
}

void collect(std::string_view name, const Value& v, Feature& out) {
  const auto need = [&](std::uint32_t kind) {
    // Integers among floats are floats.
    if (out.kind == 2 && kind == 3) return;
    if (out.kind == 3 && kind == 2) {
      for (Value& i : out.values) i = Value(static_cast<double>(*i.get_if<std::int64_t>()));
      out.kind = 2;
    }
    if (out.kind != 0 && out.kind != kind) unfit(name, v);
    out.kind = kind;
  };
  const auto integer = [&](std::int64_t i) {
    need(3);
    if (out.kind == 2)
      out.values.emplace_back(static_cast<double>(i));
    else
      out.values.emplace_back(i);
  };
  if (v.is_null()) return;
  if (const auto* b = v.get_if<bool>()) {
    integer(*b);
  } else if (const auto* i = v.get_if<std::int64_t>()) {
    integer(*i);
  } else if (const auto* u = v.get_if<std::uint64_t>()) {
    integer(static_cast<std::int64_t>(*u));
  } else if (const auto* d = v.get_if<double>()) {
    need(2);
    out.values.emplace_back(*d);
  } else if (const auto* s = v.get_if<std::string>()) {
    need(1);
    out.values.emplace_back(Bytes{*s});
  } else if (const auto* bytes = v.get_if<Bytes>()) {
    need(1);
    out.values.emplace_back(*bytes);
  } else if (const auto* list = v.get_if<List>()) {
    for (const Value& item : *list) collect(name, item, out);
  } else if (const auto* a = v.get_if<HostArray>()) {
    if (is_complex(a->dtype())) unfit(name, v);
    if (is_float(a->dtype())) {
      const HostArray wide = a->to_contiguous().astype(DType::kF32);
      need(2);
      for (const float x : wide.span<float>()) out.values.emplace_back(static_cast<double>(x));
    } else {
      const HostArray wide = a->to_contiguous().astype(DType::kI64);
      for (const std::int64_t x : wide.span<std::int64_t>()) integer(x);
    }
  } else {
    unfit(name, v);
  }
}

std::string write_feature(std::string_view name, const Value& v) {
  Feature f;
  collect(name, v, f);
  if (f.kind == 0) return {};
  ByteWriter list, out;
  if (f.kind == 1) {
    for (const Value& x : f.values) internal::put_proto_bytes(list, 1, x.get_if<Bytes>()->data);
  } else if (!f.values.empty()) {
    ByteWriter packed;
    for (const Value& x : f.values) {
      if (f.kind == 2)
        packed.write(static_cast<float>(*x.get_if<double>()));
      else
        packed.write_varint(static_cast<std::uint64_t>(*x.get_if<std::int64_t>()));
    }
    internal::put_proto_bytes(list, 1, packed.str());
  }
  internal::put_proto_bytes(out, f.kind, list.str());
  return out.take();
}

template <class Write>
std::string write_map(const Fields& fields, Write write) {
  std::vector<const std::pair<std::string, Value>*> sorted;
  for (const auto& f : fields) sorted.push_back(&f);
  std::sort(sorted.begin(), sorted.end(), [](auto* a, auto* b) { return a->first < b->first; });
  ByteWriter map;
  for (const auto* f : sorted) {
    ByteWriter entry;
    internal::put_proto_bytes(entry, 1, f->first);
    internal::put_proto_bytes(entry, 2, write(f->first, f->second));
    internal::put_proto_bytes(map, 1, entry.str());
  }
  return map.take();
}

const Fields& fields_of(const Fields& fields, std::string_view name) {
  static const Fields kNone;
  const Value* v = find_field(fields, name);
  if (v == nullptr || v->is_null()) return kNone;
  const auto* f = v->get_if<Fields>();
  if (f == nullptr)
    throw_user_error({fmt::format("encode tf.train.SequenceExample: \"{}\"", name),
                      "an object of named features", to_json(*v).substr(0, 60), "Correct it"});
  return *f;
}

}  // namespace

Fields decode_example(std::string_view bytes) {
  Fields out;
  ProtoReader r(bytes);
  ProtoField f;
  while (r.next(f)) {
    if (f.number != 1) continue;
    if (f.type != 2) malformed("Example", "its features are malformed");
    read_map("Example", f.bytes, out,
             [](std::string_view v) { return read_feature("Example", v); });
  }
  if (r.failed()) malformed("Example", "the message is malformed");
  return out;
}

Fields decode_sequence_example(std::string_view bytes) {
  constexpr std::string_view what = "SequenceExample";
  Fields context, lists;
  ProtoReader r(bytes);
  ProtoField f;
  while (r.next(f)) {
    if (f.number != 1 && f.number != 2) continue;
    if (f.type != 2) malformed(what, "its features are malformed");
    if (f.number == 1) {
      read_map(what, f.bytes, context, [&](std::string_view v) { return read_feature(what, v); });
    } else {
      read_map(what, f.bytes, lists, [&](std::string_view v) {
        List steps;
        ProtoReader list(v);
        ProtoField g;
        while (list.next(g)) {
          if (g.number != 1) continue;
          if (g.type != 2) malformed(what, "a feature list is malformed");
          steps.emplace_back(read_feature(what, g.bytes));
        }
        if (list.failed()) malformed(what, "a feature list is malformed");
        return steps;
      });
    }
  }
  if (r.failed()) malformed(what, "the message is malformed");
  Fields out;
  out.emplace_back("context", std::move(context));
  out.emplace_back("feature_lists", std::move(lists));
  return out;
}

std::string encode_example(const Fields& fields) {
  ByteWriter out;
  internal::put_proto_bytes(out, 1, write_map(fields, write_feature));
  return out.take();
}

std::string encode_sequence_example(const Fields& fields) {
  ByteWriter out;
  const Fields& context = fields_of(fields, "context");
  const Fields& lists = fields_of(fields, "feature_lists");
  if (!context.empty()) internal::put_proto_bytes(out, 1, write_map(context, write_feature));
  if (!lists.empty())
    internal::put_proto_bytes(out, 2, write_map(lists, [](std::string_view name, const Value& v) {
                                const auto* steps = v.get_if<List>();
                                if (steps == nullptr) unfit(name, v);
                                ByteWriter list;
                                for (const Value& step : *steps)
                                  internal::put_proto_bytes(list, 1, write_feature(name, step));
                                return list.take();
                              }));
  return out.take();
}

Fields decode_bytes(std::string_view as, std::string_view bytes) {
  if (as == "example") return decode_example(bytes);
  if (as == "sequence_example") return decode_sequence_example(bytes);
  Fields out;
  if (as == "json") {
    Value v = parse_json(bytes, "decode json");
    if (auto* fields = std::get_if<Fields>(&v.v)) return std::move(*fields);
    out.emplace_back("value", std::move(v));
  } else if (as == "text") {
    out.emplace_back("text", std::string(bytes));
  } else {
    throw_user_error({"decode", "example, sequence_example, json or text", std::string(as),
                      "Choose one of them"});
  }
  return out;
}

std::string encode_fields(std::string_view as, const Fields& fields) {
  if (as == "json") return to_json(Value(fields));
  if (as == "example") return encode_example(fields);
  if (as == "sequence_example") return encode_sequence_example(fields);
  if (as.starts_with("field:")) {
    const std::string_view name = as.substr(6);
    const Value* v = find_field(fields, name);
    if (v != nullptr) {
      if (const auto* s = v->get_if<std::string>()) return *s;
      if (const auto* b = v->get_if<Bytes>()) return b->data;
    }
    throw_user_error({"encode", fmt::format("a field \"{}\" of text or bytes", name),
                      v == nullptr ? "there is none" : to_json(*v).substr(0, 60),
                      "Name another field, or encode as json"});
  }
  throw_user_error({"encode", "json, example, sequence_example or field:NAME", std::string(as),
                    "Choose one of them"});
}

}  // namespace xylem::data
