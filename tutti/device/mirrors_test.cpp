#include "tutti/device/mirrors.h"

#include <gtest/gtest.h>

#include <numeric>

#include "tutti/base/error.h"
#include "tutti/device/emulated/test_device.h"

namespace tutti::device {
namespace {

std::byte* bytes_of(std::vector<float>& values) {
  return reinterpret_cast<std::byte*>(values.data());
}

std::vector<float> numbered(size_t count) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), 0.0f);
  return values;
}

TEST(Mirrors, WhoUsesTheSameMemorySharesTheMirror) {
  TestDevice d(1);
  std::vector<float> host(100);
  const auto mirror = d.mirrors.of(bytes_of(host), 400);
  EXPECT_EQ(d.mirrors.of(bytes_of(host), 400), mirror);
  EXPECT_EQ(mirror->host, bytes_of(host));
  EXPECT_EQ(mirror->bytes(), 400u);
  EXPECT_FALSE(mirror->device_is_newer);
  EXPECT_EQ(d.device->counts().bytes, 400u);
}

TEST(Mirrors, LiveUntilNobodyHoldsThem) {
  TestDevice d(1);
  std::vector<float> host(100);
  d.mirrors.of(bytes_of(host), 400);
  EXPECT_EQ(d.device->counts().bytes, 0u);
  const auto other = d.mirrors.of(bytes_of(host) + 4, 100);  // overlaps the one that has ended
  EXPECT_EQ(other->bytes(), 100u);
}

TEST(Mirrors, MustNotOverlap) {
  TestDevice d(1);
  std::vector<float> host(100);
  const auto middle = d.mirrors.of(bytes_of(host) + 100, 100);
  EXPECT_THROW(d.mirrors.of(bytes_of(host) + 100, 99), InternalError);
  EXPECT_THROW(d.mirrors.of(bytes_of(host) + 100, 101), InternalError);
  EXPECT_THROW(d.mirrors.of(bytes_of(host), 101), InternalError);
  EXPECT_THROW(d.mirrors.of(bytes_of(host) + 199, 4), InternalError);
  EXPECT_THROW(d.mirrors.of(bytes_of(host), 400), InternalError);
  const auto before = d.mirrors.of(bytes_of(host), 100),
             after = d.mirrors.of(bytes_of(host) + 200, 4);
  const auto nothing = d.mirrors.of(bytes_of(host) + 100, 0);
  EXPECT_EQ(nothing->data(), nullptr);
}

TEST(Mirrors, ANewerCopyIsNotOverwritten) {
  TestDevice d(1);
  std::vector<float> host = {1, 2}, seen(2);
  const auto mirror = d.mirrors.of(bytes_of(host), 8);
  const auto on_device = [&] {
    d.mirrors.to_host(bytes_of(seen), mirror->data(), 8, *d.compute);
    return seen;
  };
  d.mirrors.upload(*mirror, *d.compute);
  EXPECT_EQ(on_device(), (std::vector<float>{1, 2}));

  host = {3, 4};
  d.mirrors.download(*mirror, *d.compute);  // the device's is not newer
  EXPECT_EQ(host, (std::vector<float>{3, 4}));
  d.mirrors.upload(*mirror, *d.compute);
  EXPECT_EQ(on_device(), (std::vector<float>{3, 4}));

  d.compute->fill(mirror->data(), std::byte{0}, 8);
  mirror->device_is_newer = true;
  d.mirrors.upload(*mirror, *d.compute);
  EXPECT_EQ(on_device(), (std::vector<float>{0, 0}));
  EXPECT_TRUE(mirror->device_is_newer);
  d.mirrors.download(*mirror, *d.compute);
  EXPECT_EQ(host, (std::vector<float>{0, 0}));
  EXPECT_FALSE(mirror->device_is_newer);
}

TEST(Mirrors, CopiesOfAnySizeGoThroughPinnedMemoryInPieces) {
  constexpr size_t kPiece = (size_t{4} << 20) / sizeof(float);
  for (const size_t count : {size_t{0}, size_t{1}, kPiece, 2 * kPiece + 3}) {
    TestDevice d(1);
    std::vector<float> host = numbered(count), back(count);
    const Floats x = d.floats(count);
    d.mirrors.to_device(x.memory.data(), bytes_of(host), 4 * count, *d.compute);
    d.mirrors.to_host(bytes_of(back), x.memory.data(), 4 * count, *d.compute);
    EXPECT_EQ(back, host);
    const auto pieces = static_cast<int64_t>((count + kPiece - 1) / kPiece);
    EXPECT_EQ(d.device->counts().copies, 2 * pieces);
    EXPECT_EQ(d.device->counts().waits, 2 * pieces);
  }
}

TEST(Mirrors, CopiesFollowTheWorkOfTheirStream) {
  for (uint64_t seed = 1; seed < 6; ++seed) {
    TestDevice d(seed);
    std::vector<float> host = {1, 2};
    const Floats x = d.floats_of(host);
    const auto cleared = d.device->make_event();
    d.copies->fill(x.data(), std::byte{0}, 8);
    d.copies->record(*cleared);
    d.compute->wait(*cleared);
    d.mirrors.to_host(bytes_of(host), x.memory.data(), 8, *d.compute);
    EXPECT_EQ(host, (std::vector<float>{0, 0}));
  }
}

}  // namespace
}  // namespace tutti::device
