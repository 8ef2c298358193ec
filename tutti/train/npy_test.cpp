#include "tutti/train/npy.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <vector>

#include "tutti/base/error.h"
#include "tutti/base/scratch_directory.h"
#include "tutti/train/durable_file.h"

namespace tutti {

TEST(Npy, WritesWhatNumpyLoads) {
  const ScratchDirectory scratch;
  const auto path = scratch.path() / "logits.npy";
  const std::array<float, 6> values = {0, 1, 2, 3, 4, -5.5f};
  write_npy(path, {2, 3}, values);
  const std::string text = read_text(path);
  const std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,3,), }";
  ASSERT_EQ(text.size(), 128u + 24u);  // numpy.save writes 128 bytes before the data
  EXPECT_EQ(text.substr(0, 10), std::string("\x93NUMPY\x01\x00\x76\x00", 10));
  EXPECT_EQ(text.substr(10, header.size()), header);
  EXPECT_EQ(text[127], '\n');
  EXPECT_EQ(std::memcmp(text.data() + 128, values.data(), 24), 0);
}

TEST(Npy, NamesTheFileThatCannotBeWritten) {
  try {
    write_npy("/nonexistent/logits.npy", {1}, std::array<float, 1>{});
    FAIL();
  } catch (const IoError& error) {
    EXPECT_NE(std::string(error.what()).find("/nonexistent/logits.npy"), std::string::npos);
  }
}

}  // namespace tutti
