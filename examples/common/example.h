#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "xylem/base/error.h"

// What every example has around it: options with defaults, --help, and errors as messages.

namespace example {

struct Option {
  std::string name, value, meaning;  // `value` is the default until the command line sets it
};

// The options of a run, looked up by name.
class Options {
 public:
  explicit Options(std::vector<Option> options) : options_(std::move(options)) {}

  const std::string& text(const std::string& name) const {
    for (const Option& o : options_)
      if (o.name == name) return o.value;
    throw xylem::UserError("the example has no option --" + name);
  }
  // UserError unless the value is a number in [least, most].
  double number(const std::string& name, double least = 0, double most = 1e9) const {
    const std::string& value = text(name);
    char* end = nullptr;
    const double v = std::strtod(value.c_str(), &end);
    if (value.empty() || *end != 0 || !(v >= least && v <= most))
      throw xylem::UserError({"--" + name,
                              "a number from " + short_form(least) + " to " + short_form(most),
                              "'" + value + "'", "See --help for the default"});
    return v;
  }
  std::int64_t integer(const std::string& name, double least = 1, double most = 1e9) const {
    const double v = number(name, least, most);
    if (v != static_cast<double>(static_cast<std::int64_t>(v)))
      throw xylem::UserError(
          {"--" + name, "a whole number", "'" + text(name) + "'", "See --help for the default"});
    return static_cast<std::int64_t>(v);
  }

  bool set(const std::string& name, const std::string& value) {
    for (Option& o : options_)
      if (o.name == name) return o.value = value, true;
    return false;
  }
  void print_help(const char* program, const char* about) const {
    std::printf("%s [--OPTION VALUE]...\n\n%s\n\n", program, about);
    for (const Option& o : options_)
      std::printf("  --%-12s %s (%s)\n", o.name.c_str(), o.meaning.c_str(), o.value.c_str());
  }

 private:
  static std::string short_form(double v) {
    char out[32];
    std::snprintf(out, sizeof out, "%g", v);
    return out;
  }
  std::vector<Option> options_;
};

// Whether all output reached its place.
inline bool written() { return std::fflush(stdout) == 0 && !std::ferror(stdout); }

// Runs body with the options of the command line (`--name value` or `--name=value`). The exit
// status: 0, 1 after an error, whose message goes to standard error, 2 for a wrong command line.
inline int run(int argc, char** argv, const char* about, std::vector<Option> defaults,
               const std::function<void(const Options&)>& body) {
  Options options(std::move(defaults));
  for (int i = 1; i < argc; ++i) {
    const std::string arg = argv[i];
    if (arg == "--help" || arg == "-h") {
      options.print_help(argv[0], about);
      return written() ? 0 : 1;
    }
    const std::size_t equals = arg.find('=');
    const bool has_value = equals != std::string::npos || i + 1 < argc;
    const std::string name = arg.rfind("--", 0) == 0 ? arg.substr(2, equals - 2) : "";
    const std::string value = equals != std::string::npos ? arg.substr(equals + 1)
                              : has_value                 ? argv[++i]
                                                          : "";
    const bool known = options.set(name, value);
    if (!known || !has_value) {
      std::fprintf(stderr, "%s: %s '%s'; see --help\n", argv[0],
                   known ? "no value after" : "unknown option", arg.c_str());
      return 2;
    }
  }
  try {
    body(options);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s: %s\n", argv[0], e.what());
    return 1;
  }
  return written() ? 0 : 1;
}

}  // namespace example
