#include "tutti/cli/data/inspect_arrays.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tutti/base/expect_text.h"
#include "tutti/base/scratch_directory.h"
#include "tutti/data/format/array/hdf5_arrays.h"

namespace tutti::cli {
namespace {

TEST(InspectArrays, ValuesAreThoseOfAFieldAndTheSuggestionLeavesOutWhatIsMissing) {
  const ScratchDirectory scratch;
  const std::filesystem::path file = scratch.path() / "packed.nc";
  const std::vector<int16_t> packed = {0, 10, -999, 20, 10, 10, 0, 20};
  std::vector<data::ArrayRef> arrays = {
      {.name = "t", .type = data::ElementType::i16, .shape = {2, 2, 2}, .values = packed.data()}};
  arrays[0].attributes = {{"scale_factor", {.numbers = {0.5}}},
                          {"add_offset", {.numbers = {280}}},
                          {"_FillValue", {.numbers = {-999}}},
                          {"units", {.text = "K"}}};
  data::write_hdf5(file, arrays);
  const Inspected found = inspect_arrays(file);
  EXPECT_TRUE(has_text(found.text,
                       "280 to 290, 1 missing, K; stored as i16, times scale_factor 0.5, plus "
                       "add_offset 280"));
  const std::string configuration = suggested_configuration(
      found.arrays, {.dir = scratch.path(), .train = {"packed.nc"}, .validation = {}, .test = {}});
  // The seven values that are present have the mean 285: missing ones do not count as 0 K.
  EXPECT_TRUE(has_text(configuration, "missing 285"));
  EXPECT_TRUE(has_text(configuration, "normalise mean 285 std 3.77964"));
}

/// Returns the suggestion for a file.
std::string suggested(const std::filesystem::path& file) {
  return suggested_configuration(inspect_arrays(file).arrays, {.dir = file.parent_path(),
                                                               .train = {file.filename().string()},
                                                               .validation = {},
                                                               .test = {}});
}

/// Writes x of float32 [rows, 4] and y of int64, alternately 0 and 1.
std::filesystem::path rows_file(const ScratchDirectory& scratch, int64_t rows, int64_t labels) {
  const std::filesystem::path file = scratch.path() / fmt::format("{}_{}.h5", rows, labels);
  std::vector<float> x(static_cast<size_t>(rows * 4));
  std::vector<int64_t> y(static_cast<size_t>(labels));
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);
  for (size_t i = 0; i < y.size(); ++i) y[i] = static_cast<int64_t>(i % 2);
  data::write_hdf5(
      file,
      std::vector<data::ArrayRef>{
          {.name = "x", .type = data::ElementType::f32, .shape = {rows, 4}, .values = x.data()},
          {.name = "y", .type = data::ElementType::i64, .shape = {labels}, .values = y.data()}});
  return file;
}

TEST(DataSuggestion, TakesValidationOutOfTheTrainingSetAndABatchFromTheRest) {
  const ScratchDirectory scratch;
  const std::string many = suggested(rows_file(scratch, 20, 20));
  EXPECT_TRUE(has_text(many, "\nvalidation = 0.1  #"));
  EXPECT_FALSE(has_text(many, "validation_files"));
  const std::string few = suggested(rows_file(scratch, 8, 8));
  EXPECT_TRUE(has_text(few, "\nvalidation = 2  #"));
  EXPECT_TRUE(has_text(few, "\nglobal = 6\n"));
}

TEST(DataSuggestion, SaysThatFirstAxesDiffer) {
  const ScratchDirectory scratch;
  const std::string cut = suggested(rows_file(scratch, 20, 10));
  EXPECT_TRUE(has_text(cut, "input has 20, target has 10"));
}

TEST(DataSuggestion, LearnsNoLabelsFromLabels) {
  const ScratchDirectory scratch;
  const FoundArray labels{.name = "y", .whole_numbers = true, .wide = true, .shape = {20}},
      lost{.name = "x", .unreadable = true};
  const std::string none =
      suggested_configuration({lost, labels}, {.dir = scratch.path(),
                                               .train = {rows_file(scratch, 20, 20).string()},
                                               .validation = {},
                                               .test = {}});
  EXPECT_TRUE(has_text(none, "'x' cannot be read"));
  EXPECT_FALSE(has_text(none, "[model]"));
}

}  // namespace
}  // namespace tutti::cli
