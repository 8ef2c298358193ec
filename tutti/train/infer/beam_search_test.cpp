#include "tutti/train/infer/beam_search.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "tutti/base/error.h"

namespace tutti::train {
namespace {

using SearchTokens = std::vector<int32_t>;

constexpr int32_t kSearchEnd = 3;

/// Logits of the next token, by the tokens written so far: a table of probabilities.
using TokenTable = std::map<SearchTokens, std::array<double, 4>>;

/// Runs the search with a model that sees all tokens written so far.
WrittenSequence searched(const TokenTable& model, const BeamSettings& settings,
                         int* steps = nullptr) {
  BeamSearch search(settings);
  std::vector<SearchTokens> written(static_cast<size_t>(settings.size));
  while (!search.done()) {
    std::vector<float> logits;
    for (const SearchTokens& own : written) {
      const auto known = model.find(own);
      for (size_t k = 0; k < 4; ++k)
        logits.push_back(known == model.end() ? (k == kSearchEnd ? 0.f : -20.f)
                                              : static_cast<float>(std::log(known->second[k]) + 7));
    }
    search.advance(logits);
    std::vector<SearchTokens> next;
    for (size_t i = 0; i < written.size(); ++i) {
      next.push_back(written[static_cast<size_t>(search.from()[i])]);
      next.back().push_back(search.last()[i]);
    }
    written = std::move(next);
    if (steps) ++*steps;
  }
  return search.best();
}

/// The most likely first token leads to less likely sequences.
const TokenTable kGarden{{{}, {0.5, 0.4, 0.05, 0.05}},
                         {{0}, {0.3, 0.25, 0.25, 0.2}},
                         {{1}, {0.01, 0.01, 0.03, 0.95}},
                         {{0, 0}, {0.1, 0.1, 0.1, 0.7}}};

TEST(BeamSearch, OneSequenceTakesTheLikeliestToken) {
  const WrittenSequence found =
      searched(kGarden, {.size = 1, .longest = 8, .end_token = kSearchEnd});
  EXPECT_EQ(found.tokens, (SearchTokens{0, 0}));
  EXPECT_NEAR(found.log_probability, std::log(0.5 * 0.3 * 0.7), 1e-5);
}

TEST(BeamSearch, SeveralFindALikelierSequence) {
  int steps = 0;
  const WrittenSequence found = searched(
      kGarden, {.size = 2, .length_penalty = 0, .longest = 8, .end_token = kSearchEnd}, &steps);
  EXPECT_EQ(found.tokens, (SearchTokens{1}));
  EXPECT_NEAR(found.log_probability, std::log(0.4 * 0.95), 1e-5);
  EXPECT_NEAR(found.score, found.log_probability, 1e-12);
  EXPECT_EQ(steps, 2);  // after that, no followed sequence is as likely
}

TEST(BeamSearch, TheLengthPenaltyFavoursLongSequences) {
  const TokenTable model{{{}, {0.5, 0.01, 0.01, 0.48}},
                         {{0}, {0.01, 0.97, 0.01, 0.01}},
                         {{0, 1}, {0.01, 0.01, 0.03, 0.95}}};
  const BeamSettings settings{
      .size = 3, .length_penalty = 0, .longest = 8, .end_token = kSearchEnd};
  EXPECT_EQ(searched(model, settings).tokens, SearchTokens{});
  BeamSettings long_ones = settings;
  long_ones.length_penalty = 1;
  const WrittenSequence found = searched(model, long_ones);
  EXPECT_EQ(found.tokens, (SearchTokens{0, 1}));
  EXPECT_NEAR(found.score, found.log_probability / (8.0 / 6), 1e-9);  // 3 tokens with the end
}

TEST(BeamSearch, WhatDoesNotEndIsTakenAsItIs) {
  TokenTable model;
  SearchTokens written;
  for (int i = 0; i < 6; ++i) {
    model[written] = {0.9, 0.04, 0.03, 0.03};
    written.push_back(0);
  }
  const WrittenSequence found =
      searched(model, {.size = 1, .length_penalty = 0, .longest = 4, .end_token = kSearchEnd});
  EXPECT_EQ(found.tokens, (SearchTokens{0, 0, 0, 0}));
  EXPECT_NEAR(found.log_probability, 4 * std::log(0.9), 1e-5);
}

TEST(BeamSearch, LogitsThatAreNoNumbersAreRefused) {
  BeamSearch search({.size = 1, .longest = 4, .end_token = 0});
  const std::array<float, 3> logits{0, std::nanf(""), 1};
  EXPECT_THROW(search.advance(logits), ConfigError);
}

}  // namespace
}  // namespace tutti::train
