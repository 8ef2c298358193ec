#pragma once
// Which gradients are compressed, how, and from which step on. Pure functions of the configuration
// and of the parameters: all ranks, and all runs of a configuration, get the same answer. What
// compression is and does: comm/compress/.
//
//   which   a parameter of two and more dimensions, of at least `min_bytes`, whose name no pattern
//           of `exclude` matches. Biases, norms and what is small travel dense: they are few bytes
//           and bear compression badly. (HiTopKComm's limit is 16 Ki elements: 64 KiB.)
//   where   a bucket holds only parameters that are compressed, or none: partition_by_compression()
//   when    the first `warmup_steps` are dense; then, for topk and hitopk, densities of 1/4, 1/16,
//           1/64, ... for `ramp_steps` each while they are above the final one; then the final one.
//           Lin, Han, Mao, Wang, Dally, Deep gradient compression (ICLR 2018), where a ramp's step
//           is an epoch.
//   whether `automatic`: measured first, and off where it does not pay
//     (exchange/compression_trial.h)

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tutti/comm/compress/compressed_reduction.h"
#include "tutti/exchange/bucket.h"
#include "tutti/tensor/shape.h"

namespace tutti {

struct CompressionPolicy {
  comm::CompressionSpec compression;
  bool automatic = false;
  size_t min_bytes = 64 << 10;  ///< of a parameter's gradient
  int64_t warmup_steps = 0;
  int64_t ramp_steps = 0;  ///< 0: no ramp
  std::vector<std::string>
      exclude;  ///< shell patterns (fnmatch) over parameter names: "fc.*", "*.weight"
};

/// "int8", "topk:0.01", "auto:topk:0.01": compression and automatic; the rest of the result has its
/// defaults. Throws ConfigError.
CompressionPolicy parse_compression_policy(std::string_view text);
/// The text that parse_compression_policy() accepts.
std::string to_string(const CompressionPolicy& policy);

/// A parameter's gradient as the policy sees it. The entry is storage in the kernel's layout; the
/// shape is the parameter's own.
struct CompressibleEntry {
  GradientEntry entry;
  Shape shape;
};
bool compresses(const CompressionPolicy& policy, const CompressibleEntry& parameter);

/// Buckets of one kind each, and for each whether it is compressed.
struct CompressionLayout {
  BucketLayout buckets;
  std::vector<bool> compressed;
  /// "12 of 14 buckets, 2.51 of 2.64 MB": for the log.
  std::string to_string() const;
};
/// As partition_buckets(), for each kind apart, the buckets in the order in which their last member
/// is produced: between members of a bucket may lie those of another. Without compression it is
/// partition_buckets(). Throws ConfigError for an excluding pattern that matches nothing.
CompressionLayout partition_by_compression(const CompressionPolicy& policy,
                                           std::span<const CompressibleEntry> parameters,
                                           size_t target_bytes);

/// For powersgd: each member of the bucket as a matrix, its outermost extent by the rest of its
/// storage, relative to the bucket. (Where a kernel's layout interleaves output channels, rows are
/// mixtures of them: a matrix still, perhaps of a higher rank.) Members whose storage the extent
/// does not divide are taken nearly square; what is left over travels dense.
std::vector<comm::MatrixBlock> matrices_of(const BucketLayout& layout, int bucket,
                                           std::span<const CompressibleEntry> parameters);

/// From a step on (the first is 0), until the next phase.
struct CompressionPhase {
  int64_t first_step = 0;
  comm::CompressionSpec compression;  ///< of the compressed buckets
  bool operator==(const CompressionPhase&) const = default;
};
/// In order; the first begins at step 0.
std::vector<CompressionPhase> compression_phases(const CompressionPolicy& policy);
comm::CompressionSpec compression_at(std::span<const CompressionPhase> phases, int64_t step);

}  // namespace tutti
