#include "tutti/train/settings/idle_keys.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "tutti/base/log.h"
#include "tutti/models/registry.h"
#include "tutti/train/settings/goal.h"

namespace tutti::train {
namespace {

/// A need with this key refers to the tasks: "auto" does not determine them.
constexpr std::string_view kTask = "model.task";
/// A need with this key is also met by a layer's own loss.
constexpr std::string_view kLoss = "loss.pointwise";

bool is_empty(const config::ConfigValue& value) {
  const std::string text = config::word_of(value);
  return text.empty() || text == "[]";
}

/// Determines which keys of a configuration have an effect, and why others have none.
class Effects {
 public:
  Effects(const config::RunConfig& config, const std::optional<std::set<models::TaskKind>>& tasks)
      : config_(config), tasks_(tasks) {}

  bool has_one(const config::ConfigKey& row) const {
    return row.only_with.empty() ||
           std::ranges::any_of(row.only_with,
                               [&](const config::KeyNeed& need) { return met(need); });
  }

  /// Returns reasons such as "optimizer.name is adamw". If a need has its value but is not met,
  /// only the hindrance is given.
  std::vector<std::string> reasons(const config::ConfigKey& row) const {
    std::vector<std::string> why, found;
    for (const config::KeyNeed& need : row.only_with) {
      std::vector<std::string>& list = has_value(need) ? why : found;
      const std::string text = has_value(need) ? hindrance(need) : found_words(need);
      if (std::ranges::find(list, text) == list.end()) list.push_back(text);
    }
    return why.empty() ? found : why;
  }

 private:
  bool given(const std::string& key) const {
    const config::ConfigKey& row = *config::find_config_key(key);
    return row.get(config_) != row.get(config::RunConfig{});
  }

  bool has_value(const config::KeyNeed& need) const {
    if (need.key == kTask)
      return !tasks_ || std::ranges::any_of(*tasks_, [&](models::TaskKind task) {
        return std::ranges::find(need.words, name_of(task)) != need.words.end();
      });
    if (need.words.empty()) return given(need.key);
    if (need.key == kLoss &&
        std::ranges::any_of(config_.model.layer, [&](const models::LayerTable& layer) {
          const models::LayerValue* loss = layer.find("loss");
          const auto* word = loss ? std::get_if<std::string>(loss) : nullptr;
          return word && std::ranges::find(need.words, *word) != need.words.end();
        }))
      return true;
    const std::string word = config::word_of(config::find_config_key(need.key)->get(config_));
    return std::ranges::find(need.words, word) != need.words.end();
  }

  bool met(const config::KeyNeed& need) const {
    return has_value(need) && in_the_way(need) == need.without.end() &&
           has_one(*config::find_config_key(need.key));
  }

  /// Returns the first key that must have its default but does not.
  std::vector<std::string>::const_iterator in_the_way(const config::KeyNeed& need) const {
    return std::ranges::find_if(need.without, [&](const std::string& key) { return given(key); });
  }

  /// Explains a need that has its value but is not met.
  std::string hindrance(const config::KeyNeed& need) const {
    const auto other = in_the_way(need);
    return other != need.without.end() ? fmt::format("{} is given", *other)
                                       : fmt::format("{} has no effect either", need.key);
  }

  std::string found_words(const config::KeyNeed& need) const {
    if (need.key == kTask) {
      std::vector<std::string_view> names;
      for (const models::TaskKind task : *tasks_) names.push_back(name_of(task));
      return fmt::format("the network's task is {}", fmt::join(names, " and "));
    }
    const config::ConfigValue value = config::find_config_key(need.key)->get(config_);
    return fmt::format("{} is {}", need.key,
                       is_empty(value) ? "not given" : config::word_of(value));
  }

  const config::RunConfig& config_;
  const std::optional<std::set<models::TaskKind>>& tasks_;
};

}  // namespace

std::vector<IdleKey> idle_keys(const config::RunConfig& config,
                               const std::optional<std::set<models::TaskKind>>& tasks) {
  std::vector<IdleKey> idle;
  const Effects effects(config, tasks);
  for (const config::ConfigKey& row : config::config_keys())
    if (!effects.has_one(row))
      idle.push_back(
          {&row, fmt::format("{} = {} has no effect: it is only for {}, and {}", row.name,
                             config::to_toml(row.get(config)), config::words_of(row.only_with),
                             fmt::join(effects.reasons(row), ", "))});
  return idle;
}

void warn_of_idle_keys(const config::RunConfig& config, const models::ModelSpec& model) {
  if (tasks_of(config)) return;
  const auto known = idle_keys(config, std::nullopt);
  for (const IdleKey& idle : idle_keys(config, tasks_of(model)))
    if (std::ranges::find(known, idle.key, &IdleKey::key) == known.end() &&
        idle.key->get(config) != idle.key->get(config::RunConfig{}))
      log::warn("{}", idle.text);
}

}  // namespace tutti::train
