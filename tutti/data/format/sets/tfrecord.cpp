#include "tutti/data/format/sets/tfrecord.h"

#include <fcntl.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <optional>
#include <string>

#include "tutti/base/numeric/crc32c.h"
#include "tutti/base/own_file.h"
#include "tutti/data/file/gzip.h"

namespace tutti::data {
namespace {

constexpr int64_t kFrameHead = 12, kFrameTail = 4;
constexpr int64_t kFrameStep =
    1 << 20;  // bytes read from a gzip file at a time: lengths may be wrong

[[noreturn]] void refuse_record(const std::string& file, int64_t number, const std::string& what) {
  throw BadFile("{}: record {}: {}: the file is truncated or corrupted; fetch it again", file,
                number, what);
}

bool sound_head(const uint8_t* head) {
  return masked_crc(crc32c(head, 8)) == number_at<uint32_t>(head + 8);
}

/// Returns the length in a record's head.
uint64_t checked_length(const std::string& file, int64_t number, const uint8_t* head) {
  if (!sound_head(head))
    refuse_record(file, number,
                  fmt::format("expected checksum {:08x} of its length {}, found {:08x}",
                              masked_crc(crc32c(head, 8)), number_at<uint64_t>(head),
                              number_at<uint32_t>(head + 8)));
  return number_at<uint64_t>(head);
}

void check_record(const std::string& file, int64_t number, std::span<const uint8_t> record,
                  const uint8_t* tail) {
  const uint32_t expected = number_at<uint32_t>(tail),
                 found = masked_crc(crc32c(record.data(), record.size()));
  if (found != expected)
    refuse_record(file, number,
                  fmt::format("expected checksum {:08x} of its {} bytes, found {:08x}", expected,
                              record.size(), found));
}

bool all_zeros(std::span<const uint8_t> bytes) {
  return std::ranges::all_of(bytes, [](uint8_t byte) { return byte == 0; });
}

bool zeros_follow(const FileBytes& file, int64_t at) {
  bool zeros = true;
  file.walk(at, [&](auto block, int64_t) { zeros = zeros && all_zeros(block); });
  return zeros;
}

/// `cut` is a command that writes the records without the zeros.
[[noreturn]] void refuse_zeros(const std::string& file, int64_t number, int64_t at,
                               const std::string& cut) {
  throw BadFile(
      "{}: zeros alone follow record {}, from byte {} on: a download or a copy may have reserved "
      "its place and not filled it; fetch it again, or, where no record is missing, take them off "
      "with '{}'",
      file, number - 1, at, cut);
}

/// Reports TensorFlow's other compression, which has only the zlib stream's own mark, for a file
/// that does not begin with a record.
void refuse_zlib(const std::string& file, std::span<const uint8_t> head) {
  constexpr uint8_t kLevels[] = {0x01, 0x5e, 0x9c, 0xda};
  if (head[0] != 0x78 || std::ranges::find(kLevels, head[1]) == std::end(kLevels)) return;
  throw BadFile(
      "{}: expected TFRecords, plain or gzip, found a zlib stream (TFRecordOptions "
      "\"ZLIB\"): unpack it with \"python3 -c 'import sys, zlib; "
      "sys.stdout.buffer.write(zlib.decompress(sys.stdin.buffer.read()))' < OLD > NEW\"",
      file);
}

/// Returns the place of the record with its head at `at`.
TfRecordPlace place_at(const FileBytes& file, int64_t at, int64_t number) {
  const int64_t left = file.size() - at;
  uint8_t head[kFrameHead] = {};
  file.read(at, std::span(head).first(static_cast<size_t>(std::min(left, kFrameHead))));
  if (number == 0 && !sound_head(head)) refuse_zlib(file.name(), head);
  if (number > 0 && all_zeros(head) && zeros_follow(file, at))
    refuse_zeros(file.name(), number, at, fmt::format("head -c {} OLD > NEW", at));
  if (left < kFrameHead + kFrameTail)
    refuse_record(
        file.name(), number,
        fmt::format("expected at least {} bytes, found {}", kFrameHead + kFrameTail, left));
  const uint64_t length = checked_length(file.name(), number, head);
  if (length > static_cast<uint64_t>(left - kFrameHead - kFrameTail))
    refuse_record(
        file.name(), number,
        fmt::format("expected {} bytes, found {}", length, left - kFrameHead - kFrameTail));
  return {at + kFrameHead, static_cast<int64_t>(length)};
}

bool begins_as_gzip(const FileBytes& file) {
  uint8_t head[2];
  if (file.size() < 2) return false;
  file.read(0, head);
  return head[0] == 0x1f && head[1] == 0x8b;
}

/// A plain record of 35615 bytes begins like a gzip file.
bool begins_as_record(const FileBytes& file) {
  uint8_t head[kFrameHead];
  if (file.size() < kFrameHead) return false;
  file.read(0, head);
  return sound_head(head);
}

std::string framed(std::span<const uint8_t> record) {
  std::string frame(static_cast<size_t>(kFrameHead) + record.size() + kFrameTail, '\0');
  const uint64_t length = record.size();
  std::memcpy(frame.data(), &length, 8);
  const uint32_t head_crc = masked_crc(crc32c(frame.data(), 8)),
                 crc = masked_crc(crc32c(record.data(), record.size()));
  std::memcpy(frame.data() + 8, &head_crc, 4);
  if (!record.empty()) std::memcpy(frame.data() + kFrameHead, record.data(), record.size());
  std::memcpy(frame.data() + kFrameHead + record.size(), &crc, 4);
  return frame;
}

void write_gzip(const std::filesystem::path& path, const std::vector<std::string>& pieces) {
  const std::string name = path.string();
  const int descriptor = open_output(path, O_WRONLY | O_CREAT | O_TRUNC);
  const gzFile file = gzdopen(descriptor, "wb");
  if (file == nullptr) {
    const int error = errno;
    ::close(descriptor);
    throw IoError(fmt::format("{}: cannot write: {}", name, file_error(error)));
  }
  bool sound = true;
  for (const std::string& piece : pieces)
    sound &= gzfwrite(piece.data(), 1, piece.size(), file) == piece.size();
  sound &= gzclose(file) == Z_OK;
  if (!sound) throw IoError(fmt::format("{}: cannot write: {}", name, file_error(errno)));
}

}  // namespace

struct TfRecordReader::State {
  FileBytes file;
  std::optional<GzipReader> packed{};
  int64_t at = 0, number = 0;  // place of the next record; its number in the unpacked file

  explicit State(const std::filesystem::path& path) : file(FileBytes::open(path)) {
    if (begins_as_gzip(file) && !begins_as_record(file)) packed.emplace(path);
  }

  bool next_packed(std::vector<uint8_t>& record) {
    uint8_t head[kFrameHead] = {}, tail[kFrameTail];
    const size_t found = packed->read(head);
    if (found == 0) return false;
    if (number > 0 && all_zeros(head) && zeros_are_left())
      refuse_zeros(file.name(), number, at, fmt::format("gzip -dc OLD | head -c {} > NEW", at));
    if (found < kFrameHead)
      refuse_record(file.name(), number,
                    fmt::format("expected a head of 12 bytes, found {}", found));
    const uint64_t length = checked_length(file.name(), number, head);
    if (length > static_cast<uint64_t>(packed->most_bytes()))
      refuse_record(
          file.name(), number,
          fmt::format("expected {} bytes, found a compressed file that holds less than {}", length,
                      packed->most_bytes()));
    record.clear();
    while (record.size() < length) {
      const size_t before = record.size();
      record.resize(before + std::min<size_t>(length - before, kFrameStep));
      const size_t got = packed->read(std::span(record).subspan(before));
      if (before + got < record.size())
        refuse_record(file.name(), number,
                      fmt::format("expected {} bytes, found {}", length, before + got));
    }
    if (packed->read(tail) < kFrameTail)
      refuse_record(file.name(), number, "its checksum is missing");
    check_record(file.name(), number, record, tail);
    at += kFrameHead + std::ssize(record) + kFrameTail;
    return true;
  }

  bool zeros_are_left() {
    std::vector<uint8_t> piece(static_cast<size_t>(kFrameStep));
    while (const size_t found = packed->read(piece))
      if (!all_zeros(std::span(piece).first(found))) return false;
    return true;
  }
};

TfRecordReader::TfRecordReader(const std::filesystem::path& path)
    : state_(std::make_unique<State>(path)) {}
TfRecordReader::~TfRecordReader() = default;
TfRecordReader::TfRecordReader(TfRecordReader&&) noexcept = default;
TfRecordReader& TfRecordReader::operator=(TfRecordReader&&) noexcept = default;

bool TfRecordReader::next(std::vector<uint8_t>& record) {
  State& s = *state_;
  if (s.packed) {
    if (!s.next_packed(record)) return false;
  } else {
    if (s.at == s.file.size()) return false;
    const TfRecordPlace place = place_at(s.file, s.at, s.number);
    read_tfrecord(s.file, place, s.number, record);
    s.at = place.first + place.bytes + kFrameTail;
  }
  ++s.number;
  return true;
}

std::vector<TfRecordPlace> tfrecord_places(const FileBytes& file) {
  if (begins_as_gzip(file) && !begins_as_record(file))
    throw BadFile(
        "{}: expected plain records, found a gzip file: unpack it with 'gunzip' to read records in "
        "any order",
        file.name());
  std::vector<TfRecordPlace> places;
  for (int64_t at = 0; at < file.size();
       at = places.back().first + places.back().bytes + kFrameTail)
    places.push_back(place_at(file, at, std::ssize(places)));
  return places;
}

bool is_tfrecord(const std::filesystem::path& path) {
  const FileBytes file = FileBytes::open(path);
  if (begins_as_record(file)) return true;
  if (!begins_as_gzip(file)) return false;
  uint8_t head[kFrameHead];
  return GzipReader(path).read(head) == kFrameHead && sound_head(head);
}

TfRecordFile open_tfrecords(const std::filesystem::path& path) {
  FileBytes file = FileBytes::open(path);
  if (!begins_as_gzip(file) || begins_as_record(file)) {
    std::vector<TfRecordPlace> places = tfrecord_places(file);
    return {std::move(file), std::move(places)};
  }
  TfRecordReader reader(path);
  std::vector<uint8_t> all, record;
  std::vector<TfRecordPlace> places;
  while (reader.next(record)) {
    places.push_back({std::ssize(all), std::ssize(record)});
    all.insert(all.end(), record.begin(), record.end());
  }
  all.shrink_to_fit();
  return {FileBytes::own(std::move(all), file.name()), std::move(places), true};
}

std::span<const uint8_t> TfRecordFile::record(int64_t number, std::vector<uint8_t>& memory) const {
  const TfRecordPlace& place = places[static_cast<size_t>(number)];
  if (inflated) return {bytes.in_memory(place.first), static_cast<size_t>(place.bytes)};
  read_tfrecord(bytes, place, number, memory);
  return memory;
}

void read_tfrecord(const FileBytes& file, const TfRecordPlace& place, int64_t number,
                   std::vector<uint8_t>& record) {
  record.resize(static_cast<size_t>(place.bytes));
  file.read(place.first, record);
  uint8_t tail[kFrameTail];
  file.read(place.first + place.bytes, tail);
  check_record(file.name(), number, record, tail);
}

void write_tfrecords(const std::filesystem::path& path,
                     std::span<const std::vector<uint8_t>> records, bool gzip) {
  std::vector<std::string> pieces;
  for (const auto& record : records) pieces.push_back(framed(record));
  if (gzip) return write_gzip(path, pieces);
  auto file = output_stream(path);
  for (const std::string& piece : pieces) file << piece;
  file.close();
  if (!file) throw IoError(fmt::format("{}: cannot write: {}", path.string(), file_error(errno)));
}

}  // namespace tutti::data
