// Tests of data sets around a data set: caches, and samples that are left out.

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <numeric>
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

void expect_sample(const Dataset& set, const CodedSet& all, int64_t index, int64_t expected) {
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

void expect_sample(const Dataset& set, const CountedSet&, int64_t index, int64_t expected) {
  Sample sample(set.fields());
  set.read(index, sample);
  EXPECT_EQ(static_cast<const int32_t*>(sample.at(0))[2], expected + 2);
  EXPECT_EQ(*static_cast<const int64_t*>(sample.at(1)), expected * expected);
}

/// Reads all samples of `set` in each epoch: they are those that `all` has as `expected`.
template <class Set>
void expect_epochs(int epochs, const Dataset& set, const Set& all,
                   const std::vector<int64_t>& expected) {
  for (int epoch = 0; epoch < epochs; ++epoch)
    for (int64_t i = 0; i < set.size(); ++i)
      expect_sample(set, all, i, expected[static_cast<size_t>(i)]);
}

/// A set behind a cache without names.
template <class Set>
struct Cached {
  Cached(int64_t size, const CacheSpec& spec)
      : all(std::make_shared<Set>(size)), set(all, spec, counts) {
    set.remove_names();
  }
  void expect_own_samples(int epochs) const {
    std::vector<int64_t> own(static_cast<size_t>(set.size()));
    std::iota(own.begin(), own.end(), 0);
    expect_epochs(epochs, set, *all, own);
  }
  int64_t samples(size_t level) const { return counts->levels()[level].samples; }

  std::shared_ptr<Set> all;
  std::shared_ptr<ReadCounts> counts = std::make_shared<ReadCounts>();
  CachedSet set;
};

TEST(SampleCache, TheSecondEpochReadsNoFileWhenItFits) {
  const Cached<CountedSet> cached(10, {.name = unique_name(), .memory_bytes = 10 * 128});
  cached.expect_own_samples(3);
  EXPECT_EQ(cached.all->reads, 10);
  EXPECT_EQ(cached.samples(0), 20);
  EXPECT_EQ(cached.counts->levels()[0].bytes, 20 * 128);
  EXPECT_EQ(cached.samples(3), 10);
}

TEST(SampleCache, LevelsFillOneAfterTheOtherAndTheRestIsReadAgain) {
  const ScratchDirectory scratch;
  const Cached<CountedSet> cached(10, {.name = unique_name(),
                                       .memory_bytes = 3 * 128 + 1,
                                       .disk_bytes = 4 * 128,
                                       .folder = scratch.path()});
  EXPECT_EQ(cached.set.memory_bytes(), 3 * 128);
  EXPECT_EQ(cached.set.disk_bytes(), 4 * 128);
  EXPECT_TRUE(std::filesystem::is_empty(scratch.path()));
  cached.expect_own_samples(2);
  EXPECT_EQ(cached.all->reads, 13);
  EXPECT_EQ(cached.samples(0), 3);
  EXPECT_EQ(cached.samples(1), 4);
  EXPECT_EQ(cached.samples(3), 13);
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
        for (int64_t i = 0; i < 100; ++i) expect_sample(*here, *all, i, i);
      });
  }
  EXPECT_LE(all->reads, 400);
  const pid_t child = ::fork();
  if (child == 0) {  // another rank finds every sample, so this set may have no sound one
    std::set<int64_t> every;
    for (int64_t i = 0; i < 100; ++i) every.insert(i);
    const auto other = std::make_shared<CountedSet>(100, every);
    const auto there = open(other);
    for (int64_t i = 0; i < 100; ++i) expect_sample(*there, *other, i, i);
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
  const Cached<CodedSet> cached(
      8,
      {.name = unique_name(), .memory_bytes = 4096, .disk_bytes = 8192, .folder = scratch.path()});
  cached.expect_own_samples(3);
  EXPECT_GT(cached.samples(0), 0);
  EXPECT_GT(cached.samples(1), 0);
  EXPECT_EQ(cached.samples(0) + cached.samples(1) + cached.samples(3), 24);
  EXPECT_EQ(cached.all->reads, cached.samples(3));
  EXPECT_LT(cached.all->reads, 24);
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
      : other(size, spec(their_bytes, 1, nullptr)), own(size, spec(own_bytes, 0, &other.set)) {}
  static CacheSpec spec(int64_t bytes, int node, const CachedSet* beside) {
    return {.name = unique_name(),
            .memory_bytes = bytes,
            .peers = std::make_shared<NodeBeside>(node, beside)};
  }
  const Cached<Set> other, own;
};

TEST(SampleCache, NodesTogetherReadEachSampleOnce) {
  const AskingNode<CountedSet> nodes(10, 5 * 128, 5 * 128);  // space for half of the set on each
  nodes.own.expect_own_samples(2);
  EXPECT_EQ(nodes.own.all->reads, 5);
  EXPECT_EQ(nodes.other.all->reads, 5);
  EXPECT_EQ(nodes.own.samples(2), 10);
  EXPECT_EQ(nodes.own.counts->levels()[2].bytes, 10 * 128);
  EXPECT_EQ(nodes.own.samples(0), 5);
  EXPECT_EQ(nodes.other.samples(3), 5);
}

TEST(SampleCache, WithRoomForAllANodeAsksOnce) {
  const AskingNode<CountedSet> nodes(10, 10 * 128, 10 * 128);
  nodes.own.expect_own_samples(3);
  EXPECT_EQ(nodes.own.samples(2), 5);
  EXPECT_EQ(nodes.own.samples(0), 20);
}

TEST(SampleCache, WhatTheOtherNodeHasNoRoomForIsReadFromFiles) {
  const AskingNode<CountedSet> nodes(10, 5 * 128, 2 * 128);
  nodes.own.expect_own_samples(2);
  // In the first epoch the other node reads all of its samples, and keeps two.
  EXPECT_EQ(nodes.own.samples(2), 5 + 2);
  EXPECT_EQ(nodes.own.samples(3), 5 + 3);
}

TEST(SampleCache, CodedImagesComeFromOtherNodesToo) {
  const AskingNode<CodedSet> nodes(6, 1 << 20, 1 << 20);
  nodes.own.expect_own_samples(2);
  EXPECT_EQ(nodes.own.all->reads, 3);
  EXPECT_EQ(nodes.other.all->reads, 3);
  EXPECT_EQ(nodes.own.samples(2), 6);
}

TEST(Quarantine, CodedImagesThatCannotBeDecodedAreLeftOut) {
  const auto all = std::make_shared<CodedSet>(6, std::set<int64_t>{3}, std::set<int64_t>{1});
  const auto counts = std::make_shared<ReadCounts>();
  const Quarantine set(all, {.most = 2, .part = "train"}, counts);
  expect_epochs(2, set, *all, {0, 2, 2, 4, 4, 5});
  EXPECT_EQ(counts->left_out(), 2);
  EXPECT_TRUE(has_text(counts->reasons()[0], "train sample 1: 1.jpg: cannot open"));
  EXPECT_TRUE(has_text(counts->reasons()[1], "train sample 3: 3.jpg "));
}

TEST(Quarantine, TheNextSoundSampleTakesThePlace) {
  const auto all = std::make_shared<CountedSet>(6, std::set<int64_t>{2, 3, 5});
  const auto counts = std::make_shared<ReadCounts>();
  const Quarantine set(all, {.most = 3, .part = "train"}, counts);
  expect_epochs(2, set, *all, {0, 1, 4, 4, 4, 0});
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
