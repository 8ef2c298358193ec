#pragma once
// The keys of [run]: values, and the rows that describe them (config_table.h).

#include <cstdint>
#include <string>
#include <vector>

#include "tutti/config/config_words.h"

namespace tutti::config {

struct RunSection {
  int64_t seed = 1;
  std::string output_dir{};  ///< empty: the next free one of runs/0001, runs/0002, ...
  int64_t epochs = 1;        ///< 0: only max_steps ends the run
  int64_t max_steps = 0;     ///< 0: only epochs ends the run
  int64_t threads = 0;       ///< 0: chosen from the cores of this rank (cli/job/launch.h)
  int64_t replicas = 0;      ///< 0: one per rank
  std::string metric{};      ///< empty: the task's first
  double target = 0;         ///< value of the metric that ends the run; 0: none
  int64_t patience = 0;      ///< evaluations; 0: no early stop
  double min_improvement = 0;
  int64_t log_every = 50;
  double eval_every = 1;     ///< epochs; 0: only at the end
  int64_t noise_every = 20;  ///< steps; 0: the gradient's noise scale is not measured
  bool noise_layers = false;
  std::vector<std::string> slow{};  ///< "RANK:FACTOR": ranks that wait in every step
  double slow_sigma = 0;            ///< spread of random waits of all ranks; 0: off
  DeviceKind device = DeviceKind::cpu;
  Precision precision = Precision::fp32;
  log::Level log_level = log::Level::info;
  bool profile = false;

  template <class Keys>
  static void keys(Keys& t) {
    using S = RunSection;

    t.key(&S::seed, "seed", "Seed of weights, data order and augmentation").at_least(0);
    t.key(&S::output_dir, "output_dir",
          "Folder of this run's record, resolved configuration, logs and checkpoints; it holds one "
          "run. Empty: the next of runs/0001, runs/0002, ..., and runs/latest leads to it")
        .path(PathKind::written)
        .no_matter();
    t.key(&S::epochs, "epochs",
          "Passes over the training set; also the length of the schedule. 0: run.max_steps alone")
        .at_least(0)
        .may_change();
    t.key(&S::max_steps, "max_steps",
          "Stop after this many steps in all; it shortens the run, not the schedule, unless "
          "run.epochs is 0. 0: no limit")
        .at_least(0)
        .may_change();
    t.key(&S::metric, "metric",
          "What is to be reached, and decides which weights are the best: accuracy, top5 "
          "(classify); "
          "iou, accuracy (segment); mae (regress), or of zeros and ones f1, accuracy, precision, "
          "recall, auc; perplexity, bits, accuracy (language); loss. Empty: the task's first")
        .may_change();
    t.key(&S::target, "target",
          "Value of the metric on the validation set, or on the test set where there is no "
          "validation "
          "set, as 0.9, mae in the data's unit; the run ends there, or with exit code 3. 0: none")
        .at_least(0)
        .may_change();
    t.key(&S::patience, "patience",
          "The run ends after this many evaluations without a better metric. 0: it does not")
        .at_least(0)
        .may_change();
    t.key(&S::min_improvement, "min_improvement",
          "By how much more than this a metric must be better to count as better")
        .at_least(0)
        .may_change()
        .only_with("run.patience")
        .only_with("schedule.name", {"plateau"});
    t.key(&S::eval_every, "eval_every",
          "Epochs between evaluations on the validation set, or the test set where there is no "
          "validation set. 0: at the end only")
        .at_least(0)
        .may_change();
    t.key(&S::log_every, "log_every", "Steps between lines of the log and of the record")
        .at_least(1)
        .may_change();
    t.key(&S::noise_every, "noise_every",
          "Steps between measurements of the gradient's noise scale, from which the record and "
          "reports have the critical batch; see docs/noise.md. 0: it is not measured")
        .at_least(0)
        .may_change();
    t.key(&S::noise_layers, "noise_layers", "Also of each parameter by itself")
        .may_change()
        .only_with("run.noise_every");
    t.key(&S::slow, "slow",
          "Makes ranks slow, to see what that costs: RANK:FACTOR, or a list of them. Each step "
          "of the rank takes so many times as long as its computation, of the step before")
        .or_one()
        .may_change();
    t.key(&S::slow_sigma, "slow_sigma",
          "Makes all ranks slow by chance: a step takes exp(x) times as long where x, normal with "
          "this standard deviation, is above 0. A function of the seed. 0: off")
        .between(0, 2)
        .may_change();
    t.key(
         &S::device, "device",
         "What computes: the processor; an NVIDIA GPU, the first that CUDA_VISIBLE_DEVICES leaves; "
         "or a GPU that is emulated, slowly, to try what a real one would do. A device has one "
         "rank, whose replicas meet in every step. A checkpoint goes on on any of them")
        .may_change();
    t.key(
        &S::precision, "precision",
        "Compute and storage type; bf16 keeps fp32 master weights, sums and statistics. tf32 is "
        "fp32 whose convolutions and dense layers round factors to 10 bits, on an NVIDIA GPU with "
        "its libraries alone");
    t.key(&S::threads, "threads",
          "Compute threads of a rank. 0: OMP_NUM_THREADS, else the node's cores / its ranks")
        .between(0, 4096)
        .may_change();
    t.key(&S::replicas, "replicas",
          "Logical data-parallel workers; the result depends on them, not on the ranks. 0: one per "
          "rank, and in a resumed run as many as before")
        .between(0, 1 << 24);
    t.key(&S::log_level, "log_level", "What the log shows").no_matter().may_differ();
    t.key(&S::profile, "profile",
          "Also write a trace of every step for chrome://tracing or Perfetto. On a device it "
          "shows when work is handed to it, not when it is done")
        .no_matter();
  }
};

}  // namespace tutti::config
