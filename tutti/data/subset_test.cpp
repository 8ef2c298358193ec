#include "tutti/data/subset.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "tutti/base/error.h"
#include "tutti/base/expect_text.h"
#include "tutti/data/made_set.h"

namespace tutti::data {
namespace {

/// Sample i is the number i.
class Numbers : public MadeSet {
 public:
  explicit Numbers(int64_t size)
      : MadeSet(size, {{.name = "x", .element = ElementType::i32}},
                [](int64_t index, Sample& sample) {
                  *static_cast<int32_t*>(sample.own(0)) = static_cast<int32_t>(index);
                }) {}
};

std::vector<int32_t> numbers_of_samples(const Dataset& set) {
  Sample sample(set.fields());
  std::vector<int32_t> values;
  for (int64_t i = 0; i < set.size(); ++i) {
    set.read(i, sample);
    values.push_back(*static_cast<const int32_t*>(sample.at(0)));
  }
  return values;
}

TEST(Subset, ACutHasEachSampleInOnePartAndKeepsTheirOrder) {
  const ValidationCut cut = cut_validation(std::make_unique<Numbers>(50), 12, 7);
  const std::vector<int32_t> train = numbers_of_samples(*cut.train),
                             held = numbers_of_samples(*cut.validation);
  ASSERT_EQ(train.size(), 38u);
  ASSERT_EQ(held.size(), 12u);
  EXPECT_TRUE(std::ranges::is_sorted(train));
  EXPECT_TRUE(std::ranges::is_sorted(held));
  std::set<int32_t> all(train.begin(), train.end());
  all.insert(held.begin(), held.end());
  EXPECT_EQ(all.size(), 50u);
}

// A prediction file says this about its rows.
TEST(Subset, KnowsWhereItsSamplesComeFrom) {
  class InFiles final : public Numbers {
   public:
    using Numbers::Numbers;
    std::vector<SamplesOfFile> files() const override { return {{"a.h5", 4}, {"b.h5", 6}}; }
  };
  const ValidationCut cut = cut_validation(std::make_unique<InFiles>(10), 4, 7);
  const SampleOrigins origins = cut.validation->origins();
  const std::vector<int32_t> held = numbers_of_samples(*cut.validation);
  EXPECT_EQ(origins.number, (std::vector<int64_t>(held.begin(), held.end())));
  EXPECT_EQ(origins.files, (std::vector<std::string>{"a.h5", "b.h5"}));
  ASSERT_EQ(origins.row.size(), 4u);
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(origins.file[i], held[i] < 4 ? 0 : 1);
    EXPECT_EQ(origins.row[i], held[i] < 4 ? held[i] : held[i] - 4);
  }
  EXPECT_TRUE(Numbers(3).origins().files.empty());
  EXPECT_EQ(Numbers(3).origins().number, (std::vector<int64_t>{0, 1, 2}));
}

TEST(Subset, TheCutDependsOnTheSeedAlone) {
  const auto held = [](uint64_t seed) {
    return numbers_of_samples(*cut_validation(std::make_unique<Numbers>(50), 12, seed).validation);
  };
  EXPECT_EQ(held(7), held(7));
  EXPECT_NE(held(7), held(8));
  // Runs rely on the numbers of a cut staying the same from version to version.
  EXPECT_EQ(
      numbers_of_samples(*cut_validation(std::make_unique<Numbers>(10), 3, 1).validation).size(),
      3u);
}

TEST(Subset, AShareIsAFractionOrACount) {
  EXPECT_EQ(validation_count(0.1, 59), 5);
  EXPECT_EQ(validation_count(1, 59), 1);
  EXPECT_EQ(validation_count(12, 59), 12);
}

TEST(Subset, BothPartsNeedSamples) {
  EXPECT_THROW(cut_validation(std::make_unique<Numbers>(5), 0, 1), ConfigError);
  EXPECT_THROW(cut_validation(std::make_unique<Numbers>(5), 5, 1), ConfigError);
  class Alone final : public Numbers {
   public:
    using Numbers::Numbers;
    std::string how() const override { return "each file is one sample"; }
  };
  EXPECT_TRUE(throws<ConfigError>({"the 1 training sample (each file is one sample): "},
                                  [&] { cut_validation(std::make_unique<Alone>(1), 1, 1); }));
}

}  // namespace
}  // namespace tutti::data
