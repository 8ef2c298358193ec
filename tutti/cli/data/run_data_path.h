#pragma once
// The way of a run's data: staged to the node, opened, without its bad samples, kept near, from
// other nodes.

#include <memory>
#include <optional>

#include "tutti/cli/data/sample_exchange.h"
#include "tutti/cli/job/job.h"
#include "tutti/data/store/read_counts.h"
#include "tutti/data/store/staging.h"
#include "tutti/trace/record.h"

namespace tutti {

/// What one process stages of a configuration: all files of its parts, or its share of them.
data::StagingSpec staging_spec(const RunConfig& config, const std::string& to);

/// ConfigError where keys exclude each other.
void check_data_path(const RunConfig& config);

struct PreparedData {
  ConfiguredData data;
  std::optional<StagingRecord> staging{};
  /// Null where nothing of [data.staging], [data.cache] and data.quarantine is asked for.
  std::shared_ptr<data::ReadCounts> counts{};
  /// Answers other nodes from the cache in `data`: the last member, because it ends first.
  std::unique_ptr<SampleServer> server{};
};

/// All of it, as the configuration says. Collective.
PreparedData prepare_data(const RunConfig& config, comm::Communicator& communicator);

}  // namespace tutti
