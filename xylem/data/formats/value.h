#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "xylem/base/host_array.h"

namespace xylem::data {

struct Value;

// Binary data, as opposed to text.
struct Bytes {
  std::string data;
  bool operator==(const Bytes&) const = default;
};
using List = std::vector<Value>;
// Names and values in file order. Names may repeat only where a format lets them.
using Fields = std::vector<std::pair<std::string, Value>>;

// A value of a structured record: nothing, a number, text, bytes, an array, a list, or named
// values.
struct Value {
  using Variant = std::variant<std::monostate, bool, std::int64_t, std::uint64_t, double,
                               std::string, Bytes, HostArray, List, Fields>;
  Variant v;

  Value() = default;
  template <class T>
  requires std::is_constructible_v<Variant, T&&> &&
      (!std::is_same_v<std::remove_cvref_t<T>, Value>)Value(T&& value)
      : v(std::forward<T>(value)) {}  // NOLINT: conversion is meant

  bool is_null() const { return std::holds_alternative<std::monostate>(v); }
  template <class T>
  const T* get_if() const {
    return std::get_if<T>(&v);
  }
};

// Values are equal when kind and contents are; arrays bit by bit.
bool operator==(const Value& a, const Value& b);

// The value named `name`, or null.
const Value* find_field(const Fields& fields, std::string_view name);

// Appends JSON on one line: bytes as {"hex": "…"}, arrays as nested lists, text that is not UTF-8
// as bytes. Floats carry the digits of their double, so reading them back gives the same number;
// what JSON has no number for is the text "NaN", "Infinity" or "-Infinity".
void append_json(std::string& out, const Value& value);
std::string to_json(const Value& value);
void append_hex(std::string& out, std::string_view data);

// Parses JSON text: integers that fit become std::int64_t or std::uint64_t, other numbers double.
// UserError, opened by `name`, for text that is not JSON, nests deeper than 500 levels or is not
// UTF-8.
Value parse_json(std::string_view text, std::string_view name);

bool is_utf8(std::string_view text);

// Levels of lists and fields that a value may have.
inline constexpr int kMaxDepth = 500;

}  // namespace xylem::data
