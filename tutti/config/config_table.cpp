#include "tutti/config/config_table.h"

#include <fmt/ranges.h>

#include <cmath>

#include "tutti/base/spelling.h"

namespace tutti {
namespace {

void check_range(const ConfigKey& row, const ConfigValue& value) {
  const auto check = [&](double x) {
    if (std::isinf(x))
      throw ConfigError(fmt::format("must be a finite number, is {}", to_toml(value)));
    if (std::isnan(x) || (row.least && x < *row.least) || (row.greatest && x > *row.greatest)) {
      const std::string limits = row.least && row.greatest
                                     ? fmt::format("between {} and {}", *row.least, *row.greatest)
                                 : row.least    ? fmt::format("at least {}", *row.least)
                                 : row.greatest ? fmt::format("at most {}", *row.greatest)
                                                : std::string("a number");
      throw ConfigError(fmt::format("must be {}, is {}", limits, to_toml(value)));
    }
  };
  if (const auto* i = std::get_if<int64_t>(&value)) check(static_cast<double>(*i));
  if (const auto* x = std::get_if<double>(&value)) check(*x);
  if (const auto* list = std::get_if<std::vector<int64_t>>(&value))
    std::for_each(list->begin(), list->end(), check);
  if (const auto* list = std::get_if<std::vector<double>>(&value))
    std::for_each(list->begin(), list->end(), check);
}

void check_choice(const ConfigKey& row, const ConfigValue& value) {
  const auto check = [&](const std::string& word) {
    if (!row.choices.empty() &&
        std::find(row.choices.begin(), row.choices.end(), word) == row.choices.end())
      throw ConfigError(must_be_one_of(row.choices, word));
  };
  if (const auto* word = std::get_if<std::string>(&value)) check(*word);
  if (const auto* list = std::get_if<std::vector<std::string>>(&value))
    std::for_each(list->begin(), list->end(), check);
}

ConfigTableWriter write_config_table() {
  ConfigTableWriter t;
  write_run_rows(t);
  write_data_rows(t);
  write_staging_rows(t);
  write_cache_rows(t);
  write_model_rows(t);
  write_tracing_rows(t);
  write_batch_rows(t);
  write_optimizer_rows(t);
  write_schedule_rows(t);
  write_loss_rows(t);
  write_plan_rows(t);
  write_parallel_rows(t);
  write_sync_rows(t);
  write_replay_rows(t);
  write_checkpoint_rows(t);
  write_comm_rows(t);
  for (ConfigKey& row : t.rows)
    if (!row.only_with.empty()) row.help += fmt::format(". Only with {}", words_of(row.only_with));
  // set() checks the limits itself, so that they hold for values from any source.
  for (ConfigKey& row : t.rows)
    row.set = [limits = row, store = row.set](RunConfig& config, const ConfigValue& value) {
      RunConfig checked = config;
      store(checked, value);  // check the type first: its message is the more useful one
      check_choice(limits, value);
      check_range(limits, value);
      config = std::move(checked);
    };
  return t;
}

std::string need_words(const KeyNeed& need) {
  std::string text = need.words.empty()
                         ? need.key
                         : fmt::format("{} = {}", need.key, fmt::join(need.words, " or "));
  return need.without.empty()
             ? text
             : fmt::format("{} without {}", text, fmt::join(need.without, " and "));
}

const ConfigTableWriter& config_table() {
  static const ConfigTableWriter written = write_config_table();
  return written;
}

}  // namespace

const std::vector<ConfigKey>& config_keys() { return config_table().rows; }
const std::vector<ConfigGroup>& config_groups() { return config_table().groups; }

const ConfigKey* find_config_key(std::string_view name) {
  const auto& rows = config_keys();
  const auto found = std::find_if(rows.begin(), rows.end(),
                                  [&](const ConfigKey& row) { return row.name == name; });
  return found == rows.end() ? nullptr : &*found;
}

std::string word_of(const ConfigValue& value) {
  const auto* word = std::get_if<std::string>(&value);
  return word ? *word : to_toml(value);
}

std::string words_of(std::span<const KeyNeed> needs) {
  std::vector<std::string> texts;
  for (const KeyNeed& need : needs) texts.push_back(need_words(need));
  return fmt::format("{}", fmt::join(texts, ", or "));
}

}  // namespace tutti
