#include "tutti/train/network/given_weights.h"

#include <algorithm>
#include <cstring>

#include "tutti/base/error.h"
#include "tutti/base/log.h"
#include "tutti/base/name_pattern.h"
#include "tutti/base/shell.h"
#include "tutti/comm/control/agree.h"
#include "tutti/keep/checkpoint.h"
#include "tutti/keep/foreign_names.h"
#include "tutti/models/lora.h"
#include "tutti/train/network/nonfinite.h"
#include "tutti/train/network/table_files.h"

namespace tutti::train {
namespace {

/// Returns all names that a pattern in model.weights_except may match.
std::vector<std::string> names_of(const plan::Variables& variables,
                                  const keep::SafetensorsFile& file) {
  std::vector<std::string> names;
  for (const auto* list : {&variables.parameters, &variables.statistics})
    for (const plan::Variable& variable : *list) names.push_back(variable.name);
  for (const plan::TableVariable& table : variables.tables) names.push_back(table.variable.name);
  const keep::ForeignNames foreign(file, variables);
  for (const keep::SafetensorsFile::Entry& entry : file.entries())
    if (const std::string name = foreign.in_model(entry.name); !variables.find_parameter(name) &&
                                                               !variables.find_statistic(name) &&
                                                               !variables.find_table(name))
      names.push_back(name);
  return names;
}

/// Describes, for the log, the parameters that keep their own first values.
std::string kept_of(std::span<const std::string> except, const plan::Variables& variables) {
  std::vector<std::string> kept;
  for (const plan::Variable& variable : variables.parameters)
    if (fits_any(except, variable.name)) kept.push_back(variable.name);
  return kept.empty() ? "all parameters are theirs"
                      : fmt::format("their own first values keep {}", list_of_names(kept));
}

/// Returns patterns for tensors that do not come from the file: the given ones, and LoRA's if the
/// file's network has none.
std::vector<std::string> left_out(const GivenWeights& given, const keep::SafetensorsFile& file,
                                  const plan::Variables& variables) {
  const auto is_lora = [](const auto& named) {
    return fits_pattern(models::kLoraNames, named.name);
  };
  std::vector<std::string> except(given.except.begin(), given.except.end());
  if (std::ranges::any_of(variables.parameters, is_lora) &&
      std::ranges::none_of(file.entries(), is_lora))
    except.emplace_back(models::kLoraNames);
  return except;
}

/// Copies rank 0's values of a variable into the arenas of ranks that fill theirs.
void spread(comm::Communicator& communicator, const plan::Variable& variable, std::byte* arena,
            bool fills) {
  std::vector<float> plain(static_cast<size_t>(variable.desc.elements()));
  if (communicator.rank() == 0) plan::export_plain(variable, arena, plain.data());
  communicator.broadcast(std::as_writable_bytes(std::span(plain)), 0);
  if (communicator.rank() != 0 && fills) plan::import_plain(variable, plain.data(), arena);
}

/// Without this check, training would fail at its first step and blame an update of its own.
void require_finite(const std::string& path, const Weights& weights) {
  const auto look = [&](const std::vector<plan::Variable>& variables, const std::byte* arena) {
    for (const plan::Variable& variable : variables)
      if (!all_finite(reinterpret_cast<const float*>(arena + variable.offset),
                      variable.desc.bytes() / sizeof(float)))
        throw NumericError(fmt::format(
            "model.weights = '{}': '{}' is not finite: the weights are damaged or of a training "
            "that went too far; take an earlier checkpoint",
            path, variable.name));
  };
  if (weights.fills_parameters()) look(weights.variables().parameters, weights.parameters());
  look(weights.variables().statistics, weights.statistics(0));
}

/// Verifies a checkpoint's file; if it is damaged, the error adds a remedy.
template <class Verify>
void or_another(Verify verify) {
  try {
    verify();
  } catch (const IntactFileError&) {
    throw;
  } catch (const IoError& damage) {
    throw IoError(fmt::format(
        "{}; give another checkpoint, or the folder of the run, of which the newest whole one is "
        "taken",
        damage.what()));
  }
}

}  // namespace

FoundWeights find_weights(const std::filesystem::path& path, std::string_view key) {
  std::error_code failed;  // opening the file gives the reason
  const bool folder = std::filesystem::is_directory(path, failed);
  if (path.filename() == "state.safetensors" &&
      keep::is_in_checkpoint(path.parent_path() / "weights.safetensors"))
    throw ConfigError(fmt::format(
        "{}: '{}' holds the optimizer's state and the statistics, not the weights; give {}", key,
        path.string(), shell_word((path.parent_path() / "weights.safetensors").string())));
  if (!folder && !keep::is_in_checkpoint(path)) {
    if (std::filesystem::is_regular_file(path, failed))
      or_another([&] { keep::verify_file_of_checkpoint(path); });
    return {keep::SafetensorsFile(path)};
  }
  for (const char* name : {"model.safetensors.index.json", "model.safetensors"})
    if (folder && keep::list_checkpoints(keep::checkpoints_in(path)).empty() &&
        std::filesystem::is_regular_file(path / name, failed))
      return {keep::SafetensorsFile(path / name)};
  const auto best = folder ? keep::find_best(keep::checkpoints_in(path)) : std::nullopt;
  const std::filesystem::path checkpoint = best ? *best : keep::checkpoint_at(path, key);
  keep::CheckpointInfo info;
  or_another([&] { info = keep::verify_checkpoint(checkpoint); });
  log::info("weights of step {}{}: '{}'", info.step, best ? ", the best evaluation's" : "",
            checkpoint.string());
  return {std::move(keep::open_checkpoint(checkpoint).weights),
          checkpoint.string(),
          info.step,
          info.settings,
          info.plan_choices,
          info.learned};
}

std::string configuration_near(const std::filesystem::path& weights) {
  std::error_code unknown;
  if (!std::filesystem::exists(weights, unknown))
    throw IoError(
        fmt::format("{} does not exist: give the folder of a run, a checkpoint or a file "
                    "of weights",
                    weights.string()));
  auto at = weights.has_filename() ? weights : weights.parent_path();
  // Looks in the run, its checkpoints, one of them, and a file inside that.
  for (int up = 0; up < 4 && !at.empty(); ++up, at = at.parent_path())
    if (const auto config = at / "config.toml"; std::filesystem::exists(config, unknown))
      return config.string();
  return "";
}

void read_given(const GivenWeights& given, Weights& weights) {
  const FoundWeights found = find_weights(given.path, "model.weights");
  const std::vector<std::string> except = left_out(given, found.file, weights.variables());
  for (const std::string& pattern : given.except)
    require_fit("model.weights_except", pattern, names_of(weights.variables(), found.file));
  try {
    weights.import_model(found.file, except);
    read_tables(found.file, found.checkpoint, weights, except);
  } catch (const ConfigError& error) {
    throw ConfigError(fmt::format(
        "model.weights = '{}': {}; model.weights_except names what is to be left out, as in "
        "[\"fc.*\"]",
        given.path, error.what()));
  }
  require_finite(given.path, weights);
  log::info("the first weights are those of '{}'; {}", given.path,
            kept_of(except, weights.variables()));
}

void give_weights(comm::Communicator& communicator, const GivenWeights& given, Weights& weights) {
  // With slices and stages each rank reads its own.
  if (weights.variables().has_slices() || !weights.variables().elsewhere.empty())
    return comm::on_each(communicator, "reading model.weights",
                         [&] { read_given(given, weights); });
  comm::decide(communicator, "reading model.weights", [&] {
    read_given(given, weights);
    return std::string();
  });
  const plan::Variables& variables = weights.variables();
  for (const plan::Variable& variable : variables.parameters)
    spread(communicator, variable, weights.parameters(), weights.fills_parameters());
  for (const plan::Variable& variable : variables.statistics) {
    spread(communicator, variable, weights.statistics(0), true);
    for (int local = 1; local < weights.local_replicas(); ++local)
      std::memcpy(weights.statistics(local) + variable.offset,
                  weights.statistics(0) + variable.offset, variable.desc.bytes());
  }
  weights.make_same();
  comm::on_each(communicator, "reading the tables of model.weights", [&] {
    if (communicator.rank() == 0 || variables.tables.empty()) return;
    const FoundWeights found = find_weights(given.path, "model.weights");
    read_tables(found.file, found.checkpoint, weights, given.except);
  });
}

}  // namespace tutti::train
