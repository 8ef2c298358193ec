#pragma once
// Prepares a run's data: stages it to the node, opens it, leaves out bad samples, caches it, and
// gets samples from other nodes.

#include <memory>
#include <optional>

#include "tutti/cli/data/sample_exchange.h"
#include "tutti/cli/job/job.h"
#include "tutti/data/store/read_counts.h"
#include "tutti/data/store/staging.h"
#include "tutti/trace/record.h"

namespace tutti::cli {

/// Returns the files that one process stages for a configuration: all files of its parts, or its
/// share of them.
data::StagingSpec staging_spec(const config::RunConfig& config, const std::string& to);

/// Throws ConfigError where keys exclude each other.
void check_data_path(const config::RunConfig& config);

struct PreparedData {
  ConfiguredData data;
  std::optional<trace::StagingRecord> staging{};
  /// Null where [data.staging], [data.cache] and data.quarantine are all unused.
  std::shared_ptr<data::ReadCounts> counts{};
  /// Answers other nodes from the cache in `data`: it is the last member, so that it is destroyed
  /// first.
  std::unique_ptr<SampleServer> server{};
};

/// Prepares all data as the configuration requires. Collective.
PreparedData prepare_data(const config::RunConfig& config, comm::Communicator& communicator);

}  // namespace tutti::cli
