#include "tutti/data/pipeline/pipeline.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <functional>
#include <thread>

#include "tutti/base/error.h"
#include "tutti/base/expect_text.h"
#include "tutti/base/patience.h"
#include "tutti/data/made_set.h"

namespace tutti::data {
namespace {

constexpr int kSize = 100;

/// Image i is filled with byte i and labelled i % 10; `on_read` may fail or delay.
class CountingDataset final : public MadeSet {
 public:
  std::function<void(int64_t)> on_read = [](int64_t) {};

  CountingDataset()
      : MadeSet(kSize,
                {{.name = "image", .shape = {1, 2, 2}},
                 {.name = "label", .class_names = std::vector<std::string>(10, "class")}},
                [this](int64_t index, Sample& sample) {
                  on_read(index);
                  std::fill_n(static_cast<uint8_t*>(sample.own(0)), 4, static_cast<uint8_t>(index));
                  *static_cast<uint8_t*>(sample.own(1)) = static_cast<uint8_t>(index % 10);
                }) {}
};

SampleWriter writer_of(const TensorDesc& images) {  // y = x / 255
  const std::vector<BatchField> fields = {{"image", images},
                                          {"label", {DType::i32, {images.shape[0]}, {}}}};
  return SampleWriter(CountingDataset(), fields, std::vector{parse_steps("image: divide 255")}, 1);
}
SampleWriter identity(int64_t batch) { return writer_of({DType::f32, {batch, 1, 2, 2}, {}}); }

int64_t sample_of(const Batch& batch, int64_t i) {
  return std::lround(static_cast<const float*>(batch.tensors[0])[i * 4] * 255);
}

std::vector<int64_t> samples_of(const Batch& batch) {
  std::vector<int64_t> samples;
  for (int64_t i = 0; i < batch.id.count; ++i) {
    samples.push_back(sample_of(batch, i));
    EXPECT_EQ(static_cast<const int32_t*>(batch.tensors[1])[i], samples.back() % 10);
  }
  return samples;
}

class PipelineThreads : public testing::TestWithParam<int> {};

TEST_P(PipelineThreads, TrainingGivesStepsTimesReplicasInOrderFromAnyStart) {
  const CountingDataset dataset;
  const Sampler sampler(
      {.seed = 9, .size = kSize, .replicas = 4, .local_batch = 7});  // 3 steps an epoch
  const SampleWriter writer = identity(7);
  for (const TrainingStart start :
       {TrainingStart{0, 0, 1, 2}, TrainingStart{2, 1, 0, 4}, TrainingStart{1, 3, 3, 1}}) {
    Pipeline pipeline(dataset, writer, std::make_unique<TrainingOrder>(sampler, start),
                      {.threads = GetParam(), .chunk = 3});
    for (int64_t step = start.epoch * 3 + start.step; step < 15; ++step)
      for (int r = start.first_replica; r < start.first_replica + start.replicas; ++r) {
        const Batch& batch = pipeline.next();
        EXPECT_EQ(batch.id.position.epoch, step / 3);
        EXPECT_EQ(batch.id.position.step, step % 3);
        EXPECT_EQ(batch.id.position.replica, r);
        std::vector<int64_t> expected(7);
        sampler.indices({step / 3, step % 3, r}, 0, expected);
        EXPECT_EQ(samples_of(batch), expected);
      }
    EXPECT_GE(pipeline.total_wait_seconds(), pipeline.last_wait_seconds());
  }
}

TEST_P(PipelineThreads, EvaluationReadsTheRangeOnceWithAPartialLastBatch) {
  const CountingDataset dataset;
  const SampleWriter writer = identity(16);
  Pipeline pipeline(dataset, writer, std::make_unique<EvaluationOrder>(Range{5, 47}, 16),
                    {.threads = GetParam(), .chunk = 5});
  std::vector<int64_t> all, counts;
  while (pipeline.remaining() > 0) {
    const Batch& batch = pipeline.next();
    counts.push_back(batch.id.count);
    for (const int64_t sample : samples_of(batch)) all.push_back(sample);
  }
  EXPECT_EQ(counts, (std::vector<int64_t>{16, 16, 10}));
  ASSERT_EQ(all.size(), 42u);
  for (size_t i = 0; i < all.size(); ++i) EXPECT_EQ(all[i], static_cast<int64_t>(i) + 5);
  EXPECT_THROW(pipeline.next(), InternalError);
}

TEST_P(PipelineThreads, FillsTheCallersMemory) {
  const CountingDataset dataset;
  const SampleWriter writer = identity(4);
  std::vector<float> images(2 * 16, 7.0f);
  std::vector<int32_t> labels(2 * 4, 7);
  const std::vector<Slot> memory = {{images.data(), labels.data()},
                                    {images.data() + 16, labels.data() + 4}};
  Pipeline pipeline(dataset, writer, std::make_unique<EvaluationOrder>(Range{0, 12}, 4),
                    {.threads = GetParam(), .memory = memory});
  for (size_t k = 0; k < 3; ++k) {
    const Batch& batch = pipeline.next();
    EXPECT_EQ(batch.tensors, memory[k % 2]);
    EXPECT_EQ(sample_of(batch, 3), static_cast<int64_t>(k) * 4 + 3);
  }
}

TEST_P(PipelineThreads, AReadersExceptionReachesNext) {
  CountingDataset dataset;
  dataset.on_read = [](int64_t index) {
    if (index == 21) throw IoError("record 21 is bad");
  };
  const SampleWriter writer = identity(10);
  Pipeline pipeline(dataset, writer, std::make_unique<EvaluationOrder>(Range{0, 100}, 10),
                    {.threads = GetParam(), .chunk = 4});
  const auto read_all = [&] {
    while (pipeline.remaining() > 0) pipeline.next();
  };
  for (int i = 0; i < 2; ++i) {  // and the error stays
    EXPECT_EQ(message_of<IoError>([&] { read_all(); }), "record 21 is bad");
  }
}

INSTANTIATE_TEST_SUITE_P(Threads, PipelineThreads, testing::Values(0, 1, 3));

TEST(Pipeline, NeverTouchesTheBatchInUseNorReadsBeyondTheRing) {
  CountingDataset dataset;
  std::atomic<int> reads{0};
  dataset.on_read = [&](int64_t) { ++reads; };
  const SampleWriter writer = identity(5);
  Pipeline pipeline(dataset, writer, std::make_unique<EvaluationOrder>(Range{0, 100}, 5),
                    {.threads = 2, .slots = 3, .chunk = 2});
  for (int k = 0; k < 20; ++k) {
    const Batch& batch = pipeline.next();
    std::this_thread::sleep_for(
        std::chrono::milliseconds(1));  // gives a faulty reader the time to overwrite it
    EXPECT_EQ(samples_of(batch),
              (std::vector<int64_t>{5 * k, 5 * k + 1, 5 * k + 2, 5 * k + 3, 5 * k + 4}));
    EXPECT_LE(reads, 5 * (k + 3));
  }
}

TEST(Pipeline, StopsWhileReadersWorkOrWait) {
  CountingDataset dataset;
  dataset.on_read = [](int64_t) { std::this_thread::sleep_for(std::chrono::milliseconds(1)); };
  const SampleWriter writer = identity(5);
  const Sampler sampler({.seed = 1, .size = kSize, .replicas = 1, .local_batch = 5});
  for (int i = 0; i < 5; ++i) {  // destroyed at once, and after the ring is full
    Pipeline pipeline(dataset, writer, std::make_unique<TrainingOrder>(sampler, TrainingStart{}),
                      {.threads = 3});
    for (int k = 0; k < i; ++k) pipeline.next();
    std::this_thread::sleep_for(std::chrono::milliseconds(6 * i));
  }
}

// The readers are still in read() when the Pipeline goes away, and wake up later.
TEST(Pipeline, GivesUpOnAFileSystemThatHangs) {
  CountingDataset dataset;
  std::atomic<bool> hang{true};
  std::atomic<int> inside{0};
  dataset.on_read = [&](int64_t index) {
    ++inside;
    while (hang) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    --inside;
    if (index % 2) throw IoError("too late to tell anybody");
  };
  {
    const SampleWriter writer = identity(5);
    Pipeline pipeline(dataset, writer, std::make_unique<EvaluationOrder>(Range{0, 10}, 5),
                      {.threads = 3, .chunk = 2, .timeout_seconds = 0.02});
    while (inside < 3) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    EXPECT_THROW(pipeline.next(), IoError);
  }
  EXPECT_EQ(inside, 3);
  hang = false;
  while (inside > 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

// A child stops the whole process while it waits, when no data could arrive.
TEST(Pipeline, AStopIsNoWaitForData) {
  const double second = patience(1);
  const pid_t sleeper = fork();
  if (sleeper == 0) {
    sleep_patiently(0.3);
    ::kill(::getppid(), SIGSTOP);
    sleep_patiently(4);
    ::kill(::getppid(), SIGCONT);
    ::_exit(0);
  }
  CountingDataset dataset;
  const auto begin = std::chrono::steady_clock::now();
  dataset.on_read = [&](int64_t) {
    std::this_thread::sleep_until(begin + std::chrono::duration<double>(1.5 * second));
  };
  const SampleWriter writer = identity(5);
  Pipeline pipeline(dataset, writer, std::make_unique<EvaluationOrder>(Range{0, 5}, 5),
                    {.threads = 1, .timeout_seconds = 3.5 * second});
  pipeline.next();
  ASSERT_GE(std::chrono::steady_clock::now() - begin, std::chrono::duration<double>(4 * second))
      << "not stopped";
  EXPECT_LT(pipeline.last_wait_seconds(), 3 * second);
  EXPECT_GT(pipeline.last_wait_seconds(), 0.2);
  ::waitpid(sleeper, nullptr, 0);
}

TEST(Pipeline, PaddingOfABlockedLayoutIsZero) {
  const CountingDataset dataset;
  const TensorDesc desc{DType::f32, {2, 1, 2, 2}, Layout::blocked_channels(8)};
  const SampleWriter writer = writer_of(desc);
  std::vector<float> images(64, 7.0f);
  std::vector<int32_t> labels(2);
  PipelineSpec spec{.threads = 0, .memory = {{images.data(), labels.data()}}};
  Pipeline pipeline(dataset, writer, std::make_unique<EvaluationOrder>(Range{50, 52}, 2), spec);
  pipeline.next();
  for (size_t i = 0; i < images.size(); ++i)
    EXPECT_EQ(images[i], i % 8 == 0 ? (i < 32 ? 50 / 255.0f : 51 / 255.0f) : 0.0f);
}

TEST(Pipeline, RefusesTooFewSlots) {
  const CountingDataset dataset;
  const SampleWriter writer = identity(5);
  const auto order = [] { return std::make_unique<EvaluationOrder>(Range{0, 10}, 5); };
  EXPECT_THROW(Pipeline(dataset, writer, order(), {.threads = 1, .slots = 1}), InternalError);
  EXPECT_THROW(Pipeline(dataset, writer, order(), {.threads = -1}), ConfigError);
  EXPECT_THROW(Pipeline(dataset, identity(4), order(), {}), InternalError);
}

}  // namespace
}  // namespace tutti::data
