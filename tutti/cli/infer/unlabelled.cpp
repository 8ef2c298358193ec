#include "tutti/cli/infer/unlabelled.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

#include "tutti/base/error.h"
#include "tutti/base/log.h"
#include "tutti/cli/job/job.h"
#include "tutti/data/arrays/array_set.h"
#include "tutti/data/arrays/npy_folders.h"
#include "tutti/data/arrays/sample_file.h"
#include "tutti/data/arrays/statistics_file.h"
#include "tutti/data/file/file_list.h"
#include "tutti/data/format/open_array.h"
#include "tutti/data/open/catalog.h"
#include "tutti/train/settings/goal.h"
#include "tutti/train/settings/specs.h"

namespace tutti::cli {
namespace {

class WithoutTarget final : public data::Dataset {
 public:
  /// Targets that are also read as inputs are fields of the files.
  WithoutTarget(std::unique_ptr<data::Dataset> inputs, const std::vector<data::Field>& targets)
      : inputs_(std::move(inputs)), fields_(inputs_->fields()) {
    for (const data::Field& target : targets)
      if (std::ranges::find(fields_, target.name, &data::Field::name) == fields_.end())
        fields_.push_back(target);
  }
  std::vector<data::SamplesOfFile> files() const override { return inputs_->files(); }
  int64_t size() const override { return inputs_->size(); }
  const std::vector<data::Field>& fields() const override { return fields_; }
  void read(int64_t index, data::Sample& sample) const override { inputs_->read(index, sample); }

 private:
  std::unique_ptr<data::Dataset> inputs_;
  std::vector<data::Field> fields_;
};

/// Returns the input's lines for files of the configured data set's form; none for data sets with a
/// format of their own.
std::vector<data::FieldLine> configured_lines(const config::DataSection& data) {
  if (data.dataset == "cosmoflow") return {data::parse_field_line("x: from x as i16 ? ? ? 4")};
  if (data.dataset == "deepcam") return {data::parse_field_line("data: from climate/data whole")};
  if (data.dataset == "cbed" || data.dataset == "stem")
    return {data::parse_field_line("image: from image axis 0")};
  if (data.dataset != "arrays") return {};
  const std::vector<data::FieldLine> lines = data::parse_field_lines(data.fields);
  if (data.input.empty()) return {lines.front()};
  std::vector<data::FieldLine> inputs;
  for (const std::string& name : data.input) {
    const auto named = std::ranges::find(lines, name, &data::FieldLine::field);
    if (named == lines.end()) throw ConfigError(fmt::format("data.fields has no field '{}'", name));
    inputs.push_back(*named);
  }
  return inputs;
}

/// Where the network's inputs lie, in the same order of fields.
struct InputLines {
  std::vector<data::FieldLine> own;         ///< in the files: --field's, else the configured ones
  std::vector<data::FieldLine> configured;  ///< in the configured data set, where it gives them
};

InputLines input_lines(const config::RunConfig& config, const UnlabelledFiles& files) {
  std::vector<data::FieldLine> lines = configured_lines(config.data), configured = lines;
  if (lines.empty() && files.fields.empty())
    throw ConfigError(fmt::format(
        "--input takes array files (.npy, .npz, .h5, .nc, .tif), and {} has a format of its own: "
        "--split predicts for a part of the configured set; of other images make an array file "
        "(numpy.save) and say where they lie in it, as in --field \"image: from array axis 0\"",
        config.data.dataset));
  if (lines.empty()) lines = {{.field = "image"}};
  for (const std::string& text : files.fields) {
    data::FieldLine line = data::parse_field_line(text);
    const auto own = std::ranges::find(lines, line.field, &data::FieldLine::field);
    std::string names;
    for (const data::FieldLine& one : lines) names += (names.empty() ? "" : ", ") + one.field;
    if (own == lines.end())
      throw ConfigError(fmt::format(
          "--field: the network does not read a field '{}', only {}: begin the line with its name",
          line.field, names));
    *own = std::move(line);
  }
  if (configured.empty()) configured = lines;
  return {std::move(lines), std::move(configured)};
}

/// Refuses files without the arrays before any data is read; checks the first file only.
void require_arrays(const std::filesystem::path& first, const std::vector<data::FieldLine>& lines) {
  if (data::is_record_file(first)) return;
  const data::ArrayFile file = data::open_array_file(first);
  const auto names_array = [&](const std::string& name) {
    return std::ranges::find(file.arrays(), name.starts_with('/') ? name.substr(1) : name,
                             &data::ArrayInfo::name) != file.arrays().end();
  };
  for (const data::FieldLine& line : lines)
    for (const std::string& array : line.arrays) {
      if (names_array(array)) continue;
      std::vector<std::string> found;
      for (const data::ArrayInfo& info : file.arrays())
        found.push_back(fmt::format("{} [{}]", info.name, fmt::join(info.shape, ", ")));
      const std::string from = file.arrays().size() == 1 ? file.arrays().front().name : "NAME";
      throw ConfigError(fmt::format(
          "{}: there is no array '{}' for the field '{}', there is {}: say where it lies with "
          "--field \"{}: from {} axis 0\" if the first axis counts the samples, or with --field "
          "\"{}: from {} whole\" if the file is one sample",
          first.string(), array, line.field,
          found.empty() ? "none" : fmt::to_string(fmt::join(found, ", ")), line.field, from,
          line.field, from));
    }
}

/// Returns the statistics of the data that the network was trained on, by the names of its fields.
std::vector<data::FieldStatistics> statistics_of(const config::RunConfig& config,
                                                 const std::vector<data::FieldLine>& lines) {
  if (!config.data.statistics.empty()) return data::read_statistics(config.data.statistics, lines);
  if (config.data.dataset == "deepcam" && !config.data.dir.empty())
    return data::read_statistics(std::filesystem::path(config.data.dir) / "stats.h5", lines);
  return std::vector<data::FieldStatistics>(lines.size(),
                                            data::known_dataset(config.data.dataset).statistics);
}

/// Returns the training files, which show where samples lie, while inputs alone often do not. Empty
/// where they do not exist.
std::vector<std::filesystem::path> training_files(const config::DataSection& data) {
  if (data.dataset != "arrays") return {};
  try {
    return data::npy_folders(data::listed_files(data.train_files, data.dir, "data.train_files"),
                             data::parse_field_lines(data.fields));
  } catch (const Error&) {
    return {};
  }
}

/// Returns model.classes of the run that wrote the weights; 0: not known.
int64_t trained_outputs(const config::RunSettings& settings) {
  int64_t count = 0;
  if (const auto at = settings.find("model.classes"); at != settings.end())
    std::from_chars(at->second.data(), at->second.data() + at->second.size(), count);
  return count;
}

int64_t output_count(const config::RunConfig& config) {
  if (config.model.classes > 0) return config.model.classes;
  if (config.data.classes > 0) return config.data.classes;
  if (const int known = data::known_dataset(config.data.dataset).classes; known > 0) return known;
  throw ConfigError(
      "how many outputs the network has is not known from these weights: give --set "
      "model.classes=N");
}

/// Returns the targets of the configured data set; empty where it cannot be opened.
std::vector<data::Field> configured_targets(const config::RunConfig& config) {
  try {
    return train::target_fields(config, *open_configured(config, "train"));
  } catch (const Error& error) {
    log::info("what the network learns is not known from the training set: {}", error.what());
    return {};
  }
}

/// Returns a field of class numbers, one a sample, under a name that no input has.
data::Field class_numbers(const config::RunConfig& config,
                          const std::vector<data::FieldLine>& inputs) {
  std::string name = config.data.target.empty() ? "label" : config.data.target.front();
  if (std::ranges::find(inputs, name, &data::FieldLine::field) != inputs.end()) name += " of it";
  const auto outputs = static_cast<size_t>(output_count(config));
  return {.name = name, .class_names = std::vector<std::string>(outputs)};
}

/// Returns whether undoing the field's transforms needs the data set's own numbers; checkpoints of
/// earlier versions have none.
bool takes_statistics(const config::RunConfig& config, const std::string& field) {
  for (const data::FieldSteps& steps : train::field_steps(config.data))
    if (steps.field == field)
      for (const data::ValueStep& step : steps.values)
        if ((step.kind == data::ValueStep::Kind::normalise ||
             step.kind == data::ValueStep::Kind::min_max) &&
            step.first.empty())
          return true;
  return false;
}

/// Returns the fields that the network learned. Fields of the checkpoint have the names that the
/// configuration gives.
std::vector<data::Field> learned_targets(const config::RunConfig& config,
                                         const train::FoundWeights& found,
                                         const std::vector<data::FieldLine>& inputs) {
  const std::vector<std::string>& names = config.data.target;
  std::vector<data::Field> targets = train::fields_of(found.learned);
  const bool lacks =
      targets.empty()
          ? std::ranges::any_of(
                names, [&](const std::string& name) { return takes_statistics(config, name); })
          : std::ranges::any_of(targets, [&](const data::Field& target) {
              return target.statistics.mean.empty() && target.statistics.least.empty() &&
                     takes_statistics(config, target.name);
            });
  if (lacks || (targets.empty() && (names.size() > 1 || !train::tasks_of(config))))
    if (std::vector<data::Field> found_there = configured_targets(config); !found_there.empty())
      targets = std::move(found_there);
  if (targets.empty() && names.size() > 1)
    throw ConfigError(fmt::format(
        "the network learned {}, and what these are is not known: give --weights of a run's folder "
        "or one of its checkpoints, or make the training set of the configuration readable",
        fmt::join(names, ", ")));
  if (targets.empty()) return {class_numbers(config, inputs)};
  if (!names.empty() && names.size() != targets.size())
    throw ConfigError(fmt::format(
        "data.target names {}, and the network of these weights learned {} field(s): give the "
        "configuration of their run",
        fmt::join(names, ", "), targets.size()));
  if (!names.empty())
    for (size_t t = 0; t < names.size(); ++t) targets[t].name = names[t];
  return targets;
}

}  // namespace

std::unique_ptr<data::Dataset> open_unlabelled(config::RunConfig& config,
                                               const UnlabelledFiles& files,
                                               const train::FoundWeights& found) {
  const auto [lines, configured] = input_lines(config, files);
  const std::vector<std::filesystem::path> places = data::npy_folders(files.files, lines);
  require_arrays(places.front(), lines);
  auto inputs = data::open_array_set({.files = places,
                                      .fields = lines,
                                      .key = "--input",
                                      .statistics = statistics_of(config, configured),
                                      .settled_by = files.fields.empty()
                                                        ? training_files(config.data)
                                                        : std::vector<std::filesystem::path>(),
                                      .settled_with = data::parse_field_lines(config.data.fields)});
  return std::make_unique<WithoutTarget>(std::move(inputs), take_targets(config, found, lines));
}

std::vector<data::Field> take_targets(config::RunConfig& config, const train::FoundWeights& found,
                                      const std::vector<data::FieldLine>& inputs) {
  if (config.model.classes == 0) config.model.classes = trained_outputs(found.settings);
  std::vector<data::Field> targets = learned_targets(config, found, inputs);
  if (config.data.target.empty())
    for (const data::Field& target : targets) config.data.target.push_back(target.name);
  return targets;
}

data::SampleWriter input_writer(const config::RunConfig& config, const data::Dataset& dataset,
                                const std::vector<data::BatchField>& inputs) {
  std::vector<data::FieldSteps> steps = train::field_steps(config.data);
  std::erase_if(steps, [&](const data::FieldSteps& own) {
    return std::ranges::none_of(inputs,
                                [&](const data::BatchField& in) { return in.field == own.field; });
  });
  return data::SampleWriter(dataset, inputs, steps, static_cast<uint64_t>(config.run.seed));
}

}  // namespace tutti::cli
