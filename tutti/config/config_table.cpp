#include "tutti/config/config_table.h"

#include <fmt/ranges.h>

#include <cmath>

#include "tutti/base/spelling.h"

namespace tutti::config {
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
  t.section("run", &RunConfig::run, "How long, where to, with what.");
  t.section("data", &RunConfig::data, "The data set, its augmentation and its readers.");
  t.section("data.staging", &RunConfig::staging,
            "Copies of the data set's files on each node, made before the run reads them; see "
            "[samples.md](samples.md) and `tutti data stage`.");
  t.section("data.cache", &RunConfig::cache,
            "Samples that the ranks of a node keep together once they have been read, first in "
            "memory, then on disk; the rest is read from files in every epoch.");
  t.section("model", &RunConfig::model, "The network.");
  t.section("tracing", &RunConfig::tracing,
            "Flood filling: how neurons are traced through a volume, in training and by `tutti "
            "infer`. See docs/workloads/neurons.md.");
  t.section("batch", &RunConfig::batch,
            "Samples per optimiser step. Give one; with neither, global is 128.");
  t.section("optimizer", &RunConfig::optimizer, "The update of the weights.");
  t.section("schedule", &RunConfig::schedule, "The learning rate over the run.");
  t.section("loss", &RunConfig::loss,
            "What training makes small: softmax cross-entropy of class numbers, or a loss of each "
            "number.");
  t.section("plan", &RunConfig::plan,
            "How the network is compiled. Kernels and layouts chosen by measurement may differ "
            "from machine to machine, and with them the last "
            "bits of the weights; checkpoints keep the choices.");
  t.section("parallel", &RunConfig::parallel, "What ranks share besides gradients.");
  t.section("sync", &RunConfig::sync, "How replicas meet; see docs/synchronisation.md.");
  t.section("replay", &RunConfig::replay, "A run as on another machine; see docs/replay.md.");
  t.section("checkpoint", &RunConfig::checkpoint, "What survives the run.");
  t.section("comm", &RunConfig::comm, "The exchange between ranks.");
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

}  // namespace tutti::config
