#pragma once
// Flags as rows of a table: most are a name, a placeholder, a sentence and a place for the value.

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tutti/cli/flags/flags.h"

namespace tutti::cli {

/// The numbers that a flag takes; inclusive.
struct FlagLimits {
  std::optional<double> least = {}, greatest = {};
};

inline Flag flag(std::string names, std::string value, std::string help, Binding bind,
                 FlagLimits limits = {}, std::vector<std::string> only_for = {}) {
  return {.names = std::move(names),
          .value = std::move(value),
          .help = std::move(help),
          .bind = std::move(bind),
          .least = limits.least,
          .greatest = limits.greatest,
          .only_for = std::move(only_for)};
}
/// A flag without a value.
inline Flag switch_flag(std::string names, std::string help, Binding bind) {
  return flag(std::move(names), {}, std::move(help), std::move(bind));
}

/// A flag whose value names something that completion knows.
inline Flag named_flag(Names kind, std::string names, std::string value, std::string help,
                       Binding bind) {
  Flag row = flag(std::move(names), std::move(value), std::move(help), std::move(bind));
  row.kind = kind;
  return row;
}
/// A flag whose value is one of some words; `variable`: of the environment, read without the flag.
inline Flag choice_flag(std::string names, std::string help, Binding bind,
                        std::vector<std::string> choices, std::string variable = {}) {
  Flag row = switch_flag(std::move(names), std::move(help), std::move(bind));
  row.choices = std::move(choices);
  row.variable = std::move(variable);
  return row;
}
/// The same flag, which contradicts others.
inline Flag excluding(Flag row, std::vector<std::string> others) {
  row.excludes = std::move(others);
  return row;
}
/// A flag or an argument without which the verb refuses, with this message.
inline Flag required_flag(Names kind, std::string names, std::string value, std::string help,
                          Binding bind, std::string message) {
  Flag row = named_flag(kind, std::move(names), std::move(value), std::move(help), std::move(bind));
  row.required = std::move(message);
  return row;
}

}  // namespace tutti::cli
