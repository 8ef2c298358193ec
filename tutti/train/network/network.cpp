#include "tutti/train/network/network.h"

#include <algorithm>

#include "tutti/base/log.h"
#include "tutti/comm/control/agree.h"
#include "tutti/exchange/bucket_size.h"
#include "tutti/models/registry.h"
#include "tutti/plan/planned_memory.h"
#include "tutti/plan/slow_steps.h"
#include "tutti/train/network/evaluation_network.h"
#include "tutti/train/network/tuning_file.h"

namespace tutti::train {
namespace {

/// Compares hashes: ranks with the same place among those that share samples or statistics have the
/// same plan.
void compare_hashes(const plan::Plan& plan, int peers, comm::Communicator& communicator) {
  const std::vector<uint64_t> hashes = communicator.allgather_value(plan.hash());
  std::vector<int> others;
  for (size_t r = 0; r < hashes.size(); ++r)
    if (hashes[r] != hashes[r % static_cast<size_t>(peers)]) others.push_back(static_cast<int>(r));
  if (!others.empty())
    throw CommError(
        fmt::format("rank(s) {} compiled another plan than rank 0: they run another program, "
                    "configuration or processor type; "
                    "compare the output of 'tutti plan' and 'tutti doctor' on their hosts",
                    comm::rank_list(others)));
}

size_t gradient_bytes_of(const TrainingGraphSpec& spec) {
  const graph::Graph graph = models::build_model(spec.model).graph;
  int64_t elements = 0;
  for (const graph::Value p : trained_parameters(graph, spec.freeze))
    elements += graph.shape(p).elements();
  return static_cast<size_t>(elements) * sizeof(float);
}

size_t measured_bucket_bytes(const TrainingGraphSpec& spec, comm::Communicator& communicator) {
  if (communicator.size() == 1) return TrainingGraphSpec{}.bucket_bytes;
  const exchange::ExchangeCost cost = exchange::measure_exchange(communicator);
  const size_t bytes = exchange::best_bucket_bytes(cost, gradient_bytes_of(spec));
  if (communicator.rank() == 0)
    log::info("buckets of {} KiB: an exchange takes {:.1f} us and {:.1f} us a MiB", bytes >> 10,
              cost.latency_s * 1e6, (1 << 20) / cost.bytes_per_s * 1e6);
  return bytes;
}

/// Returns the plan's buckets with the arena positions that result from the kernels' layouts.
exchange::BucketLayout bucket_layout(const plan::Plan& plan) {
  exchange::BucketLayout layout;
  layout.bytes = plan.variables.trained_bytes;
  for (size_t b = 0; b < plan.buckets.size(); ++b)
    layout.buckets.push_back({.name = fmt::format("bucket {}", b),
                              .begin = plan.buckets[b].offset,
                              .bytes = plan.buckets[b].bytes});
  for (size_t i = 0; i < plan.variables.parameters.size(); ++i) {
    const plan::Variable& variable = plan.variables.parameters[i];
    if (!plan.variables.is_trained(variable)) break;
    layout.offsets.push_back(variable.offset);
    for (size_t b = 0; b < layout.buckets.size(); ++b) {
      exchange::Bucket& bucket = layout.buckets[b];
      if (variable.offset < bucket.begin || variable.offset >= bucket.begin + bucket.bytes)
        continue;
      bucket.members.push_back(static_cast<int>(i));
      layout.bucket_of.push_back(static_cast<int>(b));
    }
  }
  CHECK(layout.bucket_of.size() == layout.offsets.size(), "every gradient lies in one bucket");
  return layout;
}

/// Applies the policy to the plan's buckets.
exchange::ExchangeCompression compression_of(const exchange::CompressionPolicy& policy,
                                             const plan::Variables& variables,
                                             const exchange::BucketLayout& layout) {
  if (!policy.compression.compresses()) return {};
  exchange::ExchangeCompression compression{.automatic = policy.automatic,
                                            .phases = exchange::compression_phases(policy)};
  std::vector<exchange::CompressibleEntry> stored;  // laid out like the arena; the policy counts
                                                    // only elements, as when buckets were made
  for (const plan::Variable& variable : variables.parameters)
    stored.push_back({{variable.name, variable.desc.bytes()}, variable.desc.shape});
  for (size_t b = 0; b < layout.buckets.size(); ++b) {
    exchange::CompressibleEntry first =
        stored[static_cast<size_t>(layout.buckets[b].members.front())];
    first.entry.bytes = static_cast<size_t>(first.shape.elements()) * sizeof(float);
    compression.buckets.push_back(exchange::compresses(policy, first));
    compression.matrices.push_back(exchange::matrices_of(layout, static_cast<int>(b), stored));
  }
  return compression;
}

/// The most arenas that a rank needs for the parts of its gradients that it has not sent, and of
/// the share of their sum that it compresses for all.
constexpr int kUnsent = 2;

/// Compiles both sides of a network, for any part of the grid.
class NetworkCompiler {
 public:
  NetworkCompiler(const NetworkSpec& spec, const backend::Backend& backend,
                  comm::Communicator& communicator)
      : spec_(spec), backend_(backend), training_(spec.training) {
    training_.split = with_advice(spec.training.split, backend);
    training_.repeats_cheap_ops = backend.repeats_cheap_ops();
    training_.joins_moves = backend.joins_moves();
    training_.split.tables = {communicator.size(), communicator.rank()};
    if (training_.bucket_bytes == 0)
      training_.bucket_bytes =
          spec.training.compression.compression.compresses()
              ? TrainingGraphSpec{}.bucket_bytes  // its state is stored by bucket
              : measured_bucket_bytes(spec.training, communicator);
    graph_ = make_training_graph(training_);
    options_.threads = training_.split.threads;
    options_.layout = to_string(spec.plan.layout);
    // The requested size, not the advice: without one, tiles also depend on the weights
    // (plan/tiles.h).
    options_.tile_bytes = spec.training.split.tile_bytes;
    options_.measure = spec.plan.measure;
    options_.most_error = spec.plan.bf16_error;
  }
  const split::PartGrid& grid() const { return training_.split.grid; }
  const std::string& tensors() const { return graph_.tensors; }
  /// The number of ranks with different plans: they hold different parts of the tables.
  int peers() const { return graph_.shares_tables ? training_.split.tables.ranks : grid().peers(); }

  /// For rank 0: measures what is unknown, for all parts. Afterwards the network holds the choices
  /// on which all parts depend.
  void compile_first(Network& network) {
    // A layout requested for an experiment must not become every later run's, nor kernels that
    // another error limit allows.
    const bool keeps = spec_.plan.measure &&
                       spec_.plan.layout == config::ActivationLayout::automatic &&
                       spec_.plan.bf16_error == config::PlanSection{}.bf16_error &&
                       spec_.choices.empty() && !spec_.tuning_file.empty();
    plan::Choices known = keeps ? read_tuning_file(spec_.tuning_file) : spec_.choices;
    // A stale file costs a measurement, not the run; and the layout chosen just now may turn out to
    // need too much memory.
    if (spec_.choices.empty()) known.make_advice();
    compile_both(network, known);
    plan::Choices& choices = network.training.options.choices;
    compile_others(network, choices);
    // The same holds for one that was chosen to fit a memory limit.
    if (keeps && spec_.plan.memory == 0 && choices.to_string() != known.to_string())
      write_tuning_file(spec_.tuning_file, choices);
    choices = choices.used();
  }

  /// For the other ranks: compiles with rank 0's choices.
  void compile_same(Network& network, const std::string& layout, const plan::Choices& choices) {
    options_.layout = layout;
    plan::Variables first;  // all parts of samples lay out their variables like the first
    if (grid().of_samples().part() != 0) {
      first = compile_part(0, choices).variables;
      options_.variables = &first;
    }
    compile_both(network, choices);
    options_.variables = network.training.options.variables = nullptr;
  }

  /// Throws ConfigError if the network needs more memory than is allowed.
  void require_memory(const Network& network) const {
    const plan::Plan& plan = network.training;
    if (plan::fits_memory(plan)) return;
    throw ConfigError(fmt::format(
        "plan.memory: a rank needs {:.1f} MiB at least{}: take a smaller batch.local, "
        "batch.accumulate instead, run.precision = \"bf16\", or ranks that share layers "
        "(parallel.tensor, parallel.pipeline)\n{}",
        static_cast<double>(plan::planned_memory(plan).total()) / (1 << 20),
        plan.recomputed.results > 0 ? ", with all computed again that helps" : "",
        plan::memory_text(plan)));
  }

  /// Copies the graph's properties to the compiled network.
  void describe(Network& network) const {
    network.inputs = graph_.inputs;
    network.rows = rows_of(graph_.graph, network.inputs);
    network.losses = graph_.losses;
    network.predictions = graph_.predictions;
    network.lr = graph_.lr;
    network.gradient_scale = graph_.gradient_scale;
    network.kept = graph_.kept;
    network.has_tables = graph_.has_tables;
    network.shares_tables = graph_.shares_tables;
    network.parameters = graph_.parameters;
    network.trained_parameters = graph_.trained;
    network.gradient_norm = graph_.gradient_norm;
    network.training.variables.elsewhere = graph_.elsewhere;
    network.shared = graph_.shared;
    network.buckets = bucket_layout(network.training);
    network.compression =
        compression_of(training_.compression, network.training.variables, network.buckets);
  }

 private:
  plan::Plan compile_graph(const graph::Graph& graph, const plan::Choices& choices,
                           const plan::MemoryLimit& memory) {
    options_.choices = choices;
    options_.memory = memory;
    return plan::compile(graph, backend_, options_);
  }
  /// The evaluation reads the variables in the training plan's layout. `evaluation_bytes` is its
  /// additional memory, and `copied_bytes` the one for a checkpoint's copies, as far as known.
  /// Where a device computes, the limit is that of its memory: copies lie in the host's.
  void compile_sides(Network& network, const plan::Choices& choices, size_t evaluation_bytes,
                     size_t copied_bytes) {
    const HeldCopies& held = spec_.held;
    network.training = compile_graph(
        graph_.graph, choices,
        {.bytes = static_cast<size_t>(spec_.plan.memory),
         .besides = evaluation_bytes,
         .copies = copied_bytes,
         .arenas =
             split::batches_under_way(held.order, grid().stages(), grid().stage(), held.batches),
         .gradients = held.gradients,
         .sums = held.sums + (training_.compression.compression.compresses() ? kUnsent : 0),
         .shown = held.shown,
         .replicas = held.replicas,
         .statistics = held.statistics,
         .met = held.met});
    network.training.variables.set_slices(graph_.slices);
    network.evaluation =
        std::move(*compile_evaluation_of(network.training, grid(), network.training.variables));
    const plan::PlannedMemory evaluation = plan::planned_memory(network.evaluation.plan);
    network.training.options.memory.besides = evaluation.results + evaluation.scratch;
    network.training.options.memory.copies = copied_bytes_of(network.training.variables);
  }
  /// Under a limit a checkpoint's copies take what it leaves, but one tensor must have space.
  size_t copied_bytes_of(const plan::Variables& variables) const {
    if (backend_.device()) return 0;
    size_t most = 0;
    if (spec_.plan.memory > 0)
      for (const plan::Variable& variable : variables.parameters)
        most = std::max(most, variable.desc.bytes());
    return spec_.copied_bytes > 0 ? spec_.copied_bytes : most;
  }
  void compile_both(Network& network, const plan::Choices& choices) {
    compile_sides(network, choices, 0, backend_.device() ? 0 : spec_.copied_bytes);
    if (plan::fits_memory(network.training)) return;
    const std::string layout = network.training.layout;
    compile_sides(network, network.training.options.choices,
                  network.training.options.memory.besides, network.training.options.memory.copies);
    if (network.training.layout == layout) return;
    // Repeat it as the other ranks will, which receive the layout.
    options_.layout = network.training.layout;
    compile_both(network, network.training.options.choices);
  }
  /// Compiles another place of the grid for its choices or variables, which depend on no limit.
  plan::Plan compile_place(const split::PartGrid& place, const plan::Choices& choices) {
    TrainingGraphSpec other = training_;
    other.split.grid = place;
    return compile_graph(make_training_graph(other).graph, choices, {});
  }
  plan::Plan compile_part(int part, const plan::Choices& choices) {
    return compile_place(grid().with_part(part), choices);
  }
  /// Also chooses the other parts' kernels, since parts with other heights pose other problems, and
  /// those of other stages.
  void compile_others(Network& network, plan::Choices& choices) {
    options_.layout = network.training.layout;
    // Ranks that share layers have variables of their own.
    if (grid().tensor() == 1) options_.variables = &network.training.variables;
    for (int part = 1; part < grid().parts(); ++part) {
      const plan::Plan plan = compile_part(part, choices);
      choices = plan.options.choices;
      (void)compile_evaluation_of(network.training, grid().with_part(part), plan.variables);
    }
    options_.variables = nullptr;
    for (int stage = 1; stage < grid().stages(); ++stage) {
      const split::PartGrid place = grid().with_stage(stage);
      plan::Plan other = compile_place(place, choices);
      (void)compile_evaluation_of(other, place, other.variables);
      choices = other.options.choices;
    }
  }
  /// Compiles the evaluation side for another place of the grid whose training side is compiled;
  /// its choices are added to the training plan's.
  std::unique_ptr<EvaluationNetwork> compile_evaluation_of(plan::Plan& training,
                                                           const split::PartGrid& place,
                                                           const plan::Variables& variables) const {
    models::ModelSpec model = spec_.training.model;
    if (spec_.evaluation_batch > 0) model.batch = spec_.evaluation_batch;
    split::SplitSettings split = spec_.training.split;
    split.tables = training_.split.tables;
    split.grid = place;
    plan::PlanOptions options;
    options.layout = training.layout;
    options.measure = spec_.plan.measure;
    options.most_error = spec_.plan.bf16_error;
    options.choices = training.options.choices;
    options.variables = &variables;
    auto evaluation = evaluation_of(model, split, backend_, options, &graph_.stages);
    training.options.choices = evaluation->plan.options.choices;
    return evaluation;
  }

  const NetworkSpec& spec_;
  const backend::Backend& backend_;
  TrainingGraphSpec training_;  // with the sizes of buckets and tiles
  TrainingGraph graph_;
  plan::PlanOptions options_;
};

/// Warns of slow kernels: nothing else reports why the run takes so long.
void warn_of_slow_steps(const plan::Plan& plan, const std::string& asked_layout) {
  if (const std::string slow = plan::slow_steps_text(plan); !slow.empty())
    log::warn(
        "{}{}", slow,
        asked_layout == "auto" ? "" : "; leave plan.layout out, and the fastest layout is chosen");
  if (const std::string host = plan::host_steps_text(plan); !host.empty()) log::warn("{}", host);
}

/// A layout and choices, in the form in which rank 0 sends them to the others.
std::string choices_text(const std::string& layout, const plan::Choices& choices) {
  return layout + "\n" + choices.to_string();
}

void take_choices(const std::string& text, plan::PlanOptions& options) {
  const size_t line = text.find('\n');
  options.layout = text.substr(0, line);
  options.choices = plan::Choices::parse(text.substr(line + 1), plan::Choices::Of::first_rank);
}

}  // namespace

std::vector<data::BatchField> Network::batch() const {
  std::vector<data::BatchField> fields = batch_of(training, inputs);
  for (size_t i = 0; i < fields.size(); ++i) fields[i].rows = rows[i];
  return fields;
}

std::unique_ptr<EvaluationNetwork> compile_evaluation(const models::ModelSpec& model,
                                                      const split::SplitSettings& given,
                                                      const backend::Backend& backend,
                                                      comm::Communicator& communicator,
                                                      plan::PlanOptions options) {
  split::SplitSettings split = given;
  split.tables = {communicator.size(), communicator.rank()};
  std::unique_ptr<EvaluationNetwork> network;
  const std::string made = comm::decide(communicator, "measuring kernels", [&] {
    network = evaluation_of(model, split, backend, options);
    plan::PlanOptions others = options;
    others.layout = network->plan.layout;
    others.choices = network->plan.options.choices;
    for (int part = 1; part < split.grid.parts(); ++part) {
      split::SplitSettings other = split;
      other.grid = split.grid.with_part(part);
      others.choices = evaluation_of(model, other, backend, others)->plan.options.choices;
    }
    network->plan.options.choices = others.choices.used();
    warn_of_slow_steps(network->plan, options.layout);
    return choices_text(others.layout, network->plan.options.choices);
  });
  if (communicator.rank() == 0) return network;
  take_choices(made, options);
  return evaluation_of(model, split, backend, options);
}

std::unique_ptr<Network> compile_network(const NetworkSpec& spec, const backend::Backend& backend,
                                         comm::Communicator& communicator) {
  NetworkCompiler compiler(spec, backend, communicator);
  auto network = std::make_unique<Network>();
  const std::string made = comm::decide(
      communicator, spec.plan.measure ? "measuring kernels" : "compiling the plan", [&] {
        compiler.compile_first(*network);
        if (spec.warns && !compiler.tensors().empty()) log::info("{}", compiler.tensors());
        if (spec.warns)
          warn_of_slow_steps(network->training, std::string(to_string(spec.plan.layout)));
        return choices_text(network->training.layout, network->training.options.choices);
      });
  if (communicator.rank() != 0) {
    plan::PlanOptions chosen;
    take_choices(made, chosen);
    compiler.compile_same(*network, chosen.layout, chosen.choices);
  }
  if (spec.plan.memory > 0)
    comm::on_each(communicator, "fitting the plan into plan.memory",
                  [&] { compiler.require_memory(*network); });
  compare_hashes(network->training, compiler.peers(), communicator);
  compiler.describe(*network);
  return network;
}

NetworkSpec with_served_buckets(NetworkSpec network) {
  if (network.training.bucket_bytes == 0)
    network.training.bucket_bytes = TrainingGraphSpec{}.bucket_bytes;
  return network;
}

}  // namespace tutti::train
