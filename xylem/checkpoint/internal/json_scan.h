#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace xylem::checkpoint::internal {

// Walks JSON text without keeping it: depth, repeated keys, and the keys of the objects at a given
// place in order. (A callback of json::parse would do, but takes time quadratic in the members.)
class JsonScan final : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit JsonScan(std::size_t max_depth, std::string_view ordered_member = {})
      : max_depth_(max_depth), member_(ordered_member) {}

  // False if the text is no JSON or nested too deep.
  bool run(std::string_view text) { return nlohmann::json::sax_parse(text, this); }
  bool too_deep() const { return too_deep_; }
  const std::string& repeated() const { return repeated_; }  // a key that stands twice
  // Of the root's member that the constructor was given.
  const std::vector<std::string>& order() const { return order_; }

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool start_object(std::size_t) override { return push(true); }
  bool end_object() override { return pop(); }
  bool start_array(std::size_t) override { return push(false); }
  bool end_array() override { return pop(); }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override {
    return false;
  }
  bool key(string_t& k) override {
    if (!keys_.back().insert(k).second && repeated_.empty()) repeated_ = k;
    if (keys_.size() == 1) inside_ = k == member_;
    if (keys_.size() == 2 && inside_) order_.push_back(k);
    return true;
  }

 private:
  bool push(bool) {
    keys_.emplace_back();
    too_deep_ = keys_.size() > max_depth_;
    return !too_deep_;
  }
  bool pop() {
    keys_.pop_back();
    return true;
  }

  std::size_t max_depth_;
  std::string member_, repeated_;
  std::vector<std::unordered_set<std::string>> keys_;
  std::vector<std::string> order_;
  bool too_deep_ = false, inside_ = false;
};

}  // namespace xylem::checkpoint::internal
