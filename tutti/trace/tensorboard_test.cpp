#include "tutti/trace/tensorboard.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "tutti/base/error.h"
#include "tutti/base/expect_text.h"
#include "tutti/base/scratch_directory.h"

namespace tutti::trace {
namespace {

template <class T>
std::string raw(T value) {
  return std::string(reinterpret_cast<const char*>(&value), sizeof value);
}

TEST(TensorBoard, EventsHaveTheExpectedBytes) {
  const ScratchDirectory scratch;
  TensorBoardWriter writer(scratch.path().string(), "node1", 1711623945.5);
  EXPECT_TRUE(writer.path().ends_with("/events.out.tfevents.1711623945.node1"));
  const std::pair<std::string, double> values[] = {{"a/b", 0.5}, {"not measured", kNotMeasured}};
  writer.scalars(300, 2.0, values);
  const auto frames = read_tfrecord_frames(writer.path());
  ASSERT_EQ(frames.size(), 2u);
  EXPECT_EQ(frames[0], "\x09" + raw(1711623945.5) + "\x1A\x0D" + "brain.Event:2");
  // Summary{Value{tag "a/b", simple_value 0.5}}: value = 0A 03 a/b 15 <float>, 10 bytes.
  EXPECT_EQ(frames[1], "\x09" + raw(2.0) + "\x10\xAC\x02" + "\x2A\x0C" + "\x0A\x0A" + "\x0A\x03" +
                           "a/b" + "\x15" + raw(0.5f));
}

TEST(TensorBoard, RecordsBecomeScalarsAndUnmeasuredOnesAreLeftOut) {
  const ScratchDirectory scratch;
  TensorBoardWriter writer(scratch.path().string(), "h", 1);
  writer.add(StepRecord{.step = 3, .loss = 1});
  writer.add(StepRecord{.step = 4});
  EvalRecord eval{.accuracy = 0.5};
  eval.metrics["mae"] = 1;
  writer.add(eval);
  const auto frames = read_tfrecord_frames(writer.path());
  ASSERT_EQ(frames.size(), 3u);
  EXPECT_TRUE(has_text(frames[1], "train/loss"));
  EXPECT_FALSE(has_text(frames[1], "train/lr"));
  EXPECT_TRUE(has_text(frames[2], "eval/mae"));
}

TEST(TensorBoard, ATextIsATensorOfOneStringForThePluginText) {
  const ScratchDirectory scratch;
  TensorBoardWriter writer(scratch.path().string(), "h", 1);
  writer.text(0, 2.0, "c", "hi");
  const auto frames = read_tfrecord_frames(writer.path());
  ASSERT_EQ(frames.size(), 2u);
  const std::string tensor("\x08\x07\x12\x04\x12\x02\x08\x01\x42\x02hi", 12),
      metadata("\x0A\x06\x0A\x04text", 8),
      value = "\x0A\x01" + std::string("c") + "\x42\x0C" + tensor + "\x4A\x08" + metadata;
  EXPECT_TRUE(frames[1].ends_with("\x2A\x1D\x0A\x1B" + value)) << value.size();
}

/// Redirects the file that the process has open under that path to another one.
void redirect(const std::string& path, const char* to) {
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code closed;
    if (std::filesystem::read_symlink(entry.path(), closed) != path) continue;
    const int other = ::open(to, O_WRONLY | O_CLOEXEC);
    ASSERT_GE(::dup2(other, std::stoi(entry.path().filename())), 0);
    ::close(other);
    return;
  }
  FAIL() << path << " is not open";
}

TEST(TensorBoard, ADiskThatFillsUpIsSaidWithTheSystemsReason) {
  const ScratchDirectory scratch;
  TensorBoardWriter writer(scratch.path().string(), "h", 1);
  redirect(writer.path(), "/dev/full");
  EXPECT_EQ(message_of<IoError>([&] { writer.add(StepRecord{.step = 1, .loss = 1}); }),
            writer.path() + ": cannot write the TensorBoard events: " + file_error(ENOSPC));
}

TEST(TensorBoard, AFlippedBitIsFound) {
  const ScratchDirectory scratch;
  const std::string path = scratch.path().string() + "/file";
  std::string frame = tfrecord_frame("hello");
  frame[13] ^= 1;
  std::ofstream(path, std::ios::binary) << frame;
  EXPECT_THROW(read_tfrecord_frames(path), IoError);
  std::ofstream(path, std::ios::binary) << tfrecord_frame("hello").substr(0, 18);
  EXPECT_THROW(read_tfrecord_frames(path), IoError);
  EXPECT_THROW(TensorBoardWriter("/no/such/directory", "h"), IoError);
}

#ifdef TUTTI_TEST_DATA
TEST(TensorBoard, ReadsAForeignEventFile) {
  const auto frames = read_tfrecord_frames(
      TUTTI_TEST_DATA "/tfrecord/events.out.tfevents.1711623945.ADMIN-20230220W");
  ASSERT_EQ(frames.size(), 1u);
  EXPECT_TRUE(has_text(frames[0], "brain.Event:2"));
}
#endif

}  // namespace
}  // namespace tutti::trace
