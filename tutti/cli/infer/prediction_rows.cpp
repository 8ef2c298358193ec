#include "tutti/cli/infer/prediction_rows.h"

#include <fmt/format.h>

#include <algorithm>

#include "tutti/cli/flags/version.h"

namespace tutti::cli {
namespace {

/// HDF5 keeps attributes of up to 64 KiB.
constexpr size_t kLongestAttribute = 60'000;

std::string class_lines(const data::Dataset& dataset, const std::string& name) {
  const auto field = std::ranges::find(dataset.fields(), name, &data::Field::name);
  std::string lines;
  if (field == dataset.fields().end() ||
      std::ranges::all_of(field->class_names, &std::string::empty))
    return lines;
  for (const std::string& one : field->class_names) lines += (lines.empty() ? "" : "\n") + one;
  return lines.size() > kLongestAttribute ? "" : lines;
}

}  // namespace

RowAttributes attributes_of(const PredictionSource& source, const std::string& prediction) {
  RowAttributes all;
  const auto say = [&](const char* name, const std::string& text) {
    if (!text.empty()) all[name].text = text;
  };
  say("program", "tutti " + version_short());
  say("data", source.config.data.dataset);
  say("split", source.split);
  say("model", source.config.model.name);
  say("weights", source.weights);
  say("checkpoint", source.found.checkpoint);
  if (!source.found.checkpoint.empty())
    all["step"].numbers = {static_cast<double>(source.found.step)};
  say("prediction", prediction);
  for (const train::PredictionUnits& units : train::prediction_units(source.model)) {
    if (units.prediction != prediction) continue;
    say("field", units.field);
    say("values", units.values);
    say("units", units.unit);
    say("undone", units.undone);
    say("not_undone", units.kept);
    say("classes", class_lines(source.dataset, units.field));
    return all;
  }
  say("values", "read out of the network: no field says what they should be");
  return all;
}

std::vector<data::RowColumn> row_columns(const data::SampleOrigins& origins, int64_t samples) {
  const auto count = static_cast<size_t>(samples);
  std::vector<data::RowColumn> columns = {
      {.name = "index",
       .meaning = "number of the sample in its data set, from 0; of a validation set that was cut "
                  "out of the training set its number there",
       .numbers = origins.number}};
  columns[0].numbers.resize(count);
  if (origins.files.empty()) return columns;
  columns.push_back({.name = "file", .meaning = "file of the sample"});
  for (size_t i = 0; i < count; ++i)
    columns.back().words.push_back(origins.files[static_cast<size_t>(origins.file[i])]);
  if (origins.row.empty()) return columns;
  columns.push_back({.name = "row",
                     .meaning = "number of the sample in its file, from 0; of click logs the line, "
                                "from 1",
                     .numbers = origins.row});
  columns.back().numbers.resize(count);
  return columns;
}

std::string origin_lines(const data::SampleOrigins& origins) {
  std::string text;
  for (size_t i = 0; i < origins.file.size(); ++i) {
    text += origins.files[static_cast<size_t>(origins.file[i])];
    if (!origins.row.empty()) text += fmt::format("\t{}", origins.row[i]);
    text += '\n';
  }
  return text;
}

}  // namespace tutti::cli
