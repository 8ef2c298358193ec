#include "tutti/data/transform/sample_writer.h"

#include <algorithm>
#include <utility>

#include "tutti/base/error.h"
#include "tutti/data/transform/field_fit.h"

namespace tutti::data {

SampleWriter::SampleWriter(const Dataset& dataset, std::span<const BatchField> fields,
                           std::span<const FieldSteps> steps, uint64_t seed)
    : seed_(seed), fields_(dataset.fields()) {
  for (size_t i = 0; i < steps.size(); ++i) {
    field_index(dataset, steps[i].field);
    if (std::ranges::count(steps, steps[i].field, &FieldSteps::field) > 1)
      throw ConfigError(
          fmt::format("data.transforms names the field '{}' twice: give all its steps in one line",
                      steps[i].field));
  }
  const auto steps_of = [&](const std::string& field) {
    const auto own = std::ranges::find(steps, field, &FieldSteps::field);
    return own != steps.end() ? *own : FieldSteps{.field = field};
  };
  std::vector<std::pair<Field, Placement>> left;
  for (const BatchField& field : fields) {
    const size_t index = field_index(dataset, field.field);
    const FieldSteps given = steps_of(field.field);
    const Field& own_field = fields_[index];
    check_class_count(own_field, field.classes);
    std::optional<DerivedField> derived;
    std::optional<ImageField> image;
    if (own_field.coded || given.derivation.resized)
      image.emplace(own_field, given.derivation);
    else if (!given.derivation.is_identity())
      derived.emplace(own_field, given.derivation);
    const Field& taken = image ? image->field() : derived ? derived->field() : own_field;
    FieldWriter writer(taken, given, field.desc, field.rows);
    left.push_back({taken, given.placement});
    has_chance_ = has_chance_ || image;
    writers_.push_back({index, std::move(derived), std::move(image), std::move(writer),
                        own_field.class_names.empty() ? field.classes : 0});
    reads_rows_ = reads_rows_ || field.rows;
    has_chance_ = has_chance_ || given.placement.has_chance();
    CHECK(field.desc.shape[0] == fields.front().desc.shape[0], "tensors of one minibatch");
  }
  for (const auto& [field, placement] : left)
    for (const auto& [other, of_other] : left) check_moved_same(field, placement, other, of_other);
}

void SampleWriter::write(const Sample& sample, std::optional<int64_t> epoch, int64_t index,
                         int64_t position, std::span<void* const> batch) const {
  std::optional<Chance> chance;
  if (epoch && has_chance_) chance.emplace(seed_, *epoch, index);
  std::vector<float> memory;
  for (size_t i = 0; i < writers_.size(); ++i) {
    const Writer& own = writers_[i];
    const void* stored = sample.at(own.field);
    if (own.classes > 0) check_class_numbers(fields_[own.field], own.classes, stored, index);
    if (own.image)
      stored =
          own.image->make(sample.coded_at(own.field), sample.origin(), chance ? &*chance : nullptr);
    else if (own.derived)
      stored = own.derived->make(stored, memory);
    own.writer.write(stored, chance ? &*chance : nullptr, position, batch[i]);
  }
}

void SampleWriter::wanted_rows(std::optional<int64_t> epoch, int64_t index,
                               std::vector<FieldRows>& rows) const {
  std::optional<Chance> chance;
  if (epoch && has_chance_) chance.emplace(seed_, *epoch, index);
  rows.assign(fields_.size(), {});
  for (size_t i = 0; i < writers_.size(); ++i) {
    const bool twice = std::ranges::count(writers_, writers_[i].field, &Writer::field) > 1;
    if (!twice && !writers_[i].derived && !writers_[i].image)
      rows[writers_[i].field] = writers_[i].writer.stored_rows(chance ? &*chance : nullptr);
  }
}

}  // namespace tutti::data
