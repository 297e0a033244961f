#pragma once

#include <exception>
#include <string>
#include <string_view>

#include "xylem/base/location.h"

namespace xylem {

// The four parts of every message, in this order: the operation and argument at fault, what was
// expected, what was given (with shapes, dtypes and values), and what to do.
//
//   concatenate: operands must agree in every dimension but the concatenated one (axis 0); operand
//   0 is f32[2,3], operand 1 is f32[4,5], which differ at axis 1. Pad or slice operand 1 ...
struct ErrorParts {
  std::string_view operation;
  std::string_view expected;
  std::string_view given;
  std::string_view advice;
};

// Root of every exception that Xylem throws. The three direct subclasses separate the audiences.
class Error : public std::exception {
 public:
  explicit Error(std::string message, SourceLoc where = {});
  Error(const ErrorParts& parts, SourceLoc where = {});

  // The message, followed by " [at file:line]" where the place is known.
  const char* what() const noexcept override { return what_.c_str(); }
  const std::string& message() const { return message_; }
  const SourceLoc& where() const { return where_; }
  // Puts a line of context ("while reading x.safetensors") before the message.
  void add_context(std::string_view context);

 private:
  void rebuild();
  std::string message_;
  SourceLoc where_;
  std::string what_;
};

// The caller's mistake: bad shapes, dtypes, keys, text.
class UserError : public Error {
 public:
  using Error::Error;
};

// A shape, dtype or attribute that breaks an op's constraint; `label` is StableHLO's ("add_c1").
class ConstraintError : public UserError {
 public:
  ConstraintError(std::string label, const ErrorParts& parts, SourceLoc where = {});
  const std::string& label() const { return label_; }

 private:
  std::string label_;
};

// A traced value was used where a number is needed (a branch, a loop bound, host access).
class ConcretizationError : public UserError {
 public:
  using UserError::UserError;
};

// What the environment failed to do: files, disks, signals, memory.
class EnvironmentError : public Error {
 public:
  using Error::Error;
};

// A defect of Xylem itself.
class InternalError : public Error {
 public:
  using Error::Error;
};

[[noreturn]] void throw_user_error(const ErrorParts& parts, SourceLoc where = {});
[[noreturn]] void throw_internal_error(const char* condition, std::string_view detail,
                                       SourceLoc where);

// Checks an invariant of ours; never a check of input.
#define XYLEM_CHECK(condition, detail)                                                  \
  do {                                                                                  \
    if (!(condition)) [[unlikely]]                                                      \
      ::xylem::throw_internal_error(#condition, detail, ::xylem::SourceLoc::current()); \
  } while (false)

}  // namespace xylem
