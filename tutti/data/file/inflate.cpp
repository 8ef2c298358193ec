#include "tutti/data/file/inflate.h"

#include <zlib.h>

#include <algorithm>
#include <limits>
#include <vector>

namespace tutti::data {
namespace {

/// Inflates one stream, fed in pieces.
class Inflater {
 public:
  Inflater(Deflated wrapping, std::span<uint8_t> out, const std::string& what)
      : out_(out), what_(what) {
    CHECK(inflateInit2(&stream_, wrapping == Deflated::bare ? -15 : 15) == Z_OK, "zlib {}",
          zlibVersion());
  }
  ~Inflater() { inflateEnd(&stream_); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  /// Returns true when the stream has ended, or, with `start`, when `out` is full.
  bool feed(std::span<const uint8_t> piece, bool start = false) {
    stream_.next_in = const_cast<Bytef*>(piece.data());
    stream_.avail_in = static_cast<uInt>(piece.size());
    for (;;) {
      const size_t room = std::min<size_t>(out_.size() - done_, std::numeric_limits<uInt>::max());
      if (start && room == 0) return true;
      uint8_t beyond = 0;  // the stream writes here when `out` is full: even one byte is too many
      stream_.next_out = room > 0 ? out_.data() + done_ : &beyond;
      stream_.avail_out = room > 0 ? static_cast<uInt>(room) : 1;
      const uInt before = stream_.avail_out;
      const int code = ::inflate(&stream_, Z_NO_FLUSH);
      const uInt made = before - stream_.avail_out;
      if (room == 0 && made > 0) fail("more");
      done_ += made;
      if (code == Z_STREAM_END) return true;
      if (code == Z_BUF_ERROR || (code == Z_OK && stream_.avail_in == 0 && stream_.avail_out > 0))
        return false;
      if (code != Z_OK)
        throw BadFile("{}: corrupted: {} after {} bytes: fetch the file again", what_,
                      stream_.msg ? stream_.msg : "invalid stream", done_);
    }
  }

  size_t done() const { return done_; }

  void end(bool complete) const {
    if (!complete || done_ < out_.size()) fail(std::to_string(done_));
  }

 private:
  [[noreturn]] void fail(const std::string& found) const {
    throw BadFile(
        "{}: expected {} bytes after inflating, found {}: the file is corrupted; fetch it again",
        what_, out_.size(), found);
  }

  z_stream stream_{};
  std::span<uint8_t> out_;
  size_t done_ = 0;
  const std::string& what_;
};

bool feed_part(Inflater& inflater, const FileBytes& file, int64_t first, int64_t stored,
               bool start) {
  constexpr int64_t kPiece = 1 << 18;
  std::vector<uint8_t> piece;
  bool complete = false;
  for (int64_t at = 0; at < stored && !complete; at += kPiece) {
    piece.resize(static_cast<size_t>(std::min(kPiece, stored - at)));
    file.read(first + at, piece);
    complete = inflater.feed(piece, start);
  }
  return complete;
}

}  // namespace

void inflate_part(const FileBytes& file, int64_t first, int64_t stored, Deflated wrapping,
                  std::span<uint8_t> out, const std::string& what) {
  Inflater inflater(wrapping, out, what);
  inflater.end(feed_part(inflater, file, first, stored, false));
}

size_t inflate_start(const FileBytes& file, int64_t first, int64_t stored, Deflated wrapping,
                     std::span<uint8_t> out, const std::string& what) {
  Inflater inflater(wrapping, out, what);
  feed_part(inflater, file, first, stored, true);
  return inflater.done();
}

void inflate_bytes(std::span<const uint8_t> stored, Deflated wrapping, std::span<uint8_t> out,
                   const std::string& what) {
  constexpr size_t kPiece = size_t{1} << 30;  // zlib counts in 32 bits
  Inflater inflater(wrapping, out, what);
  bool complete = false;
  for (size_t at = 0; at < stored.size() && !complete; at += kPiece)
    complete = inflater.feed(stored.subspan(at, std::min(kPiece, stored.size() - at)));
  inflater.end(complete);
}

uint32_t crc32_of(std::span<const uint8_t> bytes, uint32_t crc) {
  return static_cast<uint32_t>(::crc32_z(crc, bytes.data(), bytes.size()));
}

}  // namespace tutti::data
