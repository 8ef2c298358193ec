#include "tutti/train/config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <type_traits>

#include "tutti/base/error.h"
#include "tutti/comm/algorithm/algorithm.h"
#include "tutti/comm/shaped_channel.h"
#include "tutti/parallel/compression_policy.h"

namespace tutti {
namespace {

template <class T>
constexpr ConfigType type_of() {
  if constexpr (std::is_same_v<T, bool>)
    return ConfigType::boolean;
  else if constexpr (std::is_same_v<T, int64_t>)
    return ConfigType::integer;
  else if constexpr (std::is_same_v<T, double>)
    return ConfigType::real;
  else if constexpr (std::is_same_v<T, std::string>)
    return ConfigType::text;
  else if constexpr (std::is_enum_v<T>)
    return ConfigType::choice;
  else if constexpr (std::is_same_v<T, std::vector<int64_t>>)
    return ConfigType::integers;
  else if constexpr (std::is_same_v<T, std::vector<double>>)
    return ConfigType::reals;
  else
    return ConfigType::texts;
}

/// An integer stands for a number wherever a number is wanted; nothing else converts.
template <class T>
T convert(const ConfigValue& value) {
  if (const T* same = std::get_if<T>(&value)) return *same;
  if constexpr (std::is_same_v<T, double>) {
    if (const auto* integer = std::get_if<int64_t>(&value)) return static_cast<double>(*integer);
  } else if constexpr (std::is_same_v<T, std::vector<double>>) {
    if (const auto* integers = std::get_if<std::vector<int64_t>>(&value))
      return {integers->begin(), integers->end()};
  }
  if constexpr (!std::is_same_v<T, std::vector<int64_t>>)  // an empty list has no element to tell
                                                           // its type
    if (const auto* integers = std::get_if<std::vector<int64_t>>(&value);
        integers && integers->empty())
      if constexpr (type_of<T>() >= ConfigType::integers) return {};
  throw ConfigError(fmt::format("must be {}, is {}", to_string(type_of<T>()), to_toml(value)));
}

void check_range(const ConfigKey& row, const ConfigValue& value) {
  const auto check = [&](double x) {
    if (std::isinf(x))
      throw ConfigError(fmt::format("must be a finite number, is {}", to_toml(value)));
    if (std::isnan(x) || (row.least && x < *row.least) || (row.greatest && x > *row.greatest)) {
      const std::string limits = row.least && row.greatest
                                     ? fmt::format("between {} and {}", *row.least, *row.greatest)
                                 : row.least    ? fmt::format("at least {}", *row.least)
                                 : row.greatest ? fmt::format("at most {}", *row.greatest)
                                                : std::string("a number");
      throw ConfigError(fmt::format("must be {}, is {}", limits, to_toml(value)));
    }
  };
  if (const auto* i = std::get_if<int64_t>(&value)) check(static_cast<double>(*i));
  if (const auto* x = std::get_if<double>(&value)) check(*x);
  if (const auto* list = std::get_if<std::vector<int64_t>>(&value))
    std::for_each(list->begin(), list->end(), check);
  if (const auto* list = std::get_if<std::vector<double>>(&value))
    std::for_each(list->begin(), list->end(), check);
}

void check_choice(const ConfigKey& row, const ConfigValue& value) {
  const auto check = [&](const std::string& word) {
    if (!row.choices.empty() &&
        std::find(row.choices.begin(), row.choices.end(), word) == row.choices.end())
      throw ConfigError(
          fmt::format("must be one of {}, is \"{}\"", fmt::join(row.choices, ", "), word));
  };
  if (const auto* word = std::get_if<std::string>(&value)) check(*word);
  if (const auto* list = std::get_if<std::vector<std::string>>(&value))
    std::for_each(list->begin(), list->end(), check);
}

/// Writes rows; each method refines the row that key() began.
class TableWriter {
 public:
  template <class S>
  TableWriter& section(std::string name, S RunConfig::*, std::string help) {
    groups.push_back({std::move(name), std::move(help)});
    return *this;
  }

  template <class S, class T>
  TableWriter& key(S RunConfig::*section, T S::*member, std::string_view name, std::string help) {
    ConfigKey row{.name = fmt::format("{}.{}", groups.back().name, name),
                  .type = type_of<T>(),
                  .help = std::move(help),
                  .unit = {},
                  .least = {},
                  .greatest = {},
                  .choices = {},
                  .path = false,
                  .on_resume = OnResume::fixed,
                  .among_ranks = AmongRanks::alike,
                  .or_count = false,
                  .get = {},
                  .set = {}};
    if constexpr (std::is_enum_v<T>) {
      for (std::string_view word : words(T{})) row.choices.emplace_back(word);
      row.get = [=](const RunConfig& c) -> ConfigValue {
        return std::string(to_string(c.*section.*member));
      };
      row.set = [=](RunConfig& c, const ConfigValue& value) {
        const auto list = words(T{});
        c.*section.*member = static_cast<T>(
            std::find(list.begin(), list.end(), convert<std::string>(value)) - list.begin());
      };
    } else {
      row.get = [=](const RunConfig& c) -> ConfigValue { return c.*section.*member; };
      row.set = [=](RunConfig& c, const ConfigValue& value) {
        c.*section.*member = convert<T>(value);
      };
    }
    rows.push_back(std::move(row));
    return *this;
  }

  TableWriter& at_least(double limit) { return rows.back().least = limit, *this; }
  TableWriter& between(double least, double greatest) {
    return rows.back().greatest = greatest, at_least(least);
  }
  TableWriter& or_count(int64_t greatest) {
    ConfigKey& row = between(0, static_cast<double>(greatest)).rows.back();
    row.or_count = true;
    row.set = [store = row.set, word = std::get<std::string>(row.get(RunConfig{})), greatest](
                  RunConfig& config, const ConfigValue& value) {
      if (const auto* count = std::get_if<int64_t>(&value))
        return store(config, std::to_string(*count));
      store(config, value);
      const std::string& text = std::get<std::string>(value);
      int64_t count = -1;
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
      const bool number = error == std::errc() && end == text.data() + text.size() && count >= 0 &&
                          count <= greatest;
      if (text != word && !number)
        throw ConfigError(
            fmt::format("must be \"{}\" or between 0 and {}, is \"{}\"", word, greatest, text));
    };
    return *this;
  }
  TableWriter& may_change() { return rows.back().on_resume = OnResume::may_change, *this; }
  TableWriter& may_differ() { return rows.back().among_ranks = AmongRanks::may_differ, *this; }
  TableWriter& path() { return rows.back().path = true, *this; }
  TableWriter& unit(std::string text) { return rows.back().unit = std::move(text), *this; }
  TableWriter& one_of(std::vector<std::string> words) {
    return rows.back().choices = std::move(words), *this;
  }

  std::vector<ConfigKey> rows;
  std::vector<ConfigGroup> groups;
};

TableWriter write_table() {
  TableWriter t;
  {
    using S = RunSection;
    constexpr auto s = &RunConfig::run;
    t.section("run", s, "How long, where to, with what.");
    t.key(s, &S::seed, "seed", "Seed of weights, data order and augmentation").at_least(0);
    t.key(s, &S::output_dir, "output_dir",
          "Folder of this run's record, resolved configuration, logs and checkpoints; it holds one "
          "run. Empty: the next of runs/0001, runs/0002, ..., and runs/latest leads to it")
        .path()
        .may_change();
    t.key(s, &S::epochs, "epochs",
          "Passes over the training set; also the length of the schedule. 0: run.max_steps alone")
        .at_least(0)
        .may_change();
    t.key(s, &S::max_steps, "max_steps",
          "Stop after this many steps in all; it shortens the run, not the schedule, unless "
          "run.epochs is 0. 0: no limit")
        .at_least(0)
        .may_change();
    t.key(s, &S::target, "target",
          "Test accuracy to reach, as a fraction; the run ends there, or with exit code 3. 0: none")
        .between(0, 1)
        .may_change();
    t.key(s, &S::eval_every, "eval_every",
          "Epochs between evaluations on the test set. 0: at the end only")
        .at_least(0)
        .may_change();
    t.key(s, &S::log_every, "log_every", "Steps between lines of the log and of the record")
        .at_least(1)
        .may_change();
    t.key(s, &S::precision, "precision",
          "Compute and storage type; bf16 keeps fp32 master weights, sums and statistics");
    t.key(s, &S::threads, "threads",
          "Compute threads of a rank. 0: OMP_NUM_THREADS, else the node's cores / its ranks")
        .between(0, 4096)
        .may_change();
    t.key(s, &S::replicas, "replicas",
          "Logical data-parallel workers; the result depends on them, not on the ranks. 0: one per "
          "rank, and in a resumed run as many as before")
        .between(0, 1 << 24);
    t.key(s, &S::log_level, "log_level", "What the log shows").may_change().may_differ();
    t.key(s, &S::profile, "profile",
          "Also write a trace of every step for chrome://tracing or Perfetto")
        .may_change();
  }
  {
    using S = DataSection;
    constexpr auto s = &RunConfig::data;
    t.section("data", s, "The data set, its augmentation and its readers.");
    t.key(s, &S::dataset, "dataset", "Data set, see `tutti data list`")
        .one_of({"cifar10", "mnist", "fashion-mnist", "lattices"});
    t.key(s, &S::dir, "dir",
          "Folder with the data set's files. Empty: lattices are generated in memory")
        .path()
        .may_change()
        .may_differ();
    t.key(s, &S::pad, "pad", "Pixels of zeros around each training image before the crop")
        .between(0, 64);
    t.key(s, &S::crop, "crop",
          "Cut a random window of the original size out of the padded training image");
    t.key(s, &S::flip, "flip", "Mirror training images left-right with probability 1/2");
    t.key(s, &S::mean, "mean",
          "Per channel, subtracted from pixels scaled to [0, 1]. Empty: the data set's own");
    t.key(s, &S::std, "std",
          "Per channel, divides after the subtraction. Empty: the data set's own")
        .at_least(1e-6);
    t.key(s, &S::classes, "classes",
          "How many classes the labels name, from 0 up; a label beyond them is an error before the "
          "first step. MNIST's format may hold up to 256. 0: the data set's own number")
        .between(0, 65536);
    t.key(s, &S::readers, "readers", "Threads that read and augment").between(1, 256).may_change();
    t.key(s, &S::prefetch, "prefetch", "Batches kept ready").between(1, 64).may_change();
    t.key(s, &S::generate_train, "generate_train", "Training images to generate (lattices)")
        .between(1, 4294967295);
    t.key(s, &S::generate_test, "generate_test", "Test images to generate (lattices)")
        .between(1, 4294967295);
    t.key(s, &S::generate_seed, "generate_seed", "Seed of the generator (lattices)").at_least(0);
  }
  {
    using S = ModelSection;
    constexpr auto s = &RunConfig::model;
    t.section("model", s, "The network.");
    t.key(s, &S::name, "name", "Network, see `tutti model list`");
    t.key(s, &S::shortcut, "shortcut",
          "Residual shortcut where the shape changes: A pads with zeros, B is a 1x1 convolution; "
          "auto: the model's own (A for CIFAR's, B for ImageNet's)");
    t.key(s, &S::width, "width", "Channels of the first stage. 0: the model's own")
        .between(0, 4096);
    t.key(s, &S::classes, "classes",
          "Outputs of the network, at least one for each class. 0: as many as the data set has "
          "classes")
        .between(0, 1 << 24);
    t.key(s, &S::hidden, "hidden", "Sizes of the hidden layers (mlp). Empty: the model's own")
        .between(1, 1 << 24);
  }
  {
    using S = BatchSection;
    constexpr auto s = &RunConfig::batch;
    t.section("batch", s, "Samples per optimiser step. Give one; with neither, global is 128.");
    t.key(s, &S::local, "local", "Samples per replica. 0: batch.global / replicas").at_least(0);
    t.key(s, &S::global, "global", "Samples over all replicas. 0: batch.local x replicas")
        .at_least(0);
  }
  {
    using S = OptimizerSection;
    constexpr auto s = &RunConfig::optimizer;
    t.section("optimizer", s, "The update of the weights.");
    t.key(s, &S::name, "name", "Update rule");
    t.key(s, &S::lr, "lr", "Learning rate; the highest one that the schedule reaches").at_least(0);
    t.key(s, &S::momentum, "momentum", "Momentum (sgd, lars)").between(0, 1);
    t.key(s, &S::nesterov, "nesterov", "Nesterov's form of momentum (sgd)");
    t.key(s, &S::weight_decay, "weight_decay",
          "Added to the gradient as weight_decay * w; decoupled in adamw; added to the direction "
          "in lamb")
        .at_least(0);
    t.key(s, &S::exclude, "exclude",
          "Parameter groups without weight decay and without the trust ratio of lars and lamb")
        .one_of({"bias", "norm"});
    t.key(s, &S::beta1, "beta1", "Decay of the first moment (adam, adamw, lamb)").between(0, 1);
    t.key(s, &S::beta2, "beta2", "Decay of the second moment (adam, adamw, lamb)").between(0, 1);
    t.key(s, &S::eps, "eps", "Added to the denominator (adam, adamw, lamb: above 0; lars)")
        .at_least(0);
    t.key(s, &S::trust, "trust", "Trust coefficient (lars)").at_least(0);
  }
  {
    using S = ScheduleSection;
    constexpr auto s = &RunConfig::schedule;
    t.section("schedule", s, "The learning rate over the run.");
    t.key(s, &S::name, "name",
          "Shape: constant; steps, times gamma at each milestone; cosine; one_cycle, up to "
          "optimizer.lr and down again");
    t.key(s, &S::warmup_epochs, "warmup_epochs",
          "Linear warm-up, in epochs; give this or schedule.warmup_steps")
        .at_least(0);
    t.key(s, &S::warmup_steps, "warmup_steps", "Linear warm-up, in steps").at_least(0);
    t.key(s, &S::warmup_factor, "warmup_factor", "Rate at the start of the warm-up / optimizer.lr")
        .between(0, 1);
    t.key(s, &S::milestones, "milestones", "When the rate drops (steps)").at_least(1);
    t.key(s, &S::milestone_unit, "milestone_unit", "What schedule.milestones counts");
    t.key(s, &S::gamma, "gamma", "Factor at each milestone (steps)").between(0, 1);
    t.key(s, &S::annealing, "annealing", "Form of the rise and the fall (one_cycle)");
    t.key(s, &S::peak_at, "peak_at",
          "Fraction of the run at which optimizer.lr is reached (one_cycle)")
        .between(0, 1);
    t.key(s, &S::initial_factor, "initial_factor", "First rate / optimizer.lr (one_cycle)")
        .between(0, 1);
    t.key(s, &S::final_factor, "final_factor", "Last rate / optimizer.lr (cosine, one_cycle)")
        .between(0, 1);
    t.key(s, &S::scale_with_batch, "scale_with_batch",
          "Multiply the rate by (global batch / base_batch), or by its square root");
    t.key(s, &S::base_batch, "base_batch", "Batch for which optimizer.lr is stated").at_least(1);
  }
  {
    using S = LossSection;
    constexpr auto s = &RunConfig::loss;
    t.section("loss", s, "Softmax cross-entropy.");
    t.key(s, &S::label_smoothing, "label_smoothing", "Probability spread evenly over the classes")
        .between(0, 0.999);
  }
  {
    using S = PlanSection;
    constexpr auto s = &RunConfig::plan;
    t.section("plan", s,
              "How the network is compiled. Kernels and layouts chosen by measurement may differ "
              "from machine to machine, and with them the last "
              "bits of the weights; checkpoints keep the choices.");
    t.key(s, &S::layout, "layout",
          "Layout of activations: auto is the fastest measured; b16c, last and plain are for "
          "experiments");
    t.key(s, &S::measure, "measure",
          "Choose among kernels and layouts by running them; false: the first that accepts, the "
          "same in every run and a faster start")
        .may_change();
    t.key(s, &S::tuning, "tuning",
          "File that keeps what was measured on this machine, so that the next start neither "
          "measures nor chooses otherwise. auto: in the user's cache folder; off: none")
        .path()
        .may_change()
        .may_differ();
    t.key(s, &S::choices_from, "choices_from",
          "A checkpoint, or a folder of them, of which the newest counts: take the kernels and "
          "layouts that the run chose which wrote it, and so get the same bits again. Empty: "
          "choose anew")
        .path()
        .may_change();
  }
  {
    using S = CheckpointSection;
    constexpr auto s = &RunConfig::checkpoint;
    t.section("checkpoint", s, "What survives the run.");
    t.key(s, &S::every_steps, "every_steps", "Steps between checkpoints. 0: not by steps")
        .at_least(0)
        .may_change();
    t.key(s, &S::every_epochs, "every_epochs", "Epochs between checkpoints. 0: not by epochs")
        .at_least(0)
        .may_change();
    t.key(s, &S::keep, "keep", "How many of the newest to keep. 0: all")
        .between(0, 1 << 24)
        .may_change();
    t.key(s, &S::best, "best",
          "Also write one after each evaluation that is better than all before it, and keep the "
          "last of these as best beside the others")
        .may_change();
    t.key(s, &S::dir, "dir", "Their folder. Empty: checkpoints in run.output_dir")
        .path()
        .may_change();
    t.key(s, &S::resume, "resume",
          "Continue from \"latest\" (the newest valid one in checkpoint.dir), from a run's folder "
          "or from one checkpoint. Empty: a new run")
        .path()
        .may_change();
  }
  {
    using S = CommSection;
    constexpr auto s = &RunConfig::comm;
    t.section("comm", s, "The exchange between ranks.");
    t.key(s, &S::bucket_bytes, "bucket_bytes",
          "Gradients are exchanged in pieces of about this size; 0: as large as a measurement at "
          "the start says")
        .unit("bytes")
        .at_least(0)
        .may_change();
    t.key(s, &S::priority, "priority",
          "A piece that the next step needs earlier overtakes others. false: first come, first "
          "served")
        .may_change();
    t.key(s, &S::chunk_bytes, "chunk_bytes",
          "Larger pieces run in parts, so that they can be overtaken. 0: whole in shared memory, "
          "512 KiB elsewhere")
        .unit("bytes")
        .at_least(0)
        .may_change();
    t.key(s, &S::reproducible, "reproducible",
          "Sums have the same bits on any number of ranks. false: whatever algorithm is fastest");
    t.key(s, &S::sharded_update, "sharded_update",
          "Each rank updates its share of the weights, and keeps the optimizer's state for it "
          "alone; the same bits. false: every rank updates all")
        .may_change();
    t.key(s, &S::algorithm, "algorithm",
          "How gradients are summed: pairwise, ring, recursive_doubling, vector_halving, "
          "double_tree, two_level, grid. Empty: chosen by size, ranks and nodes")
        .may_change();
    t.key(s, &S::shape, "shape",
          "Slow down the exchange to that of a network, to see one on a single node: "
          "\"10gbit,50us\" is rate and delay of each rank's link. Empty: no")
        .may_change();
    t.key(s, &S::timeout_s, "timeout_s",
          "A wait for another rank that takes longer is reported with the rank's name")
        .unit("s")
        .at_least(0.1)
        .may_change();
    t.key(
         s, &S::on_timeout, "on_timeout",
         "After that report: abort ends the job, continue waits on and reports again each time-out")
        .may_change();
    t.key(s, &S::check, "check",
          "Send a checksum with every message and compare every sum among ranks, to find the rank "
          "or link that changes data; slower")
        .may_change();
    t.key(
         s, &S::progress_threads, "progress_threads",
         "Threads of a rank that move communication forward while it computes, each on a core of "
         "its own. auto: one where the rank "
         "has a core more than run.threads, else none; without one, the rank polls between kernels")
        .or_count(64)
        .may_change();
    t.key(s, &S::nodes, "nodes",
          "Which ranks are on one node and share its memory. auto: those under one running kernel; "
          "hostname: of these, those with the same host name, so that containers or network "
          "namespaces of one machine count as nodes")
        .one_of({"auto", "hostname"})
        .may_change();
    t.key(s, &S::selection, "selection",
          "File that says which algorithm a collective takes, as `tutti bench comm --tune` writes "
          "it. Empty: built-in")
        .path()
        .may_change();
    t.key(s, &S::compression, "compression",
          "How gradients travel between ranks: none, bf16, fp16, int8, onebit, topk:RATIO, "
          "hitopk:RATIO (dense inside a node), powersgd:RANK; what a step leaves out is sent in "
          "later ones. With auto: in front, as in auto:topk:0.01, the run first measures whether "
          "this saves time here, and leaves it off if not. Compressed training depends on the "
          "number of ranks");
    t.key(s, &S::compression_min_bytes, "compression_min_bytes",
          "Gradients of smaller parameters, and of those with one dimension, stay dense")
        .unit("bytes")
        .at_least(0);
    t.key(s, &S::compression_warmup_steps, "compression_warmup_steps",
          "Dense steps before the first compressed one")
        .at_least(0);
    t.key(s, &S::compression_ramp_steps, "compression_ramp_steps",
          "Then steps at each of the densities 1/4, 1/16, 1/64, ... above the final one (topk, "
          "hitopk). 0: the final one at once")
        .at_least(0);
    t.key(s, &S::compression_exclude, "compression_exclude",
          "Parameters that stay dense, as patterns over their names: fc.*, *.weight");
  }
  // The limits hold however a value arrives, so they are part of set().
  for (ConfigKey& row : t.rows)
    row.set = [limits = row, store = row.set](RunConfig& config, const ConfigValue& value) {
      RunConfig checked = config;
      store(checked, value);  // the type first: a wrong type is the better message
      check_choice(limits, value);
      check_range(limits, value);
      config = std::move(checked);
    };
  return t;
}

const TableWriter& table() {
  static const TableWriter written = write_table();
  return written;
}

std::string toml_string(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\')
      out += '\\', out += c;
    else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
      out += fmt::format("\\u{:04X}", static_cast<unsigned char>(c));
    else
      out += c;
  }
  return out + '"';
}

std::string real(double x) {
  const std::string text = fmt::format("{}", x);  // the shortest that reads back equal
  return std::isfinite(x) && text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
}

}  // namespace

std::string_view to_string(ConfigType type) {
  constexpr std::array<std::string_view, 8> kText = {
      "true or false", "an integer",         "a number",          "a string",
      "a string",      "a list of integers", "a list of numbers", "a list of strings"};
  return kText[static_cast<size_t>(type)];
}

const std::vector<ConfigKey>& config_keys() { return table().rows; }
const std::vector<ConfigGroup>& config_groups() { return table().groups; }

const ConfigKey* find_config_key(std::string_view name) {
  const auto& rows = config_keys();
  const auto found = std::find_if(rows.begin(), rows.end(),
                                  [&](const ConfigKey& row) { return row.name == name; });
  return found == rows.end() ? nullptr : &*found;
}

std::string to_toml(const ConfigValue& value) {
  const auto list = [](const auto& items, auto&& text) {
    std::vector<std::string> parts;
    for (const auto& item : items) parts.push_back(text(item));
    return fmt::format("[{}]", fmt::join(parts, ", "));
  };
  struct {
    decltype(list)& join;
    std::string operator()(bool b) const { return b ? "true" : "false"; }
    std::string operator()(int64_t i) const { return std::to_string(i); }
    std::string operator()(double x) const { return real(x); }
    std::string operator()(const std::string& text) const { return toml_string(text); }
    std::string operator()(const std::vector<int64_t>& v) const {
      return join(v, [](int64_t i) { return std::to_string(i); });
    }
    std::string operator()(const std::vector<double>& v) const { return join(v, real); }
    std::string operator()(const std::vector<std::string>& v) const { return join(v, toml_string); }
  } const text{list};
  return std::visit(text, value);
}

BatchSizes batch_sizes(const BatchSection& batch, int64_t replicas) {
  CHECK(replicas > 0);
  if (batch.local > 0 && batch.global > 0 && batch.local * replicas != batch.global)
    throw ConfigError(fmt::format(
        "batch.local = {} times {} replicas is {}, but batch.global = {}: give one of the two",
        batch.local, replicas, batch.local * replicas, batch.global));
  if (batch.local > 0) return {batch.local, batch.local * replicas};
  const int64_t global = batch.global > 0 ? batch.global : 128;
  if (global % replicas != 0)
    throw ConfigError(fmt::format(
        "batch.global = {} does not divide by {} replicas: choose a multiple, or give batch.local",
        global, replicas));
  return {global / replicas, global};
}

int64_t replica_count(const RunSection& run, int64_t ranks) {
  if (run.replicas == 0) return ranks;
  if (run.replicas < ranks)
    throw ConfigError(fmt::format(
        "run.replicas = {} is less than the {} ranks: R replicas run on 1 to R ranks; start at "
        "most {} rank(s), or give a new run more replicas",
        run.replicas, ranks, run.replicas));
  return run.replicas;
}

CompressionPolicy compression_policy(const CommSection& comm) {
  CompressionPolicy policy;
  try {
    policy = parse_compression_policy(comm.compression);
  } catch (const ConfigError& error) {
    throw ConfigError(fmt::format("comm.compression: {}", error.what()));
  }
  policy.min_bytes = static_cast<size_t>(comm.compression_min_bytes);
  policy.warmup_steps = comm.compression_warmup_steps;
  policy.ramp_steps = comm.compression_ramp_steps;
  policy.exclude = comm.compression_exclude;
  return policy;
}

void validate(const RunConfig& c) {
  // What has a parser of its own elsewhere, so that a wrong word shows before anything starts.
  const auto check = [](std::string_view key, const std::string& text, auto&& parse) {
    try {
      if (!text.empty()) parse(text);
    } catch (const ConfigError& error) {
      throw ConfigError(fmt::format("{}: {}", key, error.what()));
    }
  };
  check("comm.shape", c.comm.shape, [](const std::string& text) { comm::LinkShape::parse(text); });
  check("comm.algorithm", c.comm.algorithm,
        [](const std::string& text) { comm::algorithm_named(text); });
  const auto require = [](bool good, std::string_view what) {
    if (!good) throw ConfigError(std::string(what));
  };
  require(c.run.epochs > 0 || c.run.max_steps > 0,
          "run.epochs and run.max_steps are both 0: nothing would end the run, give one");
  require(!c.data.crop || c.data.pad > 0,
          "data.crop = true needs data.pad > 0: without padding there is one window only");
  require(c.data.crop || c.data.pad == 0,
          "data.pad > 0 needs data.crop = true: images keep their size");
  require(c.data.mean.empty() == c.data.std.empty() && c.data.mean.size() == c.data.std.size(),
          "data.mean and data.std must have the same number of channels");
  require(c.data.dataset == "lattices" || !c.data.dir.empty(),
          "data.dir is empty: give --data-dir, the folder with the files of data.dataset");
  require(c.schedule.warmup_epochs == 0 || c.schedule.warmup_steps == 0,
          "schedule.warmup_epochs and schedule.warmup_steps: give one of the two");
  require(c.schedule.name != ScheduleKind::steps || !c.schedule.milestones.empty(),
          "schedule.name = \"steps\" needs schedule.milestones");
  require(std::adjacent_find(c.schedule.milestones.begin(), c.schedule.milestones.end(),
                             std::greater_equal<>{}) == c.schedule.milestones.end(),
          "schedule.milestones must rise, without repeats");
  require(
      !c.optimizer.nesterov || (c.optimizer.name == OptimizerKind::sgd && c.optimizer.momentum > 0),
      "optimizer.nesterov = true needs optimizer.name = \"sgd\" and optimizer.momentum > 0");
  const CompressionPolicy compression = compression_policy(c.comm);
  require(c.comm.compression_ramp_steps == 0 || !compression.compression.compresses() ||
              compression.compression.sparse(),
          "comm.compression_ramp_steps raises the share of elements left out: it needs "
          "comm.compression = \"topk:RATIO\" or \"hitopk:RATIO\"");
  require(std::ranges::find(c.comm.compression_exclude, "") == c.comm.compression_exclude.end(),
          "comm.compression_exclude has an empty pattern: it would match nothing");
  require(c.optimizer.beta1 < 1 && c.optimizer.beta2 < 1,
          "optimizer.beta1 and optimizer.beta2 must be below 1");
  require(c.optimizer.eps > 0 || c.optimizer.name == OptimizerKind::sgd ||
              c.optimizer.name == OptimizerKind::lars,
          "optimizer.eps must be above 0 for adam, adamw and lamb: a weight whose gradient has "
          "always been 0 would become 0 / 0");
}

}  // namespace tutti
