#pragma once
// Writes TensorBoard event files without TensorBoard: TFRecord framing
//   uint64 length, uint32 masked CRC-32C of the length, the bytes, uint32 masked CRC-32C of the
//   bytes   (little endian)
// around protocol-buffer messages Event{1: wall_time double, 2: step int64, 3: file_version string,
// 5: Summary} with Summary{1: repeated Value{1: tag string, 2: simple_value float}}; a text is
// Value{1: tag, 8: tensor{1: dtype 7, 2: shape{2: {1: 1}}, 8: string}, 9: metadata{1: {1:
// "text"}}}.

#include <cstdint>
#include <fstream>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tutti/trace/record.h"

namespace tutti::trace {

/// Writes scalars into <directory>/events.out.tfevents.<seconds>.<host>. Not thread-safe. Each call
/// reaches the file system before it returns. Throws IoError naming the file.
class TensorBoardWriter {
 public:
  TensorBoardWriter(const std::string& directory, const std::string& host,
                    double unix_seconds = unix_now());

  void scalars(int64_t step, double unix_seconds,
               std::span<const std::pair<std::string, double>> values);
  /// Writes Markdown, shown under Text.
  void text(int64_t step, double unix_seconds, const std::string& tag, const std::string& markdown);
  void add(const StepRecord& event);   ///< train/loss, train/lr, speed/...; unmeasured
                                       ///< numbers are left out
  void add(const EpochRecord& event);  ///< epoch/seconds, epoch/train_loss, epoch/samples_per_s
  void add(const EvalRecord& event);   ///< eval/accuracy, eval/loss and every further metric

  const std::string& path() const { return path_; }

 private:
  void append(const std::string& event);
  void write_summary(int64_t step, double unix_seconds, const std::string& summary);
  std::string path_;
  std::ofstream file_;
};

/// Returns one frame around `bytes`.
std::string tfrecord_frame(const std::string& bytes);

/// Returns the payloads of all frames in a TFRecord file. Throws IoError with the byte offset if a
/// checksum or a length is wrong.
std::vector<std::string> read_tfrecord_frames(const std::string& path);

}  // namespace tutti::trace
