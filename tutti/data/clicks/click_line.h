#pragma once
// Click logs as text: a line for each time that something was shown to somebody, with numbers,
// categories and whether it was clicked. Criteo's and Avazu's:
//
//   no header          Criteo as Kaggle and the day files have it: the label, 13 whole numbers, 26
//                      categories between tabs (or commas or semicolons); all but the label may be
//                      empty
//   a header           commas, semicolons or tabs; of columns named Label, I1, I2 ... and C1, C2
//                      ... in any order; others, such as Id, are left out
//   a header with hour Avazu: click, hour as YYMMDDHH, of which the hour of the day is the one
//                      number; all other columns but id are categories
//
// Text in quotes is what they enclose, as CSV has it, and "" in it a quote; a number may be a whole
// one with a fraction, "5.0".

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

  std::vector<Kind> kinds{};  ///< of the columns, in their order
  char separator = '\t';
  bool header = false;  ///< the first line names them
  int64_t numbers = 0, categories = 0;
};

/// Whether lines say what was clicked. Files for answers of a competition do not.
enum class ClickLabels : uint8_t { required, may_be_missing };

/// What the columns of a file are, from its first line. BadFile naming `file` where they are
/// neither Criteo's nor Avazu's, or where a label that is required is missing.
ClickColumns click_columns(std::string_view first_line, const std::string& file,
                           ClickLabels labels = ClickLabels::required);

/// How categories become rows of tables. Members `rows` and `bags` have one number for each column
/// of categories.
struct ClickTables {
  std::vector<int64_t> rows{};  ///< of the column's table, 2 or more
  /// The most categories that the column's text may have, between '|'; 1: it is one, whatever is in
  /// it.
  std::vector<int64_t> bags{};
  bool weighted = false;  ///< each category of a bag has a weight behind a ':'; without one it is 1
  const ClickVocabulary* vocabulary = nullptr;  ///< null: rows are hashed
};

/// Where the fields of a line go; spans as long as the columns and bags say. Of a bag with fewer
/// categories than it may have the other places are -1, of weight 0.
struct ClickFields {
  std::span<int32_t> numbers, categories;
  std::span<float> weights;  ///< empty: they are not weighted
  uint8_t* label = nullptr;
};

/// The row of a table with `rows` rows, 2 or more, in which the category `text` of a column is:
/// 0 where it is empty, otherwise 1 + XXH64(text; seed: column) mod (rows - 1). Other rows may be
/// shared by categories.
int32_t category_row(std::string_view text, int64_t column, int64_t rows);

/// Takes a line apart, without its end. Empty numbers are 0. BadFile naming `place`, FILE:LINE, the
/// column, what was expected and found.
void read_click_line(const ClickColumns& columns, std::string_view line, const ClickTables& tables,
                     const std::string& place, const ClickFields& out);

/// Calls look(column among those of categories, text) for each category of a line, with what
/// weight it may have; `bags` as in ClickTables, or one number for all columns.
void for_each_category(const ClickColumns& columns, std::string_view line,
                       const std::vector<int64_t>& bags,
                       const std::function<void(size_t column, std::string_view text)>& look);

}  // namespace tutti::data
