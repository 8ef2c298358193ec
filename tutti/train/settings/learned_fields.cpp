// A checkpoint stores these facts about the fields that a network learns (settings.h).

#include "tutti/train/settings/specs.h"

namespace tutti::train {
namespace {

using StatisticNumbers = std::map<std::string, std::vector<float>>;

StatisticNumbers statistic_numbers(const data::FieldStatistics& known) {
  StatisticNumbers all = {{"mean", known.mean},
                          {"std", known.deviation},
                          {"min", known.least},
                          {"max", known.greatest}};
  std::erase_if(all, [](const auto& one) { return one.second.empty(); });
  return all;
}

data::FieldStatistics statistics_of(StatisticNumbers known) {
  return {known["mean"], known["std"], known["min"], known["max"]};
}

}  // namespace

std::vector<keep::LearnedField> learned_fields(const std::vector<data::Field>& targets) {
  std::vector<keep::LearnedField> learned;
  for (const data::Field& field : targets)
    learned.push_back({.name = field.name,
                       .shape = {field.shape.begin(), field.shape.end()},
                       .classes = std::ssize(field.class_names),
                       .unit = field.unit,
                       .statistics = statistic_numbers(field.statistics)});
  return learned;
}

std::vector<data::Field> fields_of(const std::vector<keep::LearnedField>& learned) {
  std::vector<data::Field> fields;
  for (const keep::LearnedField& one : learned)
    fields.push_back({.name = one.name,
                      .element = one.classes > 0 ? data::ElementType::u8 : data::ElementType::f32,
                      .shape = Shape(std::span<const int64_t>(one.shape)),
                      .class_names = std::vector<std::string>(static_cast<size_t>(one.classes)),
                      .statistics = statistics_of(one.statistics),
                      .unit = one.unit});
  return fields;
}

}  // namespace tutti::train
