#include "tutti/data/transform/field_fit.h"

#include <gtest/gtest.h>

#include <cstring>

#include "tutti/base/error.h"
#include "tutti/base/expect_text.h"
#include "tutti/data/made_set.h"
#include "tutti/data/transform/sample_writer.h"

namespace tutti::data {
namespace {

TEST(FieldFit, ExtentsOfOneCountAsAbsent) {
  const std::vector<std::pair<Shape, Shape>> cases = {{Shape{}, Shape{2, 1}},
                                                      {Shape{1}, Shape{2}},
                                                      {Shape{1, 2, 3}, Shape{2, 2, 3}},
                                                      {Shape{2, 3}, Shape{2, 1, 2, 3}},
                                                      {Shape{2, 1, 3}, Shape{2, 2, 3, 1}}};
  for (const auto& [stored, taken] : cases)
    for (const DType type : {DType::i32, DType::f32}) {
      const Field field{.name = "y", .element = ElementType::i64, .shape = stored};
      const FieldWriter writer(field, {.field = "y"}, {type, taken, {}});
      const std::vector<int64_t> values = {4, 1, 3, 5, 2, 6};
      std::vector<int32_t> batch(12, -1);
      writer.write(values.data(), nullptr, 1, batch.data());
      const auto each = static_cast<size_t>(field.elements());
      for (size_t i = 0; i < each; ++i) {
        float number = 0;
        std::memcpy(&number, &batch[each + i], sizeof number);
        EXPECT_EQ(type == DType::i32 ? batch[each + i] : static_cast<int32_t>(number), values[i])
            << stored.to_string() << " as " << taken.to_string();
      }
    }
}

TEST(FieldFit, TargetsThatDoNotFitNameTheRemedy) {
  const auto refused = [](const Field& field, const TensorDesc& batch, const std::string& why) {
    EXPECT_TRUE(throws<ConfigError>({why}, [&] {
      FieldWriter(field, {.field = field.name}, batch);
    })) << field.to_string();
  };
  const auto f32 = ElementType::f32;
  refused({.name = "y", .element = f32, .shape = {24, 24}}, {DType::f32, {2, 576}, {}}, "'as 576'");
  refused({.name = "y", .element = f32, .shape = {4}}, {DType::i32, {2}, {}}, "\"regress\"");
  refused({.name = "y", .shape = {8, 8}}, {DType::i32, {2}, {}}, "\"segment\"");
  refused({.name = "y", .class_names = {"a", "b", "c"}}, {DType::f32, {2, 3}, {}}, "\"classify\"");
}

TEST(FieldFit, LabelsBeyondTheNetworksOutputsAreRefused) {
  const auto labelled = [](Field field) {
    return MadeSet(5, {std::move(field)}, [](int64_t index, Sample& sample) {
      *static_cast<int64_t*>(sample.own(0)) = index < 4 ? index : -1;
    });
  };
  const Field labels{.name = "label", .element = ElementType::i64};
  Field named = labels;
  named.class_names = {"a", "b", "c", "d"};
  const std::vector<BatchField> three = {{"label", {DType::i32, {1}, {}}, {}, 3}},
                                one = {{"label", {DType::i32, {1}, {}}, {}, 1}};
  EXPECT_THROW(SampleWriter(labelled(named), three, {}, 3), ConfigError);
  EXPECT_THROW(SampleWriter(labelled(labels), one, {}, 3), ConfigError);
  const MadeSet set = labelled(labels);
  const SampleWriter writer(set, three, {}, 3);
  Sample sample(set.fields());
  int32_t label = 0;
  const std::vector<void*> batch = {&label};
  for (int64_t i = 0; i < set.size(); ++i) {
    set.read(i, sample);
    if (i < 3) {
      writer.write(sample, 0, i, 0, batch);
      EXPECT_EQ(label, i);
      continue;
    }
    EXPECT_TRUE(throws<ConfigError>({fmt::format("sample {}", i), "'label'", "classes N"}, [&] {
      writer.write(sample, 0, i, 0, batch);
    })) << i;
  }
}

TEST(FieldFit, AMaskIsMovedAsItsImageIs) {
  const MadeSet set(
      1,
      {{.name = "image", .shape = {3, 8, 8}}, {.name = "mask", .shape = {8, 8}}, {.name = "label"}},
      [](int64_t, Sample&) {});
  const std::vector<BatchField> masked = {{"image", {DType::f32, {1, 3, 8, 8}, {}}},
                                          {"mask", {DType::i32, {1, 8, 8}, {}}}},
                                labelled = {{"image", {DType::f32, {1, 3, 8, 8}, {}}},
                                            {"label", {DType::i32, {1}, {}}}};
  for (const char* steps : {"flip x", "symmetries x y", "crop pad 2"}) {
    const FieldSteps image = parse_steps(fmt::format("image: {}", steps)),
                     mask = parse_steps(fmt::format("mask: {}", steps));
    EXPECT_THROW(SampleWriter(set, masked, std::vector{image}, 3), ConfigError) << steps;
    EXPECT_THROW(SampleWriter(set, masked, std::vector{mask}, 3), ConfigError) << steps;
    EXPECT_NO_THROW(SampleWriter(set, masked, std::vector{image, mask}, 3)) << steps;
    EXPECT_NO_THROW(SampleWriter(set, labelled, std::vector{image}, 3)) << steps;
  }
}

}  // namespace
}  // namespace tutti::data
