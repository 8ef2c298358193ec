#include "tutti/cli/flags/flags.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <sstream>
#include <type_traits>

#include "tutti/base/error.h"
#include "tutti/base/spelling.h"
#include "tutti/cli/flags/suggest.h"
#include "tutti/config/config.h"
#include "tutti/data/open/catalog.h"
#include "tutti/models/registry.h"

namespace tutti::cli {
namespace {

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> words;
  std::istringstream stream(text);
  for (std::string word; std::getline(stream, word, ',');) words.push_back(word);
  return words;
}

/// Returns "a whole number from 1 to 4", "a number of at least 0".
template <typename T>
std::string allowed_numbers(const Flag& flag) {
  std::string text = std::is_integral_v<T> ? "a whole number" : "a number";
  if (flag.least && flag.greatest)
    return text + fmt::format(" from {} to {}", *flag.least, *flag.greatest);
  if (flag.least) return text + fmt::format(" of at least {}", *flag.least);
  return text;
}

template <typename T>
T number(const Flag& flag, const std::string& text, const std::string& who) {
  T value{};
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  const auto real = static_cast<double>(value);
  if (error != std::errc{} || stop != end || !(real >= flag.least.value_or(real)) ||
      !(real <= flag.greatest.value_or(real)))
    throw ConfigError(fmt::format("{} must be {}, is '{}'", who, allowed_numbers<T>(flag), text));
  return value;
}

struct Storing {
  const Flag& flag;
  const std::string& text;
  const std::string& who;

  void operator()(std::monostate) const {}
  void operator()(bool* variable) const { *variable = true; }
  void operator()(const Clears& clears) const { *clears.variable = false; }
  void operator()(const Counts& counts) const { ++*counts.variable; }
  void operator()(std::string* variable) const { *variable = text; }
  void operator()(std::vector<std::string>* variable) const { variable->push_back(text); }
  void operator()(const std::function<void(const std::string&)>& function) const { function(text); }
  template <typename T>
  void operator()(T* variable) const {
    *variable = number<T>(flag, text, who);
  }
  template <typename T>
  void operator()(std::vector<T>* variable) const {
    variable->clear();
    for (const std::string& word : split(text)) variable->push_back(number<T>(flag, word, who));
    if (variable->empty()) throw ConfigError(who + " needs at least one number");
  }
};

struct Showing {
  std::string operator()(std::string* variable) const { return *variable; }
  std::string operator()(int* variable) const { return shown(*variable); }
  std::string operator()(int64_t* variable) const { return shown(*variable); }
  std::string operator()(uint64_t* variable) const { return shown(*variable); }
  std::string operator()(double* variable) const { return shown(*variable); }
  std::string operator()(std::vector<int>* list) const {
    return fmt::format("{}", fmt::join(*list, ","));
  }
  std::string operator()(std::vector<int64_t>* list) const {
    return fmt::format("{}", fmt::join(*list, ","));
  }
  template <typename T>
  std::string operator()(const T&) const {
    return "";
  }
  template <typename T>
  static std::string shown(T value) {
    return value == T{} ? "" : fmt::format("{}", value);
  }
};

}  // namespace

std::vector<std::string> names_of(const Flag& flag) { return split(flag.names); }

std::string long_name(const Flag& flag) { return names_of(flag).back(); }

bool takes_value(const Flag& flag) {
  return !std::holds_alternative<bool*>(flag.bind) && !std::holds_alternative<Clears>(flag.bind) &&
         !std::holds_alternative<Counts>(flag.bind);
}

bool repeatable(const Flag& flag) {
  return std::holds_alternative<Counts>(flag.bind) ||
         std::holds_alternative<std::vector<std::string>*>(flag.bind);
}

std::vector<Flag> only_for(const std::vector<std::string>& values, std::vector<Flag> flags) {
  for (Flag& flag : flags) flag.only_for = values;
  return flags;
}

std::vector<Flag> joined(std::vector<Flag> first, const std::vector<Flag>& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

const Flag* find_flag(const Verb& verb, std::string_view name) {
  for (const Flag& flag : verb.flags)
    for (const std::string& known : names_of(flag))
      if (known == name) return &flag;
  return nullptr;
}

std::string default_text(const Flag& flag) { return std::visit(Showing{}, flag.bind); }

std::vector<std::string> known_values(const Flag& flag) {
  std::vector<std::string> names = flag.choices;
  if (flag.kind == Names::model)
    for (const models::ModelInfo& model : models::models()) names.push_back(model.name);
  if (flag.kind == Names::dataset)
    for (const data::KnownDataset& set : data::known_datasets()) names.push_back(set.name);
  if (flag.kind == Names::generated)
    for (const std::string& set : data::generated_sets()) names.push_back(set);
  if (flag.kind == Names::key || flag.kind == Names::setting)
    for (const config::ConfigKey& key : config::config_keys()) names.push_back(key.name);
  return names;
}

void store(const Flag& flag, const std::string& text, const std::string& who) {
  if (!flag.choices.empty() && std::ranges::find(flag.choices, text) == flag.choices.end())
    throw ConfigError(who + " " + must_be_one_of(flag.choices, text) +
                      about_word(flag.choices, text));
  std::visit(Storing{flag, text, who}, flag.bind);
}

}  // namespace tutti::cli
