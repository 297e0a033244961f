#include "xylem/data/state.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <stdexcept>

#include "xylem/base/error.h"
#include "xylem/base/json.h"

namespace xylem::data {
namespace {

constexpr std::size_t kMaxDepth = 200;

// What the parser reports, written down as a state.
class Builder : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit Builder(State& s) : writer_(s) {}
  std::string problem;

  bool null() override {
    writer_.null();
    return true;
  }
  bool boolean(bool v) override {
    writer_.boolean(v);
    return true;
  }
  bool number_integer(number_integer_t v) override {
    writer_.integer(v);
    return true;
  }
  bool number_unsigned(number_unsigned_t v) override {
    if (v > static_cast<std::uint64_t>(INT64_MAX)) return refuse("a number above 2^63 - 1");
    writer_.integer(static_cast<std::int64_t>(v));
    return true;
  }
  bool number_float(number_float_t, const string_t& text) override {
    return refuse("the number " + text);
  }
  bool string(string_t& v) override {
    writer_.string(v);
    return true;
  }
  bool binary(binary_t&) override { return refuse("binary data"); }
  bool start_object(std::size_t) override { return open(true); }
  bool start_array(std::size_t) override { return open(false); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(string_t& k) override {
    writer_.key(k);
    return true;
  }
  bool parse_error(std::size_t at, const std::string&,
                   const nlohmann::detail::exception&) override {
    return refuse(fmt::format("text that stops being JSON at byte {}", at));
  }

 private:
  bool refuse(std::string what) {
    if (problem.empty()) problem = std::move(what);
    return false;
  }
  bool open(bool object) {
    if (++depth_ > kMaxDepth) return refuse("more than 200 levels");
    object ? writer_.begin_object() : writer_.begin_array();
    return true;
  }
  bool close() {
    --depth_;
    writer_.end();
    return true;
  }

  StateWriter writer_;
  std::size_t depth_ = 0;
};

}  // namespace

State State::parse(std::string_view json) {
  State s;
  Builder b(s);
  if (!nlohmann::json::sax_parse(json, &b))
    throw_user_error({"iterator state", "JSON of objects, arrays and 64-bit integers",
                      fmt::format("{} in {:.200}", b.problem, json),
                      "Give the text that get_state returned"});
  return s;
}

std::string State::to_json(int indent) const {
  JsonWriter w(indent);
  std::vector<std::pair<std::uint32_t, bool>> open;  // end, is an object
  for (std::uint32_t i = 0; i < tokens_.size(); ++i) {
    const auto close = [&] {
      while (!open.empty() && open.back().first == i) {
        open.back().second ? w.end_object() : w.end_array();
        open.pop_back();
      }
    };
    close();
    const Token& t = tokens_[i];
    if (!open.empty() && open.back().second) w.key(key_of(t));
    switch (t.kind) {
      case Kind::kObject: w.begin_object(); break;
      case Kind::kArray: w.begin_array(); break;
      case Kind::kInteger: w.value(t.value); break;
      case Kind::kBool: w.value(t.value != 0); break;
      case Kind::kNull: w.null(); break;
      case Kind::kString:
        w.value(std::string_view(text_).substr(static_cast<std::size_t>(t.value), t.text_size));
        break;
    }
    if (t.kind == Kind::kObject || t.kind == Kind::kArray)
      open.emplace_back(t.end, t.kind == Kind::kObject);
  }
  while (!open.empty()) {
    open.back().second ? w.end_object() : w.end_array();
    open.pop_back();
  }
  return tokens_.empty() ? "null" : w.take();
}

StateView State::view() const {
  static const State null = parse("null");
  return {empty() ? &null : this, 0};
}

// ---- StateWriter

void StateWriter::end() {
  XYLEM_CHECK(!open_.empty(), "an end too many");
  s_.tokens_[open_.back()].end = static_cast<std::uint32_t>(s_.tokens_.size());
  open_.pop_back();
}

void StateWriter::string(std::string_view v) {
  add(State::Kind::kString, static_cast<std::int64_t>(s_.text_.size()));
  s_.tokens_.back().text_size = static_cast<std::uint32_t>(v.size());
  s_.text_ += v;
}

void StateWriter::copy(const State& from, std::uint32_t first, std::uint32_t last) {
  XYLEM_CHECK(&from != &s_, "a state copied into itself");
  const auto text = static_cast<std::uint32_t>(s_.text_.size());
  const auto base = static_cast<std::uint32_t>(s_.tokens_.size());
  s_.text_ += from.text_;
  for (std::uint32_t i = first; i < last; ++i) {
    State::Token t = from.tokens_[i];
    t.key += text;
    t.end = t.end - first + base;
    if (t.kind == State::Kind::kString) t.value += text;
    s_.tokens_.push_back(t);
  }
  s_.tokens_[base].key = key_;
  s_.tokens_[base].key_size = key_size_;
  key_size_ = 0;
}

void StateWriter::copy(const State& other) {
  if (other.empty())
    null();
  else
    copy(other, 0, static_cast<std::uint32_t>(other.tokens_.size()));
}

void StateWriter::copy(const StateView& other) { copy(*other.state_, other.at_, other.next()); }

// ---- StateView

const State::Token& StateView::token() const {
  XYLEM_CHECK(state_ != nullptr, "a state view of nothing");
  return state_->tokens_[at_];
}

std::uint32_t StateView::next() const {
  const State::Token& t = token();
  return t.kind == State::Kind::kObject || t.kind == State::Kind::kArray ? t.end : at_ + 1;
}

void StateView::fail(std::string_view expected) const {
  const std::string_view k = token().key_size > 0 ? key() : "(root)";
  throw_user_error({fmt::format("iterator state: {}", k), expected,
                    fmt::format("{:.200}", extract().to_json()),
                    "Restore a state that the same pipeline gave"});
}

bool StateView::is_object() const { return token().kind == State::Kind::kObject; }
bool StateView::is_array() const { return token().kind == State::Kind::kArray; }
bool StateView::is_null() const { return token().kind == State::Kind::kNull; }
bool StateView::is_integer() const {
  return token().kind == State::Kind::kInteger || token().kind == State::Kind::kBool;
}

StateView StateView::find(std::string_view k) const {
  if (!is_object()) fail(fmt::format("an object with the key `{}`", k));
  for (StateView v(state_, at_ + 1); v.at_ < token().end; v.at_ = v.next())
    if (v.key() == k) return v;
  return {nullptr, 0};
}

StateView StateView::at(std::string_view k) const {
  const StateView v = find(k);
  if (!v.valid()) fail(fmt::format("an object with the key `{}`", k));
  return v;
}

std::int64_t StateView::integer() const {
  if (!is_integer()) fail("an integer");
  return token().value;
}

bool StateView::boolean() const {
  if (!is_integer()) fail("true or false");
  return token().value != 0;
}

std::string_view StateView::string() const {
  if (token().kind != State::Kind::kString) fail("a text");
  return std::string_view(state_->text_)
      .substr(static_cast<std::size_t>(token().value), token().text_size);
}

std::vector<StateView> StateView::items() const {
  if (!is_array() && !is_object()) fail("an array or object");
  std::vector<StateView> out;
  for (StateView v(state_, at_ + 1); v.at_ < token().end; v.at_ = v.next()) out.push_back(v);
  return out;
}

std::string_view StateView::key() const { return state_->key_of(token()); }

void StateView::extract(State& to) const {
  State copy;
  State& target = &to == state_ ? copy : to;
  StateWriter(target).copy(*this);
  if (!target.tokens_.empty()) target.tokens_[0].key_size = 0;
  if (&target == &copy) to = std::move(copy);
}

}  // namespace xylem::data
