#pragma once
// Copies slabs between memory and files of row-major elements.

#include <algorithm>
#include <cstring>
#include <vector>

#include "tutti/data/format/array/stored_array.h"

namespace tutti::data {

using Extents = std::vector<int64_t>;

/// Returns the bytes from one element to the next along each dimension, for row-major elements.
inline Extents row_major(const Extents& shape, size_t element) {
  Extents strides(shape.size());
  auto stride = static_cast<int64_t>(element);
  for (size_t i = shape.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= std::max<int64_t>(shape[i], 1);
  }
  return strides;
}

/// Copies count[0] x count[1] x ... elements between places with different strides.
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

/// Reads a slab of contiguous row-major elements. A part that spans at most kSpan bytes is read at
/// once, with the bytes between its rows, which takes fewer calls.
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

}  // namespace tutti::data
