// tutti advise: suggests numbers of workers, servers and samples a step, before anything is
// trained.

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "tutti/base/error.h"
#include "tutti/base/json.h"
#include "tutti/base/log.h"
#include "tutti/cli/config/config_flags.h"
#include "tutti/cli/flags/flag_rows.h"
#include "tutti/cli/flags/json_output.h"
#include "tutti/cli/job/compute_backend.h"
#include "tutti/cli/job/job.h"
#include "tutti/cli/job/launch.h"
#include "tutti/cli/job/machine_file.h"
#include "tutti/cli/verbs/advice.h"
#include "tutti/cli/verbs/study_schemes.h"
#include "tutti/cli/verbs/verbs.h"
#include "tutti/train/settings/device_settings.h"
#include "tutti/train/settings/server_settings.h"
#include "tutti/train/settings/sync_scheme.h"

namespace tutti::cli {
namespace {

struct AdviseVerb {
  ConfigFlags flags;
  std::vector<int64_t> batches, workers{1, 2, 4, 8, 16, 32, 64};
  std::string schemes = "step";
  double efficiency = 0.8, memory_gib = 0;
  int steps = 5;
  bool json = false;
};

/// Returns the configuration's own batch, and halves and doubles of it.
std::vector<int64_t> usual_batches(const config::RunConfig& config) {
  const int64_t own = config::batch_sizes(config.batch, config::replica_count(config.run, 1)).local;
  std::vector<int64_t> batches;
  for (const double factor : {0.25, 0.5, 1.0, 2.0, 4.0})
    batches.push_back(
        std::max<int64_t>(1, static_cast<int64_t>(static_cast<double>(own) * factor)));
  return batches;
}

/// True for keys that are the same for all schemes: a step is timed once.
bool is_of_the_step(std::string_view key) { return !key.starts_with("sync."); }

/// Returns each scheme with the keys that follow it; "step" has none.
std::vector<AdvisedScheme> schemes_of(const AdviseVerb& verb, const config::RunConfig& config) {
  std::vector<AdvisedScheme> schemes;
  for (const SchemeOfStudy& choice : parse_schemes(verb.schemes, is_of_the_step)) {
    if (choice.folder == config::SyncSection{}.scheme) {
      schemes.push_back({choice.scheme, config});
      schemes.back().config.sync = {};
      continue;
    }
    std::string name = choice.scheme;
    std::vector<Setting> settings = verb.flags.settings();
    for (const std::string& set : choice.sets) {
      const size_t equals = set.find('=');
      settings.push_back({set.substr(0, equals), set.substr(equals + 1), "tutti advise"});
      if (&set != &choice.sets.front()) name += " " + set;
    }
    AdvisedScheme& scheme = schemes.emplace_back(AdvisedScheme{
        name, read_config({verb.flags.file(), tutti_environment(), settings}).config});
    train::check_sync(scheme.config);
    const config::SyncSection& sync = scheme.config.sync;
    if (train::parse_servers(sync.scheme) && (sync.quorum > 0 || sync.server_ranks > 0))
      throw ConfigError(fmt::format(
          "tutti advise replays {} with servers on the machine, for all workers: leave sync.quorum "
          "and sync.server_ranks out",
          sync.scheme));
  }
  return schemes;
}

int run_advise(const AdviseVerb& verb) {
  const ResolvedConfig resolved = verb.flags.read();
  AdviceQuestion question{.config = resolved.config,
                          .efficiency = verb.efficiency,
                          .batches = verb.batches,
                          .steps = verb.steps,
                          .workers = verb.workers};
  config::RunConfig& config = question.config;
  log::configure(config.run.log_level, 0, 1);
  const std::vector<int64_t>& spatial = config.parallel.spatial;
  for (const auto& [shares, key] :
       {std::pair(config.parallel.pipeline > 1, "pipeline"),
        std::pair(std::ranges::any_of(spatial, [](int64_t parts) { return parts > 1; }), "spatial"),
        std::pair(config.parallel.tensor > 1, "tensor")})
    if (shares)
      throw ConfigError(fmt::format(
          "tutti advise looks at replicas of one rank each: leave parallel.{} out", key));
  config::RunConfig step = config;
  step.sync = {};  // schemes are replayed, on the machine's clock
  train::check_device(step, 1);
  const device::Topology topology = device::read_topology();
  config.run.threads = choose_threads(static_cast<int>(config.run.threads),
                                      read_surroundings().omp_num_threads, topology, 1);
  const ComputeBackend compute = compute_backend(config);
  question.memory_bytes = verb.memory_gib > 0 ? static_cast<int64_t>(verb.memory_gib * (1 << 30))
                          : compute.device    ? static_cast<int64_t>(compute.device->free_bytes())
                                              : topology.available_bytes;
  if (!config.replay.machine.empty()) {
    question.machine = read_machine(config.replay.machine);
    question.schemes = schemes_of(verb, config);  // refuses some keys that have no effect
  } else if (verb.schemes != AdviseVerb{}.schemes) {
    throw ConfigError(
        "--sync shows how fast schemes are on a machine: name it with --machine FILE");
  }
  for (const std::string& warning : resolved.warnings_of_training()) log::warn("{}", warning);
  if (question.batches.empty()) question.batches = usual_batches(config);
  const Advice advice = advise(question, compute);
  if (verb.json)
    print_json_output(advice_json(advice));
  else
    fmt::print("{}", advice_text(advice));
  return 0;
}

}  // namespace

Verb advise_verb() {
  auto state = std::make_shared<AdviseVerb>();  // shared: std::function must be copyable
  return {
      .name = "advise",
      .summary = "Say how many workers, servers and samples a step are worth it",
      .text =
          "Times a few steps on random data at several batches, and applies the planning rules "
          "of docs/advise.md: the fastest batch that fits the memory and, with --machine, how "
          "many workers keep their efficiency and how many parameter servers hide their "
          "messages, beside what the virtual clock says of one or several schemes.",
      .arguments = {state->flags.file_argument("advise", true)},
      .flags = joined(
          {flag("--batches", "N,N,...",
                "Batches of a replica to look at, beside the configuration's "
                "own. Without it: a quarter of that to four times as many",
                &state->batches, {1}),
           flag("--workers", "N,N,...", "Numbers of workers to look at", &state->workers,
                {1, 1 << 20}),
           flag("--sync", "SCHEME,...",
                "Schemes whose speed-up on the machine is shown, with keys of "
                "[sync] behind them ('step,ps:async sync.servers=4')",
                &state->schemes),
           flag("--efficiency", "X", "What each worker is to do, of what it does alone",
                &state->efficiency, {0.01, 1}),
           flag("--memory", "GIB", "Memory of a rank, or of its device. 0: what is free here",
                &state->memory_gib, {0}),
           flag("--steps", "N", "Timed steps of each batch", &state->steps, {1}),
           json_flag(state->json)},
          state->flags.flags({"data-dir", "batch-size", "global-batch-size", "precision", "device",
                              "threads", "replicas", "machine"})),
      .examples = {{"tutti advise run.toml", "The fastest batch here"},
                   {"tutti advise run.toml --machine examples/machines/cloud_25gbit.toml",
                    "And how many workers and servers are worth it on a cloud"},
                   {"tutti advise run.toml --machine fat_tree.toml --sync step,local:8,ps:async",
                    "The same for three ways to meet"}},
      .see_also = {"tutti help replay", "tutti help study", "docs/advise.md"},
      .run = [state] { return run_advise(*state); }};
}

}  // namespace tutti::cli
