#include "tutti/base/name_pattern.h"

#include <gtest/gtest.h>

#include <array>

#include "tutti/base/error.h"
#include "tutti/base/expect_text.h"

namespace tutti {

TEST(NamePattern, TheFirstLineThatFitsCounts) {
  const std::array lines{parse_pattern_value("k", "fc1.*: 0.02"),
                         parse_pattern_value("k", " *.weight :1e-4")};
  EXPECT_EQ(lines[1], (PatternValue{"*.weight", 1e-4}));
  EXPECT_EQ(first_fit(lines, "fc1.weight"), 0);
  EXPECT_EQ(first_fit(lines, "fc2.weight"), 1);
  EXPECT_EQ(first_fit(lines, "fc2.bias"), -1);
}

TEST(NamePattern, RefusesWhatIsNoLine) {
  for (const char* line : {"", "fc1.weight", ": 1", "fc1.weight:", "fc1.weight: much",
                           "fc1.weight: nan", "fc1.weight: 1 2"})
    EXPECT_THROW(parse_pattern_value("optimizer.decay", line), ConfigError) << line;
}

TEST(NamePattern, NamesWhatThereIs) {
  const std::array<std::string, 2> names{"conv1.weight", "fc.weight"};
  require_fit("model.freeze", "conv*", names);
  EXPECT_EQ(message_of<ConfigError>([&] { require_fit("model.freeze", "layer1.*", names); }),
            "model.freeze: nothing is called 'layer1.*'; there are conv1.weight, fc.weight");
  EXPECT_EQ(list_of_names(std::vector<std::string>(30, "x")).size(), 20 * 3 - 2 + 5u);
}

}  // namespace tutti
