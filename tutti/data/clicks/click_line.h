#pragma once
// Reads click logs as text: a line for each impression, with numbers, categories and whether it was
// clicked, in the formats of Criteo and Avazu:
//
//   no header          Criteo as Kaggle and the day files have it: the label, 13 whole numbers, 26
//                      categories between tabs (or commas or semicolons); all but the label may be
//                      empty
//   a header           commas, semicolons or tabs; of columns named Label, I1, I2 ... and C1, C2
//                      ... in any order; others, such as Id, are left out
//   a header with hour Avazu: click, hour as YYMMDDHH, of which the hour of the day is the one
//                      number; all other columns but id are categories
//
// Text in quotes stands for its content, as in CSV, and "" in it for a quote; a number may be a
// whole one with a fraction, "5.0".

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tutti/data/clicks/click_vocabulary.h"

namespace tutti::data {

struct ClickColumns {
  enum class Kind : uint8_t { label, number, hour, category, none };

  std::vector<Kind> kinds{};  ///< kinds of the columns, in their order
  char separator = '\t';
  bool header = false;  ///< the first line names the columns
  int64_t numbers = 0, categories = 0;
};

/// Says whether lines must have a label. Files for a competition's answers have none.
enum class ClickLabels : uint8_t { required, may_be_missing };

/// Finds the columns of a file from its first line. BadFile naming `file` where they are neither
/// Criteo's nor Avazu's, or where a required label is missing.
ClickColumns click_columns(std::string_view first_line, const std::string& file,
                           ClickLabels labels = ClickLabels::required);

/// Says how categories become rows of tables. Members `rows` and `bags` have one number for each
/// column of categories.
struct ClickTables {
  std::vector<int64_t> rows{};  ///< rows of the column's table, 2 or more
  /// The most categories, separated by '|', in the column's text; 1: the whole text is one
  /// category.
  std::vector<int64_t> bags{};
  bool weighted = false;  ///< each category of a bag may have a weight after a ':'; default 1
  const ClickVocabulary* vocabulary = nullptr;  ///< null: rows are hashed
};

/// Says where the fields of a line go; the spans are as long as the columns and bags say. A bag
/// with fewer categories than its most is filled with -1, of weight 0.
struct ClickFields {
  std::span<int32_t> numbers, categories;
  std::span<float> weights;  ///< empty: categories have no weights
  uint8_t* label = nullptr;
};

/// Returns the row, in a table with `rows` rows, 2 or more, of the category `text` of a column: 0
/// if it is empty, otherwise 1 + XXH64(text; seed: column) mod (rows - 1). Categories may share
/// rows other than 0.
int32_t category_row(std::string_view text, int64_t column, int64_t rows);

/// Parses a line, given without its end. Empty numbers are 0. BadFile naming `place`, FILE:LINE,
/// the column, what was expected and what was found.
void read_click_line(const ClickColumns& columns, std::string_view line, const ClickTables& tables,
                     const std::string& place, const ClickFields& out);

/// Calls look(index among the columns of categories, text) for each category of a line, including
/// its weight if it has one; `bags` as in ClickTables, or one number for all columns.
void for_each_category(const ClickColumns& columns, std::string_view line,
                       const std::vector<int64_t>& bags,
                       const std::function<void(size_t column, std::string_view text)>& look);

}  // namespace tutti::data
