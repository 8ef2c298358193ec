#include "tutti/cli/inspect_arrays.h"

#include <gtest/gtest.h>

#include "tutti/base/scratch_directory.h"
#include "tutti/data/format/hdf5_arrays.h"

namespace tutti {
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
  EXPECT_NE(found.text.find("280 to 290, 1 missing, K; stored as i16, times scale_factor 0.5, plus "
                            "add_offset 280"),
            std::string::npos)
      << found.text;
  const std::string configuration = suggested_configuration(
      found.arrays, {.dir = scratch.path(), .train = {"packed.nc"}, .validation = {}, .test = {}});
  // The seven values that are there have the mean 285: the others do not count as 0 K.
  EXPECT_NE(configuration.find("missing 285"), std::string::npos) << configuration;
  EXPECT_NE(configuration.find("normalise mean 285 std 3.77964"), std::string::npos)
      << configuration;
}

}  // namespace
}  // namespace tutti
