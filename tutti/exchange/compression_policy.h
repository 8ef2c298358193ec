#pragma once
// Decides which gradients are compressed, how, and from which step on. All functions are pure
// functions of the configuration and the parameters: all ranks, and all runs of a configuration,
// get the same answer. comm/compress/ describes the compression itself.
//
//   which   a parameter of two and more dimensions, of at least `min_bytes`, whose name matches no
//           pattern of `exclude`. Biases, norms and small parameters are sent dense: they are few
//           bytes and bear compression badly. (HiTopKComm's limit is 16 Ki elements: 64 KiB.)
//   where   a bucket holds only parameters that are compressed, or none: partition_by_compression()
//   when    the first `warmup_steps` are dense; then, for topk and hitopk, densities of 1/4, 1/16,
//           1/64, ... for `ramp_steps` each while they are above the final one; then the final one.
//           Lin, Han, Mao, Wang, Dally, Deep gradient compression (ICLR 2018), where a ramp's step
//           is an epoch.
//   whether `automatic`: measured first, and off where it does not pay
//           (exchange/compression_trial.h)

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tutti/comm/compress/compressed_reduction.h"
#include "tutti/exchange/bucket.h"
#include "tutti/tensor/shape.h"

namespace tutti::exchange {

struct CompressionPolicy {
  comm::CompressionSpec compression;
  bool automatic = false;
  size_t min_bytes = 64 << 10;  ///< size of a parameter's gradient
  int64_t warmup_steps = 0;
  int64_t ramp_steps = 0;  ///< 0: no ramp
  std::vector<std::string>
      exclude;  ///< shell patterns (fnmatch) over parameter names: "fc.*", "*.weight"
};

/// Parses "int8", "topk:0.01" or "auto:topk:0.01" into `compression` and `automatic`; the other
/// members keep their defaults. Throws ConfigError.
CompressionPolicy parse_compression_policy(std::string_view text);
/// Returns a text that parse_compression_policy() accepts.
std::string to_string(const CompressionPolicy& policy);

/// A parameter's gradient as the policy sees it. `entry` is the storage in the kernel's layout;
/// `shape` is the parameter's own.
struct CompressibleEntry {
  GradientEntry entry;
  Shape shape;
};
bool compresses(const CompressionPolicy& policy, const CompressibleEntry& parameter);

/// Buckets that are compressed or dense as a whole, and a flag for each.
struct CompressionLayout {
  BucketLayout buckets;
  std::vector<bool> compressed;
  /// Returns "12 of 14 buckets, 2.51 of 2.64 MB", for the log.
  std::string to_string() const;
};
/// Applies partition_buckets() to each of the two kinds separately. Buckets are ordered by the time
/// at which their last member is produced, so members of another bucket may lie between those in
/// one bucket. Without compression the result equals partition_buckets(). Throws ConfigError for an
/// excluding pattern that matches nothing.
CompressionLayout partition_by_compression(const CompressionPolicy& policy,
                                           std::span<const CompressibleEntry> parameters,
                                           size_t target_bytes);

/// Describes, for powersgd, each member of the bucket as a matrix: its outermost extent by the
/// rest of its storage, with offsets relative to the bucket. (Where a kernel's layout interleaves
/// output channels, rows are mixtures of them, so that the matrix may have a higher rank.) A
/// member whose extent does not divide its storage becomes a nearly square matrix; the remainder is
/// sent dense.
std::vector<comm::MatrixBlock> matrices_of(const BucketLayout& layout, int bucket,
                                           std::span<const CompressibleEntry> parameters);

/// The compression from first_step (the first is 0) until the next phase.
struct CompressionPhase {
  int64_t first_step = 0;
  comm::CompressionSpec compression;  ///< for the compressed buckets
  bool operator==(const CompressionPhase&) const = default;
};
/// Returns the phases in order; the first begins at step 0.
std::vector<CompressionPhase> compression_phases(const CompressionPolicy& policy);
comm::CompressionSpec compression_at(std::span<const CompressionPhase> phases, int64_t step);

}  // namespace tutti::exchange
