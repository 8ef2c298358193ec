#include "tutti/train/network/table_files.h"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>

#include "tutti/base/error.h"
#include "tutti/base/expect_text.h"
#include "tutti/base/scratch_directory.h"
#include "tutti/keep/checkpoint.h"
#include "tutti/keep/rank_file.h"

namespace tutti::train {
namespace {

/// A table with four rows of three numbers, all on this rank.
plan::Variables one_table() {
  plan::Variables variables;
  variables.tables = {{.variable = {"t", {DType::f32, {4, 3}, {}}, 0, {}}, .rows = {0, 4}}};
  variables.table_bytes = 64;
  return variables;
}

class TableFilesTest : public testing::Test {
 protected:
  /// Writes a checkpoint of one rank whose file has the whole table, as a tensor of this name and
  /// shape.
  std::filesystem::path checkpoint(const std::string& tensor, const Shape& shape) {
    keep::CheckpointWriter writer(scratch_.path(), {}, 1);
    std::vector<float> values(12);
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
    const keep::TensorRef rows{tensor, {DType::f32, shape, {}}, std::as_bytes(std::span(values))};
    keep::write_rank_file(writer.path(), writer.rank_files(), 0, {&rows, 1});
    writer.write({}, {});
    return writer.publish(false, 0);
  }
  /// Returns the error message of reading it; empty: none.
  std::string refusal(const std::filesystem::path& checkpoint) {
    return message_of<Error>("", [&] {
      read_tables(keep::SafetensorsFile(checkpoint / "weights.safetensors"), checkpoint, weights_);
    });
  }

  const ScratchDirectory scratch_;
  const plan::Variables variables_ = one_table();
  Weights weights_{variables_, 1};
};

TEST_F(TableFilesTest, RowsAreReadFromTheFilesOfRanks) {
  EXPECT_EQ(refusal(checkpoint("tables/t@0", {4, 3})), "");
  float last = 0;
  std::memcpy(&last, weights_.tables() + 11 * sizeof(float), sizeof last);
  EXPECT_EQ(last, 11);
}

TEST_F(TableFilesTest, ATensorThatIsNoPartOfATableIsRefused) {
  for (const auto& [name, shape] :
       std::vector<std::pair<std::string, Shape>>{{"tables/t@", {4, 3}},
                                                  {"tables/t@-1", {4, 3}},
                                                  {"tables/t@9223372036854775807", {4, 3}},
                                                  {"tables/t@0", {12}}}) {
    const std::string message = refusal(checkpoint(name, shape));
    EXPECT_TRUE(has_text(message, "ranks/0.safetensors: tensor '" + name));
    EXPECT_TRUE(has_text(message, "take another checkpoint"));
  }
}

TEST_F(TableFilesTest, RowsThatHaveChangedAreNotTaken) {
  const std::filesystem::path changed = checkpoint("tables/t@0", {4, 3});
  const std::filesystem::path file = keep::rank_file_path(changed, 0);
  std::fstream(file, std::ios::in | std::ios::out | std::ios::binary).seekp(-1, std::ios::end)
      << '?';
  EXPECT_TRUE(has_text(refusal(changed), "its content has changed"));
}

}  // namespace
}  // namespace tutti::train
