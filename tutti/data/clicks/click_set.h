#pragma once
// A ClickSet has the lines of click logs as samples:
//
//   dense       i32, the line's numbers; empty ones are 0
//   label       u8, 1 where it was clicked; 0 where it was not, or the line has no label
//   categories  i32, the row of each category in its table; -1 where a bag has fewer
//   weights     f32, the weight of each category, where bags are weighted

#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tutti/data/clicks/click_line.h"
#include "tutti/data/dataset.h"

namespace tutti::data {

struct ClickSetSpec {
  std::vector<std::filesystem::path> files{};
  /// Rows of the categories' tables: one number for all tables, or one for each.
  std::vector<int64_t> rows{100'000};
  /// The most categories of a column in a line: one number, or one for each column (click_line.h).
  std::vector<int64_t> bags{1};
  bool weighted = false;
  std::filesystem::path vocabulary{};  ///< file of a ClickVocabulary; empty: categories are hashed
  ClickLabels labels = ClickLabels::required;
};

class ClickSet final : public Dataset {
 public:
  /// Walks over the files once to find their lines; keeps one number per 16 lines. The lines'
  /// content is checked when they are read. BadFile for files that are missing, empty, compressed
  /// or have other columns than the first; ConfigError for rows that do not fit.
  explicit ClickSet(const ClickSetSpec& spec);

  int64_t size() const override { return size_; }
  const std::vector<Field>& fields() const override { return fields_; }
  void read(int64_t index, Sample& sample) const override;
  std::vector<SamplesOfFile> files() const override;
  SampleOrigins origins() const override;  ///< the numbers of lines
  /// Returns the file of a sample, and the number of its line as an editor shows it.
  std::pair<std::string, int64_t> place(int64_t index) const;

 private:
  struct Log;
  const Log& log_of(int64_t index) const;
  std::vector<std::shared_ptr<const Log>> logs_;       // shared as the type is incomplete here
  std::shared_ptr<const ClickVocabulary> vocabulary_;  // not shared; null: categories are hashed
  ClickTables tables_;
  int64_t size_ = 0;
  std::vector<Field> fields_;
};

}  // namespace tutti::data
