// tutti plan: what train would run, in full: every step in its order, with kernel, place and size.

#include <fmt/format.h>

#include <memory>

#include "tutti/backend/cpu/cpu_backend.h"
#include "tutti/base/log.h"
#include "tutti/cli/config_flags.h"
#include "tutti/cli/job.h"
#include "tutti/cli/launch.h"
#include "tutti/cli/verbs.h"
#include "tutti/comm/inproc/thread_ranks.h"
#include "tutti/train/network.h"
#include "tutti/train/settings.h"

namespace tutti {
namespace {

struct PlanVerb {
  ConfigFlags flags;
  int ranks = 1;
  bool refusals = false;
};

int run_plan(const PlanVerb& verb) {
  ResolvedConfig resolved = verb.flags.read();
  RunConfig& config = resolved.config;
  log::configure(config.run.log_level, 0, 1);
  for (const std::string& warning : resolved.warnings) log::warn("{}", warning);
  config.run.threads =
      choose_threads(static_cast<int>(config.run.threads), read_surroundings().omp_num_threads,
                     read_topology(), verb.ranks);
  config.data.generate_train = 1;  // the plan depends on the shape of the images alone
  const auto dataset = open_configured(config, "train");
  const int64_t replicas = replica_count(config.run, verb.ranks);
  const auto communicator = comm::make_single_communicator();
  const NetworkSpec spec =
      network_spec(config, *dataset, batch_sizes(config.batch, replicas).local);
  const auto network = compile_network(spec, CpuBackend(), *communicator);
  fmt::print("{}{} replica(s) on {} rank(s)\nhash {:016x}\n",
             network->training.to_string(verb.refusals), replicas, verb.ranks,
             network->training.hash());
  return 0;
}

}  // namespace

RunVerb add_plan(CLI::App& verb) {
  auto state = std::make_shared<PlanVerb>();  // shared: std::function must be copyable
  state->flags.add_to(verb, true);
  verb.add_option("--ranks", state->ranks, "Ranks of the run in question; none are started")
      ->type_name("N")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  verb.add_flag("--refusals", state->refusals, "Also say which kernels were refused, and why");
  return [state] { return run_plan(*state); };
}

}  // namespace tutti
