#include "tutti/data/format/stored_array.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <cstring>

#include "tutti/data/format/crc32.h"
#include "tutti/data/format/inflate.h"
#include "tutti/data/format/molecules/frames.h"

namespace tutti::data {
namespace {

using Extents = std::vector<int64_t>;

/// Bytes from one element to the next along each dimension, of row-major elements.
Extents row_major(const Extents& shape, size_t element) {
  Extents strides(shape.size());
  auto stride = static_cast<int64_t>(element);
  for (size_t i = shape.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= std::max<int64_t>(shape[i], 1);
  }
  return strides;
}

/// Copies count[0] x count[1] x ... elements between places with strides of their own.
struct SlabCopy {
  Extents count, from_strides, to_strides;
  size_t element = 1;

  void run(const uint8_t* from, uint8_t* to, size_t dimension = 0) const {
    if (dimension == count.size()) {
      std::memcpy(to, from, element);
      return;
    }
    const int64_t n = count[dimension], from_stride = from_strides[dimension],
                  to_stride = to_strides[dimension];
    const auto bytes = static_cast<int64_t>(element);
    if (dimension + 1 == count.size()) {
      if (from_stride == bytes && to_stride == bytes) {
        std::memcpy(to, from, static_cast<size_t>(n) * element);
        return;
      }
      for (int64_t i = 0; i < n; ++i)
        std::memcpy(to + i * to_stride, from + i * from_stride, element);
      return;
    }
    for (int64_t i = 0; i < n; ++i) run(from + i * from_stride, to + i * to_stride, dimension + 1);
  }
};

/// Reads a slab of contiguous row-major elements. A part of at most kSpan bytes from its first to
/// its last element is read at once, with what lies between its rows: fewer calls than rows.
class PlainReader {
 public:
  PlainReader(const FileBytes& file, int64_t first, const Extents& shape, const Slab& slab,
              size_t element, int64_t row_bytes = 0)
      : file_(file), first_(first), slab_(slab), element_(static_cast<int64_t>(element)),
        strides_(row_major(shape, element)), out_strides_(row_major(slab.count, element)) {
    if (row_bytes > 0) strides_[0] = row_bytes;
    spans_.assign(shape.size() + 1, element_);
    for (size_t i = shape.size(); i-- > 0;)
      spans_[i] = (slab.count[i] - 1) * strides_[i] + spans_[i + 1];
  }

  void read(uint8_t* out) {
    int64_t at = first_;
    for (size_t i = 0; i < strides_.size(); ++i) at += slab_.start[i] * strides_[i];
    part(0, at, out);
  }

 private:
  static constexpr int64_t kSpan = 1 << 20;

  void part(size_t dimension, int64_t at, uint8_t* out) {
    const int64_t wanted =
        dimension == strides_.size() ? element_ : slab_.count[dimension] * out_strides_[dimension];
    if (wanted == spans_[dimension]) {
      file_.read(at, {out, static_cast<size_t>(wanted)});
    } else if (spans_[dimension] <= kSpan) {
      buffer_.resize(static_cast<size_t>(spans_[dimension]));
      file_.read(at, buffer_);
      const auto from = static_cast<ptrdiff_t>(dimension);
      SlabCopy{{slab_.count.begin() + from, slab_.count.end()},
               {strides_.begin() + from, strides_.end()},
               {out_strides_.begin() + from, out_strides_.end()},
               static_cast<size_t>(element_)}
          .run(buffer_.data(), out);
    } else {
      for (int64_t i = 0; i < slab_.count[dimension]; ++i)
        part(dimension + 1, at + i * strides_[dimension], out + i * out_strides_[dimension]);
    }
  }

  const FileBytes& file_;
  int64_t first_;
  const Slab& slab_;
  int64_t element_;
  Extents strides_, out_strides_, spans_;
  std::vector<uint8_t> buffer_;
};

/// Undoes HDF5's shuffle: first all first bytes of the elements, then all second ones ...; what is
/// left beyond whole elements lies at the end as it was.
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

/// HDF5's Fletcher-32: sums of 16-bit words, the first byte of each the upper one.
uint32_t fletcher32(std::span<const uint8_t> bytes) {
  uint32_t sum1 = 0, sum2 = 0;
  const auto fold = [](uint32_t sum) { return (sum & 0xffff) + (sum >> 16); };
  size_t words = bytes.size() / 2, at = 0;
  while (words > 0) {
    const size_t some = std::min<size_t>(words, 360);  // as many as 32 bits can add up
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
    int64_t number = 0;
    bool edge = false;
    Slab part{Extents(rank_), Extents(rank_)};  // of the chunk
    bool all = true;                            // that the array has of it
    for (size_t i = 0; i < rank_; ++i) {
      number += at[i] * grid_strides_[i];
      const int64_t first = at[i] * table_.shape[i], past = first + table_.shape[i],
                    begin = std::max(slab_.start[i], first),
                    end = std::min(slab_.start[i] + slab_.count[i], past);
      edge |= past > array_.info.shape[i];
      all &= end - begin == std::min(past, array_.info.shape[i]) - first;
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
    if (chunk.use_count() == 1) bytes_ = std::move(*chunk);  // its memory serves for the next one
  }

  /// Of a chunk that lies there as it is only the part wanted is read.
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
    throw BadFile(fmt::format("{}: expected {}, found {}: the file is corrupted; fetch it again",
                              what(number), expected, found));
  }

  /// The chunk's elements, its filters undone from the last to the first.
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
          size_t inflated = chunk_bytes_;  // and checksums that were put behind before
          for (size_t j = 0; j < i; ++j)
            if (table_.filters[j] == ChunkTable::Filter::checksum && applied(j)) inflated += 4;
          if (inflated / kMostInflation > bytes_.size() + 1)
            refuse(number, fmt::format("{} bytes after inflating", inflated),
                   fmt::format("{} bytes, which cannot hold them", bytes_.size()));
          spare_.resize(inflated);
          inflate_bytes(bytes_, Deflated::zlib, spare_, what(number));
          bytes_.swap(spare_);
        }
      }
    }
    require_whole(number, bytes_.size());
    return std::make_shared<std::vector<uint8_t>>(std::move(bytes_));
  }

  void require_whole(int64_t number, size_t bytes) const {
    if (bytes != chunk_bytes_)
      refuse(number, fmt::format("{} bytes", chunk_bytes_), std::to_string(bytes));
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
  size_t chunk_bytes_ = 0;
  std::vector<uint8_t> bytes_, spare_;
};

/// As stored, row-major.
void read_row_major(const StoredArray& array, const std::string& file, const Extents& shape,
                    const Slab& slab, uint8_t* out, ChunkCache* cache) {
  const size_t element = size_of(array.info.type);
  if (array.chunks) {
    ChunkReader(array, file, slab, cache).read(out);
  } else if (array.packed) {
    PlainReader(array.packed->content(), array.first, shape, slab, element).read(out);
  } else if (array.file) {
    PlainReader(*array.file, array.first, shape, slab, element, array.row_bytes).read(out);
  } else if (array.frames) {
    read_frames(*array.frames, slab, reinterpret_cast<float*>(out));
  } else {
    const std::vector<uint8_t> zero(element);
    const auto& fill = array.fill.empty() ? zero : array.fill;
    SlabCopy{{slab.elements()}, {0}, {static_cast<int64_t>(element)}, element}.run(fill.data(),
                                                                                   out);
  }
}

Extents reversed(Extents extents) {
  std::ranges::reverse(extents);
  return extents;
}

}  // namespace

const FileBytes& PackedBytes::content() {
  const std::lock_guard lock(mutex);
  if (!inflated) {
    std::vector<uint8_t> content(static_cast<size_t>(bytes));
    inflate_part(file, first, stored, Deflated::bare, content, name);
    if (const uint32_t found = crc32_of(content); found != crc)
      throw BadFile(
          fmt::format("{}: corrupted: expected CRC-32 {:08x}, found {:08x}: fetch the file again",
                      name, crc, found));
    inflated = FileBytes::own(std::move(content), name);
  }
  return *inflated;  // stays as it is once it is set
}

void check_announced(ArrayInfo& info, int64_t held) {
  int64_t elements = 1, bytes = 0;
  bool sound = true;
  for (const int64_t extent : info.shape)
    sound &=
        extent >= 0 && !__builtin_mul_overflow(elements, std::max<int64_t>(extent, 1), &elements);
  sound &= !__builtin_mul_overflow(elements, static_cast<int64_t>(size_of(info.type)), &bytes);
  if (std::ranges::find(info.shape, 0) != info.shape.end()) bytes = 0;
  if (info.problem.empty() && (!sound || bytes > held))
    info.problem = fmt::format(
        "its header announces {} [{}], but the file can hold at most {} bytes of it: it is "
        "truncated or corrupted; fetch it again",
        name_of(info.type), fmt::join(info.shape, ", "), held);
}

uint64_t ChunkTable::next_id() {
  static std::atomic<uint64_t> next{0};
  return next++;
}

const uint8_t* view_stored(const StoredArray& array, const Slab& slab) {
  if (array.swapped || array.chunks || array.row_bytes > 0 ||
      (array.first_fastest && array.info.shape.size() > 1))
    return nullptr;
  const Extents &shape = array.info.shape, strides = row_major(shape, size_of(array.info.type));
  int64_t at = array.first;
  bool one_so_far = true, whole_from_here = false;  // contiguous: 1 ... 1, any, all ... all
  for (size_t i = 0; i < shape.size(); ++i) {
    if (whole_from_here && slab.count[i] != shape[i]) return nullptr;
    one_so_far &= slab.count[i] == 1;
    whole_from_here |= !one_so_far;
    at += slab.start[i] * strides[i];
  }
  if (array.packed) return array.packed->content().in_memory(at);
  return array.file ? array.file->in_memory(at) : nullptr;
}

void read_stored(const StoredArray& array, const std::string& file, const Slab& slab, uint8_t* out,
                 ChunkCache* cache) {
  const size_t element = size_of(array.info.type),
               bytes = static_cast<size_t>(slab.elements()) * element;
  if (!array.first_fastest) {
    read_row_major(array, file, array.info.shape, slab, out, cache);
  } else {  // what lies there is the transposed array, row-major
    const Slab transposed{reversed(slab.start), reversed(slab.count)};
    std::vector<uint8_t> stored(bytes);
    read_row_major(array, file, reversed(array.info.shape), transposed, stored.data(), cache);
    SlabCopy{slab.count, reversed(row_major(transposed.count, element)),
             row_major(slab.count, element), element}
        .run(stored.data(), out);
  }
  if (array.swapped) swap_bytes({out, bytes}, element);
}

}  // namespace tutti::data
