#include "tutti/exchange/compression_policy.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tutti/base/error.h"
#include "tutti/base/name_pattern.h"

namespace tutti::exchange {
namespace {

constexpr std::string_view kAuto = "auto:";

void check_patterns(const CompressionPolicy& policy,
                    std::span<const CompressibleEntry> parameters) {
  std::vector<std::string> names;
  for (const CompressibleEntry& parameter : parameters) names.push_back(parameter.entry.name);
  for (const std::string& pattern : policy.exclude)
    require_fit("comm.compression_exclude", pattern, names);
}

// A bucket that is compressed or dense as a whole, with its members as indices into all parameters.
struct Group {
  std::vector<int> members;
  size_t bytes = 0;
  bool compressed = false;
};

std::vector<Group> groups_of(std::span<const CompressibleEntry> parameters,
                             const std::vector<bool>& chosen, bool compressed,
                             size_t target_bytes) {
  std::vector<GradientEntry> entries;
  std::vector<int> index;
  for (size_t i = 0; i < parameters.size(); ++i)
    if (chosen[i] == compressed) {
      entries.push_back(parameters[i].entry);
      index.push_back(static_cast<int>(i));
    }
  std::vector<Group> groups;
  for (const Bucket& bucket : partition_buckets(entries, target_bytes).buckets) {
    Group& group =
        groups.emplace_back(Group{.members = {}, .bytes = bucket.bytes, .compressed = compressed});
    for (const int member : bucket.members)
      group.members.push_back(index[static_cast<size_t>(member)]);
  }
  return groups;
}

}  // namespace

CompressionPolicy parse_compression_policy(std::string_view text) {
  CompressionPolicy policy;
  policy.automatic = text.starts_with(kAuto);
  policy.compression = comm::parse_compression(policy.automatic ? text.substr(kAuto.size()) : text);
  if (policy.automatic && !policy.compression.compresses())
    throw ConfigError(
        "compression 'auto:none' has nothing to choose; write none, or auto: and a compression, as "
        "in auto:topk:0.01");
  return policy;
}

std::string to_string(const CompressionPolicy& policy) {
  return fmt::format("{}{}", policy.automatic ? kAuto : "", to_string(policy.compression));
}

bool compresses(const CompressionPolicy& policy, const CompressibleEntry& parameter) {
  return policy.compression.compresses() && parameter.shape.rank() >= 2 &&
         parameter.entry.bytes >= policy.min_bytes &&
         !fits_any(policy.exclude, parameter.entry.name);
}

CompressionLayout partition_by_compression(const CompressionPolicy& policy,
                                           std::span<const CompressibleEntry> parameters,
                                           size_t target_bytes) {
  if (policy.compression.compresses()) check_patterns(policy, parameters);
  std::vector<bool> chosen;
  for (const CompressibleEntry& parameter : parameters)
    chosen.push_back(compresses(policy, parameter));
  std::vector<Group> groups = groups_of(parameters, chosen, false, target_bytes);
  std::ranges::move(groups_of(parameters, chosen, true, target_bytes), std::back_inserter(groups));
  std::ranges::sort(groups, {}, [](const Group& group) { return group.members.back(); });

  CompressionLayout layout;
  BucketLayout& buckets = layout.buckets;
  buckets.offsets.resize(parameters.size());
  buckets.bucket_of.resize(parameters.size());
  for (Group& group : groups) {
    // partition_buckets() aligns members in the same way, whatever precedes the bucket.
    size_t at = buckets.bytes;
    for (const int member : group.members) {
      const GradientEntry& entry = parameters[static_cast<size_t>(member)].entry;
      buckets.offsets[static_cast<size_t>(member)] = at;
      buckets.bucket_of[static_cast<size_t>(member)] = static_cast<int>(buckets.buckets.size());
      at += partition_buckets(std::span(&entry, 1), target_bytes).bytes;
    }
    CHECK(at - buckets.bytes == group.bytes, "bucket of {} bytes filled with {}", group.bytes,
          at - buckets.bytes);
    buckets.buckets.push_back({fmt::format("bucket {}", buckets.buckets.size()), buckets.bytes,
                               group.bytes, std::move(group.members)});
    buckets.bytes = at;
    layout.compressed.push_back(group.compressed);
  }
  return layout;
}

std::string CompressionLayout::to_string() const {
  size_t count = 0, bytes = 0;
  for (size_t b = 0; b < compressed.size(); ++b)
    if (compressed[b]) ++count, bytes += buckets.buckets[b].bytes;
  return fmt::format("{} of {} buckets, {:.3g} of {:.3g} MB", count, compressed.size(),
                     static_cast<double>(bytes) * 1e-6, static_cast<double>(buckets.bytes) * 1e-6);
}

std::vector<comm::MatrixBlock> matrices_of(const BucketLayout& layout, int bucket,
                                           std::span<const CompressibleEntry> parameters) {
  const Bucket& whole = layout.buckets[static_cast<size_t>(bucket)];
  std::vector<comm::MatrixBlock> matrices;
  for (const int member : whole.members) {
    const CompressibleEntry& parameter = parameters[static_cast<size_t>(member)];
    const size_t floats = parameter.entry.bytes / sizeof(float);
    size_t rows = parameter.shape.rank() > 0 ? static_cast<size_t>(parameter.shape[0]) : 0;
    if (rows == 0 || floats % rows != 0)
      rows = static_cast<size_t>(std::sqrt(static_cast<double>(floats)));
    matrices.push_back({(layout.offsets[static_cast<size_t>(member)] - whole.begin) / sizeof(float),
                        rows, floats / rows});
  }
  return matrices;
}

std::vector<CompressionPhase> compression_phases(const CompressionPolicy& policy) {
  std::vector<CompressionPhase> phases;
  if (!policy.compression.compresses() || policy.warmup_steps > 0)
    phases.push_back({0, {.method = comm::CompressionMethod::none}});
  if (!policy.compression.compresses()) return phases;
  int64_t step = policy.warmup_steps;
  if (policy.compression.sparse() && policy.ramp_steps > 0)
    for (double density = 0.25; density > policy.compression.ratio;
         density /= 4, step += policy.ramp_steps) {
      comm::CompressionSpec denser = policy.compression;
      denser.ratio = density;
      phases.push_back({step, denser});
    }
  phases.push_back({step, policy.compression});
  return phases;
}

comm::CompressionSpec compression_at(std::span<const CompressionPhase> phases, int64_t step) {
  CHECK(!phases.empty() && phases.front().first_step <= step, "step {} before the first phase",
        step);
  return std::prev(
             std::ranges::find_if(
                 phases, [step](const CompressionPhase& phase) { return phase.first_step > step; }))
      ->compression;
}

}  // namespace tutti::exchange
