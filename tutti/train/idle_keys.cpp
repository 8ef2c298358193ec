#include "tutti/train/idle_keys.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "tutti/base/log.h"
#include "tutti/models/registry.h"
#include "tutti/train/settings.h"

namespace tutti {
namespace {

/// A need of this key is one of what is learned: "auto" says nothing.
constexpr std::string_view kTask = "model.task";

std::string words_of(const KeyNeed& need) {
  return need.words.empty() ? need.key
                            : fmt::format("{} = {}", need.key, fmt::join(need.words, " or "));
}

bool met(const KeyNeed& need, const RunConfig& config,
         const std::optional<std::set<TaskKind>>& tasks) {
  if (need.key == kTask)
    return !tasks || std::ranges::any_of(*tasks, [&](TaskKind task) {
      return std::ranges::find(need.words, name_of(task)) != need.words.end();
    });
  const ConfigKey& other = *find_config_key(need.key);
  const ConfigValue value = other.get(config);
  if (need.words.empty()) return value != other.get(RunConfig{});
  return std::ranges::find(need.words, std::get<std::string>(value)) != need.words.end();
}

/// "optimizer.name is adamw"
std::string found_words(const KeyNeed& need, const RunConfig& config,
                        const std::optional<std::set<TaskKind>>& tasks) {
  if (need.key == kTask) {
    std::vector<std::string_view> names;
    for (const TaskKind task : *tasks) names.push_back(name_of(task));
    return fmt::format("the network's task is {}", fmt::join(names, " and "));
  }
  const ConfigValue value = find_config_key(need.key)->get(config);
  const auto* word = std::get_if<std::string>(&value);
  return fmt::format("{} is {}", need.key,
                     need.words.empty() ? "not given"
                     : word             ? *word
                                        : to_toml(value));
}

}  // namespace

std::string words_of(std::span<const KeyNeed> needs) {
  std::vector<std::string> texts;
  for (const KeyNeed& need : needs) texts.push_back(words_of(need));
  return fmt::format("{}", fmt::join(texts, ", or "));
}

std::vector<IdleKey> idle_keys(const RunConfig& config,
                               const std::optional<std::set<TaskKind>>& tasks) {
  std::vector<IdleKey> idle;
  for (const ConfigKey& row : config_keys()) {
    if (row.only_with.empty() || std::ranges::any_of(row.only_with, [&](const KeyNeed& need) {
          return met(need, config, tasks);
        }))
      continue;
    std::vector<std::string> found;
    for (const KeyNeed& need : row.only_with) found.push_back(found_words(need, config, tasks));
    idle.push_back({&row, fmt::format("{} = {} has no effect: it is only for {}, and {}", row.name,
                                      to_toml(row.get(config)), words_of(row.only_with),
                                      fmt::join(found, ", "))});
  }
  return idle;
}

std::set<TaskKind> tasks_of(const ModelSpec& model) {
  std::set<TaskKind> tasks;
  for (const Objective& objective : objectives_of(model)) tasks.insert(*objective.task);
  return tasks;
}

void warn_of_idle_keys(const RunConfig& config, const ModelSpec& model) {
  if (tasks_of(config)) return;
  const auto known = idle_keys(config, std::nullopt);
  for (const IdleKey& idle : idle_keys(config, tasks_of(model)))
    if (std::ranges::find(known, idle.key, &IdleKey::key) == known.end() &&
        idle.key->get(config) != idle.key->get(RunConfig{}))
      log::warn("{}", idle.text);
}

}  // namespace tutti
