#include "tutti/train/settings/server_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "tutti/base/error.h"
#include "tutti/exchange/compression_policy.h"
#include "tutti/train/settings/slow_rank.h"

namespace tutti::train {
namespace {

[[noreturn]] void refuse_servers(const std::string& scheme, std::string_view why) {
  throw ConfigError(
      fmt::format("sync.scheme = \"{}\": {}; with servers there are ps:sync, ps:async, ps:ssp:S "
                  "with S steps that a worker may be ahead of the slowest, and groups:G with G "
                  "replicas of a group",
                  scheme, why));
}

int64_t number_after(const std::string& scheme, size_t at, int64_t least) {
  int64_t number = 0;
  const char *const begin = scheme.data() + at, *const end = scheme.data() + scheme.size();
  const auto [stopped, error] = std::from_chars(begin, end, number);
  if (error != std::errc() || stopped != end || number < least)
    refuse_servers(scheme, fmt::format("'{}' is no number from {} on", scheme.substr(at), least));
  return number;
}

/// Each worker's gradient is sent separately, as soon as it is ready.
void refuse_compression(const config::RunConfig& config) {
  const exchange::CompressionPolicy policy = config::compression_policy(config.comm);
  const comm::CompressionMethod method = policy.compression.method;
  const auto refuse = [&](bool given, std::string_view why) {
    if (given)
      throw ConfigError(
          fmt::format("sync.scheme = \"{}\" goes without comm.compression = \"{}\": "
                      "{}; there are bf16, fp16, int8, onebit and topk:RATIO",
                      config.sync.scheme, config.comm.compression, why));
  };
  refuse(method == comm::CompressionMethod::hitopk,
         "it sums gradients inside a node first, and those for servers are not summed");
  refuse(method == comm::CompressionMethod::powersgd,
         "its factors are of the sum of all gradients, and those for servers are not summed");
  refuse(policy.automatic,
         "auto: compares what steps with and without it cost all ranks, and workers have no step "
         "in common: leave auto: out");
}

void refuse_with_servers(const config::RunConfig& config) {
  const auto refuse = [&](bool given, std::string_view what, std::string_view why) {
    if (given)
      throw ConfigError(
          fmt::format("sync.scheme = \"{}\" goes without {}: {}", config.sync.scheme, what, why));
  };
  refuse(std::ranges::any_of(config.parallel.spatial, [](int64_t parts) { return parts > 1; }),
         "parallel.spatial", "replicas that share samples are not built to train apart");
  refuse(config.parallel.tensor > 1, "parallel.tensor",
         "replicas whose layers ranks share are not built to train apart");
  refuse(config.parallel.batchnorm_group_size > 1, "parallel.batchnorm_group_size",
         "its sums would make workers wait for each other in every step");
  refuse(config.comm.sharded_update, "comm.sharded_update", "the servers have the optimizer");
  refuse_compression(config);
  refuse(config.data.shuffle != config::Shuffle::global, "data.shuffle = \"shard\"",
         "a batch goes to the worker whose gradient comes next, wherever it is");
}

void check_rank_servers(const config::RunConfig& config, const ServerSettings& settings,
                        int64_t replicas, int ranks) {
  if (settings.together) {
    refuse_with_servers(config);
    if (config.comm.compression != "none")
      throw ConfigError(fmt::format(
          "sync.scheme = \"{}\" with servers on ranks goes without comm.compression: a gradient "
          "that comes too late is dropped, and with it would be what earlier ones had not sent",
          config.sync.scheme));
  }
  if (replicas != ranks)
    throw ConfigError(fmt::format(
        "sync.scheme = \"{}\" with {} workers takes a rank for each of {} replicas{}, this job has "
        "{} for them: --ranks {}; or a replay, in which a machine's clock says whose gradient "
        "comes next: tutti replay CONFIG --machine FILE --replicas {}",
        config.sync.scheme, settings.together ? replicas : settings.workers(replicas), replicas,
        settings.own_ranks ? fmt::format(" beside {} for servers", server_ranks(config)) : "",
        ranks, replicas + server_ranks(config), replicas));
  for (const SlowEntry& slow : parse_slow(config.run))
    if (settings.own_ranks && slow.rank >= ranks && slow.rank < ranks + settings.servers)
      throw ConfigError(fmt::format(
          "run.slow names rank {}, which only serves (sync.server_ranks = {}) and has no "
          "computation to be slow at: workers are ranks 0 to {}",
          slow.rank, settings.servers, ranks - 1));
  if (!settings.own_ranks && settings.servers > ranks)
    throw ConfigError(fmt::format(
        "sync.servers = {}: each is beside a worker, on a rank of its own, and there are {} ranks",
        settings.servers, ranks));
  if (settings.servers > 1 && config.optimizer.clip_norm > 0)
    throw ConfigError(
        "optimizer.clip_norm needs the norm of a whole gradient, of which each of several servers "
        "has a part: take sync.servers = 1");
}

}  // namespace

int ServerSettings::workers(int64_t replicas) const {
  if (together || group >= replicas) return 1;
  if (replicas % group != 0)
    throw ConfigError(fmt::format(
        "sync.scheme = \"groups:{}\" does not divide {} replicas: give a multiple of it", group,
        replicas));
  return static_cast<int>(replicas / group);
}

std::optional<ServerSettings> parse_servers(const std::string& scheme) {
  ServerSettings settings;
  if (scheme == "groups" || scheme.starts_with("groups:")) {
    constexpr size_t kGroups = 7;
    if (scheme.size() < kGroups) refuse_servers(scheme, "it does not say how large a group is");
    settings.group = number_after(scheme, kGroups, 1);
    return settings;
  }
  if (scheme != "ps" && !scheme.starts_with("ps:")) return std::nullopt;
  constexpr std::string_view kBound = "ps:ssp:";
  if (scheme == "ps:sync")
    settings.together = true;
  else if (scheme.starts_with(kBound))
    settings.bound = number_after(scheme, kBound.size(), 0);
  else if (scheme != "ps:async")
    refuse_servers(scheme, "there is no such way to use servers");
  return settings;
}

std::optional<ServerSettings> server_settings(const config::RunConfig& config) {
  const config::SyncSection& sync = config.sync;
  std::optional<ServerSettings> settings = parse_servers(sync.scheme);
  const auto only = [&](bool given, std::string_view key, std::string_view of, bool has) {
    if (given && !has)
      throw ConfigError(
          fmt::format("sync.{} is of sync.scheme = {}, not of \"{}\"", key, of, sync.scheme));
  };
  constexpr std::string_view kOneByOne = "\"ps:async\", \"ps:ssp:S\" and \"groups:G\"";
  const bool one_by_one = settings && settings->one_by_one(), step = sync.scheme == "step";
  only(sync.servers > 1, "servers", "\"ps:...\" and \"groups:G\"", settings || step);
  only(sync.server_ranks > 0, "server_ranks", "\"ps:...\" and \"groups:G\"", settings || step);
  only(sync.quorum > 0, "quorum", "\"ps:sync\"", (settings && settings->together) || step);
  only(sync.delay_compensation > 0, "delay_compensation", kOneByOne, one_by_one || step);
  only(sync.stale_rate > 0, "stale_rate", kOneByOne, one_by_one || step);
  if (!settings) return settings;
  if (settings->together && !config.replay.spill.empty())
    throw ConfigError(fmt::format(
        "replay.spill keeps weights of which there are several versions; with sync.scheme = "
        "\"{}\" there is one: leave it out",
        sync.scheme));
  settings->servers = static_cast<int>(sync.servers);
  if (sync.server_ranks > 0) {
    if (sync.servers > 1 && sync.servers != sync.server_ranks)
      throw ConfigError(fmt::format(
          "sync.servers = {} beside workers, or sync.server_ranks = {} on ranks of their own: "
          "leave one of them out",
          sync.servers, sync.server_ranks));
    settings->servers = static_cast<int>(sync.server_ranks);
    settings->own_ranks = true;
  }
  settings->delay_compensation = sync.delay_compensation;
  settings->stale_rate = sync.stale_rate;
  if (one_by_one) refuse_with_servers(config);
  return settings;
}

std::optional<ServerSettings> served_settings(const config::RunConfig& config, int64_t devices) {
  return devices > 1 || server_ranks(config) > 0 ? server_settings(config) : std::nullopt;
}

int64_t gradients_of_step(const config::RunConfig& config, int64_t replicas) {
  const int64_t quorum = config.sync.quorum;
  // A single replica has the weights itself.
  if (quorum == 0 || replicas == 1 || !parse_servers(config.sync.scheme)) return replicas;
  if (quorum > replicas)
    throw ConfigError(
        fmt::format("sync.quorum = {} is more than the {} replicas", quorum, replicas));
  return quorum;
}

void check_served_job(const config::RunConfig& config, int64_t replicas, int ranks,
                      const comm::Machine* machine) {
  const std::optional<ServerSettings> settings = server_settings(config);
  if (!settings || (replicas == 1 && !settings->own_ranks)) return;
  (void)gradients_of_step(config, replicas);
  if (machine && machine->measured)
    throw ConfigError(fmt::format(
        "the order in which gradients reach servers is part of the result, so the machine's steps "
        "cannot be \"measured\": {} needs device.tflops, or a number as device.step_seconds",
        machine->name));
  if (machine ? settings->workers(replicas) == 1 : !served_by_ranks(config, replicas)) return;
  if (!machine && !config.replay.spill.empty())
    throw ConfigError(fmt::format(
        "replay.spill keeps the versions of the weights that workers of a replay have; servers of "
        "sync.scheme = \"{}\" on real ranks keep them in memory: leave it out",
        config.sync.scheme));
  if (!machine) return check_rank_servers(config, *settings, replicas, ranks);
  if (ranks > 1)
    throw ConfigError(fmt::format(
        "a replay of sync.scheme = \"{}\" runs on one rank, not on {}: each gradient is of "
        "weights that those before it have changed",
        config.sync.scheme, ranks));
}

bool applied_one_by_one(const config::RunConfig& config, int64_t replicas) {
  const std::optional<ServerSettings> settings = parse_servers(config.sync.scheme);
  return settings && settings->one_by_one() &&
         (settings->workers(replicas) > 1 || config.sync.server_ranks > 0);
}

bool served_by_ranks(const config::RunConfig& config, int64_t replicas) {
  if (!parse_servers(config.sync.scheme)) return false;
  return applied_one_by_one(config, replicas) || config.sync.server_ranks > 0 ||
         gradients_of_step(config, replicas) < replicas;
}

int server_ranks(const config::RunConfig& config) {
  return parse_servers(config.sync.scheme) ? static_cast<int>(config.sync.server_ranks) : 0;
}

int worker_ranks(const config::RunConfig& config, int ranks) {
  const int servers = server_ranks(config);
  if (servers > 0 && !config.replay.machine.empty())
    throw ConfigError(
        "sync.server_ranks are ranks that are really there; a replay's servers are on its machine: "
        "say with sync.servers how many");
  if (servers >= ranks)
    throw ConfigError(fmt::format(
        "sync.server_ranks = {} leaves no rank of {} for workers: give more ranks (--ranks)",
        servers, ranks));
  return ranks - servers;
}

}  // namespace tutti::train
