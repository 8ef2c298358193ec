#include "tutti/keep/tensor_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <future>
#include <numeric>

#include "tutti/base/error.h"

namespace tutti::keep {
namespace {

using Bytes = std::vector<std::byte>;

Bytes counted(size_t bytes, int first) {
  Bytes content(bytes);
  for (size_t i = 0; i < bytes; ++i)
    content[i] = static_cast<std::byte>(first + static_cast<int>(i));
  return content;
}

/// Tensors of each kind, whose content is overwritten as soon as the queue has copied it.
class TensorQueueTest : public testing::Test {
 protected:
  TensorRef plain(const std::string& name, const Bytes& content) {
    return {.name = name, .desc = u8(content.size()), .bytes = content};
  }
  /// The two sources, the second one before the first.
  static TensorRef turned(const std::string& name, const Bytes& first, const Bytes& second) {
    TensorRef tensor{.name = name, .desc = u8(first.size() + second.size())};
    tensor.sources = {first, second};
    tensor.make = [](TensorRef::Sources sources, std::span<std::byte> out) {
      std::ranges::copy(sources[0], std::ranges::copy(sources[1], out.begin()).out);
    };
    return tensor;
  }
  static TensorRef given(const std::string& name, const Bytes& content) {
    TensorRef tensor{.name = name, .desc = u8(content.size())};
    tensor.give = [&content](const ByteSink& sink) {
      const auto middle = content.begin() + static_cast<long>(content.size() / 192 * 64);
      Bytes piece(content.begin(), middle);
      sink(piece);
      piece.assign(middle, content.end());
      sink(piece);
      std::ranges::fill(piece, std::byte{0});
    };
    return tensor;
  }
  static TensorDesc u8(size_t bytes) { return {DType::u8, {static_cast<int64_t>(bytes)}, {}}; }

  static std::vector<std::vector<NamedTensor>> take(
      const std::vector<std::vector<TensorRef>>& arriving) {
    std::vector<std::vector<NamedTensor>> files;
    for (const std::vector<TensorRef>& file : arriving) files.push_back(materialise(file));
    return files;
  }
};

TEST_F(TensorQueueTest, GivesWhatTheTensorsWereWhenTheyWerePut) {
  for (const size_t limit : {size_t{1}, size_t{100'000}, size_t{300'000}, size_t{1} << 30}) {
    TensorQueue queue(2);
    for (int time = 0; time < 3; ++time) {
      const Bytes large = counted(200'000, time), small = counted(7, 1), none,
                  a = counted(90'001, 5), b = counted(33, 9), other = counted(150'000, 40);
      Bytes live_large = large, live_a = a;
      const std::vector<std::vector<TensorRef>> files = {
          {plain("large", live_large), plain("none", none), given("other", other)},
          {},
          {turned("turned", live_a, b), plain("small", small)}};
      const auto arriving = queue.begin(limit, files);
      std::future<std::vector<std::vector<NamedTensor>>> taken =
          std::async(std::launch::async, [&] { return take(arriving); });
      for (const std::vector<TensorRef>& file : files) queue.put(file);
      std::ranges::fill(live_large, std::byte{0xee});
      std::ranges::fill(live_a, std::byte{0xee});
      const std::vector<std::vector<NamedTensor>> got = taken.get();
      ASSERT_EQ(got.size(), 3u);
      ASSERT_EQ(got[0].size(), 3u);
      EXPECT_EQ(got[0][0].name, "large");
      EXPECT_EQ(got[0][0].bytes, large);
      EXPECT_TRUE(got[0][1].bytes.empty());
      EXPECT_EQ(got[0][2].bytes, other);
      EXPECT_TRUE(got[1].empty());
      Bytes both = b;
      both.insert(both.end(), a.begin(), a.end());
      EXPECT_EQ(got[2][0].bytes, both);
      EXPECT_EQ(got[2][1].bytes, small);
      EXPECT_LE(queue.memory_bytes(), std::max(limit + 64, size_t{90'112} + 64));
    }
  }
}

TEST_F(TensorQueueTest, HoldsNoMoreThanAllTensorsNeed) {
  TensorQueue queue(1);
  const Bytes content = counted(1'000'000, 3);
  const std::vector<std::vector<TensorRef>> files = {{plain("a", content)}};
  const auto arriving = queue.begin(size_t{1} << 40, files);
  queue.put(files[0]);  // nobody takes it yet: all has space
  EXPECT_EQ(take(arriving)[0][0].bytes, content);
  EXPECT_LT(queue.memory_bytes(), content.size() + 4096);
  EXPECT_EQ(TensorQueue::bytes_of(files), size_t{1'000'000 / 64 * 64});
}

TEST_F(TensorQueueTest, AnAbandonedQueueHoldsUpNobody) {
  TensorQueue queue(1);
  const Bytes content = counted(1'000'000, 3);
  const std::vector<std::vector<TensorRef>> files = {{plain("a", content), given("b", content)}};
  const auto arriving = queue.begin(1, files);
  std::future<void> taken = std::async(std::launch::async, [&] {
    EXPECT_THROW(arriving[0][0].give([](std::span<const std::byte>) { throw IoError("full"); }),
                 IoError);
    queue.abandon();
    EXPECT_THROW(materialise(arriving[0][1]), IoError);
  });
  queue.put(files[0]);
  taken.get();
  const auto again = queue.begin(1 << 22, files);
  queue.put(files[0]);
  EXPECT_EQ(take(again)[0][1].bytes, content);
}

}  // namespace
}  // namespace tutti::keep
