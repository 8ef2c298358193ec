#include "tutti/generate/clicks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "tutti/base/scratch_directory.h"
#include "tutti/data/clicks/click_set.h"
#include "tutti/data/open/open.h"
#include "tutti/generate/sample_sets.h"

namespace tutti::generate {
namespace {

constexpr int64_t kLines = 4000;

std::vector<Click> clicks(const ClickSpec& spec) {
  std::vector<Click> all;
  for (int64_t i = 0; i < kLines; ++i) all.push_back(generate_click(spec, i));
  return all;
}

/// Returns the share of pairs of a clicked and an unclicked line with a greater `score` for the
/// clicked one.
template <class Score>
double share_in_order(const std::vector<Click>& all, Score score) {
  double right = 0, pairs = 0;
  for (const Click& one : all)
    for (const Click& zero : all) {
      if (!one.clicked || zero.clicked) continue;
      ++pairs;
      right += score(one) > score(zero) ? 1 : score(one) == score(zero) ? 0.5 : 0;
    }
  return right / pairs;
}

TEST(GeneratedClicks, AreAFunctionOfSeedAndIndex) {
  const ClickSpec spec{.seed = 3};
  const std::string line = click_line(spec, generate_click(spec, 7));
  EXPECT_EQ(line, click_line(spec, generate_click(spec, 7)));
  EXPECT_NE(line, click_line(spec, generate_click(spec, 8)));
  EXPECT_NE(line, click_line({.seed = 4}, generate_click({.seed = 4}, 7)));
  EXPECT_EQ(std::ranges::count(line, '\t'), kClickNumbers + kClickCategories);
  EXPECT_EQ(line.find('\n'), line.size() - 1);
}

TEST(GeneratedClicks, AreWhatTheLogitSays) {
  const std::vector<Click> all = clicks({});
  const auto clicked = std::ranges::count_if(all, &Click::clicked);
  EXPECT_GT(clicked, kLines / 8);
  EXPECT_LT(clicked, kLines / 2);
  const double best = share_in_order(all, [](const Click& c) { return c.logit; });
  EXPECT_GT(best, 0.8);
  EXPECT_LT(best, 0.95);
}

TEST(GeneratedClicks, CategoriesAreDrawnByZipfsLaw) {
  const ClickSpec spec{.vocabulary = 1000};
  int largest = 0;
  for (int c = 1; c < kClickCategories; ++c)
    if (click_vocabulary(spec, c) > click_vocabulary(spec, largest)) largest = c;
  EXPECT_EQ(click_vocabulary(spec, largest), 1000);
  std::vector<int> drawn(1000);
  for (const Click& click : clicks(spec)) {
    const int64_t category = click.categories[static_cast<size_t>(largest)];
    ASSERT_LT(category, 1000);
    if (category >= 0) ++drawn[static_cast<size_t>(category)];
  }
  // log(2) / log(1001) and log(11/10) / log(1001) of the lines, minus those where it is missing
  EXPECT_NEAR(drawn[0], 0.1 * kLines, 0.02 * kLines);
  EXPECT_NEAR(drawn[9], 0.0138 * kLines, 0.008 * kLines);
}

TEST(GeneratedClicks, AreReadAsTheyWereMade) {
  const ScratchDirectory scratch;
  const ClickSpec spec{.seed = 5, .vocabulary = 50};
  write_clicks(scratch.path(), spec, {.train = 100, .test = 40}, 2);
  for (const bool train : {true, false}) {
    const auto set = data::open_dataset({.name = "clicks",
                                         .dir = scratch.path(),
                                         .split = train ? "train" : "validation",
                                         .clicks = {.rows = {1000}}});
    ASSERT_EQ(set->size(), train ? 100 : 40);
    ASSERT_EQ(set->fields().size(), 3u);
    data::Sample sample(set->fields());
    std::set<int64_t> rows, categories;
    for (int64_t i = 0; i < set->size(); ++i) {
      const Click click = generate_click(spec, (train ? 0 : kFirstTestClick) + i);
      set->read(i, sample);
      EXPECT_EQ(*static_cast<const uint8_t*>(sample.at(1)), click.clicked);
      for (size_t k = 0; k < kClickNumbers; ++k)
        EXPECT_EQ(static_cast<const int32_t*>(sample.at(0))[k], std::max(0, click.numbers[k]));
      rows.insert(static_cast<const int32_t*>(sample.at(2))[3]);
      categories.insert(click.categories[3]);
    }
    EXPECT_EQ(rows.size(), categories.size());  // no collisions among so many rows
  }
}

}  // namespace
}  // namespace tutti::generate
