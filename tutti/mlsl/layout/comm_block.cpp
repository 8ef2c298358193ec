#include "tutti/mlsl/layout/comm_block.h"

#include <cstring>

namespace tutti::mlsl::layout {
namespace {

// Calls move(offset in the activation, offset in the buffer, bytes) for every contiguous piece.
template <class Move>
void for_each_piece(std::span<const CommBlock> blocks, size_t element_bytes, Move move) {
  for (const CommBlock& block : blocks) {
    const size_t row = block.maps.count * block.map_size;
    const size_t first =
        block.samples.begin * block.sample_stride + block.maps.begin * block.map_size;
    for (size_t s = 0; s < block.samples.count; ++s)
      move((first + s * block.sample_stride) * element_bytes,
           (block.buffer_offset + s * row) * element_bytes, row * element_bytes);
  }
}

}  // namespace

void pack(std::span<const CommBlock> blocks, size_t element_bytes, const std::byte* activation,
          std::byte* buffer) {
  for_each_piece(blocks, element_bytes, [&](size_t local, size_t packed, size_t bytes) {
    std::memcpy(buffer + packed, activation + local, bytes);
  });
}

void unpack(std::span<const CommBlock> blocks, size_t element_bytes, const std::byte* buffer,
            std::byte* activation) {
  for_each_piece(blocks, element_bytes, [&](size_t local, size_t packed, size_t bytes) {
    std::memcpy(activation + local, buffer + packed, bytes);
  });
}

}  // namespace tutti::mlsl::layout
