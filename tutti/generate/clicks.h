#pragma once
// A click log from a seed, in Criteo's format. Categories are drawn by Zipf's law, numbers are
// log-normal counts, and whether it was clicked is drawn with a probability whose logit is
//
//   b + sum of what each category adds + sum over pairs of columns of <u, v> + sum of a x
//
// with a weight and a vector of kClickVector numbers for each category, and x = log(1 + number)
// less its mean. So it takes tables and products of their rows to know it. What is missing adds
// nothing. Columns are independent of each other, which those of real logs are not, and nothing
// changes in the course of time.

#include <array>
#include <cstdint>
#include <string>

namespace tutti::data {

inline constexpr int kClickNumbers = 13, kClickCategories = 26, kClickVector = 4;
/// Test lines are those from here on.
inline constexpr int64_t kFirstTestClick = 1'000'000'000'000;

struct ClickSpec {
  uint64_t seed = 1;
  int64_t vocabulary = 10'000;  ///< categories of the largest column; the smallest has 4
};

struct Click {
  std::array<int32_t, kClickNumbers> numbers{};        ///< -1: missing
  std::array<int64_t, kClickCategories> categories{};  ///< from 0, the most frequent; -1: missing
  double logit = 0;                                    ///< of the probability of a click
  bool clicked = false;
};

/// How many categories the column has.
int64_t click_vocabulary(const ClickSpec& spec, int column);
/// A pure function of both.
Click generate_click(const ClickSpec& spec, int64_t index);
/// As it stands in the file, with the line's end.
std::string click_line(const ClickSpec& spec, const Click& click);

}  // namespace tutti::data
