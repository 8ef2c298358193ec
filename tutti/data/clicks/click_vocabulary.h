#pragma once
// A ClickVocabulary gives each frequent category a row of its own in its table, where rows are not
// hashed. It is stored in a text file:
//
//   tutti click vocabulary 1
//   column 2          the number of lines that follow, for the first column of categories
//   68fd1e64          row 1: the most frequent one
//   8cf07265          row 2
//   column 1          for the second column
//   ...
//
// Row 0 is for missing, rare and unknown categories.

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace tutti::data {

class ClickVocabulary {
 public:
  /// Reads logs once. Categories seen fewer than `minimum` times have no row. `bags`: how many
  /// categories a column may have (read_click_line), one number for all or one each; `weighted`:
  /// they have weights.
  static ClickVocabulary of_logs(const std::vector<std::filesystem::path>& logs, int64_t minimum,
                                 const std::vector<int64_t>& bags, bool weighted = false);
  /// Reads a vocabulary. BadFile naming file and line.
  static ClickVocabulary read(const std::filesystem::path& file);
  /// Writes the vocabulary. Throws IoError.
  void write(const std::filesystem::path& file) const;

  size_t columns() const { return words_.size(); }
  /// Returns the rows of the column's table.
  int64_t rows(size_t column) const { return std::ssize(words_[column]) + 1; }
  int32_t row(size_t column, std::string_view text) const;

 private:
  explicit ClickVocabulary(std::vector<std::vector<std::string>> words);

  std::vector<std::vector<std::string>> words_;                      // by column and row - 1
  std::vector<std::unordered_map<std::string_view, int32_t>> rows_;  // views of words_
};

}  // namespace tutti::data
