// Every combination of scheme, codec and split that a configuration accepts: a run that goes on
// from a checkpoint has the bits of one that never stopped, whichever step the checkpoint is of.
// Ranks are threads of this process.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "tutti/backend/cpu/cpu_backend.h"
#include "tutti/base/error.h"
#include "tutti/base/scratch_directory.h"
#include "tutti/comm/transport/inproc/thread_ranks.h"
#include "tutti/keep/rank_file.h"
#include "tutti/train/loop/trainer.h"
#include "tutti/train/settings/server_settings.h"
#include "tutti/train/settings/specs.h"
#include "tutti/train/settings/validation.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kSteps = 6;
constexpr int kRanks = 4;

/// Images of noise, whose class is their number.
class Noise final : public data::Dataset {
 public:
  int64_t size() const override { return 64; }
  const std::vector<data::Field>& fields() const override { return fields_; }
  void read(int64_t index, data::Sample& sample) const override {
    auto* const pixels = static_cast<uint8_t*>(sample.own(0));
    auto bits = static_cast<uint64_t>(index) + 1;
    for (int i = 0; i < 3 * 32 * 32; ++i) {
      bits = bits * 6364136223846793005U + 1442695040888963407U;
      pixels[i] = static_cast<uint8_t>(bits >> 56);
    }
    *static_cast<uint8_t*>(sample.own(1)) = static_cast<uint8_t>(index % 4);
  }

 private:
  std::vector<data::Field> fields_ = {
      {.name = "image", .shape = {3, 32, 32}},
      {.name = "label", .class_names = std::vector<std::string>(4, "class")}};
};

using Settings = std::vector<std::pair<std::string, config::ConfigValue>>;
struct Choice {
  std::string name;
  Settings settings;
};

std::string text(const char* value) { return value; }

const std::vector<Choice>& schemes() {
  const auto scheme = [](const char* value, Settings more = {}) {
    more.emplace_back("sync.scheme", text(value));
    return more;
  };
  static const std::vector<Choice> all{
      {"step", {}},
      {"local", scheme("local:2")},
      {"local_first",
       scheme("local:2", {{"sync.first_steps", int64_t{3}}, {"sync.state", text("average")}})},
      {"local_reset", scheme("local:2", {{"sync.state", text("reset")}})},
      {"fragments", scheme("local:2", {{"sync.fragments", int64_t{2}}})},
      {"slowmo", scheme("local:2", {{"sync.outer", text("momentum")}})},
      {"diloco", scheme("local:2", {{"sync.outer", text("nesterov")}})},
      {"late", scheme("local:2", {{"sync.delay", int64_t{1}}})},
      {"late_diloco",
       scheme("local:2", {{"sync.delay", int64_t{1}}, {"sync.outer", text("nesterov")}})},
      {"never", scheme("local:never")},
      {"easgd", scheme("easgd:2")},
      {"easgd_tree", scheme("easgd:1", {{"sync.tree", int64_t{2}}})},
      {"dpsgd", scheme("dpsgd:1")},
      {"dpsgd_far", scheme("dpsgd:1", {{"sync.graph", text("exponential")}})},
      {"gossip", scheme("gossip:0.6")},
      {"ps_sync", scheme("ps:sync", {{"replay.machine", text("here")}})},
      {"ps_async", scheme("ps:async", {{"replay.machine", text("here")}})},
      {"ps_ssp",
       scheme("ps:ssp:1", {{"replay.machine", text("here")}, {"sync.servers", int64_t{2}}})},
      {"groups", scheme("groups:2", {{"replay.machine", text("here")}})},
      {"dc_asgd", scheme("ps:async", {{"replay.machine", text("here")},
                                      {"sync.delay_compensation", 0.5},
                                      {"sync.stale_rate", 1.0}})},
      {"quorum",
       scheme("ps:sync", {{"replay.machine", text("here")}, {"sync.quorum", int64_t{3}}})},
      {"replay", {{"replay.machine", text("here")}}},
      {"replay_local", scheme("local:2", {{"replay.machine", text("here")}})},
      {"replay_late",
       scheme("local:2", {{"replay.machine", text("here")}, {"sync.delay", int64_t{1}}})},
      {"replay_gossip", scheme("gossip:0.6", {{"replay.machine", text("here")}})},
      {"replay_dpsgd", scheme("dpsgd:1", {{"replay.machine", text("here")}})}};
  return all;
}

const std::vector<Choice>& codecs() {
  static const std::vector<Choice> all = [] {
    std::vector<Choice> list{{"dense", {}}};
    for (const char* name :
         {"bf16", "int8", "onebit", "topk:0.25", "hitopk:0.25", "powersgd:2", "auto:topk:0.25"})
      list.push_back(
          {name, {{"comm.compression", text(name)}, {"comm.compression_min_bytes", int64_t{0}}}});
    list.push_back({"ramp",
                    {{"comm.compression", text("topk:0.25")},
                     {"comm.compression_min_bytes", int64_t{0}},
                     {"comm.compression_warmup_steps", int64_t{2}},
                     {"comm.compression_ramp_steps", int64_t{2}}}});
    return list;
  }();
  return all;
}

const std::vector<Choice>& splits() {
  using List = std::vector<int64_t>;
  static const std::vector<Choice> all{
      {"whole", {}},
      {"sharded", {{"comm.sharded_update", true}}},
      {"little_copied", {{"checkpoint.memory", int64_t{1}}}},
      {"accumulate", {{"batch.accumulate", int64_t{2}}}},
      {"ema", {{"optimizer.ema", 0.9}, {"optimizer.name", text("adamw")}}},
      {"norm_groups", {{"parallel.batchnorm_group_size", int64_t{2}}}},
      {"parts", {{"parallel.spatial", List{2}}}},
      {"stages", {{"parallel.pipeline", int64_t{2}}, {"batch.accumulate", int64_t{2}}}},
      {"slices",
       {{"parallel.tensor", int64_t{2}},
        {"model.name", text("mlp")},
        {"model.width", int64_t{0}}}}};
  return all;
}

struct Case {
  std::string name;
  config::RunConfig config;
  bool replay = false;
};

comm::Machine some_machine() {
  return {.name = "a machine",
          .device_flops = 1e9,
          .inside = {},
          .between = {.latency = 1e-4, .seconds_per_byte = 1e-8},
          .slow = {{.device = 1, .factor = 1.7}}};
}

int ranks_of(const Case& made) {
  if (train::applied_one_by_one(made.config, made.config.run.replicas)) return 1;
  const auto gradients = static_cast<int>(made.config.sync.quorum);  // 0: one of each replica
  return gradients > 0 ? std::min(gradients, kRanks) : kRanks;
}

/// Nothing where the program refuses the combination.
std::optional<Case> case_of(const Choice& scheme, const Choice& codec, const Choice& split) {
  Case made{.name = scheme.name + "/" + codec.name + "/" + split.name, .config = {}};
  config::RunConfig& config = made.config;
  Settings settings = {{"model.name", text("resnet8")},
                       {"model.width", int64_t{4}},
                       {"model.classes", int64_t{4}},
                       {"run.threads", int64_t{1}},
                       {"run.max_steps", kSteps},
                       {"run.epochs", int64_t{0}},
                       {"run.log_every", int64_t{3}},
                       {"run.eval_every", 0.0},
                       {"batch.local", int64_t{2}},
                       {"plan.measure", false},
                       {"optimizer.lr", 0.05},
                       {"checkpoint.every_steps", int64_t{1}},
                       {"checkpoint.keep", int64_t{0}},
                       {"checkpoint.best", false},
                       {"data.readers", int64_t{1}},
                       {"data.transforms", std::vector<std::string>{"image: divide 255"}}};
  for (const Choice* choice : {&scheme, &codec, &split})
    settings.insert(settings.end(), choice->settings.begin(), choice->settings.end());
  for (const auto& [key, value] : settings) config::find_config_key(key)->set(config, value);
  made.replay = !config.replay.machine.empty();
  const bool shared = !config.parallel.spatial.empty() || config.parallel.tensor > 1 ||
                      config.parallel.pipeline > 1;
  config.run.replicas = shared ? 2 : 4;
  try {
    train::validate(config);
    const comm::Machine machine = some_machine();
    train::check_served_job(config, config.run.replicas, 1, made.replay ? &machine : nullptr);
    (void)train::part_grid(config.parallel, ranks_of(made), 0);
  } catch (const ConfigError&) {
    return std::nullopt;
  }
  return made;
}

/// Trains in `folder`, from the checkpoint `resume` if there is one.
void train_in(const Case& made, const fs::path& folder, const fs::path& resume) {
  static const Noise noise;
  fs::create_directories(folder / "checkpoints");
  comm::run_ranks(ranks_of(made), [&](comm::Communicator& communicator) {
    const backend::CpuBackend backend;
    train::TrainerSpec spec;
    spec.config = made.config;
    spec.place = {.directory = folder.string(),
                  .checkpoints = (folder / "checkpoints").string(),
                  .resume = resume.string(),
                  .checksum = resume.empty() ? "" : keep::manifest_checksum(resume),
                  .run_id = "run"};
    if (made.replay) spec.machine = some_machine();
    spec.backend = &backend;
    spec.communicator = &communicator;
    spec.data = {.train = &noise, .test = &noise};
    train::train(spec);
  });
}

/// The bytes of all tensors of a checkpoint, and its numbers but for those of real time.
std::map<std::string, std::string> content_of(const fs::path& checkpoint) {
  std::map<std::string, std::string> content;
  const auto add = [&](const std::string& file, const keep::SafetensorsFile& tensors) {
    for (const auto& entry : tensors.entries()) {
      const std::vector<std::byte> bytes = tensors.bytes(entry);
      content[file + ": " + entry.name] = {reinterpret_cast<const char*>(bytes.data()),
                                           bytes.size()};
    }
  };
  const keep::Checkpoint opened = keep::open_checkpoint(checkpoint);
  add("weights", opened.weights);
  add("state", opened.state);
  for (int64_t rank = 0; rank < opened.rank_files.count; ++rank)
    add(fmt::format("rank {}", rank), keep::open_rank_file(checkpoint, opened.rank_files, rank));
  for (const auto& [name, value] : opened.info.metrics)
    if (name != "wall_seconds" && name != "train_seconds" && !name.starts_with("compression_trial"))
      content["number " + name] = fmt::format("{}", value);
  return content;
}

fs::path checkpoint_of(const fs::path& folder, int64_t step) {
  return folder / "checkpoints" / fmt::format("step_{:07}", step);
}

void expect_exact_resumes(const Case& made, std::span<const int64_t> steps) {
  SCOPED_TRACE(made.name);
  const ScratchDirectory scratch;
  const fs::path whole = scratch.path() / "whole";
  train_in(made, whole, {});
  const auto expected = content_of(checkpoint_of(whole, kSteps));
  for (const int64_t step : steps) {
    const fs::path again = scratch.path() / fmt::format("from_{}", step);
    train_in(made, again, checkpoint_of(whole, step));
    const auto found = content_of(checkpoint_of(again, kSteps));
    std::string different;
    for (const auto& [name, bytes] : expected)
      if (!found.contains(name) || found.at(name) != bytes) different += " " + name + ";";
    EXPECT_EQ(found.size(), expected.size()) << "from step " << step;
    EXPECT_EQ(different, "") << "from step " << step;
  }
}

std::vector<Case> accepted(bool all) {
  std::vector<Case> cases;
  int refused = 0;
  for (const Choice& scheme : schemes())
    for (const Choice& codec : codecs())
      for (const Choice& split : splits()) {
        // Each once, and every pair with a state of its own in both.
        const int beside = (&scheme != &schemes().front()) + (&codec != &codecs().front()) +
                           (&split != &splits().front());
        if (!all && beside > 1) continue;
        if (auto made = case_of(scheme, codec, split))
          cases.push_back(*std::move(made));
        else
          ++refused;
      }
  fmt::print("{} combinations are accepted, {} refused\n", cases.size(), refused);
  return cases;
}

TEST(Resume, OfEachSchemeCodecAndSplitIsExact) {
  constexpr std::array<int64_t, 2> kOddAndEven = {3, 4};  // with a meeting after every other step
  for (const Case& made : accepted(false)) expect_exact_resumes(made, kOddAndEven);
}

TEST(ResumeOfAll, CombinationsIsExact) {
  std::vector<int64_t> steps(kSteps - 1);
  std::iota(steps.begin(), steps.end(), 1);
  for (const Case& made : accepted(true)) expect_exact_resumes(made, steps);
}

}  // namespace
}  // namespace tutti
