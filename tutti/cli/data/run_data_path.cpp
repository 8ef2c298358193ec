#include "tutti/cli/data/run_data_path.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tutti/base/error.h"
#include "tutti/base/log.h"
#include "tutti/base/own_file.h"
#include "tutti/comm/bootstrap/secret.h"
#include "tutti/comm/communicator.h"
#include "tutti/comm/control/agree.h"
#include "tutti/data/file/file_bytes.h"
#include "tutti/data/neurons/neuron_content.h"
#include "tutti/data/neurons/neuron_set.h"
#include "tutti/data/pipeline/sampler.h"
#include "tutti/data/store/quarantine.h"
#include "tutti/data/store/sample_cache.h"
#include "tutti/data/store/shared_memory.h"
#include "tutti/train/settings/specs.h"

namespace tutti::cli {
namespace {

bool has_cache(const config::RunConfig& config) {
  return config.cache.memory > 0 || config.cache.disk > 0;
}

bool has_volumes(const config::RunConfig& config) { return config.data.dataset == "neurons"; }

// Keeps volumes of neurons once per node, in shared memory, for all of its ranks
// (data.cache.memory).
class SharedVolumes final : public data::NodeMemory {
 public:
  // Collective. `bytes`: on each node. `name`: of the job, different from any other job's.
  SharedVolumes(comm::Communicator& communicator, std::string name, int64_t bytes);

  // Throws ConfigError where the volumes of all parts need more memory than there is.
  Filled share(const std::function<std::string(const Take& take)>& fill) override;

 private:
  comm::Communicator& communicator_;
  std::unique_ptr<comm::Communicator> node_;  // the ranks of this node
  std::string name_;
  int64_t left_;
  int parts_ = 0;
};

SharedVolumes::SharedVolumes(comm::Communicator& communicator, std::string name, int64_t bytes)
    : communicator_(communicator), node_(communicator.split(communicator.node(communicator.rank()),
                                                            communicator.rank(), "node")),
      name_(std::move(name)), left_(bytes) {}

data::NodeMemory::Filled SharedVolumes::share(
    const std::function<std::string(const Take& take)>& fill) {
  const std::string name =
      fmt::format("{}-{}-{}", name_, communicator_.node(communicator_.rank()), parts_++);
  const bool fills = node_->rank() == 0;
  std::shared_ptr<data::SharedMemory> memory;
  std::string text;
  const auto take = [&](size_t bytes) {
    if (static_cast<int64_t>(bytes) > left_)
      throw ConfigError(fmt::format(
          "data.cache.memory: volumes and their seeds need {:.1f} MiB of a node's memory, and "
          "there "
          "are {:.1f} MiB left: raise it, or leave data.cache out, so that each rank has them for "
          "itself",
          static_cast<double>(bytes) / (1 << 20), static_cast<double>(left_) / (1 << 20)));
    memory = std::make_shared<data::SharedMemory>(name, bytes);
    return memory->data();
  };
  try {
    comm::on_each(communicator_, "reading volumes", [&] {
      if (fills) text = fill(take);
    });
    uint64_t bytes = memory ? memory->size() : 0;
    node_->broadcast_value(bytes, 0);
    left_ -= static_cast<int64_t>(bytes);
    text = comm::broadcast_text(*node_, text, 0);
    comm::on_each(communicator_, "sharing volumes", [&] {
      if (!fills) memory = std::make_shared<data::SharedMemory>(name, bytes);
    });
  } catch (...) {
    if (fills && memory)
      memory->remove_name();  // the name would stay in the node's memory for
                              // ever
    throw;
  }
  if (fills) memory->remove_name();
  if (communicator_.rank() == 0)
    log::info("data.cache: volumes and their seeds lie in {:.1f} MiB of each node's memory",
              static_cast<double>(memory->size()) / (1 << 20));
  return {.text = std::move(text),
          .memory = std::shared_ptr<const std::byte>(memory, memory->data())};
}

}  // namespace

void check_data_path(const config::RunConfig& config) {
  if (config::is_text(config.data) && has_cache(config))
    throw ConfigError(
        "data.cache keeps samples, and windows of a text are cut elsewhere in each epoch: leave it "
        "out; the system's cache keeps the files, and data.staging brings them near");
  if (has_volumes(config) && config.cache.disk > 0)
    throw ConfigError(
        "data.cache.disk is not for data.dataset = \"neurons\", whose volumes lie in memory: leave "
        "it out, and with data.cache.memory the ranks of a node have them once");
  if (config.data.quarantine > 0 &&
      (!config.parallel.spatial.empty() || config.parallel.tensor > 1))
    throw ConfigError(
        "data.quarantine: ranks that share samples (parallel.spatial, parallel.tensor) would have "
        "to agree on each "
        "one that is left out, which they cannot yet: set data.quarantine = 0");
  if (config.cache.disk > 0 && config.cache.dir.empty())
    throw ConfigError(
        "data.cache.disk: name the folder on the node's disk in data.cache.dir, for example "
        "\"/tmp\"");
}

namespace {

/// Returns whether a rank of this node evaluates some of the samples [first, first + count) of
/// `size`.
bool evaluated_here(const config::RunConfig& config, const comm::Communicator& communicator,
                    const std::vector<int>& nodes, int64_t size, int64_t first, int64_t count) {
  for (int rank = 0; rank < communicator.size(); ++rank) {
    if (nodes[static_cast<size_t>(rank)] != nodes[static_cast<size_t>(communicator.rank())])
      continue;
    const split::PartGrid grid = train::part_grid(config.parallel, communicator.size(), rank);
    const data::Range range = data::evaluation_range(size, grid.group(), grid.groups());
    if (range.begin < first + count && first < range.end) return true;
  }
  return false;
}

/// Returns, for each file with samples, whether this node's ranks read it, where each node has
/// training samples of its own; other files are read by all.
std::map<std::string, bool> read_here(const config::RunConfig& config,
                                      const comm::Communicator& communicator) {
  const std::vector<int> nodes = numbered_nodes(communicator);
  const int own = nodes[static_cast<size_t>(communicator.rank())];
  const ConfiguredData data = open_configured(config);
  std::map<std::string, bool> here;
  const auto add = [&](const std::string& file, bool wanted) {
    bool& is = here[std::filesystem::path(file).lexically_normal().string()];
    is = is || wanted;
  };
  std::vector<int64_t> counts;
  const std::vector<data::SamplesOfFile> training = data.train->files();
  for (const data::SamplesOfFile& of : training) counts.push_back(of.samples);
  const bool dealt = std::ssize(counts) >= communicator.nodes();
  const std::vector<int> node_of = data::deal_files(counts, communicator.nodes());
  for (size_t f = 0; f < training.size(); ++f) add(training[f].file, !dealt || node_of[f] == own);
  for (const data::Dataset* set : {data.validation.get(), data.test.get()}) {
    int64_t first = 0;
    for (const data::SamplesOfFile& of : set ? set->files() : std::vector<data::SamplesOfFile>()) {
      add(of.file, evaluated_here(config, communicator, nodes, set->size(), first, of.samples));
      first += of.samples;
    }
  }
  return here;
}

/// Returns the files that this node stages: all or, with data.shuffle = "shard", those that its
/// ranks read.
data::StagingSpec staging_of_node(const config::RunConfig& config,
                                  const comm::Communicator& communicator) {
  data::StagingSpec spec = staging_spec(config, config.staging.dir);
  spec.share = communicator.local_rank();
  spec.shares = communicator.local_size();
  if (config.data.shuffle == config::Shuffle::global || communicator.one_node()) return spec;
  const std::map<std::string, bool> here = read_here(config, communicator);
  const auto others = std::stable_partition(
      spec.files.begin(), spec.files.end(), [&](const std::filesystem::path& file) {
        auto known = here.find(file.lexically_normal().string());
        if (known == here.end()) known = here.find(file.parent_path().lexically_normal().string());
        return known == here.end() || known->second;
      });
  spec.linked.assign(others, spec.files.end());
  spec.files.erase(others, spec.files.end());
  return spec;
}

/// Every rank copies its share for its node; all continue when all are done.
trace::StagingRecord stage_for_run(const config::RunConfig& config,
                                   comm::Communicator& communicator) {
  const auto start = std::chrono::steady_clock::now();
  data::StagingSpec spec;
  data::StagingResult own;
  // One rank per node checks free space first; the others start copying afterwards.
  comm::on_each(communicator, "looking for room for the data", [&] {
    spec = staging_of_node(config, communicator);
    if (communicator.local_rank() == 0) data::check_staging_room(spec);
  });
  comm::on_each(communicator, "staging the data", [&] { own = data::stage_files(spec); });
  std::array<double, 5> sums = {static_cast<double>(own.files), static_cast<double>(own.bytes),
                                static_cast<double>(own.copied_files),
                                static_cast<double>(own.copied_bytes),
                                static_cast<double>(own.linked_files)};
  communicator.sum(sums);
  const trace::StagingRecord record{
      .files = static_cast<int64_t>(sums[0]),
      .bytes = static_cast<int64_t>(sums[1]),
      .copied_files = static_cast<int64_t>(sums[2]),
      .copied_bytes = static_cast<int64_t>(sums[3]),
      .linked_files = static_cast<int64_t>(sums[4]),
      .seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count()};
  if (communicator.rank() == 0)
    log::info("staged to {}: {} of {} files copied, {:.1f} of {:.1f} MiB, in {:.2f} s{}",
              config.staging.dir, record.copied_files, record.files, sums[3] / (1 << 20),
              sums[1] / (1 << 20), record.seconds,
              record.linked_files > 0
                  ? fmt::format("; {} links to files of other nodes' shares", record.linked_files)
                  : "");
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

/// Counts volumes that were left out when they were opened. Seeds are drawn from the remaining
/// volumes, so all ranks must have left out the same ones; rank 0 counts for all.
void count_volumes(const PreparedData& prepared, comm::Communicator& communicator) {
  std::string lines;
  for (const auto* set : {&prepared.data.train, &prepared.data.validation, &prepared.data.test}) {
    const auto* neurons = dynamic_cast<const data::NeuronSet*>(set->get());
    if (neurons == nullptr) continue;
    for (const std::string& reason : neurons->left_out()) {
      lines += fmt::format("{} = left out\n", reason);
      if (communicator.rank() == 0) prepared.counts->leave_out(reason);
    }
  }
  comm::agree(communicator, "the volumes that data.quarantine leaves out", lines);
}

using ConfiguredParts = std::array<std::unique_ptr<data::Dataset>*, 3>;

/// Removes the names of caches at the end of a scope, since they would stay on the node after the
/// process ends. By then all ranks have opened the named caches, or one could not and no rank will
/// read from them.
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

/// Exchanges samples between nodes where each node reads all training samples at some time.
void open_exchange(PreparedData& prepared, const config::RunConfig& config,
                   comm::Communicator& communicator, data::CacheSpec& training) {
  if (!config.cache.exchange || config.data.shuffle != config::Shuffle::global ||
      communicator.one_node())
    return;
  const std::string secret = comm::decide(communicator, "choosing the exchange's secret", [] {
    return std::string(comm::text_of(comm::fresh_nonce()));
  });
  comm::on_each(communicator, "listening for other nodes' questions", [&] {
    prepared.server = std::make_unique<SampleServer>(secret, config.comm.address);
  });
  training.peers = std::make_shared<SampleClients>(communicator, secret, *prepared.server);
}

/// Returns a name that no other job has and that cannot be guessed.
std::string cache_name(comm::Communicator& communicator) {
  return comm::decide(communicator, "naming the cache",
                      [] { return fmt::format("tutti-{}-{}", ::getpid(), random_name()); });
}

/// Returns the caches of the parts, which share the memory and disk by their sizes, since their
/// samples have the same size.
std::array<data::CacheSpec, 3> cache_specs(const config::CacheSection& section,
                                           const ConfiguredParts& parts,
                                           comm::Communicator& communicator) {
  const std::string job = cache_name(communicator);
  double all = 0;
  for (const auto* part : parts)
    if (*part) all += static_cast<double>((*part)->size());
  std::array<data::CacheSpec, 3> specs;
  for (size_t p = 0; p < parts.size(); ++p) {
    if (!*parts[p]) continue;
    const double share = static_cast<double>((*parts[p])->size()) / all;
    const auto part_of = [&](int64_t bytes) {
      return std::min(bytes, static_cast<int64_t>(static_cast<double>(bytes) * share + 1));
    };
    // Nodes may share the folder, and each fills its space in its own order.
    specs[p] = {.name = fmt::format("{}-{}-{}", job, communicator.node(communicator.rank()), p),
                .memory_bytes = part_of(section.memory),
                .disk_bytes = part_of(section.disk),
                .folder = section.dir};
  }
  return specs;
}

void put_in_cache(PreparedData& prepared, const config::RunConfig& config,
                  comm::Communicator& communicator) {
  ConfiguredData& data = prepared.data;
  const ConfiguredParts parts = {&data.train, &data.validation, &data.test};
  std::array<data::CacheSpec, 3> specs = cache_specs(config.cache, parts, communicator);
  open_exchange(prepared, config, communicator, specs[0]);
  CacheNames names;
  const data::CachedSet* training = nullptr;
  comm::on_each(communicator, "making the cache", [&] {
    for (size_t p = 0; p < parts.size(); ++p) {
      if (!*parts[p]) continue;
      auto set = std::make_unique<data::CachedSet>(std::move(*parts[p]), specs[p], prepared.counts);
      names.add(*set);
      if (p == 0) training = set.get();
      *parts[p] = std::move(set);
    }
  });
  if (prepared.server) prepared.server->answer_from(*training);
  if (communicator.rank() == 0)
    log::info(
        "data.cache: training samples have {:.1f} MiB of a node's memory and {:.1f} MiB of its "
        "disk{}",
        static_cast<double>(training->memory_bytes()) / (1 << 20),
        static_cast<double>(training->disk_bytes()) / (1 << 20),
        prepared.server ? ", and nodes exchange them" : "");
}

}  // namespace

data::StagingSpec staging_spec(const config::RunConfig& config, const std::string& to) {
  return {.from = config.data.dir.empty() ? "." : config.data.dir,
          .files = configured_files(config),
          .to = to,
          .threads = static_cast<int>(config.staging.threads)};
}

PreparedData prepare_data(const config::RunConfig& config, comm::Communicator& communicator) {
  check_data_path(config);
  data::FileBytes::set_direct(config.data.direct_reads);
  PreparedData prepared;
  config::RunConfig read_from = config;
  if (!config.staging.dir.empty()) {
    prepared.staging = stage_for_run(config, communicator);
    read_from.data.dir = config.staging.dir;
  }
  const bool caches = has_cache(config) && !has_volumes(config);
  std::optional<SharedVolumes> shared;
  if (has_cache(config) && !caches)
    shared.emplace(communicator, cache_name(communicator), config.cache.memory);
  prepared.data = open_configured(
      read_from, {.quarantine = config.data.quarantine, .node = shared ? &*shared : nullptr});
  if (!has_cache(config) && config.data.quarantine == 0 && !prepared.staging) return prepared;
  prepared.counts = std::make_shared<data::ReadCounts>();
  if (config.data.quarantine > 0 && has_volumes(config))
    count_volumes(prepared, communicator);
  else if (config.data.quarantine > 0)
    put_in_quarantine(prepared.data, config.data.quarantine, prepared.counts);
  // The cache is outside the quarantine, so that it also keeps a bad sample's replacement.
  if (caches) put_in_cache(prepared, config, communicator);
  return prepared;
}

}  // namespace tutti::cli
