#include "tutti/train/settings/resume_check.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>

#include "tutti/base/error.h"
#include "tutti/base/log.h"
#include "tutti/base/number.h"
#include "tutti/data/pipeline/permutation.h"
#include "tutti/models/registry.h"
#include "tutti/trace/record.h"
#include "tutti/train/settings/server_settings.h"
#include "tutti/train/settings/specs.h"

namespace tutti::train {
namespace {

struct Difference {
  std::string key, there, here;
};

/// Earlier versions stored relative paths of files to read as they were given.
bool same_place(const config::ConfigKey& row, std::string_view there, std::string_view here) {
  return row.path == config::PathKind::read && row.type == config::ConfigType::text &&
         there.size() > 2 && there[1] != '/' && here.ends_with(fmt::format("/{}", there.substr(1)));
}

/// Returns the differing keys, in the order of the table. A key that the checkpoint does not have
/// is newer: it had its default then.
std::vector<Difference> differences(const config::RunSettings& there,
                                    const config::RunSettings& here) {
  const auto value = [](const config::RunSettings& settings, const config::ConfigKey& row) {
    const auto at = settings.find(row.name);
    return at == settings.end() ? config::to_toml(row.get(config::RunConfig{})) : at->second;
  };
  std::vector<Difference> found;
  bool other_data = false;  // reported by the key that chose it
  for (const config::ConfigKey& row : config::config_keys())
    if (value(there, row) != value(here, row) &&
        !same_place(row, value(there, row), value(here, row))) {
      found.push_back({row.name, value(there, row), value(here, row)});
      other_data |= row.name == "data.dataset" || row.name.starts_with("data.generate_");
    }
  // Another generator's seed makes other images: one cause, reported once.
  if (!other_data && there.at(kDataContent) != here.at(kDataContent))
    found.push_back({kDataContent, there.at(kDataContent), here.at(kDataContent)});
  const auto compare = [&](const char* name, const char* absent) {
    const auto value_in = [&](const config::RunSettings& settings) {
      const auto at = settings.find(name);
      return at == settings.end() ? std::string(absent) : at->second;
    };
    if (value_in(there) != value_in(here)) found.push_back({name, value_in(there), value_in(here)});
  };
  compare(kDataOrder, "a stored permutation, as in versions before the order was computed");
  compare(kLibraryContent, "none");
  // A run without servers has none; sync.scheme reports that servers are new.
  if (there.contains(kOrderMachine) && here.contains(kOrderMachine)) compare(kOrderMachine, "none");
  return found;
}

/// Whether the weights depend on this key when evaluations determine the learning rate.
bool matters_to_plateau(const std::string& key) {
  return key == "run.metric" || key == "run.eval_every" || key == "run.min_improvement";
}

/// kDataContent, kDataOrder, kLibraryContent and kOrderMachine are not in the table.
config::OnResume on_resume(const std::string& key, const config::RunSettings& here) {
  const config::ConfigKey* row = config::find_config_key(key);
  if (!row || (here.at("schedule.name") == "\"plateau\"" && matters_to_plateau(key)))
    return config::OnResume::fixed;
  return row->on_resume;
}

/// Returns the limit of the run, which its schedule spans.
std::string length_of(const config::RunSettings& run) {
  const std::string key = run.at("run.epochs") == "0" ? "run.max_steps" : "run.epochs";
  return fmt::format("{} = {}", key, run.at(key));
}

/// Returns remedies besides --resume-anyway.
std::string advice(const std::vector<Difference>& refused) {
  for (const Difference& d : refused) {
    if (d.key == kDataOrder)
      return "; this version has one order, so a run with the old one ends with the version that "
             "began it";
    if (d.key == "run.replicas")
      return fmt::format(
          "; a run of {0} replicas goes on with --replicas {0}, on any number of ranks from 1 to "
          "{0}",
          d.there);
  }
  return "";
}

}  // namespace

int64_t replicas_of(const keep::CheckpointInfo& checkpoint) {
  const auto stored = checkpoint.settings.find("run.replicas");
  int64_t replicas = 0;
  return stored != checkpoint.settings.end() && read_number(stored->second, replicas) &&
                 replicas > 0
             ? replicas
             : checkpoint.replicas;
}

config::RunSettings effective_settings(const config::RunConfig& config, int64_t replicas,
                                       const RunData& data) {
  const data::Dataset& train = *data.train;
  config::RunConfig effective = config;
  const config::BatchSizes batch =
      config::batch_sizes(config.batch, gradients_of_step(config, replicas));
  effective.run.replicas = replicas;
  effective.batch.local = batch.local;
  effective.batch.global = batch.global;
  const models::ModelSpec model = model_spec(config, train, batch.local);
  effective.model.classes = model.classes;
  if (const std::vector<models::Objective> objectives = models::objectives_of(model);
      !model.task && objectives.size() == 1)
    effective.model.task =
        static_cast<config::ModelTask>(static_cast<int>(*objectives[0].task) + 1);
  const auto names = [](const std::vector<models::ModelField>& fields) {
    std::vector<std::string> list;
    for (const models::ModelField& field : fields) list.push_back(field.name);
    return list;
  };
  effective.data.input = names(model.inputs);
  effective.data.target = names(model.targets);
  effective.data.classes = std::ssize(data::field_named(train, model.target_field).class_names);
  config::RunSettings settings = config::run_settings(effective);
  std::string& content = settings[kDataContent];
  if (!config::made_when_read(config.data)) {
    content = fmt::format("train: {}", data_identity(train));
    if (data.validation)
      content += fmt::format("; validation: {}", data_identity(*data.validation));
    if (data.test) content += fmt::format("; test: {}", data_identity(*data.test));
  }
  if (!config.data.statistics.empty()) settings[kDataContent] += "; " + statistics_identity(train);
  settings[kDataOrder] = data::kOrderName;
  if (!config.model.library.empty())
    settings[kLibraryContent] = "sha256 " + config.model.library_content;
  return settings;
}

std::vector<std::string> check_resume(const std::filesystem::path& checkpoint,
                                      const keep::CheckpointInfo& before,
                                      const config::RunSettings& here,
                                      const std::vector<std::string>& anyway) {
  if (!before.settings.contains(kDataContent))
    throw ConfigError(fmt::format(
        "checkpoint '{}' is of an earlier version, which did not keep what a resume must compare: "
        "go on with that version, or begin a new run",
        checkpoint.string()));
  std::vector<Difference> refused;
  std::vector<std::string> changes, accepted;
  for (const Difference& d : differences(before.settings, here)) {
    const bool fixed = on_resume(d.key, here) == config::OnResume::fixed;
    if (fixed && std::ranges::find(anyway, d.key) == anyway.end()) {
      refused.push_back(d);
      continue;
    }
    if (on_resume(d.key, here) == config::OnResume::no_matter) continue;
    changes.push_back(fmt::format("{}: {} -> {}", d.key, d.there, d.here));
    if (fixed) accepted.push_back(changes.back());
  }
  if (!refused.empty()) {
    std::vector<std::string> keys, flags;
    for (const Difference& d : refused) {
      keys.push_back(fmt::format("{} was {} and is now {}", d.key, d.there, d.here));
      flags.push_back("--resume-anyway " + d.key);
    }
    throw ConfigError(fmt::format(
        "checkpoint '{}' is of a run whose results would not go on as they were: {}; give the old "
        "value{}{}, or go on with the new with {}",
        checkpoint.string(), fmt::join(keys, "; "), refused.size() > 1 ? "s" : "", advice(refused),
        fmt::join(flags, " ")));
  }
  for (const std::string& change : accepted) log::warn_once("resumed although changed: {}", change);
  const std::string& schedule = here.at("schedule.name");
  const std::string length = length_of(here);
  if (length != length_of(before.settings) &&
      (schedule == "\"cosine\"" || schedule == "\"one_cycle\"" || schedule == "\"polynomial\""))
    log::warn_once(
        "the schedule spans the run, {} now and {} before: from here on the rates are those of the "
        "new length",
        length, length_of(before.settings));
  return changes;
}

void check_resume_anyway(const std::vector<std::string>& keys, const std::string& resume) {
  if (!keys.empty() && resume.empty())
    throw ConfigError(fmt::format(
        "--resume-anyway {}: nothing is resumed; give --resume as well, or leave the flag out",
        keys.front()));
  for (const std::string& key : keys) {
    if (key != kDataContent && key != kDataOrder && key != kLibraryContent &&
        key != kOrderMachine && key != kPlanChoices && !config::find_config_key(key))
      throw ConfigError(fmt::format("--resume-anyway: there is no key '{}'", key));
    const config::ConfigKey* row = config::find_config_key(key);
    if (row && row->on_resume != config::OnResume::fixed && !matters_to_plateau(key))
      throw ConfigError(
          fmt::format("--resume-anyway: {} may change on a resume; leave the flag out", key));
  }
}

}  // namespace tutti::train
