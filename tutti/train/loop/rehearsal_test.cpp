#include "tutti/train/loop/rehearsal.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "tutti/backend/cpu/cpu_backend.h"
#include "tutti/base/error.h"
#include "tutti/base/patience.h"

namespace tutti::train {
namespace {

/// A reader that is left behind in read() must not use the data set afterwards.
std::atomic<bool> reads_hang;
std::atomic<int> inside_read;

class HangingDataset final : public data::Dataset {
 public:
  int64_t size() const override { return 20; }
  const std::vector<data::Field>& fields() const override { return fields_; }
  void read(int64_t index, data::Sample& sample) const override {
    std::fill_n(static_cast<uint8_t*>(sample.own(0)), 16, static_cast<uint8_t>(index));
    *static_cast<uint8_t*>(sample.own(1)) = static_cast<uint8_t>(index % 10);
    ++inside_read;
    while (reads_hang) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    --inside_read;
  }

 private:
  std::vector<data::Field> fields_ = {
      {.name = "image", .shape = {1, 4, 4}},
      {.name = "label", .class_names = std::vector<std::string>(10, "class")}};
};

TEST(Rehearsal, ReadsAsTrainingDoesAndGivesUpOnAFileSystemThatHangs) {
  config::RunConfig config;
  config.model.name = "mlp";
  config.run.threads = 1;
  config.run.epochs = 1;
  config.batch.global = 4;
  config.data.transforms = {"image: divide 255"};
  const HangingDataset set;
  const backend::CpuBackend backend;
  RehearsalSpec spec{.config = config, .data = {.train = &set, .test = &set}, .backend = backend};
  reads_hang = false;
  EXPECT_EQ(rehearse(spec).samples_read, 2 * kRehearsedSamples);

  reads_hang = true;
  spec.first = false;
  EXPECT_EQ(rehearse(spec).samples_read, 0) << "another process reads them";
  spec.first = true;
  spec.read_timeout_s = patience(0.02);
  EXPECT_THROW(rehearse(spec), IoError);
  reads_hang = false;
  while (inside_read > 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

}  // namespace
}  // namespace tutti::train
