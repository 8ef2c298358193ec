#pragma once
// Blocks: where the parts of a local activation lie in a communication buffer.

#include <cstddef>
#include <span>

#include "tutti/comm/schedule/schedule.h"

namespace tutti::mlsl::layout {

/// Samples x feature maps of a local activation. They lie contiguously in the buffer, as
/// [sample][map][map_size elements].
struct CommBlock {
  comm::Slice samples;       ///< within the local activation, not the minibatch
  comm::Slice maps;          ///< within the local activation, not all maps
  size_t map_size = 1;       ///< elements
  size_t sample_stride = 0;  ///< elements of the local activation from one sample to the next
  size_t buffer_offset = 0;  ///< elements

  size_t elements() const { return samples.count * maps.count * map_size; }
  bool operator==(const CommBlock&) const = default;
};

/// Copies the blocks from a local activation into the buffer. Elements have `element_bytes` bytes.
/// The caller owns the memory, which must hold all elements of the blocks; activation and buffer
/// may not overlap. Blocks may be moved by different threads, or by the caller's own code.
void pack(std::span<const CommBlock> blocks, size_t element_bytes, const std::byte* activation,
          std::byte* buffer);
/// Copies back, from the buffer into a local activation.
void unpack(std::span<const CommBlock> blocks, size_t element_bytes, const std::byte* buffer,
            std::byte* activation);

}  // namespace tutti::mlsl::layout
