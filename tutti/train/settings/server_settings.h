#pragma once
// What [sync] of a configuration means where servers hold the weights: schemes "ps:..." and
// "groups:G". docs/synchronisation.md says what they are good for.

#include <cstdint>
#include <optional>
#include <string>

#include "tutti/comm/cost/machine.h"
#include "tutti/config/config.h"

namespace tutti {

struct ServerSettings {
  int64_t group = 1;      ///< replicas whose gradients are averaged before they go to the servers;
                          ///< those of several workers are applied one by one
  bool together = false;  ///< all workers' gradients are averaged: the arithmetic of "step"
  std::optional<int64_t> bound = {};  ///< steps that a worker may be ahead of the slowest
  int servers = 1;
  bool own_ranks = false;         ///< they are ranks that do nothing else
  double delay_compensation = 0;  ///< lambda of g + lambda g g (w_now - w_then); 0: none
  double stale_rate = 0;  ///< the rate is divided by this power of how old the gradient is; 0: not

  /// Whether gradients are applied one by one.
  bool one_by_one() const { return !together; }
  /// How many workers `replicas` are. ConfigError where groups do not divide them; fewer replicas
  /// than a group has are one group.
  int workers(int64_t replicas) const;
  /// Replicas of one.
  int group_of(int64_t replicas) const { return static_cast<int>(replicas) / workers(replicas); }
  /// Ranks that make one gradient, where ranks are served.
  int ranks_of_worker(int64_t replicas) const { return together ? 1 : group_of(replicas); }
};

/// Of "ps:async" or "groups:8"; nothing of another scheme. ConfigError for what is none.
std::optional<ServerSettings> parse_servers(const std::string& scheme);

/// The same with the keys of [sync]. ConfigError for a key without effect, and for what goes with
/// scheme "step" alone.
std::optional<ServerSettings> server_settings(const RunConfig& config);

/// The same for a job with so many replicas: one alone has no servers but those on ranks of their
/// own.
std::optional<ServerSettings> served_settings(const RunConfig& config, int64_t devices);

/// How many replicas' gradients are one step: all, or with sync.quorum so many of `replicas`; the
/// others are backups. A replay computes so many, real ranks compute them all.
/// One replica has no servers, whatever the key says. ConfigError where there are not as many.
int64_t gradients_of_step(const RunConfig& config, int64_t replicas);

/// The last ranks of the job that are servers and nothing else, and how many are left of `ranks`.
/// ConfigError where none is, and in a replay.
int server_ranks(const RunConfig& config);
int worker_ranks(const RunConfig& config, int ranks);

/// ConfigError where this job cannot do it: of several workers each replica has a rank, or their
/// gradients come in the order of a machine's clock, which one rank follows. `machine`: null
/// without a replay; `ranks` without those that only serve.
void check_served_job(const RunConfig& config, int64_t replicas, int ranks,
                      const comm::Machine* machine);

/// Whether `replicas` replicas' gradients are applied one by one; otherwise a step is as ever.
bool applied_one_by_one(const RunConfig& config, int64_t replicas);

/// Whether ranks serve the weights of `replicas` replicas, where no clock does: gradients are
/// applied one by one, or a step has backups, or servers have ranks of their own.
bool served_by_ranks(const RunConfig& config, int64_t replicas);

}  // namespace tutti
