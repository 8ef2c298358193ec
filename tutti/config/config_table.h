#pragma once
// Writes the rows of the configuration's table, which the sections (*_section.h) name. Private to
// config*.cpp.

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "tutti/base/error.h"
#include "tutti/config/config.h"
#include "tutti/data/open/catalog.h"
#include "tutti/models/block/layers.h"

namespace tutti::config {

template <class T>
constexpr ConfigType config_type_of() {
  if constexpr (std::is_same_v<T, bool>)
    return ConfigType::boolean;
  else if constexpr (std::is_same_v<T, int64_t>)
    return ConfigType::integer;
  else if constexpr (std::is_same_v<T, double>)
    return ConfigType::real;
  else if constexpr (std::is_same_v<T, std::string>)
    return ConfigType::text;
  else if constexpr (std::is_enum_v<T>)
    return ConfigType::choice;
  else if constexpr (std::is_same_v<T, std::vector<int64_t>>)
    return ConfigType::integers;
  else if constexpr (std::is_same_v<T, std::vector<double>>)
    return ConfigType::reals;
  else if constexpr (std::is_same_v<T, std::vector<models::LayerTable>>)
    return ConfigType::layers;
  else
    return ConfigType::texts;
}

/// Converts a value to T. An integer is accepted wherever a number is wanted; nothing else
/// converts.
template <class T>
T config_value_as(const ConfigValue& value) {
  if (const T* same = std::get_if<T>(&value)) return *same;
  if constexpr (std::is_same_v<T, double>) {
    if (const auto* integer = std::get_if<int64_t>(&value)) return static_cast<double>(*integer);
  } else if constexpr (std::is_same_v<T, std::vector<double>>) {
    if (const auto* integers = std::get_if<std::vector<int64_t>>(&value))
      return {integers->begin(), integers->end()};
  }
  if constexpr (!std::is_same_v<T, std::vector<int64_t>>)  // empty lists show no type
    if (const auto* integers = std::get_if<std::vector<int64_t>>(&value);
        integers && integers->empty())
      if constexpr (config_type_of<T>() >= ConfigType::integers) return {};
  throw ConfigError(
      fmt::format("must be {}, is {}", to_string(config_type_of<T>()), to_toml(value)));
}

/// Writes rows; each method refines the row that the last key() began.
class ConfigTableWriter {
 public:
  /// The keys of one section, as `S::keys` names them.
  template <class S>
  struct SectionKeys {
    ConfigTableWriter& table;
    S RunConfig::*section;
    size_t first = SIZE_MAX;  ///< row from which on keys without needs have this one
    KeyNeed need = {};

    /// Those of the keys that follow, and name no need, have no effect without this one. Once a
    /// section.
    void rest_only_with(std::string key, std::vector<std::string> words = {}) {
      CHECK(first == SIZE_MAX, "{} besides {}", key, need.key);
      first = table.rows.size();
      need = {std::move(key), std::move(words)};
    }
    template <class T>
    ConfigTableWriter& key(T S::*member, std::string_view name, std::string help) {
      return table.key(section, member, name, std::move(help));
    }
  };

  template <class S>
  void section(std::string name, S RunConfig::*section, std::string help) {
    groups.push_back({std::move(name), std::move(help)});
    SectionKeys<S> keys{*this, section};
    S::keys(keys);
    for (size_t row = keys.first; row < rows.size(); ++row)
      if (rows[row].only_with.empty()) rows[row].only_with = {keys.need};
  }

  template <class S, class T>
  ConfigTableWriter& key(S RunConfig::*section, T S::*member, std::string_view name,
                         std::string help) {
    ConfigKey row{.name = fmt::format("{}.{}", groups.back().name, name),
                  .type = config_type_of<T>(),
                  .help = std::move(help)};
    if constexpr (std::is_enum_v<T>) {
      for (std::string_view word : words(T{})) row.choices.emplace_back(word);
      row.get = [=](const RunConfig& c) -> ConfigValue {
        return std::string(to_string(c.*section.*member));
      };
      row.set = [=](RunConfig& c, const ConfigValue& value) {
        const auto list = words(T{});
        c.*section.*member = static_cast<T>(
            std::find(list.begin(), list.end(), config_value_as<std::string>(value)) -
            list.begin());
      };
    } else {
      row.get = [=](const RunConfig& c) -> ConfigValue { return c.*section.*member; };
      row.set = [=](RunConfig& c, const ConfigValue& value) {
        c.*section.*member = config_value_as<T>(value);
      };
    }
    rows.push_back(std::move(row));
    return *this;
  }

  ConfigTableWriter& at_least(double limit) { return rows.back().least = limit, *this; }
  ConfigTableWriter& between(double least, double greatest) {
    return rows.back().greatest = greatest, at_least(least);
  }
  ConfigTableWriter& or_count(int64_t greatest) {
    ConfigKey& row = between(0, static_cast<double>(greatest)).rows.back();
    row.or_count = true;
    row.set = [store = row.set, word = std::get<std::string>(row.get(RunConfig{})), greatest](
                  RunConfig& config, const ConfigValue& value) {
      if (const auto* count = std::get_if<int64_t>(&value))
        return store(config, std::to_string(*count));
      store(config, value);
      const std::string& text = std::get<std::string>(value);
      int64_t count = -1;
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
      const bool number = error == std::errc() && end == text.data() + text.size() && count >= 0 &&
                          count <= greatest;
      if (text != word && !number)
        throw ConfigError(
            fmt::format("must be \"{}\" or between 0 and {}, is \"{}\"", word, greatest, text));
    };
    return *this;
  }
  ConfigTableWriter& or_one() {
    ConfigKey& row = rows.back();
    row.or_one = true;
    row.get = [list = row.get](const RunConfig& config) -> ConfigValue {
      const ConfigValue value = list(config);
      const auto& texts = std::get<std::vector<std::string>>(value);
      if (texts.size() > 1) return value;
      return texts.empty() ? std::string() : texts.front();
    };
    row.set = [store = row.set](RunConfig& config, const ConfigValue& value) {
      const auto* text = std::get_if<std::string>(&value);
      if (!text) return store(config, value);
      store(config, text->empty() ? std::vector<std::string>{} : std::vector<std::string>{*text});
    };
    return *this;
  }
  /// Refines how a value is stored: `check` throws ConfigError with the reason.
  ConfigTableWriter& checked_by(std::function<void(const ConfigValue&)> check) {
    rows.back().set = [store = rows.back().set, check = std::move(check)](
                          RunConfig& config, const ConfigValue& value) {
      check(value);
      store(config, value);
    };
    return *this;
  }
  /// The key holds a probability below 1, or -1 for the model's own; no other negative number is
  /// valid.
  ConfigTableWriter& own_or_probability() {
    return between(-1, 0.999).checked_by([](const ConfigValue& value) {
      const auto x = config_value_as<double>(value);
      if (x < 0 && x != -1)
        throw ConfigError(fmt::format(
            "must be between 0 and 0.999, or -1 for the model's own, is {}", to_toml(value)));
    });
  }
  ConfigTableWriter& data_sets() {
    for (const data::KnownDataset& set : data::known_datasets())
      rows.back().choices.push_back(set.name);
    return *this;
  }
  ConfigTableWriter& layers() {
    return checked_by([](const ConfigValue& value) {
      if (const auto* layers = std::get_if<std::vector<models::LayerTable>>(&value))
        models::check_layers(*layers);
    });
  }
  ConfigTableWriter& may_change() { return rows.back().on_resume = OnResume::may_change, *this; }
  ConfigTableWriter& no_matter() { return rows.back().on_resume = OnResume::no_matter, *this; }
  ConfigTableWriter& may_differ() {
    return rows.back().among_ranks = AmongRanks::may_differ, *this;
  }
  ConfigTableWriter& path(PathKind kind) { return rows.back().path = kind, *this; }
  ConfigTableWriter& path(PathKind kind, std::string word) {
    return rows.back().path_word = std::move(word), path(kind);
  }
  /// The key names files with the user's own samples.
  ConfigTableWriter& names_data() {
    return path(PathKind::data)
        .may_change()
        .only_with("data.dataset", {"arrays", "neurons", "clicks", "text", "tokens"});
  }
  ConfigTableWriter& unit(std::string text) { return rows.back().unit = std::move(text), *this; }
  /// The key has an effect only where `key` has one of these words, or, without words, any value
  /// but its default; of several needs one is enough. The help mentions this automatically.
  /// `without` lists keys that must also have their defaults.
  ConfigTableWriter& only_with(std::string key, std::vector<std::string> words = {},
                               std::vector<std::string> without = {}) {
    rows.back().only_with.push_back({std::move(key), std::move(words), std::move(without)});
    return *this;
  }
  ConfigTableWriter& one_of(std::vector<std::string> words) {
    return rows.back().choices = std::move(words), *this;
  }

  std::vector<ConfigKey> rows;
  std::vector<ConfigGroup> groups;
};

}  // namespace tutti::config
