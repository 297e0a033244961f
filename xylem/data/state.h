#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "xylem/base/small_vec.h"

namespace xylem::data {

class StateView;

// The state of an iterator: a JSON value of objects, arrays, integers, booleans, texts and nulls.
// It is kept flat, so that the states that travel with prefetched elements are written without an
// allocation per value. Value semantics; keys keep their order. Thread safety: as a container.
class State {
 public:
  State() = default;

  // UserError if the text is no JSON, holds a number that is no 64-bit integer, or is nested
  // deeper than 200 levels.
  static State parse(std::string_view json);
  // As Python's json.dumps writes it: `{"next_index": 3}`, or over lines with `indent` > 0.
  std::string to_json(int indent = 0) const;

  bool empty() const { return tokens_.empty(); }
  StateView view() const;
  friend bool operator==(const State& a, const State& b) { return a.to_json() == b.to_json(); }

 private:
  friend class StateWriter;
  friend class StateView;

  enum class Kind : std::uint8_t { kObject, kArray, kInteger, kBool, kString, kNull };
  struct Token {
    Kind kind;
    std::uint32_t key = 0, key_size = 0;  // in text_; of a member of an object
    std::uint32_t end = 0;                // containers: the token behind the last member
    std::uint32_t text_size = 0;          // strings: value is their place in text_
    std::int64_t value = 0;
  };
  std::string_view key_of(const Token& t) const {
    return std::string_view(text_).substr(t.key, t.key_size);
  }

  std::vector<Token> tokens_;
  std::string text_;
};

// Writes a state from front to back; what `state` held is dropped but its memory is used again.
// Misuse is an InternalError.
class StateWriter {
 public:
  explicit StateWriter(State& state) : s_(state) {
    s_.tokens_.clear();
    s_.text_.clear();
  }

  void begin_object() { begin(State::Kind::kObject); }
  void begin_array() { begin(State::Kind::kArray); }
  void end();
  void key(std::string_view k) {
    key_ = static_cast<std::uint32_t>(s_.text_.size());
    key_size_ = static_cast<std::uint32_t>(k.size());
    s_.text_ += k;
  }
  void integer(std::int64_t v) { add(State::Kind::kInteger, v); }
  void boolean(bool v) { add(State::Kind::kBool, v); }
  void null() { add(State::Kind::kNull, 0); }
  void string(std::string_view v);
  // A whole other state as the next value.
  void copy(const State& other);
  void copy(const StateView& other);

  void field(std::string_view k, std::int64_t v) {
    key(k);
    integer(v);
  }

 private:
  void begin(State::Kind kind) {
    open_.push_back(static_cast<std::uint32_t>(s_.tokens_.size()));
    add(kind, 0);
  }
  void add(State::Kind kind, std::int64_t value) {
    State::Token t;
    t.kind = kind;
    t.key = key_;
    t.key_size = key_size_;
    t.value = value;
    s_.tokens_.push_back(t);
    key_size_ = 0;
  }
  void copy(const State& from, std::uint32_t first, std::uint32_t last);

  State& s_;
  std::uint32_t key_ = 0, key_size_ = 0;
  SmallVec<std::uint32_t, 8> open_;
};

// A place in a state, for reading. Refers to the state. Every accessor throws UserError that names
// the key and what was found.
class StateView {
 public:
  bool is_object() const;
  bool is_array() const;
  bool is_null() const;
  bool is_integer() const;  // booleans count, as in Python

  // Member of an object; `find` gives an invalid view if it is absent.
  StateView at(std::string_view key) const;
  StateView find(std::string_view key) const;
  bool valid() const { return state_ != nullptr; }
  std::int64_t integer() const;
  bool boolean() const;
  std::string_view string() const;
  // Members of an array or object.
  std::vector<StateView> items() const;
  // Key of this member of an object.
  std::string_view key() const;

  std::int64_t integer(std::string_view k) const { return at(k).integer(); }
  // A copy of this value as a state of its own, in memory of `to` used again.
  void extract(State& to) const;
  State extract() const {
    State s;
    extract(s);
    return s;
  }

 private:
  friend class State;
  friend class StateWriter;
  StateView(const State* state, std::uint32_t at) : state_(state), at_(at) {}
  const State::Token& token() const;
  std::uint32_t next() const;
  [[noreturn]] void fail(std::string_view expected) const;

  const State* state_ = nullptr;
  std::uint32_t at_ = 0;
};

}  // namespace xylem::data
