#include "tutti/config/config.h"

#include <fmt/format.h>

#include "tutti/base/error.h"
#include "tutti/exchange/compression_policy.h"

namespace tutti::config {

BatchSizes batch_sizes(const BatchSection& batch, int64_t replicas) {
  CHECK(replicas > 0 && batch.accumulate > 0);
  const int64_t batches = replicas * batch.accumulate;
  const std::string shared =
      batch.accumulate == 1
          ? fmt::format("{} replicas", replicas)
          : fmt::format("{} replicas and batch.accumulate = {}", replicas, batch.accumulate);
  if (batch.local > 0 && batch.global > 0 && batch.local * batches != batch.global)
    throw ConfigError(
        fmt::format("batch.local = {} times {} is {}, but batch.global = {}: give one of the two",
                    batch.local, shared, batch.local * batches, batch.global));
  if (batch.local > 0) return {batch.local, batch.local * batches};
  const int64_t global = batch.global > 0 ? batch.global : 128;
  if (global % batches != 0)
    throw ConfigError(fmt::format(
        "batch.global = {} does not divide by {}: choose a multiple, or give batch.local", global,
        shared));
  return {global / batches, global};
}

int64_t replica_count(const RunSection& run, int64_t ranks) {
  if (run.replicas == 0) return ranks;
  if (run.replicas < ranks)
    throw ConfigError(fmt::format(
        "run.replicas = {} is less than the {} ranks: R replicas run on 1 to R ranks; start at "
        "most {} rank(s), or give a new run more replicas",
        run.replicas, ranks, run.replicas));
  return run.replicas;
}

exchange::CompressionPolicy compression_policy(const CommSection& comm) {
  exchange::CompressionPolicy policy;
  try {
    policy = exchange::parse_compression_policy(comm.compression);
  } catch (const ConfigError& error) {
    throw ConfigError(fmt::format("comm.compression: {}", error.what()));
  }
  policy.min_bytes = static_cast<size_t>(comm.compression_min_bytes);
  policy.warmup_steps = comm.compression_warmup_steps;
  policy.ramp_steps = comm.compression_ramp_steps;
  policy.exclude = comm.compression_exclude;
  return policy;
}

}  // namespace tutti::config
