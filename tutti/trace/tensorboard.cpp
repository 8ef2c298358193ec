#include "tutti/trace/tensorboard.h"

#include <fmt/format.h>

#include <bit>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "tutti/base/error.h"
#include "tutti/base/numeric/crc32c.h"
#include "tutti/base/own_file.h"

namespace tutti::trace {
namespace {

static_assert(std::endian::native == std::endian::little, "frames are little endian");

template <class T>
void put_raw(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

// Protocol-buffer wire format: a key is (field number << 3 | wire type); types 0 varint, 1 64-bit,
// 2 length-delimited, 5 32-bit.
void put_varint(std::string& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  out += static_cast<char>(value);
}
void put_key(std::string& out, int field, int type) {
  put_varint(out, static_cast<uint64_t>(field << 3 | type));
}
void put_bytes(std::string& out, int field, const std::string& bytes) {
  put_key(out, field, 2);
  put_varint(out, bytes.size());
  out += bytes;
}

std::string event_head(double unix_seconds) {
  std::string event;
  put_key(event, 1, 1);
  put_raw(event, unix_seconds);
  return event;
}

std::string summary_value(const std::string& tag, double number) {
  std::string value;
  put_bytes(value, 1, tag);
  put_key(value, 2, 5);
  put_raw(value, static_cast<float>(number));
  return value;
}

}  // namespace

std::string tfrecord_frame(const std::string& bytes) {
  const uint64_t length = bytes.size();
  std::string frame;
  frame.reserve(bytes.size() + 16);
  put_raw(frame, length);
  put_raw(frame, masked_crc(crc32c(&length, sizeof length)));
  frame += bytes;
  put_raw(frame, masked_crc(crc32c(bytes.data(), bytes.size())));
  return frame;
}

TensorBoardWriter::TensorBoardWriter(const std::string& directory, const std::string& host,
                                     double unix_seconds)
    : path_(fmt::format("{}/events.out.tfevents.{}.{}", directory,
                        static_cast<int64_t>(unix_seconds), host)),
      file_(output_stream(path_, std::ios::app)) {
  std::string event = event_head(unix_seconds);
  put_bytes(event, 3, "brain.Event:2");  // the version that every reader expects in the first event
  append(event);
}

void TensorBoardWriter::append(const std::string& event) {
  errno = 0;
  file_ << tfrecord_frame(event) << std::flush;
  if (!file_)
    throw IoError(
        fmt::format("{}: cannot write the TensorBoard events: {}", path_, file_error(errno)));
}

void TensorBoardWriter::scalars(int64_t step, double unix_seconds,
                                std::span<const std::pair<std::string, double>> values) {
  std::string summary;
  for (const auto& [tag, number] : values)
    if (!std::isnan(number)) put_bytes(summary, 1, summary_value(tag, number));
  if (!summary.empty()) write_summary(step, unix_seconds, summary);
}

void TensorBoardWriter::text(int64_t step, double unix_seconds, const std::string& tag,
                             const std::string& markdown) {
  std::string one, shape, tensor, plugin, metadata, value, summary;
  put_key(one, 1, 0);
  put_varint(one, 1);
  put_bytes(shape, 2, one);
  put_key(tensor, 1, 0);
  put_varint(tensor, 7);  // DT_STRING
  put_bytes(tensor, 2, shape);
  put_bytes(tensor, 8, markdown);
  put_bytes(plugin, 1, "text");
  put_bytes(metadata, 1, plugin);
  put_bytes(value, 1, tag);
  put_bytes(value, 8, tensor);
  put_bytes(value, 9, metadata);
  put_bytes(summary, 1, value);
  write_summary(step, unix_seconds, summary);
}

void TensorBoardWriter::write_summary(int64_t step, double unix_seconds,
                                      const std::string& summary) {
  std::string event = event_head(unix_seconds);
  put_key(event, 2, 0);
  put_varint(event, static_cast<uint64_t>(step));
  put_bytes(event, 5, summary);
  append(event);
}

void TensorBoardWriter::add(const StepRecord& event) {
  const std::pair<std::string, double> values[] = {{"train/loss", event.loss},
                                                   {"train/lr", event.lr},
                                                   {"train/grad_norm", event.grad_norm},
                                                   {"speed/samples_per_s", event.samples_per_s},
                                                   {"speed/step_ms", event.step_ms},
                                                   {"speed/compute_ms", event.compute_ms},
                                                   {"speed/comm_exposed_ms", event.comm_exposed_ms},
                                                   {"speed/data_wait_ms", event.data_wait_ms},
                                                   {"speed/memory_bytes", event.memory_bytes}};
  scalars(event.step, event.time, values);
}

void TensorBoardWriter::add(const EpochRecord& event) {
  const std::pair<std::string, double> values[] = {{"epoch/seconds", event.seconds},
                                                   {"epoch/train_loss", event.train_loss},
                                                   {"epoch/samples_per_s", event.samples_per_s}};
  scalars(event.step, event.time, values);
}

void TensorBoardWriter::add(const EvalRecord& event) {
  std::vector<std::pair<std::string, double>> values = {{"eval/accuracy", event.accuracy},
                                                        {"eval/loss", event.loss}};
  for (const auto& [metric, value] : event.metrics) values.emplace_back("eval/" + metric, value);
  scalars(event.step, event.time, values);
}

std::vector<std::string> read_tfrecord_frames(const std::string& path) {
  std::error_code failed;
  const auto size = std::filesystem::file_size(path, failed);
  std::ifstream file(path, std::ios::binary);
  if (failed || !file) throw IoError(fmt::format("{}: cannot open the file", path));
  std::vector<std::string> payloads;
  const auto wrong = [&](uint64_t offset, const char* what) {
    return IoError(fmt::format("{}: frame {} at byte {}: {}", path, payloads.size(), offset, what));
  };
  for (uint64_t offset = 0; offset < size;) {
    char head[12];
    if (size - offset < 16 || !file.read(head, sizeof head)) throw wrong(offset, "cut");
    uint64_t length = 0;
    uint32_t check = 0;
    std::memcpy(&length, head, 8);
    std::memcpy(&check, head + 8, 4);
    if (masked_crc(crc32c(head, 8)) != check)
      throw wrong(offset, "checksum of the length is wrong");
    if (length > size - offset - 16) throw wrong(offset, "longer than the file");
    std::string payload(length, '\0');
    if (!file.read(payload.data(), static_cast<std::streamsize>(length)) || !file.read(head, 4))
      throw wrong(offset, "cut");
    std::memcpy(&check, head, 4);
    if (masked_crc(crc32c(payload.data(), payload.size())) != check)
      throw wrong(offset, "checksum of the data is wrong");
    payloads.push_back(std::move(payload));
    offset += length + 16;
  }
  return payloads;
}

}  // namespace tutti::trace
