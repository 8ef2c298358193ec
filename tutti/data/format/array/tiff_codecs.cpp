#include "tutti/data/format/array/tiff_codecs.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "tutti/data/element_type.h"
#include "tutti/data/file/file_bytes.h"
#include "tutti/data/file/inflate.h"

namespace tutti::data {
namespace {

[[noreturn]] void refuse_packed(const std::string& what, const char* codec, size_t wanted,
                                size_t found, const char* why) {
  throw BadFile(
      fmt::format("{}: expected {} bytes after undoing {}, found {}: {}: the file is "
                  "corrupted; fetch it again",
                  what, wanted, codec, found, why));
}

/// Reads codes of 9 to 12 bits. An entry is an earlier entry followed by a byte.
class LzwReader {
 public:
  LzwReader(std::span<const uint8_t> packed, std::span<uint8_t> out, const std::string& what)
      : packed_(packed), out_(out), what_(what) {}

  void run() {
    int previous = -1;
    while (done_ < out_.size()) {
      const int code = next_code();
      if (code == kEnd) refuse("the codes end");
      if (code == kClear) {
        entries_ = kFirst;
        width_ = 9;
        previous = -1;
        continue;
      }
      if (previous < 0) {
        if (code >= kClear) refuse("the first code is none of a byte");
        put(code);
      } else if (code < entries_) {
        add(previous, first_byte(code));
        put(code);
      } else {
        if (code != entries_) refuse("a code that stands for nothing yet");
        add(previous, first_byte(previous));
        put(code);
      }
      previous = code;
    }
  }

 private:
  static constexpr int kClear = 256, kEnd = 257, kFirst = 258, kMost = 4096;

  [[noreturn]] void refuse(const char* why) const {
    refuse_packed(what_, "LZW", out_.size(), done_, why);
  }

  int next_code() {
    while (held_ < width_) {
      if (at_ == packed_.size()) refuse("the bytes end");
      bits_ = bits_ << 8 | packed_[at_++];
      held_ += 8;
    }
    held_ -= width_;
    return static_cast<int>(bits_ >> held_ & ((1u << width_) - 1));
  }

  void add(int prefix, uint8_t byte) {
    if (entries_ == kMost) refuse("more codes than 12 bits count");
    const auto i = static_cast<size_t>(entries_++);
    prefix_[i] = static_cast<uint16_t>(prefix);
    byte_[i] = byte;
    first_[i] = first_byte(prefix);
    length_[i] = static_cast<uint16_t>(length_of(prefix) + 1);
    // One code early: TIFF's writers already count the entry that the reader is about to add.
    if (entries_ + 1 >= 1 << width_ && width_ < 12) ++width_;
  }

  int length_of(int code) const { return code < kClear ? 1 : length_[static_cast<size_t>(code)]; }

  uint8_t first_byte(int code) const {
    return code < kClear ? static_cast<uint8_t>(code) : first_[static_cast<size_t>(code)];
  }

  /// Writes an entry from its last byte to its first, without the part beyond the end of `out`.
  void put(int code) {
    const auto length = static_cast<size_t>(length_of(code));
    for (size_t i = length; i-- > 0;) {
      const bool entry = code >= kFirst;
      const uint8_t byte = entry ? byte_[static_cast<size_t>(code)] : static_cast<uint8_t>(code);
      if (done_ + i < out_.size()) out_[done_ + i] = byte;
      if (entry) code = prefix_[static_cast<size_t>(code)];
    }
    done_ = std::min(out_.size(), done_ + length);
  }

  std::span<const uint8_t> packed_;
  std::span<uint8_t> out_;
  const std::string& what_;
  size_t at_ = 0, done_ = 0;
  uint32_t bits_ = 0;
  int held_ = 0, width_ = 9, entries_ = kFirst;
  std::array<uint16_t, kMost> prefix_{}, length_{};
  std::array<uint8_t, kMost> byte_{}, first_{};
};

template <class Word>
void add_up(std::span<uint8_t> row, size_t samples) {
  const size_t count = row.size() / sizeof(Word);
  for (size_t i = samples; i < count; ++i) {
    Word before{}, value{};
    std::memcpy(&before, row.data() + (i - samples) * sizeof(Word), sizeof(Word));
    std::memcpy(&value, row.data() + i * sizeof(Word), sizeof(Word));
    value = static_cast<Word>(value + before);
    std::memcpy(row.data() + i * sizeof(Word), &value, sizeof(Word));
  }
}

}  // namespace

void unpack_lzw(std::span<const uint8_t> packed, std::span<uint8_t> out, const std::string& what) {
  LzwReader(packed, out, what).run();
}

void unpack_packbits(std::span<const uint8_t> packed, std::span<uint8_t> out,
                     const std::string& what) {
  size_t at = 0, done = 0;
  while (done < out.size()) {
    if (at == packed.size()) refuse_packed(what, "PackBits", out.size(), done, "the bytes end");
    const auto head = static_cast<int8_t>(packed[at++]);
    if (head == -128) continue;
    const bool run = head < 0;
    const size_t length = static_cast<size_t>(run ? 1 - head : head + 1);
    if ((run ? 1 : length) > packed.size() - at)
      refuse_packed(what, "PackBits", out.size(), done, "the bytes end");
    const size_t kept = std::min(length, out.size() - done);
    if (run)
      std::fill_n(out.begin() + static_cast<ptrdiff_t>(done), kept, packed[at]);
    else
      std::copy_n(packed.begin() + static_cast<ptrdiff_t>(at), kept,
                  out.begin() + static_cast<ptrdiff_t>(done));
    at += run ? 1 : length;
    done += kept;
  }
}

int64_t most_unpacked(int64_t bytes, const std::vector<ChunkTable::Filter>& filters) {
  const bool lzw = std::ranges::find(filters, ChunkTable::Filter::lzw) != filters.end();
  const int64_t gain = filters.empty() ? 1 : lzw ? kMostLzwGain : kMostInflation;
  return bytes > INT64_MAX / gain ? INT64_MAX : bytes * gain;
}

void undo_differences(std::span<uint8_t> bytes, const TiffRow& row) {
  if (row.swapped) swap_bytes(bytes, row.element);
  for (size_t at = 0; at + row.bytes <= bytes.size(); at += row.bytes) {
    const std::span<uint8_t> one = bytes.subspan(at, row.bytes);
    switch (row.element) {
      case 1: add_up<uint8_t>(one, row.samples); break;
      case 2: add_up<uint16_t>(one, row.samples); break;
      case 4: add_up<uint32_t>(one, row.samples); break;
      default: add_up<uint64_t>(one, row.samples); break;
    }
  }
  if (row.swapped) swap_bytes(bytes, row.element);
}

void undo_float_differences(std::span<uint8_t> bytes, const TiffRow& row) {
  std::vector<uint8_t> planes(row.bytes);
  const size_t values = row.bytes / row.element;
  for (size_t at = 0; at + row.bytes <= bytes.size(); at += row.bytes) {
    std::copy_n(bytes.begin() + static_cast<ptrdiff_t>(at), row.bytes, planes.begin());
    add_up<uint8_t>(planes, row.samples);
    for (size_t i = 0; i < values; ++i)
      for (size_t b = 0; b < row.element; ++b)
        bytes[at + i * row.element + (row.swapped ? b : row.element - 1 - b)] =
            planes[b * values + i];
  }
}

}  // namespace tutti::data
