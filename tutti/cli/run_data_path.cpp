#include "tutti/cli/run_data_path.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <string_view>
#include <vector>

#include "tutti/base/error.h"
#include "tutti/base/log.h"
#include "tutti/comm/control/agree.h"
#include "tutti/data/store/quarantine.h"
#include "tutti/data/store/sample_cache.h"

namespace tutti {
namespace {

bool has_cache(const RunConfig& config) { return config.cache.memory > 0 || config.cache.disk > 0; }

/// Of these sets the samples that could be kept or left out are not what training reads.
void check_data_set(const RunConfig& config) {
  const std::string_view set = config.data.dataset;
  if (set != "neurons" && set != "imagenet") return;
  const char* key = has_cache(config) ? "data.cache" : "data.quarantine";
  if (!has_cache(config) && config.data.quarantine == 0) return;
  throw ConfigError(fmt::format("{} is not for data.dataset = \"{}\" yet, {}: {}", key, set,
                                set == "neurons"
                                    ? "whose training reads canvases around its samples"
                                    : "whose images are decoded after they have been read",
                                has_cache(config) ? "leave it out" : "set data.quarantine = 0"));
}

}  // namespace

void check_data_path(const RunConfig& config) {
  check_data_set(config);
  if (config.data.quarantine > 0 && !config.parallel.spatial.empty())
    throw ConfigError(
        "data.quarantine: ranks that share samples (parallel.spatial) would have to agree on each "
        "one that is left out, which they cannot yet: set data.quarantine = 0");
  if (config.cache.disk > 0 && config.cache.dir.empty())
    throw ConfigError(
        "data.cache.disk: name the folder on the node's disk in data.cache.dir, for example "
        "\"/tmp\"");
}

namespace {

/// Every rank copies its share for its node; all go on when all are done.
StagingRecord stage_for_run(const RunConfig& config, comm::Communicator& communicator) {
  const auto start = std::chrono::steady_clock::now();
  data::StagingResult own;
  // One rank a node looks at the room for all, and the others begin when it has.
  comm::on_each(communicator, "looking for room for the data", [&] {
    if (communicator.local_rank() == 0)
      data::check_staging_room(staging_spec(config, config.staging.dir));
  });
  comm::on_each(communicator, "staging the data", [&] {
    data::StagingSpec spec = staging_spec(config, config.staging.dir);
    spec.share = communicator.local_rank();
    spec.shares = communicator.local_size();
    own = data::stage_files(spec);
  });
  std::array<double, 4> sums = {static_cast<double>(own.files), static_cast<double>(own.bytes),
                                static_cast<double>(own.copied_files),
                                static_cast<double>(own.copied_bytes)};
  communicator.sum(sums);
  const StagingRecord record{
      .files = static_cast<int64_t>(sums[0]),
      .bytes = static_cast<int64_t>(sums[1]),
      .copied_files = static_cast<int64_t>(sums[2]),
      .copied_bytes = static_cast<int64_t>(sums[3]),
      .seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count()};
  if (communicator.rank() == 0)
    log::info("staged to {}: {} of {} files copied, {:.1f} of {:.1f} MiB, in {:.2f} s",
              config.staging.dir, record.copied_files, record.files, sums[3] / (1 << 20),
              sums[1] / (1 << 20), record.seconds);
  return record;
}

void put_in_quarantine(ConfiguredData& data, int64_t most,
                       const std::shared_ptr<data::ReadCounts>& counts) {
  const auto wrap = [&](std::unique_ptr<data::Dataset>& set, const char* part) {
    if (set)
      set = std::make_unique<data::Quarantine>(
          std::move(set), data::QuarantineSpec{.most = most, .part = part}, counts);
  };
  wrap(data.train, "train");
  wrap(data.validation, "validation");
  wrap(data.test, "test");
}

/// Names of caches would stay on the node when their process ends, so they go with their scope: by
/// then all ranks have opened what they name, or one could not and nobody will read from it.
class CacheNames {
 public:
  CacheNames() = default;
  ~CacheNames() {
    for (const data::CachedSet* set : sets_) set->remove_names();
  }
  CacheNames(const CacheNames&) = delete;
  CacheNames& operator=(const CacheNames&) = delete;
  void add(const data::CachedSet& set) { sets_.push_back(&set); }

 private:
  std::vector<const data::CachedSet*> sets_;
};

/// The parts share what there is by their sizes.
void put_in_cache(ConfiguredData& data, const CacheSection& section,
                  comm::Communicator& communicator,
                  const std::shared_ptr<data::ReadCounts>& counts) {
  const std::string job = comm::decide(communicator, "naming the cache", [] {
    return fmt::format("tutti-{}-{:x}", ::getpid(),
                       std::chrono::system_clock::now().time_since_epoch().count());
  });
  const std::array<std::unique_ptr<data::Dataset>*, 3> parts = {&data.train, &data.validation,
                                                                &data.test};
  double all = 0;
  const auto bytes_of = [](const data::Dataset& set) {
    return static_cast<double>(set.size() * data::CachedSet::slot_bytes(set.fields()));
  };
  for (const auto* part : parts)
    if (*part) all += bytes_of(**part);
  // Nodes may share the folder, and each fills slots in an order of its own.
  const std::string name = fmt::format("{}-{}", job, communicator.node(communicator.rank()));
  CacheNames names;
  const data::CachedSet* training = nullptr;
  comm::on_each(communicator, "making the cache", [&] {
    for (size_t p = 0; p < parts.size(); ++p) {
      if (!*parts[p]) continue;
      const double share = all > 0 ? bytes_of(**parts[p]) / all : 0;
      const auto part_of = [&](int64_t bytes) {
        return std::min(bytes, static_cast<int64_t>(static_cast<double>(bytes) * share + 1));
      };
      auto set =
          std::make_unique<data::CachedSet>(std::move(*parts[p]),
                                            data::CacheSpec{.name = fmt::format("{}-{}", name, p),
                                                            .memory_bytes = part_of(section.memory),
                                                            .disk_bytes = part_of(section.disk),
                                                            .folder = section.dir},
                                            counts);
      names.add(*set);
      if (p == 0) training = set.get();
      *parts[p] = std::move(set);
    }
  });
  if (communicator.rank() == 0)
    log::info("data.cache: of {} training samples {} fit a node's memory and {} more its disk",
              data.train->size(), training->memory_samples(),
              training->samples() - training->memory_samples());
}

}  // namespace

data::StagingSpec staging_spec(const RunConfig& config, const std::string& to) {
  return {.from = config.data.dir.empty() ? "." : config.data.dir,
          .files = configured_files(config),
          .to = to,
          .threads = static_cast<int>(config.staging.threads)};
}

PreparedData prepare_data(const RunConfig& config, comm::Communicator& communicator) {
  check_data_path(config);
  PreparedData prepared;
  RunConfig read_from = config;
  if (!config.staging.dir.empty()) {
    prepared.staging = stage_for_run(config, communicator);
    read_from.data.dir = config.staging.dir;
  }
  prepared.data = open_configured(read_from);
  const bool caches = has_cache(config);
  if (!caches && config.data.quarantine == 0 && !prepared.staging) return prepared;
  prepared.counts = std::make_shared<data::ReadCounts>();
  if (config.data.quarantine > 0)
    put_in_quarantine(prepared.data, config.data.quarantine, prepared.counts);
  // Around the quarantine, so that a sample's stand-in is kept, too.
  if (caches) put_in_cache(prepared.data, config.cache, communicator, prepared.counts);
  return prepared;
}

}  // namespace tutti
