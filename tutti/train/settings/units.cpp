#include "tutti/train/settings/units.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "tutti/models/registry.h"
#include "tutti/train/network/evaluation_network.h"
#include "tutti/train/settings/specs.h"

namespace tutti::train {
namespace {

void append_words(std::string& text, const std::string& words) {
  if (!words.empty()) text += (text.empty() ? "" : ", ") + words;
}

std::string_view meaning_of(const models::Objective& objective) {
  switch (*objective.task) {
    case models::TaskKind::classify:
    case models::TaskKind::segment: return "outputs before the softmax, one a class";
    case models::TaskKind::language:
      return "-log of the probability of each token, natural logarithm";
    case models::TaskKind::regress: break;
  }
  return is_of_data(objective) ? "numbers in the units of the data"
                               : "logits: above 0 stands for one, below it for zero";
}

}  // namespace

void note_units(const data::Field& field, const data::FieldSteps& steps,
                models::ModelField& noted) {
  const data::ValueFunction values = data::value_function(field, steps);
  const data::Derivation& made = steps.derivation;
  const data::Placement& placed = steps.placement;
  noted.undone = values.undone();
  if (made.resized) append_words(noted.kept, "resized-crop");
  if (!made.selection.empty()) append_words(noted.kept, "select " + made.selection);
  if (made.radius) append_words(noted.kept, fmt::format("contacts {}", *made.radius));
  if (!placed.permute.empty())
    append_words(noted.kept, fmt::format("permute {}", fmt::join(placed.permute, " ")));
  if (placed.crops && !placed.extents.empty())
    append_words(noted.kept, fmt::format("crop {}", fmt::join(placed.extents, " ")));
  append_words(noted.kept, values.kept());
  if (!values.forgets()) noted.unit = data::derived_field(field, made).unit;
}

std::vector<data::ValueFunction> steps_of_targets(const config::RunConfig& config,
                                                  const data::Dataset& dataset,
                                                  const EvaluationNetwork& network) {
  const std::vector<data::FieldSteps> steps = field_steps(config.data);
  std::vector<data::ValueFunction> all;
  for (const data::BatchField& target : network.targets) {
    const auto own = std::ranges::find(steps, target.field, &data::FieldSteps::field);
    all.push_back(
        data::value_function(data::field_named(dataset, target.field),
                             own == steps.end() ? data::FieldSteps{.field = target.field} : *own));
  }
  return all;
}

std::string PredictionUnits::sentence() const {
  if (unit.empty() && undone.empty() && kept.empty()) return "";
  std::string text = fmt::format("predictions of '{}' and errors as mae are in {}", field,
                                 unit.empty() ? "the units of the data" : unit);
  if (!undone.empty())
    text += fmt::format(": '{}' is undone; losses are of the transformed numbers", undone);
  if (!kept.empty()) text += fmt::format("; '{}' is not undone", kept);
  return text;
}

std::vector<PredictionUnits> prediction_units(const models::ModelSpec& model) {
  std::vector<PredictionUnits> units;
  for (const models::Objective& objective : models::objectives_of(model)) {
    PredictionUnits one{.prediction = objective.name,
                        .field = objective.target,
                        .values = std::string(meaning_of(objective))};
    const auto field =
        std::ranges::find(model.targets, objective.target, &models::ModelField::name);
    if (is_of_data(objective) && field != model.targets.end()) {
      one.unit = field->unit;
      one.undone = field->undone;
      one.kept = field->kept;
    }
    units.push_back(std::move(one));
  }
  return units;
}

std::vector<std::string> unit_sentences(const models::ModelSpec& model) {
  std::vector<std::string> sentences;
  for (const PredictionUnits& one : prediction_units(model))
    if (std::string text = one.sentence(); !text.empty()) sentences.push_back(std::move(text));
  return sentences;
}

}  // namespace tutti::train
