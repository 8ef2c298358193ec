// tutti plan: prints what train would run, in full: every step in its order, with kernel, place and
// size.

#include <fmt/format.h>

#include <memory>
#include <optional>

#include "tutti/base/json.h"
#include "tutti/base/log.h"
#include "tutti/cli/config/config_flags.h"
#include "tutti/cli/flags/flag_rows.h"
#include "tutti/cli/flags/json_output.h"
#include "tutti/cli/job/compute_backend.h"
#include "tutti/cli/job/job.h"
#include "tutti/cli/job/launch.h"
#include "tutti/cli/verbs/dry_run.h"
#include "tutti/cli/verbs/verbs.h"
#include "tutti/comm/transport/inproc/thread_ranks.h"
#include "tutti/keep/checkpoint.h"
#include "tutti/keep/run_folder.h"
#include "tutti/plan/planned_memory.h"
#include "tutti/plan/slow_steps.h"
#include "tutti/train/network/network.h"
#include "tutti/train/settings/device_settings.h"
#include "tutti/train/settings/pipeline_check.h"
#include "tutti/train/settings/resume_check.h"
#include "tutti/train/settings/server_settings.h"
#include "tutti/train/settings/specs.h"
#include "tutti/train/step/device_waits.h"
#include "tutti/train/step/step_settings.h"

namespace tutti::cli {
namespace {

struct PlanVerb {
  ConfigFlags flags;
  int ranks = 1;
  bool refusals = false, json = false;
};

Json step_json(const plan::Step& step, bool refusals) {
  Json out = {{"name", step.name}, {"op", step.request.op->name()}, {"kernel", step.kernel}};
  const bool on_host = plan::runs_on_host(step);
  if (on_host) out["on_host"] = true;
  if (step.speed != backend::KernelSpeed::fast && !on_host) out["reference_loops"] = true;
  if (refusals) out["refused"] = step.refused;
  return out;
}

Json steps_json(const std::vector<plan::Step>& steps, bool refusals) {
  Json out = Json::array();
  for (const plan::Step& step : steps) out.push_back(step_json(step, refusals));
  return out;
}

Json memory_json(const plan::Plan& plan) {
  const plan::PlannedMemory memory = plan::planned_memory(plan);
  Json out = {{"total_bytes", memory.total()},           {"variable_bytes", memory.variables},
              {"gradient_bytes", memory.gradients},      {"result_bytes", memory.results},
              {"scratch_bytes", memory.scratch},         {"evaluation_bytes", memory.besides},
              {"limit_bytes", plan.options.memory.bytes}};
  if (const plan::Recomputed& again = plan.recomputed; again.results > 0)
    out["computed_again"] = {{"results", again.results},
                             {"flop", again.flop},
                             {"result_bytes_without",
                              again.arena_bytes * static_cast<size_t>(plan.options.memory.arenas)}};
  return out;
}

Json plan_json(const plan::Plan& plan, bool refusals) {
  Json out = {{"hash", fmt::format("{:016x}", plan.hash())},
              {"layout", plan.layout},
              {"batch", plan.batch},
              {"threads", plan.options.threads},
              {"arena_bytes", plan.arena_bytes},
              {"packed_bytes", plan.packed_bytes},
              {"tile_scratch_bytes", plan.tile_scratch_bytes},
              {"workspace_bytes", plan.workspace_bytes},
              {"accumulator_bytes", plan.state_bytes},
              {"memory", memory_json(plan)},
              {"packs", steps_json(plan.packs, refusals)}};
  for (const plan::PlanBand& band : plan.bands) {
    out["bands"].push_back({{"samples", band.samples},
                            {"tile", band.tile},
                            {"whole", band.whole},
                            {"reduces", band.reduces},
                            {"waits", band.waits},
                            {"starts", band.starts},
                            {"steps", steps_json(band.steps, refusals)}});
    if (band.repeats >= 0) out["bands"].back()["repeats"] = band.repeats;
  }
  out["updates"] = steps_json(plan.updates, refusals);
  for (const plan::PlanStage& stage : plan.stages)
    out["stages"].push_back({{"bucket", stage.bucket},
                             {"after", stage.after},
                             {"waits", stage.waits},
                             {"updates", stage.updates},
                             {"packs", stage.packs},
                             {"starts", stage.starts},
                             {"before_band", stage.first_use}});
  for (const plan::PlanExchange& exchange : plan.exchanges) {
    const graph::Node& node = plan.graph.nodes()[static_cast<size_t>(exchange.node)];
    out["exchanges"].push_back(
        {{"name", node.name}, {"op", node.op->name()}, {"attributes", node.op->attributes()}});
  }
  for (const plan::PlanBucket& bucket : plan.buckets)
    out["buckets"].push_back({{"offset", bucket.offset},
                              {"bytes", bucket.bytes},
                              {"exchange", bucket.exchange},
                              {"first_use", bucket.first_use}});
  return out;
}

struct Resumed {
  std::string checkpoint;
  keep::CheckpointInfo before;
};

/// Returns the checkpoint that train would resume from. A resumed run has as many replicas as it
/// began with.
std::optional<Resumed> resumed(config::RunConfig& config) {
  if (config.checkpoint.resume.empty()) return std::nullopt;
  const keep::RunPlace place = keep::preview_run_folder(keep::run_folder_request(config, false));
  if (place.resume.empty()) return std::nullopt;
  Resumed found{place.resume, keep::verify_checkpoint(place.resume)};
  if (config.run.replicas == 0) config.run.replicas = train::replicas_of(found.before);
  return found;
}

/// Refuses a resume that train would refuse; train itself also checks the identity of the data.
void refuse_as_train(const Resumed& from, const config::RunConfig& config, int64_t replicas,
                     const data::Dataset& train) {
  config::RunSettings settings =
      train::effective_settings(config, replicas, {&train, nullptr, nullptr, nullptr});
  take_data_content(from.before, settings);
  (void)train::check_resume(from.checkpoint, from.before, settings, {});
}

/// Returns the kernels that an earlier run chose, if train would use the same.
std::optional<plan::Choices> earlier_choices(const config::RunConfig& config,
                                             const std::optional<Resumed>& from) {
  if (from)
    return plan::Choices::parse(
        train::choices_of_device(from->before.plan_choices, from->before.settings, config));
  if (config.plan.choices_from.empty()) return std::nullopt;
  return plan::Choices::parse(train::choices_from(config), plan::Choices::Of::another_run);
}

int run_plan(const PlanVerb& verb) {
  ResolvedConfig resolved = verb.flags.read_run();
  config::RunConfig& config = resolved.config;
  train::check_device(config, verb.ranks);
  log::configure(config.run.log_level, 0, 1);
  for (const std::string& warning : resolved.warnings_of_training()) log::warn("{}", warning);
  config.run.threads =
      choose_threads(static_cast<int>(config.run.threads), read_surroundings().omp_num_threads,
                     device::read_topology(), verb.ranks);
  const std::optional<Resumed> from = resumed(config);
  const std::optional<plan::Choices> earlier = earlier_choices(config, from);
  config.data.generate_when_read = true;
  const auto dataset = open_configured(config, "train");
  const int workers = train::worker_ranks(config, verb.ranks);
  const split::PartGrid grid = train::part_grid(config.parallel, workers, 0);
  const int64_t replicas = config::replica_count(config.run, grid.groups());
  grid.require_own_ranks(replicas);
  if (from) refuse_as_train(*from, config, replicas, *dataset);
  const bool has_clock = !config.replay.machine.empty();
  if (!has_clock) train::check_served_job(config, replicas, workers, nullptr);
  const auto communicator = comm::make_single_communicator();
  const int gradients = static_cast<int>(train::gradients_of_step(config, replicas));
  train::NetworkSpec spec =
      train::network_spec(config, *dataset, config::batch_sizes(config.batch, gradients).local);
  // The kernels that train would use, and record for later runs.
  spec.tuning_file = tuning_file(config.plan.tuning);
  if (earlier) spec.choices = *earlier;
  if (verb.ranks > 1 && config.comm.bucket_bytes == 0 &&
      !spec.training.compression.compression.compresses())
    log::warn(
        "the ranks of a run measure how large their buckets are to be; shown are buckets of 1 MiB: "
        "give --set comm.bucket_bytes=SIZE as the run's log says it, for the run's own hash");
  // The first of the parts and stages is shown.
  const exchange::ReplicaMap map(has_clock ? gradients : static_cast<int>(replicas), grid.groups(),
                                 0);
  train::TrainingStepSpec step = train::step_spec(config, std::move(spec), map, grid, has_clock);
  // As train measures it, on one rank.
  if (map.replicas() * step.accumulate > 1) step.noise.every = config.run.noise_every;
  const train::NetworkSpec of_step = train::network_of_step(step, workers, 0);
  const ComputeBackend compute = compute_backend(config);
  const auto network = train::compile_network(of_step, compute.backend(), *communicator);
  const int batches = static_cast<int>(config.batch.accumulate);
  if (verb.json) {
    Json out = plan_json(network->training, verb.refusals);
    if (grid.stages() > 1)
      out["pipeline"] = {{"stages", grid.stages()},
                         {"micro_batches", batches},
                         {"bubble", split::pipeline_bubble(grid.stages(), batches)}};
    if (compute.device) out["device"] = device_json(compute.device->facts());
    out["replicas"] = replicas;
    out["ranks"] = verb.ranks;
    print_json_output(out);
    return 0;
  }
  fmt::print("{}{}\n{} replica(s) on {} rank(s)\nhash {:016x}\n",
             network->training.to_string(verb.refusals), plan::memory_text(network->training),
             replicas, verb.ranks, network->training.hash());
  if (compute.device)
    fmt::print("device: {}, of which a training holds {:.1f} MiB\n",
               device_line(compute.device->facts()),
               static_cast<double>(plan::planned_memory(network->training).total()) / (1 << 20));
  const auto* const neurons = dynamic_cast<const data::NeuronSet*>(dataset.get());
  if (compute.device)
    fmt::print("{}\n", train::host_waits_text(
                           train::host_waits(step, *network, neurons && neurons->canvases())));
  if (grid.stages() > 1)
    fmt::print("{}\n{}The plan is stage 0's.\n", train::pipeline_line(config),
               train::stages_text(of_step.training));
  return 0;
}

}  // namespace

Verb plan_verb() {
  auto state = std::make_shared<PlanVerb>();  // shared: std::function must be copyable
  return {.name = "plan",
          .summary = "Show in full what train would run",
          .text =
              "Every step in its order, with its kernel, its place in memory and its size, and "
              "the hash that all ranks must share. Takes the flags of train that stand for a "
              "key, and with --resume the kernels of the checkpoint. The code of a model.library "
              "runs for it.",
          .arguments = {state->flags.file_argument("plan", true)},
          .flags = joined({flag("--ranks", "N", "Ranks of the run in question; none are started",
                                &state->ranks, {1, 1 << 20}),
                           switch_flag("--refusals", "Also say which kernels were refused, and why",
                                       &state->refusals),
                           json_flag(state->json)},
                          state->flags.flags_of_training()),
          .examples = {{"tutti plan run.toml", "Every step of a run on one rank"},
                       {"tutti plan run.toml --ranks 4 --precision bf16 --refusals",
                        "The same for one of four ranks in bf16, and why kernels were refused"}},
          .see_also = {"tutti help train", "docs/architecture.md"},
          .run = [state] { return run_plan(*state); }};
}

}  // namespace tutti::cli
