#pragma once
// Buckets: the gradient arena cut into contiguous pieces that are summed over replicas one by one,
// in the order in which the backward pass produces them. Large buckets use the network better;
// small ones start earlier and leave less exposed after the last layer.

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace tutti::exchange {

/// One parameter's gradient: float32, `bytes` of storage in the kernel's own layout, padding
/// included.
struct GradientEntry {
  std::string name;
  size_t bytes = 0;
};

struct Bucket {
  std::string name;            ///< "bucket 3", for messages
  size_t begin = 0;            ///< bytes from the start of the arena
  size_t bytes = 0;            ///< includes the padding between gradients
  std::vector<int> members{};  ///< indices into the entries, in order
  size_t floats() const { return bytes / sizeof(float); }
};

struct BucketLayout {
  std::vector<size_t> offsets;    ///< offset of each entry in the arena, in bytes; multiples of 64
  std::vector<int> bucket_of;     ///< index of each entry's bucket
  std::vector<Bucket> buckets;    ///< in the order of production; they tile the arena
  size_t bytes = 0;               ///< size of the arena, a multiple of 64
  std::string to_string() const;  ///< one line per bucket
};

/// Takes `entries` in the order in which backward produces them. A gradient is never split; a
/// bucket ends where its size is closest to `target_bytes`. Gradients begin on cache lines; the
/// gaps between them stay zero. A pure function: all ranks get the same layout.
BucketLayout partition_buckets(std::span<const GradientEntry> entries, size_t target_bytes);

}  // namespace tutti::exchange
