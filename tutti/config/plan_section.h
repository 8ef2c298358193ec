#pragma once
// The keys of [plan] and [parallel]: values, and the rows that describe them (config_table.h).

#include <cstdint>
#include <string>
#include <vector>

#include "tutti/config/config_words.h"

namespace tutti::config {

struct PlanSection {
  ActivationLayout layout = ActivationLayout::automatic;
  int64_t slabs = 0;       ///< 0: chosen
  int64_t tile_bytes = 0;  ///< 0: the size of a core's own cache
  int64_t memory = 0;      ///< bytes a rank; 0: no limit
  bool host_kernels = false;
  bool measure = true;
  double bf16_error = 2;
  std::string tuning = "auto";  ///< "auto": a file in the user's cache folder; "off"; else its path
  std::string choices_from{};   ///< a checkpoint or a folder of them; empty: this run makes its own

  template <class Keys>
  static void keys(Keys& t) {
    using S = PlanSection;

    t.key(&S::layout, "layout",
          "Layout of activations: auto is the fastest measured; b16c, last and plain are for "
          "experiments");
    t.key(&S::slabs, "slabs",
          "Slabs of rows that a sample is cut into where a layer's rows allow it, so that threads "
          "share it and its tiles fit the cache. 0: as many as large samples ask for; 1: none")
        .between(0, 65536);
    t.key(&S::tile_bytes, "tile_bytes",
          "Working set of a tile: the samples that a thread takes through a group of layers at a "
          "time, at least one. Sums over the batch are taken in this order. 0: the size of the "
          "core's own cache, or of a group's weights")
        .unit("bytes")
        .at_least(0)
        .only_with("run.device", {"cpu"});
    t.key(
         &S::host_kernels, "host_kernels",
         "Let the processor compute what the device has no kernel for, with copies to it and back. "
         "false: such a run is refused, but not on the emulated device. true there: the "
         "processor's kernels compute all, to the bits of the CPU with one thread and whole tiles, "
         "where both have the same layout and kernels: plan.layout = last, plan.slabs = 1, "
         "plan.measure = false")
        .may_change()
        .only_with("run.device", {"cuda", "emulated"});
    t.key(&S::memory, "memory",
          "What a rank may hold while it trains: weights, gradients, optimizer state, activations, "
          "the threads' scratch and the evaluation's activations; not the program, nor batches and "
          "messages under way. Where a plan needs more, it keeps fewer activations and computes "
          "them again in the backward pass, to the same bits with the same layout and kernels; "
          "where that is not enough, an error names the least. 0: no limit")
        .unit("bytes")
        .at_least(0)
        .may_change();
    t.key(
         &S::measure, "measure",
         "Choose among kernels and layouts by running them; false, and on a device: the first that "
         "accepts, the same in every run and a faster start")
        .may_change();
    t.key(
         &S::bf16_error, "bf16_error",
         "Take kernels for bf16 whose results are at most so many times as far from the exact ones "
         "as those of the definition. Convolutions by Winograd are up to 1.8 times as fast: of two "
         "dimensions 1.8 times as far, of three 2.3. 1: none of them, but for those that compute "
         "in fp32 (`widened`)")
        .at_least(1)
        .only_with("run.precision", {"bf16"});
    t.key(&S::tuning, "tuning",
          "File that keeps what was measured on this machine, so that the next start neither "
          "measures nor chooses otherwise. auto: in the user's cache folder; off: none")
        .path(PathKind::written)
        .may_change()
        .may_differ()
        .only_with("plan.measure", {"true"}, {"plan.layout", "plan.choices_from", "run.device"});
    t.key(&S::choices_from, "choices_from",
          "A checkpoint, or a folder of them, of which the newest counts: take the kernels and "
          "layouts that the run chose which wrote it, and so get the same bits again. Empty: "
          "choose anew")
        .path(PathKind::read)
        .may_change();
  }
};

struct ParallelSection {
  std::vector<int64_t> spatial{};    ///< parts of a sample along each dimension; empty: whole ones
  int64_t batchnorm_group_size = 1;  ///< replicas
  int64_t pipeline = 1;              ///< stages
  split::PipelineOrder order = split::PipelineOrder::one_f_one_b;
  int64_t tensor = 1;     ///< ranks that share each replica's layers
  bool sequence = false;  ///< between these layers, those ranks share the sequences' positions

  template <class Keys>
  static void keys(Keys& t) {
    using S = ParallelSection;

    t.key(&S::spatial, "spatial",
          "Ranks that share each sample, along its first dimension, or along the first two: [2], "
          "[2, 2]. Sums are then taken in another order than on one rank. Empty: a rank has whole "
          "samples")
        .between(1, 4096);
    t.key(&S::batchnorm_group_size, "batchnorm_group_size",
          "Replicas, each on a rank of its own, whose batch norms see their batches as one")
        .between(1, 65536);
    t.key(&S::pipeline, "pipeline",
          "Stages: ranks that have the layers of one replica, some each, and the memory of these "
          "alone. They compute the batches of batch.accumulate one after another, and are idle for "
          "(S - 1) / (M + S - 1) of a step of M batches in S stages. 1: a rank has all layers")
        .between(1, 1024)
        .may_change();
    t.key(&S::order, "order",
          "1f1b: a stage goes back as soon as it can, and keeps the activations of as many batches "
          "as there are stages from it on; gpipe: all batches of a step go forward first")
        .may_change()
        .only_with("parallel.pipeline");
    t.key(
         &S::tensor, "tensor",
         "Ranks that share the layers of a replica (tensor parallelism): each holds some channels "
         "of dense layers, some heads of attention and some tokens of the vocabulary, with their "
         "gradients and optimizer state. Sums are then taken in another order than on one rank. 1: "
         "a rank has whole layers")
        .between(1, 4096);
    t.key(
        &S::sequence, "sequence",
        "Of ranks that share layers (parallel.tensor), each computes norms, dropouts and residual "
        "sums between these layers for its own positions of a sequence alone, and keeps no more "
        "of them (sequence parallelism)");
  }
};

}  // namespace tutti::config
