#include "tutti/config/config_table.h"

namespace tutti {

void write_optimizer_rows(ConfigTableWriter& t) {
  using S = OptimizerSection;
  constexpr auto s = &RunConfig::optimizer;
  t.section("optimizer", s, "The update of the weights.");
  t.key(s, &S::name, "name", "Update rule");
  t.key(s, &S::lr, "lr", "Learning rate; the highest one that the schedule reaches").at_least(0);
  t.key(s, &S::momentum, "momentum", "Momentum")
      .between(0, 1)
      .only_with("optimizer.name", {"sgd", "lars"});
  t.key(s, &S::nesterov, "nesterov", "Nesterov's form of momentum")
      .only_with("optimizer.name", {"sgd"});
  t.key(s, &S::weight_decay, "weight_decay",
        "Added to the gradient as weight_decay * w; decoupled in adamw; added to the direction "
        "in lamb")
      .at_least(0);
  t.key(s, &S::exclude, "exclude",
        "Parameter groups without weight decay and without the trust ratio of lars and lamb")
      .one_of({"bias", "norm"})
      .only_with("optimizer.weight_decay")
      .only_with("optimizer.decay")
      .only_with("optimizer.name", {"lars", "lamb"});
  t.key(
      s, &S::decay, "decay",
      "Weight decay of some parameters, lines as \"fc*.weight: 0.01\": a shell pattern over names "
      "and the value that they have instead of optimizer.weight_decay. The first line that fits "
      "counts; optimizer.exclude goes before it");
  t.key(s, &S::rates, "rates",
        "Factors on the learning rate of some parameters, lines as \"fc.*: 10\", likewise");
  t.key(s, &S::clip_norm, "clip_norm",
        "Largest norm of the gradient, over all trained parameters: a longer one is made as short, "
        "times clip_norm / (norm + 1e-6) as in PyTorch's clip_grad_norm_. 0: none")
      .at_least(0);
  t.key(s, &S::clip_value, "clip_value",
        "Largest size of an element of the gradient: each is brought into [-clip_value, "
        "clip_value], after clip_norm and before weight decay. 0: none")
      .at_least(0)
      .only_with("optimizer.name", {"sgd", "adam", "adamw", "rmsprop"});
  t.key(s, &S::ema, "ema",
        "Evaluate and keep a moving average of the weights: after each update it goes 1 - ema of "
        "the way towards them, 0.999 for example. 0: none")
      .between(0, 0.9999999);
  t.key(s, &S::ema_from, "ema_from", "First steps in which the average just is the weights")
      .at_least(0)
      .only_with("optimizer.ema");
  t.key(s, &S::beta1, "beta1", "Decay of the first moment")
      .between(0, 1)
      .only_with("optimizer.name", {"adam", "adamw", "lamb"});
  t.key(s, &S::beta2, "beta2", "Decay of the second moment")
      .between(0, 1)
      .only_with("optimizer.name", {"adam", "adamw", "lamb"});
  t.key(s, &S::rho, "rho", "Decay of the mean of squares")
      .between(0, 1)
      .only_with("optimizer.name", {"rmsprop"});
  t.key(s, &S::eps, "eps", "Added to the denominator; above 0 but with lars")
      .at_least(0)
      .only_with("optimizer.name", {"lars", "adam", "adamw", "lamb", "rmsprop"});
  t.key(s, &S::trust, "trust", "Trust coefficient")
      .at_least(0)
      .only_with("optimizer.name", {"lars"});
  t.key(s, &S::tables, "tables",
        "Update rule of tables, of which a step changes the rows that it has read, at the same "
        "learning rate: plain gradient descent, Adagrad, or Adagrad with one sum of squares for "
        "each row. Momentum, weight decay, clipping and averages are of all other parameters")
      .only_with("data.dataset", {"clicks"});
  t.key(s, &S::tables_eps, "tables_eps", "Added to the denominator of the tables' Adagrad")
      .at_least(0)
      .only_with("optimizer.tables", {"adagrad", "rowwise_adagrad"});
}

void write_schedule_rows(ConfigTableWriter& t) {
  using S = ScheduleSection;
  constexpr auto s = &RunConfig::schedule;
  t.section("schedule", s, "The learning rate over the run.");
  t.key(
      s, &S::name, "name",
      "Shape: constant; steps, times gamma at each milestone, or as schedule.factors say; cosine; "
      "one_cycle, up to optimizer.lr and down again; polynomial, down as (1 - progress) ^ power; "
      "plateau, times gamma after each schedule.patience evaluations without a better metric; "
      "inverse_sqrt, as 1 / sqrt(step) from the end of the warm-up on");
  t.key(s, &S::warmup_epochs, "warmup_epochs",
        "Linear warm-up, in epochs; give this or schedule.warmup_steps")
      .at_least(0);
  t.key(s, &S::warmup_steps, "warmup_steps", "Linear warm-up, in steps").at_least(0);
  t.key(s, &S::warmup_factor, "warmup_factor", "Rate at the start of the warm-up / optimizer.lr")
      .between(0, 1)
      .only_with("schedule.warmup_epochs")
      .only_with("schedule.warmup_steps");
  t.key(s, &S::warmup_rise, "warmup_rise",
        "When the rate rises: at each step, from below warmup_factor at the first; or at each "
        "epoch, from warmup_factor in the first, as CosmoFlow's reference does")
      .only_with("schedule.warmup_epochs")
      .only_with("schedule.warmup_steps");
  t.key(s, &S::milestones, "milestones", "When the rate drops")
      .at_least(1)
      .only_with("schedule.name", {"steps"});
  t.key(s, &S::milestone_unit, "milestone_unit", "What schedule.milestones counts")
      .only_with("schedule.name", {"steps"});
  t.key(s, &S::gamma, "gamma", "Factor at each milestone or fall")
      .between(0, 1)
      .only_with("schedule.name", {"steps"}, {"schedule.factors"})
      .only_with("schedule.name", {"plateau"});
  t.key(s, &S::factors, "factors",
        "Rate from each milestone on / optimizer.lr, one a milestone, instead of gamma")
      .at_least(0)
      .only_with("schedule.name", {"steps"});
  t.key(s, &S::patience, "patience",
        "Evaluations without a better metric after which the rate falls")
      .at_least(1)
      .only_with("schedule.name", {"plateau"});
  t.key(s, &S::power, "power", "Exponent of the way down; 1: a straight line")
      .at_least(0)
      .only_with("schedule.name", {"polynomial"});
  t.key(s, &S::annealing, "annealing", "Form of the rise and the fall")
      .only_with("schedule.name", {"one_cycle"});
  t.key(s, &S::peak_at, "peak_at", "Fraction of the run at which optimizer.lr is reached")
      .between(0, 1)
      .only_with("schedule.name", {"one_cycle"});
  t.key(s, &S::initial_factor, "initial_factor", "First rate / optimizer.lr")
      .between(0, 1)
      .only_with("schedule.name", {"one_cycle"});
  t.key(s, &S::final_factor, "final_factor", "Last rate / optimizer.lr, or the lowest of plateau")
      .between(0, 1)
      .only_with("schedule.name", {"cosine", "one_cycle", "polynomial", "plateau"});
  t.key(s, &S::scale_with_batch, "scale_with_batch",
        "Multiply the rate by (global batch / base_batch), or by its square root");
  t.key(s, &S::base_batch, "base_batch", "Batch for which optimizer.lr is stated")
      .at_least(1)
      .only_with("schedule.scale_with_batch");
}

void write_loss_rows(ConfigTableWriter& t) {
  using S = LossSection;
  constexpr auto s = &RunConfig::loss;
  t.section("loss", s,
            "What training makes small: softmax cross-entropy of class numbers, or a loss of each "
            "number.");
  t.key(s, &S::label_smoothing, "label_smoothing",
        "Probability spread evenly over the classes, or the vocabulary")
      .between(0, 0.999)
      .only_with("model.task", {"classify", "segment", "language"});
  t.key(s, &S::class_weights, "class_weights", "Weight of each class. Empty: all alike")
      .at_least(0)
      .only_with("model.task", {"classify", "segment"});
  t.key(s, &S::mean_over, "mean_over",
        "Of weighted classes, whether the sum of the losses is divided by the sum of their "
        "weights, as PyTorch does, or by the number of labels, as DeepCAM does")
      .only_with("loss.class_weights");
  t.key(s, &S::pointwise, "pointwise", "Loss of each number").only_with("model.task", {"regress"});
  t.key(s, &S::delta, "delta", "Where huber becomes linear")
      .at_least(1e-6)
      .only_with("loss.pointwise", {"huber"});
}

void write_plan_rows(ConfigTableWriter& t) {
  using S = PlanSection;
  constexpr auto s = &RunConfig::plan;
  t.section("plan", s,
            "How the network is compiled. Kernels and layouts chosen by measurement may differ "
            "from machine to machine, and with them the last "
            "bits of the weights; checkpoints keep the choices.");
  t.key(s, &S::layout, "layout",
        "Layout of activations: auto is the fastest measured; b16c, last and plain are for "
        "experiments");
  t.key(s, &S::slabs, "slabs",
        "Slabs of rows that a sample is cut into where a layer's rows allow it, so that threads "
        "share it and its tiles fit the cache. 0: as many as large samples ask for; 1: none")
      .between(0, 65536);
  t.key(s, &S::memory, "memory",
        "What a rank may hold while it trains: weights, gradients, optimizer state, activations, "
        "the threads' scratch and the evaluation's activations; not the program, nor batches and "
        "messages under way. Where a plan needs more, it keeps fewer activations and computes "
        "them again in the backward pass, to the same bits with the same layout and kernels; "
        "where that is not enough, an error names the least. 0: no limit")
      .unit("bytes")
      .at_least(0)
      .may_change();
  t.key(s, &S::measure, "measure",
        "Choose among kernels and layouts by running them; false: the first that accepts, the "
        "same in every run and a faster start")
      .may_change();
  t.key(s, &S::bf16_error, "bf16_error",
        "Take kernels for bf16 whose results are at most so many times as far from the exact ones "
        "as those of the definition. Convolutions by Winograd are up to 1.8 times as fast: of two "
        "dimensions 1.8 times as far, of three 2.3. 1: none of them, but for those that compute in "
        "fp32 (`widened`)")
      .at_least(1)
      .only_with("run.precision", {"bf16"});
  t.key(s, &S::tuning, "tuning",
        "File that keeps what was measured on this machine, so that the next start neither "
        "measures nor chooses otherwise. auto: in the user's cache folder; off: none")
      .path(PathKind::written)
      .may_change()
      .may_differ()
      .only_with("plan.measure", {"true"}, {"plan.layout", "plan.choices_from"});
  t.key(s, &S::choices_from, "choices_from",
        "A checkpoint, or a folder of them, of which the newest counts: take the kernels and "
        "layouts that the run chose which wrote it, and so get the same bits again. Empty: "
        "choose anew")
      .path(PathKind::read)
      .may_change();
}

void write_parallel_rows(ConfigTableWriter& t) {
  using S = ParallelSection;
  constexpr auto s = &RunConfig::parallel;
  t.section("parallel", s, "What ranks share besides gradients.");
  t.key(s, &S::spatial, "spatial",
        "Ranks that share each sample, along its first dimension, or along the first two: [2], "
        "[2, 2]. Sums are then taken in another order than on one rank. Empty: a rank has whole "
        "samples")
      .between(1, 4096);
  t.key(s, &S::batchnorm_group_size, "batchnorm_group_size",
        "Replicas, each on a rank of its own, whose batch norms see their batches as one")
      .between(1, 65536);
  t.key(s, &S::pipeline, "pipeline",
        "Stages: ranks that have the layers of one replica, some each, and the memory of these "
        "alone. They compute the batches of batch.accumulate one after another, and are idle for "
        "(S - 1) / (M + S - 1) of a step of M batches in S stages. 1: a rank has all layers")
      .between(1, 1024)
      .may_change();
  t.key(s, &S::order, "order",
        "1f1b: a stage goes back as soon as it can, and keeps the activations of as many batches "
        "as there are stages from it on; gpipe: all batches of a step go forward first")
      .may_change()
      .only_with("parallel.pipeline");
  t.key(s, &S::tensor, "tensor",
        "Ranks that share the layers of a replica (tensor parallelism): each holds some channels "
        "of dense layers, some heads of attention and some tokens of the vocabulary, with their "
        "gradients and optimizer state. Sums are then taken in another order than on one rank. 1: "
        "a rank has whole layers")
      .between(1, 4096);
  t.key(s, &S::sequence, "sequence",
        "Of ranks that share layers (parallel.tensor), each computes norms, dropouts and residual "
        "sums between these layers for its own positions of a sequence alone, and keeps no more "
        "of them (sequence parallelism)");
}

}  // namespace tutti
