#include "tutti/cli/arguments.h"

#include <gtest/gtest.h>

namespace tutti {

using Words = std::vector<std::string>;

TEST(Arguments, SpellingsBecomeOne) {
  EXPECT_EQ(normalise_arguments({"train", "a_b.toml", "--batch_size=6_4", "-v"}),
            (Words{"train", "a_b.toml", "--batch-size=6_4", "-v"}));
  EXPECT_EQ(normalise_arguments({"--data_dir", "a_b"}), (Words{"--data-dir", "a_b"}));
  EXPECT_EQ(normalise_arguments({"--optimizer.weight_decay=1e-4"}),
            (Words{"--set=optimizer.weight_decay=1e-4"}));
  EXPECT_EQ(normalise_arguments({"--optimizer.weight-decay", "1e-4", "x"}),
            (Words{"--set=optimizer.weight_decay=1e-4", "x"}));
  EXPECT_EQ(normalise_arguments({"--resume", "run.toml"}), (Words{"--resume=latest", "run.toml"}));
  EXPECT_EQ(normalise_arguments({"--resume=dir_1"}), (Words{"--resume=dir_1"}));
  EXPECT_EQ(normalise_arguments({"--", "--a_b"}), (Words{"--", "--a_b"}));
}

}  // namespace tutti
