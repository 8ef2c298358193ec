// Tests of data sets around a data set: caches, and samples that are left out.

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <set>
#include <thread>

#include "tutti/base/error.h"
#include "tutti/base/expect_text.h"
#include "tutti/base/scratch_directory.h"
#include "tutti/data/images/jpeg_encoder.h"
#include "tutti/data/made_set.h"
#include "tutti/data/store/quarantine.h"
#include "tutti/data/store/sample_cache.h"

namespace tutti::data {
namespace {

/// Sample i is [i, i + 1, i + 2] and i * i. Counts its reads; samples in `bad` cannot be read.
class CountedSet : public MadeSet {
 public:
  explicit CountedSet(int64_t size, const std::set<int64_t>& bad = {})
      : MadeSet(size,
                {{.name = "x", .element = ElementType::i32, .shape = Shape{3}},
                 {.name = "y", .element = ElementType::i64}},
                [this, bad](int64_t index, Sample& sample) {
                  ++reads;
                  if (bad.contains(index)) throw IoError(fmt::format("file-{}: truncated", index));
                  auto* x = static_cast<int32_t*>(sample.own(0));
                  for (int k = 0; k < 3; ++k) x[k] = static_cast<int32_t>(index) + k;
                  *static_cast<int64_t*>(sample.own(1)) = index * index;
                }) {}
  std::atomic<int> reads = 0;
};

/// Sample i is a JPEG of (i + 1) * 8 pixels a side; those in `cut` end early, and those in `gone`
/// are missing.
class CodedSet : public MadeSet {
 public:
  explicit CodedSet(int64_t size, const std::set<int64_t>& cut = {},
                    const std::set<int64_t>& gone = {})
      : MadeSet(size,
                {{.name = "image", .coded = true}, {.name = "label", .element = ElementType::i32}},
                [this, gone](int64_t index, Sample& sample) {
                  ++reads;
                  sample.set_origin(fmt::format("{}.jpg", index));
                  if (gone.contains(index))
                    throw IoError(fmt::format("{}.jpg: cannot open", index));
                  std::memcpy(sample.own(0, file(index).size()), file(index).data(),
                              file(index).size());
                  *static_cast<int32_t*>(sample.own(1)) = static_cast<int32_t>(index);
                }) {
    for (int64_t i = 0; i < size; ++i) {
      const int64_t side = (i + 1) * 8;
      std::vector<uint8_t> rgb(static_cast<size_t>(side * side * 3));
      for (size_t k = 0; k < rgb.size(); ++k) rgb[k] = static_cast<uint8_t>(k * 37 >> 3);
      files_.push_back(encode_jpeg(rgb, {side, side}, 3));
      if (cut.contains(i)) files_.back().resize(files_.back().size() / 2);
    }
  }
  const std::vector<uint8_t>& file(int64_t i) const { return files_[static_cast<size_t>(i)]; }
  std::atomic<int> reads = 0;

 private:
  std::vector<std::vector<uint8_t>> files_;
};

void expect_picture(const Dataset& set, const CodedSet& all, int64_t index, int64_t expected) {
  Sample sample(set.fields());
  set.read(index, sample);
  EXPECT_TRUE(std::ranges::equal(sample.coded_at(0), all.file(expected))) << index;
  EXPECT_EQ(*static_cast<const int32_t*>(sample.at(1)), expected);
  EXPECT_EQ(sample.origin(), fmt::format("{}.jpg", expected));
}

std::string unique_name() {
  static std::atomic<int> count = 0;
  return fmt::format("tutti-test-{}-{}", ::getpid(), count++);
}

void expect_sample(const Dataset& set, int64_t index, int64_t expected) {
  Sample sample(set.fields());
  set.read(index, sample);
  EXPECT_EQ(static_cast<const int32_t*>(sample.at(0))[2], expected + 2);
  EXPECT_EQ(*static_cast<const int64_t*>(sample.at(1)), expected * expected);
}

TEST(SampleCache, TheSecondEpochReadsNoFileWhenItFits) {
  const auto all = std::make_shared<CountedSet>(10);
  const auto counts = std::make_shared<ReadCounts>();
  const CachedSet cached(all, {.name = unique_name(), .memory_bytes = 10 * 128}, counts);
  cached.remove_names();
  for (int epoch = 0; epoch < 3; ++epoch)
    for (int64_t i = 0; i < 10; ++i) expect_sample(cached, i, i);
  EXPECT_EQ(all->reads, 10);
  EXPECT_EQ(counts->levels()[0].samples, 20);
  EXPECT_EQ(counts->levels()[0].bytes, 20 * 128);
  EXPECT_EQ(counts->levels()[3].samples, 10);
}

TEST(SampleCache, LevelsFillOneAfterTheOtherAndTheRestIsReadAgain) {
  const ScratchDirectory scratch;
  const auto all = std::make_shared<CountedSet>(10);
  const auto counts = std::make_shared<ReadCounts>();
  const CachedSet cached(all,
                         {.name = unique_name(),
                          .memory_bytes = 3 * 128 + 1,
                          .disk_bytes = 4 * 128,
                          .folder = scratch.path()},
                         counts);
  EXPECT_EQ(cached.memory_bytes(), 3 * 128);
  EXPECT_EQ(cached.disk_bytes(), 4 * 128);
  cached.remove_names();
  EXPECT_TRUE(std::filesystem::is_empty(scratch.path()));
  for (int epoch = 0; epoch < 2; ++epoch)
    for (int64_t i = 0; i < 10; ++i) expect_sample(cached, i, i);
  EXPECT_EQ(all->reads, 13);
  EXPECT_EQ(counts->levels()[0].samples, 3);
  EXPECT_EQ(counts->levels()[1].samples, 4);
  EXPECT_EQ(counts->levels()[3].samples, 13);
}

TEST(SampleCache, ThreadsAndProcessesShareIt) {
  const std::string name = unique_name();
  const auto open = [&](std::shared_ptr<CountedSet> all) {
    return std::make_unique<CachedSet>(std::move(all),
                                       CacheSpec{.name = name, .memory_bytes = 100 * 128},
                                       std::make_shared<ReadCounts>());
  };
  const auto all = std::make_shared<CountedSet>(100);
  const auto here = open(all);
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&] {
        for (int64_t i = 0; i < 100; ++i) expect_sample(*here, i, i);
      });
  }
  EXPECT_LE(all->reads, 400);
  const pid_t child = ::fork();
  if (child == 0) {  // another rank finds every sample, so this set may have no sound one
    std::set<int64_t> every;
    for (int64_t i = 0; i < 100; ++i) every.insert(i);
    const auto other = std::make_shared<CountedSet>(100, every);
    const auto there = open(other);
    for (int64_t i = 0; i < 100; ++i) expect_sample(*there, i, i);
    ::_exit(other->reads == 0 && !::testing::Test::HasFailure() ? 0 : 1);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  here->remove_names();
  EXPECT_EQ(status, 0);
}

TEST(SampleCache, ASampleOutlivesTheSet) {
  const auto all = std::make_shared<CountedSet>(2);
  Sample sample(all->fields());
  {
    const CachedSet cached(all, {.name = unique_name(), .memory_bytes = 1024},
                           std::make_shared<ReadCounts>());
    cached.remove_names();
    cached.read(1, sample);
    cached.read(1, sample);
  }
  EXPECT_EQ(static_cast<const int32_t*>(sample.at(0))[0], 1);
}

TEST(SampleCache, TooLittleDiskIsAnErrorAtTheStartThatLeavesNothing) {
  const std::string name = unique_name();
  EXPECT_THROW(
      CachedSet(std::make_shared<CountedSet>(int64_t{1} << 20),
                {.name = name, .disk_bytes = int64_t{1} << 62, .folder = "/proc/no/such/folder"},
                std::make_shared<ReadCounts>()),
      IoError);
  EXPECT_FALSE(std::filesystem::exists("/dev/shm/" + name));
}

TEST(SampleCache, CodedImagesStayAsTheyAreOnBothLevels) {
  const ScratchDirectory scratch;
  const auto all = std::make_shared<CodedSet>(8);
  const auto counts = std::make_shared<ReadCounts>();
  const CachedSet cached(
      all,
      {.name = unique_name(), .memory_bytes = 4096, .disk_bytes = 8192, .folder = scratch.path()},
      counts);
  cached.remove_names();
  for (int epoch = 0; epoch < 3; ++epoch)
    for (int64_t i = 0; i < 8; ++i) expect_picture(cached, *all, i, i);
  const auto levels = counts->levels();
  EXPECT_GT(levels[0].samples, 0);
  EXPECT_GT(levels[1].samples, 0);
  EXPECT_EQ(levels[0].samples + levels[1].samples + levels[3].samples, 24);
  EXPECT_EQ(all->reads, levels[3].samples);
  EXPECT_LT(all->reads, 24);
}

/// The cache of another node, in this process.
class NodeBeside final : public CachePeers {
 public:
  NodeBeside(int node, const CachedSet* other) : node_(node), other_(other) {}
  int nodes() const override { return 2; }
  int node() const override { return node_; }
  bool get(int64_t index, std::vector<std::byte>& packed) override {
    return other_ != nullptr && other_->serve(index, packed);
  }

 private:
  int node_;
  const CachedSet* other_;
};

template <class Set>
struct AskingNode {
  AskingNode(int64_t size, int64_t own_bytes, int64_t their_bytes)
      : all(std::make_shared<Set>(size)), counts(std::make_shared<ReadCounts>()),
        other_all(std::make_shared<Set>(size)), other_counts(std::make_shared<ReadCounts>()),
        other(other_all,
              {.name = unique_name(),
               .memory_bytes = their_bytes,
               .peers = std::make_shared<NodeBeside>(1, nullptr)},
              other_counts),
        own(all,
            {.name = unique_name(),
             .memory_bytes = own_bytes,
             .peers = std::make_shared<NodeBeside>(0, &other)},
            counts) {
    own.remove_names();
    other.remove_names();
  }
  std::shared_ptr<Set> all;
  std::shared_ptr<ReadCounts> counts;
  std::shared_ptr<Set> other_all;
  std::shared_ptr<ReadCounts> other_counts;
  CachedSet other, own;
};

TEST(SampleCache, NodesTogetherReadEachSampleOnce) {
  AskingNode<CountedSet> nodes(10, 5 * 128, 5 * 128);  // space for half of the set on each
  for (int epoch = 0; epoch < 2; ++epoch)
    for (int64_t i = 0; i < 10; ++i) expect_sample(nodes.own, i, i);
  EXPECT_EQ(nodes.all->reads, 5);
  EXPECT_EQ(nodes.other_all->reads, 5);
  EXPECT_EQ(nodes.counts->levels()[2].samples, 10);
  EXPECT_EQ(nodes.counts->levels()[2].bytes, 10 * 128);
  EXPECT_EQ(nodes.counts->levels()[0].samples, 5);
  EXPECT_EQ(nodes.other_counts->levels()[3].samples, 5);
}

TEST(SampleCache, WithRoomForAllANodeAsksOnce) {
  AskingNode<CountedSet> nodes(10, 10 * 128, 10 * 128);
  for (int epoch = 0; epoch < 3; ++epoch)
    for (int64_t i = 0; i < 10; ++i) expect_sample(nodes.own, i, i);
  EXPECT_EQ(nodes.counts->levels()[2].samples, 5);
  EXPECT_EQ(nodes.counts->levels()[0].samples, 20);
}

TEST(SampleCache, WhatTheOtherNodeHasNoRoomForIsReadFromFiles) {
  AskingNode<CountedSet> nodes(10, 5 * 128, 2 * 128);
  for (int epoch = 0; epoch < 2; ++epoch)
    for (int64_t i = 0; i < 10; ++i) expect_sample(nodes.own, i, i);
  // In the first epoch the other node reads all of its samples, and keeps two.
  EXPECT_EQ(nodes.counts->levels()[2].samples, 5 + 2);
  EXPECT_EQ(nodes.counts->levels()[3].samples, 5 + 3);
}

TEST(SampleCache, CodedImagesComeFromOtherNodesToo) {
  AskingNode<CodedSet> nodes(6, 1 << 20, 1 << 20);
  for (int epoch = 0; epoch < 2; ++epoch)
    for (int64_t i = 0; i < 6; ++i) expect_picture(nodes.own, *nodes.all, i, i);
  EXPECT_EQ(nodes.all->reads, 3);
  EXPECT_EQ(nodes.other_all->reads, 3);
  EXPECT_EQ(nodes.counts->levels()[2].samples, 6);
}

TEST(Quarantine, CodedImagesThatCannotBeDecodedAreLeftOut) {
  const auto all = std::make_shared<CodedSet>(6, std::set<int64_t>{3}, std::set<int64_t>{1});
  const auto counts = std::make_shared<ReadCounts>();
  const Quarantine set(all, {.most = 2, .part = "train"}, counts);
  const std::vector<int64_t> expected = {0, 2, 2, 4, 4, 5};
  for (int epoch = 0; epoch < 2; ++epoch)
    for (int64_t i = 0; i < 6; ++i) expect_picture(set, *all, i, expected[static_cast<size_t>(i)]);
  EXPECT_EQ(counts->left_out(), 2);
  EXPECT_TRUE(has_text(counts->reasons()[0], "train sample 1: 1.jpg: cannot open"));
  EXPECT_TRUE(has_text(counts->reasons()[1], "train sample 3: 3.jpg "));
}

TEST(Quarantine, TheNextSoundSampleTakesThePlace) {
  const auto all = std::make_shared<CountedSet>(6, std::set<int64_t>{2, 3, 5});
  const auto counts = std::make_shared<ReadCounts>();
  const Quarantine set(all, {.most = 3, .part = "train"}, counts);
  const std::vector<int64_t> expected = {0, 1, 4, 4, 4, 0};
  for (int epoch = 0; epoch < 2; ++epoch)
    for (int64_t i = 0; i < 6; ++i) expect_sample(set, i, expected[static_cast<size_t>(i)]);
  EXPECT_EQ(all->reads, 6 * 2 + 3);  // a bad one is tried once
  EXPECT_EQ(counts->left_out(), 3);
  EXPECT_EQ(counts->reasons().front(), "train sample 2: file-2: truncated");
}

TEST(Quarantine, OneMoreThanAllowedIsAnErrorThatNamesIt) {
  const Quarantine set(std::make_shared<CountedSet>(6, std::set<int64_t>{2, 3}),
                       {.most = 1, .part = "train"}, std::make_shared<ReadCounts>());
  Sample sample(set.fields());
  EXPECT_TRUE(throws<IoError>({"train sample 3: file-3: truncated; data.quarantine"},
                              [&] { set.read(2, sample); }));
}

TEST(Quarantine, ASetWithoutASoundSampleEnds) {
  const Quarantine set(std::make_shared<CountedSet>(2, std::set<int64_t>{0, 1}),
                       {.most = 9, .part = "test"}, std::make_shared<ReadCounts>());
  Sample sample(set.fields());
  EXPECT_THROW(set.read(0, sample), IoError);
}

}  // namespace
}  // namespace tutti::data
