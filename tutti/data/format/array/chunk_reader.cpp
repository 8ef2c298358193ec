#include "tutti/data/format/array/chunk_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "tutti/data/file/inflate.h"
#include "tutti/data/format/array/slab_copy.h"
#include "tutti/data/format/array/tiff_codecs.h"

namespace tutti::data {
namespace {

/// Undoes HDF5's shuffle: all first bytes of the elements, then all second ones ...; bytes after
/// the last whole element lie unchanged at the end.
void unshuffle(std::vector<uint8_t>& bytes, std::vector<uint8_t>& spare, size_t element) {
  const size_t elements = bytes.size() / element;
  spare.resize(bytes.size());
  for (size_t b = 0; b < element; ++b) {
    const uint8_t* from = bytes.data() + b * elements;
    uint8_t* to = spare.data() + b;
    for (size_t i = 0; i < elements; ++i) to[i * element] = from[i];
  }
  std::copy(bytes.begin() + static_cast<ptrdiff_t>(elements * element), bytes.end(),
            spare.begin() + static_cast<ptrdiff_t>(elements * element));
  bytes.swap(spare);
}

/// Computes HDF5's Fletcher-32: sums of 16-bit words, big-endian.
uint32_t fletcher32(std::span<const uint8_t> bytes) {
  uint32_t sum1 = 0, sum2 = 0;
  const auto fold = [](uint32_t sum) { return (sum & 0xffff) + (sum >> 16); };
  size_t words = bytes.size() / 2, at = 0;
  while (words > 0) {
    const size_t some = std::min<size_t>(words, 360);  // as many as 32 bits can sum
    words -= some;
    for (size_t i = 0; i < some; ++i, at += 2) {
      sum1 += uint32_t{bytes[at]} << 8 | bytes[at + 1];
      sum2 += sum1;
    }
    sum1 = fold(sum1);
    sum2 = fold(sum2);
  }
  if (bytes.size() % 2 != 0) {
    sum1 += uint32_t{bytes[at]} << 8;
    sum2 += sum1;
    sum1 = fold(sum1);
    sum2 = fold(sum2);
  }
  return fold(sum2) << 16 | fold(sum1);
}

/// Reads the chunks that a slab touches, one after the other.
class ChunkReader {
 public:
  ChunkReader(const StoredArray& array, const std::string& file, const Slab& slab,
              ChunkCache* cache)
      : array_(array), table_(*array.chunks), file_(file), slab_(slab), cache_(cache),
        element_(size_of(array.info.type)), rank_(table_.shape.size()),
        chunk_strides_(row_major(table_.shape, element_)),
        out_strides_(row_major(slab.count, element_)) {
    int64_t stride = 1;
    grid_strides_.resize(rank_);
    for (size_t i = rank_; i-- > 0;) {
      grid_strides_[i] = stride;
      stride *= (array.info.shape[i] + table_.shape[i] - 1) / table_.shape[i];
      first_.push_back(0), last_.push_back(0);
    }
    for (size_t i = 0; i < rank_; ++i) {
      first_[i] = slab.start[i] / table_.shape[i];
      last_[i] = (slab.start[i] + slab.count[i] - 1) / table_.shape[i];
    }
    chunk_bytes_ = static_cast<size_t>(chunk_strides_[0] * table_.shape[0]);
  }

  void read(uint8_t* out) {
    Extents at = first_;
    for (;;) {
      copy(at, out);
      size_t i = rank_;
      while (i-- > 0) {
        if (++at[i] <= last_[i]) break;
        at[i] = first_[i];
        if (i == 0) return;
      }
    }
  }

 private:
  void copy(const Extents& at, uint8_t* out) {
    int64_t number = 0, held = 1;  // held: elements of the chunk that the array has
    bool edge = false;
    Slab part{Extents(rank_), Extents(rank_)};  // the slab's part within the chunk
    bool all = true;                            // whether it is all of the chunk within the array
    for (size_t i = 0; i < rank_; ++i) {
      number += at[i] * grid_strides_[i];
      const int64_t first = at[i] * table_.shape[i], past = first + table_.shape[i],
                    begin = std::max(slab_.start[i], first),
                    end = std::min(slab_.start[i] + slab_.count[i], past);
      edge |= past > array_.info.shape[i];
      const int64_t there = std::min(past, array_.info.shape[i]) - first;
      all &= end - begin == there;
      held *= there;
      part.start[i] = begin - first;
      part.count[i] = end - begin;
      out += (begin - slab_.start[i]) * out_strides_[i];
    }
    const auto found = table_.chunks.find(number);
    if (found == table_.chunks.end()) {
      uint8_t zero[8] = {};
      SlabCopy{part.count, Extents(rank_, 0), out_strides_, element_}.run(
          array_.fill.empty() ? zero : array_.fill.data(), out);
      return;
    }
    const bool bare = edge && table_.bare_edges;
    expected_ = table_.short_edges ? static_cast<size_t>(held) * element_ : chunk_bytes_;
    if (!all && (bare || table_.filters.empty()))
      return copy_unfiltered(found->second, number, part, out);
    ChunkCache::Bytes chunk =
        all || cache_ == nullptr ? nullptr : cache_->find({table_.id, number});
    if (!chunk) {
      chunk = load(found->second, number, bare);
      if (!all && cache_ != nullptr) cache_->keep({table_.id, number}, chunk);
    }
    const uint8_t* from = chunk->data();
    for (size_t i = 0; i < rank_; ++i) from += part.start[i] * chunk_strides_[i];
    SlabCopy{part.count, chunk_strides_, out_strides_, element_}.run(from, out);
    if (chunk.use_count() == 1) bytes_ = std::move(*chunk);  // reused for the next chunk
  }

  /// Reads only the requested part of a chunk that is stored unfiltered.
  void copy_unfiltered(const ChunkTable::Chunk& chunk, int64_t number, const Slab& part,
                       uint8_t* out) {
    require_whole(number, static_cast<size_t>(chunk.bytes));
    bytes_.resize(static_cast<size_t>(part.elements()) * element_);
    PlainReader(*array_.file, chunk.first, table_.shape, part, element_).read(bytes_.data());
    SlabCopy{part.count, row_major(part.count, element_), out_strides_, element_}.run(bytes_.data(),
                                                                                      out);
  }

  std::string what(int64_t number) const {
    return fmt::format("{}: array '{}', chunk {}", file_, array_.info.name, number);
  }

  [[noreturn]] void refuse(int64_t number, const std::string& expected,
                           const std::string& found) const {
    throw BadFile("{}: expected {}, found {}: the file is corrupted; fetch it again", what(number),
                  expected, found);
  }

  /// Returns the chunk's elements, with its filters undone from the last to the first.
  ChunkCache::Bytes load(const ChunkTable::Chunk& chunk, int64_t number, bool bare) {
    const auto applied = [&](size_t filter) {
      return !bare && (chunk.skipped >> filter & 1u) == 0;
    };
    bytes_.resize(static_cast<size_t>(chunk.bytes));
    array_.file->read(chunk.first, bytes_);
    for (size_t i = table_.filters.size(); i-- > 0;) {
      if (!applied(i)) continue;
      switch (table_.filters[i]) {
        case ChunkTable::Filter::checksum: check_sum(number); break;
        case ChunkTable::Filter::shuffle: unshuffle(bytes_, spare_, element_); break;
        case ChunkTable::Filter::deflate: {
          size_t inflated = expected_;  // plus checksums added before deflating
          for (size_t j = 0; j < i; ++j)
            if (table_.filters[j] == ChunkTable::Filter::checksum && applied(j)) inflated += 4;
          require_gain(number, inflated, kMostInflation);
          spare_.resize(inflated);
          inflate_bytes(bytes_, Deflated::zlib, spare_, what(number));
          bytes_.swap(spare_);
          break;
        }
        case ChunkTable::Filter::lzw:
          require_gain(number, expected_, kMostLzwGain);
          spare_.resize(expected_);
          unpack_lzw(bytes_, spare_, what(number));
          bytes_.swap(spare_);
          break;
        case ChunkTable::Filter::packbits:
          require_gain(number, expected_, kMostPackbitsGain);
          spare_.resize(expected_);
          unpack_packbits(bytes_, spare_, what(number));
          bytes_.swap(spare_);
          break;
        case ChunkTable::Filter::difference: undo_differences(bytes_, tiff_row()); break;
        case ChunkTable::Filter::float_difference:
          undo_float_differences(bytes_, tiff_row());
          break;
      }
    }
    require_whole(number, bytes_.size());
    return std::make_shared<std::vector<uint8_t>>(std::move(bytes_));
  }

  void require_whole(int64_t number, size_t bytes) const {
    if (bytes != expected_)
      refuse(number, fmt::format("{} bytes", expected_), std::to_string(bytes));
  }

  /// Checks a packed chunk before memory is allocated for its announced size.
  void require_gain(int64_t number, size_t unpacked, int64_t most) const {
    if (unpacked / static_cast<size_t>(most) > bytes_.size() + 1)
      refuse(number, fmt::format("{} bytes after unpacking", unpacked),
             fmt::format("{} bytes, which cannot hold them", bytes_.size()));
  }

  TiffRow tiff_row() const {
    const size_t places = table_.samples > 1 ? rank_ - 2 : rank_ - 1;  // the axis along a row
    return {.bytes = static_cast<size_t>(chunk_strides_[places] * table_.shape[places]),
            .element = element_,
            .samples = static_cast<size_t>(table_.samples),
            .swapped = array_.swapped};
  }

  void check_sum(int64_t number) {
    if (bytes_.size() < 4) refuse(number, "a checksum of 4 bytes", std::to_string(bytes_.size()));
    const size_t end = bytes_.size() - 4;
    uint32_t stored = 0;
    std::memcpy(&stored, bytes_.data() + end, 4);
    bytes_.resize(end);
    if (const uint32_t found = fletcher32(bytes_); found != stored)
      refuse(number, fmt::format("Fletcher-32 {:08x}", stored), fmt::format("{:08x}", found));
  }

  const StoredArray& array_;
  const ChunkTable& table_;
  const std::string& file_;
  const Slab& slab_;
  ChunkCache* cache_;
  size_t element_, rank_;
  Extents chunk_strides_, out_strides_, grid_strides_, first_, last_;
  size_t chunk_bytes_ = 0, expected_ = 0;  // bytes of a whole chunk; of the current one, unpacked
  std::vector<uint8_t> bytes_, spare_;
};

}  // namespace

void read_chunks(const StoredArray& array, const std::string& file, const Slab& slab,
                 ChunkCache* cache, uint8_t* out) {
  ChunkReader(array, file, slab, cache).read(out);
}

}  // namespace tutti::data
