#include <fmt/format.h>

#include "xylem/base/error.h"
#include "xylem/models/tokenizers/internal/parts.h"

namespace xylem::models::internal {

void JsonPlace::refuse(const std::string& expected, const std::string& advice) const {
  throw_user_error(
      {path, expected,
       fmt::format("{:.120}", value.dump(-1, ' ', false, Json::error_handler_t::replace)), advice});
}

JsonPlace JsonPlace::at(const std::string& key) const {
  if (!value.is_object() || !value.contains(key))
    refuse(fmt::format("an object with the member \"{}\"", key), "Save the tokenizer again");
  return {value[key], path + "." + key};
}

JsonPlace JsonPlace::at(std::size_t i) const {
  if (!value.is_array() || i >= value.size()) refuse("a longer list", "Save the tokenizer again");
  return {value[i], fmt::format("{}[{}]", path, i)};
}

bool JsonPlace::has(const std::string& key) const {
  return value.is_object() && value.contains(key) && !value[key].is_null();
}

bool JsonPlace::boolean(const std::string& key, bool otherwise) const {
  if (!has(key)) return otherwise;
  const JsonPlace member = at(key);
  if (!member.value.is_boolean()) member.refuse("true or false", "Correct the member");
  return member.value.get<bool>();
}

std::string JsonPlace::text(const std::string& key) const {
  const JsonPlace member = at(key);
  if (!member.value.is_string()) member.refuse("a text", "Correct the member");
  return member.value.get<std::string>();
}

std::string JsonPlace::text_or(const std::string& key, const std::string& otherwise) const {
  return has(key) ? text(key) : otherwise;
}

std::uint32_t JsonPlace::number(const std::string& key) const {
  const JsonPlace member = at(key);
  if (!member.value.is_number_unsigned() || member.value.get<std::uint64_t>() > 0x7FFFFFFE)
    member.refuse("an integer from 0 to 2147483646", "Correct the member");
  return member.value.get<std::uint32_t>();
}

std::size_t JsonPlace::size(const std::string& key) const {
  const JsonPlace member = at(key);
  if (!member.value.is_array()) member.refuse("a list", "Correct the member");
  return member.value.size();
}

}  // namespace xylem::models::internal
