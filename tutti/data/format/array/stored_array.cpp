#include "tutti/data/format/array/stored_array.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>

#include "tutti/data/file/inflate.h"
#include "tutti/data/format/array/chunk_reader.h"
#include "tutti/data/format/array/frames.h"
#include "tutti/data/format/array/slab_copy.h"

namespace tutti::data {
namespace {

/// Reads values as stored, row-major.
void read_row_major(const StoredArray& array, const std::string& file, const Extents& shape,
                    const Slab& slab, uint8_t* out, ChunkCache* cache) {
  const size_t element = size_of(array.info.type);
  if (array.chunks) {
    read_chunks(array, file, slab, cache, out);
  } else if (array.packed) {
    PlainReader(array.packed->content(), array.first, shape, slab, element).read(out);
  } else if (array.file) {
    PlainReader(*array.file, array.first, shape, slab, element, array.row_bytes).read(out);
  } else if (array.frames) {
    read_frames(*array.frames, array.with_cells, slab, reinterpret_cast<float*>(out));
  } else {
    const std::vector<uint8_t> zero(element);
    const auto& fill = array.fill.empty() ? zero : array.fill;
    SlabCopy{{slab.elements()}, {0}, {static_cast<int64_t>(element)}, element}.run(fill.data(),
                                                                                   out);
  }
}

/// Reads values in native byte order.
void read_lengthened(const StoredArray& array, const std::string& file, const Slab& slab,
                     uint8_t* out, ChunkCache* cache) {
  const size_t element = size_of(array.info.type);
  Slab there = slab;  // the written part of the slab
  for (size_t d = 0; d < slab.count.size(); ++d)
    there.count[d] =
        std::clamp<int64_t>(array.written->info.shape[d] - slab.start[d], 0, slab.count[d]);
  if (there.count == slab.count) return read_stored(*array.written, file, slab, out, cache);
  const auto bytes = static_cast<int64_t>(element);
  SlabCopy{{slab.elements()}, {0}, {bytes}, element}.run(array.fill.data(), out);
  if (array.swapped) swap_bytes({out, static_cast<size_t>(slab.elements() * bytes)}, element);
  if (there.elements() == 0) return;
  std::vector<uint8_t> values(static_cast<size_t>(there.elements() * bytes));
  read_stored(*array.written, file, there, values.data(), cache);
  SlabCopy{there.count, row_major(there.count, element), row_major(slab.count, element), element}
      .run(values.data(), out);
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
      throw BadFile("{}: corrupted: expected CRC-32 {:08x}, found {:08x}: fetch the file again",
                    name, crc, found);
    inflated = FileBytes::own(std::move(content), name);
  }
  return *inflated;  // does not change once it is set
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
  if (array.written) return read_lengthened(array, file, slab, out, cache);
  const size_t element = size_of(array.info.type),
               bytes = static_cast<size_t>(slab.elements()) * element;
  if (!array.first_fastest) {
    read_row_major(array, file, array.info.shape, slab, out, cache);
  } else {  // the file has the transposed array, row-major
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
