#pragma once
// The settings of [sync] if servers hold the weights: schemes "ps:..." and "groups:G".
// docs/synchronisation.md says what they are good for.

#include <cstdint>
#include <optional>
#include <string>

#include "tutti/comm/cost/machine.h"
#include "tutti/config/config.h"

namespace tutti::train {

struct ServerSettings {
  int64_t group = 1;      ///< replicas whose gradients are averaged before they go to the servers;
                          ///< several workers' gradients are applied one by one
  bool together = false;  ///< all workers' gradients are averaged: the arithmetic of "step"
  std::optional<int64_t> bound = {};  ///< steps that a worker may be ahead of the slowest
  int servers = 1;
  bool own_ranks = false;         ///< they are ranks that only serve
  double delay_compensation = 0;  ///< lambda of g + lambda g g (w_now - w_then); 0: none
  double stale_rate = 0;  ///< the rate is divided by this power of the gradient's staleness; 0: not

  /// Returns whether gradients are applied one by one.
  bool one_by_one() const { return !together; }
  /// Returns the number of workers that `replicas` form. Throws ConfigError if groups do not divide
  /// them; fewer replicas than a group has form one group.
  int workers(int64_t replicas) const;
  /// Returns the number of replicas in one worker.
  int group_of(int64_t replicas) const { return static_cast<int>(replicas) / workers(replicas); }
  /// Returns the number of ranks that make one gradient, if ranks are served.
  int ranks_of_worker(int64_t replicas) const { return together ? 1 : group_of(replicas); }
};

/// Parses "ps:async" or "groups:8"; returns nothing for another scheme. Throws ConfigError for an
/// invalid scheme.
std::optional<ServerSettings> parse_servers(const std::string& scheme);

/// Returns the settings with the keys of [sync]. Throws ConfigError for a key without effect, and
/// for keys that require scheme "step".
std::optional<ServerSettings> server_settings(const config::RunConfig& config);

/// Does the same for a job with that many replicas: a single one has no servers except on ranks of
/// their own.
std::optional<ServerSettings> served_settings(const config::RunConfig& config, int64_t devices);

/// Returns how many replicas' gradients form one step: all, or with sync.quorum only as many as it
/// sets; the other replicas are backups. A replay computes only these, real ranks compute all. One
/// replica has no servers, whatever the key's value. Throws ConfigError if there are too few
/// replicas.
int64_t gradients_of_step(const config::RunConfig& config, int64_t replicas);

/// Returns the number of last ranks of the job that only serve, and the number of the other
/// `ranks`. Throws ConfigError if none is left, and in a replay.
int server_ranks(const config::RunConfig& config);
int worker_ranks(const config::RunConfig& config, int ranks);

/// Throws ConfigError if this job cannot have the servers: with several workers each replica needs
/// its own rank, or gradients come in the order of a machine's clock, which one rank follows.
/// `machine` is null without a replay; `ranks` excludes those that only serve.
void check_served_job(const config::RunConfig& config, int64_t replicas, int ranks,
                      const comm::Machine* machine);

/// Returns whether `replicas` replicas' gradients are applied one by one; otherwise a step sums
/// them as usual.
bool applied_one_by_one(const config::RunConfig& config, int64_t replicas);

/// Returns whether ranks serve the weights of `replicas` replicas, if no clock does: gradients are
/// applied one by one, or a step has backups, or servers have ranks of their own.
bool served_by_ranks(const config::RunConfig& config, int64_t replicas);

}  // namespace tutti::train
