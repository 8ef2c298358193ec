#pragma once
// Plan: a compiled graph. Kernels, layouts, every address, the order of every operation and of
// every exchange are fixed here; the Executor only walks the lists. A Plan is data: it can be
// printed, hashed, compared and priced.

#include <string>
#include <vector>

#include "tutti/backend/backend.h"
#include "tutti/graph/per_value.h"
#include "tutti/plan/choices.h"
#include "tutti/plan/exchange_kind.h"
#include "tutti/plan/variables.h"

namespace tutti::plan {

/// The memory that a place lies in. The named ones are fixed; behind them come one base per graph
/// input and one per bucket's sum.
enum Base : int {
  kParameters,
  kTables,
  kStatistics,
  kState,
  kGradients,
  kScalars,
  kArena,
  kPacked,
  kTile,
  kFirstInput
};

struct Place {
  int base = kArena;
  size_t offset = 0;  ///< bytes
  size_t stride =
      0;  ///< bytes per sample; 0 without a batch. In kTile, sample 0 is the tile's first
};

/// One node, ready to run.
struct Step {
  int node = -1;
  std::string name;
  std::string kernel;  ///< name of the chosen candidate
  backend::KernelSpeed speed = backend::KernelSpeed::fast;
  std::vector<std::string> refused;  ///< the other candidates, as "candidate: reason"
  std::string trial;  ///< versions, and how far a library's kernel agrees with one of ours
  graph::Walk walk = graph::Walk::per_sample;
  int64_t samples = 0;  ///< samples that its band walks over
  backend::KernelRequest
      request;  ///< every desc is final; dimension 0 of batched descs is the band's tile
  size_t workspace_bytes = 0, state_bytes = 0;  ///< bytes that its kernel needs
  size_t number_bytes = 0;                      ///< the same, for numbers of each step on a device
  bool first_has_state = false;  ///< the first thread's accumulator is not an output's own memory
  std::vector<bool> in_batched, out_batched;  ///< whether a tile has its own part of the operand
  std::vector<Place> in, out;
};

struct PlanBand {
  std::vector<Step> steps;
  bool whole = false;
  bool reduces = false;     ///< some step has a finish phase
  int64_t samples = 0;      ///< samples that it walks over: the batch, or more with slabs
  int64_t tile = 1;         ///< largest number of samples in a tile
  int repeats = -1;         ///< the band whose steps this one partly runs again; -1: none
  std::vector<int> stages;  ///< stages of the last update that must be over before it, in order
  std::vector<int> waits, starts;  ///< indices into Plan::exchanges: waited for before the band,
                                   ///< started after it
  std::vector<bool> early;  ///< by sample: whether it reads no output of `waits`. Tiles of only
                            ///< such samples are computed before the wait; empty: none
};

/// An exchange between ranks (plan/run/exchanges.h). If it replaces its inputs by sums, they are
/// its outputs, too.
struct PlanExchange {
  int node = -1;
  ExchangeKind kind = ExchangeKind::parts;
  int bucket = -1;  ///< index into Plan::buckets, for gradients and weights
  std::vector<Place> in, out;
  std::vector<TensorDesc> in_desc, out_desc;
};

/// A slice of the gradient arena that is summed as one, and the slice of the parameter arena that
/// is updated then.
struct PlanBucket {
  size_t offset = 0, bytes = 0;
  int exchange = -1;  ///< index into Plan::exchanges: the sum of the gradients
  int first_use = 0;  ///< the first band that reads one of its parameters, packed or not
};

/// A part of the update that the team of threads does at once, one time per training step: when the
/// stages and exchanges that it needs are over, and at the latest before the first band of the next
/// step that reads its results.
struct PlanStage {
  std::vector<int> after;           ///< indices into Plan::stages, all smaller than its own
  std::vector<int> waits, starts;   ///< indices into Plan::exchanges
  std::vector<int> updates, packs;  ///< indices into Plan::updates or Plan::packs
  int bucket = -1;    ///< the bucket whose weights it changes, within the range that the bucket's
                      ///< exchange gives; -1: it works on the results of all buckets
  int first_use = 0;  ///< the first band that reads its results; the number of bands: none does
};

/// How much memory a rank may hold while it trains, and how many copies it has of the plan's arenas
/// (planned_memory.h).
struct MemoryLimit {
  size_t bytes = 0;    ///< 0: no limit
  size_t besides = 0;  ///< bytes that are not part of the plan
  size_t copies = 0;   ///< bytes for a copy of the state, of which a checkpoint is written
  int arenas = 1;      ///< arenas of results: passes under way at a time
  int gradients = 1;   ///< arenas of gradients
  int sums = 0;        ///< arenas of sums over ranks, as large as one of gradients
  int shown = 0;       ///< arenas of weights that are evaluated instead of others
  int replicas = 1;    ///< copies of weights, statistics and optimizer state
  int statistics = 0;  ///< on a device: more arenas of statistics, of replicas that share weights
  int met = 0;         ///< arenas like the trained parameters', for replicas that meet, or servers
};

struct PlanOptions {
  int threads = 1;
  std::string layout = "auto";  ///< "auto" (measured), or a layout name: "b16c", "last", "plain"
  size_t tile_bytes = 0;        ///< working set of one tile; 0 = the backend's advice
  bool measure = true;    ///< measure kernels where several accept; otherwise, and on a device,
                          ///< the first is taken
  double most_error = 2;  ///< no kernels with a larger error (KernelCandidate::error)
  Choices choices{};      ///< recorded choices to follow
  const Variables* variables =
      nullptr;           ///< lay out parameters as another plan does (evaluation beside training)
  MemoryLimit memory{};  ///< if a plan needs more, it computes results again (recompute.h)
};

/// How much a plan computes again.
struct Recomputed {
  int results = 0;         ///< values that are not kept
  double flop = 0;         ///< per pass, in addition to Graph::flop()
  size_t arena_bytes = 0;  ///< arena for results if nothing were computed again
};

struct Plan {
  graph::Graph graph;
  PlanOptions options;
  std::vector<graph::OpPtr> pack_ops;  ///< owns the ops of `packs`
  std::vector<Step> packs;             ///< weights into kernels' layouts and types; once per update
  std::vector<PlanBand> bands;         ///< forward and backward; run once per local replica
  std::vector<int> begins;             ///< indices into `exchanges`: begun before the first band
  std::vector<int> waits_at_end;       ///< indices into `exchanges`: complete before the run ends
  int turning = 0;  ///< the first band that waits for values that other ranks compute from this
                    ///< rank's results, which for a stage of a pipeline begins the backward pass;
                    ///< the number of bands: none
  std::vector<Step> updates;
  std::vector<PlanStage> stages;  ///< stages of updates and packs, in the order in which they are
                                  ///< waited for, which is the same on all ranks
  std::vector<PlanExchange> exchanges;
  std::vector<PlanBucket> buckets;
  Variables variables;
  std::vector<graph::Value> inputs;  ///< base kFirstInput + i
  graph::PerValue<Place> places;
  graph::PerValue<TensorDesc> descs;  ///< with their final layouts
  size_t arena_bytes = 0, packed_bytes = 0;
  // Per thread:
  size_t tile_scratch_bytes = 0;  ///< values that stay in their band
  size_t workspace_bytes = 0;     ///< for the kernel that needs most
  size_t state_bytes = 0;         ///< accumulators of the band that needs most; reused by each band
  size_t first_state_bytes = 0;   ///< the same for the first thread, which accumulates in outputs
                                  ///< if it can
  Recomputed recomputed;          ///< computed again because of options.memory
  bool on_device = false;         ///< its kernels put work on the streams of a device
  int64_t batch = 0;              ///< samples per run
  std::string layout;             ///< the layout used

  Place place(graph::Value v) const { return places[v]; }
  const TensorDesc& desc(graph::Value v) const { return descs[v]; }
  int base_of_input(size_t input) const { return kFirstInput + static_cast<int>(input); }
  int base_of_sum(size_t bucket) const { return base_of_input(inputs.size() + bucket); }
  /// Returns every band, step, kernel, place and size as text; equal text = same arithmetic in the
  /// same order.
  std::string to_string(bool with_refusals = false) const;
  uint64_t hash() const;  ///< FNV-1a of to_string()
};

/// Samples [first, last) of one thread: the fixed share that makes sums independent of timing. If
/// there are fewer samples than threads, the first threads have one each, because thread 0
/// accumulates in place.
struct Share {
  int64_t first = 0, last = 0;
  int64_t size() const { return last - first; }
};
inline Share share_of(int64_t total, int part, int parts) {
  if (total < parts) return {std::min<int64_t>(part, total), std::min<int64_t>(part + 1, total)};
  return {total * part / parts, total * (part + 1) / parts};
}
/// Returns the number of tiles of a share of `samples`; tile i is share_of(samples, i, tiles).
inline int tiles_of(int64_t samples, int64_t tile) {
  return static_cast<int>((samples + tile - 1) / tile);
}

/// Returns the step's request for a tile of that many samples.
backend::KernelRequest with_samples(const Step& step, int64_t samples);

/// Compiles for one backend. Throws ConfigError (graph not runnable) or DeviceError (no kernel:
/// lists every refusal). With layout "auto" it compiles every layout the backend offers, times them
/// and keeps the fastest; see Choices. A plan that cannot fit options.memory is as small as
/// possible: check with fits_memory() (planned_memory.h).
Plan compile(const graph::Graph& graph, const backend::Backend& backend,
             const PlanOptions& options);

}  // namespace tutti::plan
