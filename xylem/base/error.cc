#include "xylem/base/error.h"

#include <fmt/format.h>

#include <utility>

namespace xylem {
namespace {

std::string join(const ErrorParts& p) {
  std::string s = fmt::format("{}: {}", p.operation, p.expected);
  if (!p.given.empty()) s += fmt::format("; {}", p.given);
  if (!p.advice.empty()) s += fmt::format(". {}", p.advice);
  if (!s.empty() && s.back() != '.' && s.back() != '?' && s.back() != '!') s += '.';
  return s;
}

}  // namespace

std::string SourceLoc::to_string() const {
  if (!known()) return "unknown location";
  return fmt::format("{}:{}", file, line);
}

Error::Error(std::string message, SourceLoc where) : message_(std::move(message)), where_(where) {
  rebuild();
}

Error::Error(const ErrorParts& parts, SourceLoc where) : Error(join(parts), where) {}

void Error::add_context(std::string_view context) {
  message_ = fmt::format("{}: {}", context, message_);
  rebuild();
}

void Error::rebuild() {
  what_ = where_.known() ? fmt::format("{} [at {}]", message_, where_.to_string()) : message_;
}

ConstraintError::ConstraintError(std::string label, const ErrorParts& parts, SourceLoc where)
    : UserError(fmt::format("{} [{}]", join(parts), label), where), label_(std::move(label)) {}

void throw_user_error(const ErrorParts& parts, SourceLoc where) { throw UserError(parts, where); }

void throw_internal_error(const char* condition, std::string_view detail, SourceLoc where) {
  throw InternalError(
      ErrorParts{"internal check", fmt::format("expected that {}", condition), detail,
                 "This is a defect of Xylem; please report it with the program that shows it"},
      where);
}

}  // namespace xylem
