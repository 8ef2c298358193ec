#include "tutti/data/file/gzip.h"

#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <vector>

#include "tutti/data/file/file_bytes.h"
#include "tutti/data/file/first_bytes.h"

namespace tutti::data {
namespace {

constexpr int64_t kLeastBytes = 18;  // the smallest member: 10 bytes of header, 8 of trailer
constexpr size_t kBufferBytes = 1 << 16;

}  // namespace

struct GzipReader::State {
  FileBytes file;
  z_stream stream{};
  std::vector<uint8_t> buffer = std::vector<uint8_t>(kBufferBytes);
  int64_t position = 0;  // in the file, of the byte after the buffer
  int64_t produced = 0;
  bool between_members = false;

  explicit State(FileBytes packed) : file(std::move(packed)) {
    CHECK(inflateInit2(&stream, 15 + 16) == Z_OK, "zlib {}",
          zlibVersion());  // 16: gzip framing, so zlib checks the CRC
    stream.next_in = buffer.data();
  }
  ~State() { inflateEnd(&stream); }

  int64_t unread() const { return stream.avail_in + (file.size() - position); }

  /// Moves the unread bytes to the front of the buffer and reads more behind them.
  void refill() {
    std::memmove(buffer.data(), stream.next_in, stream.avail_in);
    const auto more = static_cast<size_t>(std::min<int64_t>(
        static_cast<int64_t>(buffer.size()) - stream.avail_in, file.size() - position));
    file.read(position, std::span(buffer).subspan(stream.avail_in, more));
    position += static_cast<int64_t>(more);
    stream.next_in = buffer.data();
    stream.avail_in += static_cast<uInt>(more);
  }

  bool at_member() {
    if (stream.avail_in < 2) refill();
    return unread() >= kLeastBytes && stream.next_in[0] == 0x1f && stream.next_in[1] == 0x8b;
  }

  /// Says whether only zeros are left, as tapes and some file systems leave them.
  bool zeros_follow() {
    for (;;) {
      if (std::any_of(stream.next_in, stream.next_in + stream.avail_in,
                      [](uint8_t byte) { return byte != 0; }))
        return false;
      stream.avail_in = 0;
      if (unread() == 0) return true;
      refill();
    }
  }

  /// Starts the next member; false when there is none.
  bool next_member() {
    if (unread() == 0) return false;
    if (!at_member()) {
      const int64_t bytes = unread();
      if (zeros_follow()) return false;
      throw BadFile(
          "{0}: {1} bytes that are no gzip follow the end of the stream at byte {2}: take them off "
          "with 'head -c {2} OLD > NEW', or fetch the file again",
          file.name(), bytes, file.size() - bytes);
    }
    inflateReset(&stream);
    between_members = false;
    return true;
  }
};

GzipReader::GzipReader(const std::filesystem::path& path)
    : state_(std::make_unique<State>(FileBytes::open(path))) {
  if (state_->at_member()) return;
  const FirstBytes found = first_bytes_of(state_->file);
  if (found.content == Content::unknown || found.content == Content::text)
    throw BadFile(
        "{}: expected a gzip file (bytes 1f 8b ...), found {} bytes of something else: fetch it "
        "again, or rename it without .gz if it is not compressed",
        path.string(), state_->file.size());
  throw BadFile(unreadable(state_->file, Content::gzip, "a member of less than 18 bytes"));
}

GzipReader::~GzipReader() = default;

size_t GzipReader::read(std::span<uint8_t> out) {
  State& s = *state_;
  size_t done = 0;
  while (done < out.size()) {
    if (s.between_members && !s.next_member()) break;
    if (s.stream.avail_in == 0) s.refill();
    const size_t room = std::min<size_t>(out.size() - done, std::numeric_limits<uInt>::max());
    s.stream.next_out = out.data() + done;
    s.stream.avail_out = static_cast<uInt>(room);
    const int code = ::inflate(&s.stream, Z_NO_FLUSH);
    done += room - s.stream.avail_out;
    s.produced += static_cast<int64_t>(room - s.stream.avail_out);
    if (code == Z_STREAM_END) {
      s.between_members = true;
    } else if (code != Z_OK && code != Z_BUF_ERROR) {
      throw BadFile("{}: corrupted: {} after {} bytes: fetch the file again", s.file.name(),
                    s.stream.msg ? s.stream.msg : "invalid stream", s.produced);
    } else if (s.unread() == 0 && s.stream.avail_out > 0) {
      throw BadFile(
          "{}: truncated: the gzip stream does not end within its {} bytes: fetch the file again",
          s.file.name(), s.file.size());
    }
  }
  return done;
}

int64_t GzipReader::most_bytes() const { return state_->file.size() * 1032; }

}  // namespace tutti::data
