#include "tutti/device/cpu/buffer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>

#include "tutti/base/error.h"
#include "tutti/base/scratch_directory.h"

namespace tutti::device {
namespace {

TEST(Buffer, IsAlignedZeroedAndWritable) {
  for (const size_t bytes : {size_t{1}, size_t{100}, Buffer::kHugePage - 1, Buffer::kHugePage,
                             3 * Buffer::kHugePage + 5}) {
    const Buffer buffer(bytes);
    EXPECT_EQ(buffer.bytes(), bytes);
    const size_t alignment = bytes >= Buffer::kHugePage ? Buffer::kHugePage : Buffer::kAlignment;
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.data()) % alignment, 0u);
    const auto all = buffer.as<uint8_t>();
    EXPECT_TRUE(std::all_of(all.begin(), all.end(), [](uint8_t b) { return b == 0; }));
    std::fill(all.begin(), all.end(), uint8_t{7});
    EXPECT_EQ(all.back(), 7);
  }
}

TEST(Buffer, MovesItsMemory) {
  Buffer a(256);
  std::byte* const data = a.data();
  Buffer b(std::move(a));
  EXPECT_EQ(b.data(), data);
  EXPECT_EQ(a.data(), nullptr);
  EXPECT_EQ(a.bytes(), 0u);
  Buffer c(Buffer::kHugePage);
  c = std::move(b);
  EXPECT_EQ(c.data(), data);
  EXPECT_EQ(c.as<float>().size(), 64u);
}

TEST(Buffer, OfAFileIsZeroedAndLeavesNothing) {
  const ScratchDirectory folder;
  for (const size_t bytes : {size_t{1}, size_t{100}, 3 * Buffer::kHugePage + 5}) {
    Buffer buffer(bytes, folder.path());
    EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
    const auto all = buffer.as<uint8_t>();
    ASSERT_EQ(all.size(), bytes);
    EXPECT_TRUE(std::all_of(all.begin(), all.end(), [](uint8_t b) { return b == 0; }));
    std::fill(all.begin(), all.end(), uint8_t{7});
    const Buffer moved(std::move(buffer));
    EXPECT_EQ(moved.as<uint8_t>().back(), 7);
  }
  EXPECT_EQ(Buffer(0, folder.path()).data(), nullptr);
  EXPECT_THROW(Buffer(1, folder.path() / "none"), IoError);
  EXPECT_THROW(Buffer(size_t{1} << 50, folder.path()), IoError) << "more than a disk has";
}

TEST(Buffer, RefusesTheImpossible) { EXPECT_THROW(Buffer(size_t{1} << 60), DeviceError); }

}  // namespace
}  // namespace tutti::device
