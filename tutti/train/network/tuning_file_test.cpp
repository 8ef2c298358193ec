#include "tutti/train/network/tuning_file.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "tutti/base/scratch_directory.h"

namespace tutti::train {
namespace {

class TuningFile : public testing::Test {
 protected:
  void put(std::string_view text) const { std::ofstream(file_) << text; }
  std::string text() const {
    std::stringstream all;
    all << std::ifstream(file_).rdbuf();
    return all.str();
  }
  static plan::Choices measured() {
    plan::Choices choices;
    choices.record("relu f32 4 -> f32 4", "vectorised");
    return choices;
  }
  const ScratchDirectory scratch_;
  const std::filesystem::path file_ = scratch_.path() / "tuning.txt";
};

TEST_F(TuningFile, KeepsWhatWasMeasured) {
  write_tuning_file(file_, measured());
  EXPECT_EQ(read_tuning_file(file_).to_string(), measured().to_string());
}

TEST_F(TuningFile, ItMayHaveBeenCopiedByAProgramOfWindows) {
  put("\xef\xbb\xbfrelu f32 4 -> f32 4\tvectorised\r\n");
  EXPECT_EQ(read_tuning_file(file_).to_string(), measured().to_string());
}

TEST_F(TuningFile, ADamagedOneIsWrittenAnew) {
  put("relu f32 4 -> f32 4\tvectorised\nrelu f32 8 -");
  EXPECT_TRUE(read_tuning_file(file_).empty());
  write_tuning_file(file_, measured());
  EXPECT_EQ(text(), measured().to_string());
}

// A mistyped path may name a user's data, which must not be lost.
TEST_F(TuningFile, AFileOfAnotherKindIsLeftAsItIs) {
  for (const std::string_view other :
       {"1\t\t5\t68fd1e64\n0\t2\t\t80e26c9b\n", "a text\n", "{\"weights\": 1}", "a -> b\n"}) {
    put(other);
    EXPECT_TRUE(read_tuning_file(file_).empty());
    write_tuning_file(file_, measured());
    EXPECT_EQ(text(), other);
  }
}

}  // namespace
}  // namespace tutti::train
