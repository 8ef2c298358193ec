#include "tutti/train/settings/idle_keys.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tutti/base/expect_text.h"
#include "tutti/plan/plan.h"
#include "tutti/train/network/training_graph.h"
#include "tutti/train/settings/goal.h"
#include "tutti/train/settings/specs.h"

namespace tutti::train {
namespace {

using Tasks = std::optional<std::set<models::TaskKind>>;
const Tasks kClasses = std::set{models::TaskKind::classify},
            kNumbers = std::set{models::TaskKind::regress};

std::set<std::string> idle_names(const config::RunConfig& config, const Tasks& tasks) {
  std::set<std::string> names;
  for (const IdleKey& idle : idle_keys(config, tasks)) names.insert(idle.key->name);
  return names;
}

/// Returns words that an empty list may hold.
std::vector<std::string> sample_words(const config::ConfigKey& key) {
  return key.choices.empty() ? std::vector<std::string>{"*: 0.125"}
                             : std::vector<std::string>{key.choices[0]};
}

std::vector<double> sample_numbers(const config::ConfigKey& key) {
  return key.name == "loss.class_weights" ? std::vector<double>{1, 2, 3, 4}
                                          : std::vector<double>{0.5, 0.25};
}

/// Returns the config with another value for that key, in a list for its last element; nothing if
/// no other valid value is known.
std::optional<config::RunConfig> with_another(const config::RunConfig& config,
                                              const config::ConfigKey& key) {
  config::ConfigValue value = key.get(config);
  auto* words = std::get_if<std::vector<std::string>>(&value);
  auto* whole = std::get_if<std::vector<int64_t>>(&value);
  auto* real = std::get_if<std::vector<double>>(&value);
  if (auto* flag = std::get_if<bool>(&value))
    *flag = !*flag;
  else if (auto* i = std::get_if<int64_t>(&value))
    ++*i;
  else if (auto* x = std::get_if<double>(&value))
    *x = *x < 0.5 ? *x + 0.125 : *x - 0.125;
  else if (auto* word = std::get_if<std::string>(&value); word && key.choices.size() > 1)
    *word = *word == key.choices[0] ? key.choices[1] : key.choices[0];
  else if (words)
    *words = words->empty() ? sample_words(key) : std::vector<std::string>();
  else if (whole && !whole->empty())
    ++whole->back();
  else if (real)
    real->empty() ? void(*real = sample_numbers(key)) : void(real->back() += 0.125);
  else
    return std::nullopt;
  config::RunConfig other = config;
  key.set(other, value);
  return other;
}

/// Returns the ops of a training step, with their attributes.
std::string ops_of(const TrainingGraphSpec& spec) {
  std::string text;
  const TrainingGraph made = make_training_graph(spec);
  for (const graph::Node& node : made.graph.nodes())
    text += fmt::format("{} {}\n", node.op->name(), node.op->attributes());
  return text;
}

std::string updates_of(const config::RunConfig& config) {
  return ops_of(
      {.model = {.name = "mlp", .input = {1, 8, 8}, .batch = 2, .classes = 4, .hidden = {4}},
       .optimizer = config.optimizer});
}

std::string rates_of(const config::RunConfig& config) {
  const LearningRateSchedule schedule = learning_rate_schedule(config, 4, 256);
  std::string text;
  for (int64_t step = 0; step < 40; ++step) text += fmt::format("{:.9g} ", schedule.rate(step));
  return text;
}

/// Expects that each key with this prefix has an effect on the result, or that the table declares
/// it idle.
void expect_effects(std::string_view section, const std::set<std::string>& passed_over,
                    const config::RunConfig& config,
                    std::string (*result)(const config::RunConfig&)) {
  const std::set<std::string> idle = idle_names(config, tasks_of(config));
  for (const config::ConfigKey& key : config::config_keys()) {
    if (!key.name.starts_with(section) || passed_over.contains(key.name)) continue;
    const auto other = with_another(config, key);
    if (!other) {
      ADD_FAILURE() << key.name << " is not tried: pass it over, or give it another value";
      continue;
    }
    EXPECT_EQ(result(*other) == result(config), idle.contains(key.name))
        << key.name << " beside " << to_string(config.optimizer.name) << " and "
        << to_string(config.schedule.name);
  }
}

TEST(IdleKeys, KeysOfTheOptimizerAreThoseThatChangeItsUpdates) {
  for (const std::string& name : config::find_config_key("optimizer.name")->choices)
    for (const double weight_decay : {0.0, 0.25})
      for (const bool lines : {false, true}) {
        config::RunConfig config;
        config::find_config_key("optimizer.name")->set(config, name);
        config.optimizer.weight_decay = weight_decay;
        if (lines) config.optimizer.decay = {"*: 0.5"};  // replaces weight_decay
        config.optimizer.ema = 0.5;
        // The caller gives the rate at each step.
        std::set<std::string> passed_over = {"optimizer.name", "optimizer.lr"};
        if (lines) passed_over.insert("optimizer.weight_decay");
        expect_effects("optimizer.", passed_over, config, updates_of);
      }
}

TEST(IdleKeys, KeysOfTheScheduleAreThoseThatChangeTheRate) {
  for (const std::string& name : config::find_config_key("schedule.name")->choices)
    for (const int64_t warmup : {0, 6, 7}) {
      if (name == "plateau") continue;  // it depends on evaluations
      config::RunConfig config;
      config::find_config_key("schedule.name")->set(config, name);
      config.run.epochs = 10;
      config.schedule.milestones = {4, 6};
      if (warmup == 7) config.schedule.factors = {0.5, 0.25};
      config.schedule.warmup_steps = warmup;
      config.schedule.scale_with_batch = config::BatchScaling::linear;
      expect_effects("schedule.",
                     {"schedule.name", "schedule.warmup_epochs", "schedule.warmup_steps"}, config,
                     rates_of);
    }
}

TEST(IdleKeys, OfALossOnlyWhatTheTaskHas) {
  config::RunConfig config;
  const auto classes = idle_names(config, kClasses), numbers = idle_names(config, kNumbers);
  for (const char* key : {"loss.label_smoothing", "loss.class_weights"}) {
    EXPECT_TRUE(numbers.contains(key)) << key;
    EXPECT_FALSE(classes.contains(key)) << key;
  }
  EXPECT_TRUE(classes.contains("loss.pointwise"));
  EXPECT_FALSE(numbers.contains("loss.pointwise"));
  EXPECT_FALSE(idle_names(config, std::nullopt).contains("loss.pointwise"));
  EXPECT_TRUE(numbers.contains("loss.delta"));
  config.loss.pointwise = ops::PointwiseLossKind::huber;
  EXPECT_FALSE(idle_names(config, kNumbers).contains("loss.delta"));
}

/// Holds even if loss.pointwise has another value.
TEST(IdleKeys, ALayersOwnLossTakesItsDelta) {
  config::RunConfig config;
  config.model.layer = {{.entries = {{"type", "dense"}, {"loss", "huber"}}}};
  EXPECT_FALSE(idle_names(config, kNumbers).contains("loss.delta"));
  config.model.layer = {{.entries = {{"type", "dense"}, {"loss", "mae"}}}};
  EXPECT_TRUE(idle_names(config, kNumbers).contains("loss.delta"));
}

/// Returns the reason why a key has no effect.
std::string reason_of(const config::RunConfig& config, std::string_view key,
                      const Tasks& tasks = kNumbers) {
  for (const IdleKey& idle : idle_keys(config, tasks))
    if (idle.key->name == key) return idle.text;
  return "";
}

TEST(IdleKeys, LatticesOfAFolderAreNotGenerated) {
  config::RunConfig config;
  config.data.dataset = "lattices";
  EXPECT_EQ(reason_of(config, "data.generate_train"), "");
  config.data.dir = "lattices";
  EXPECT_TRUE(has_text(reason_of(config, "data.generate_train"), ", and data.dir is given"));
}

TEST(IdleKeys, MeasurementsAreKeptWhereThereAreAny) {
  config::RunConfig config;
  EXPECT_EQ(reason_of(config, "plan.tuning"), "");
  config::RunConfig choices = config, layout = config;
  choices.plan.choices_from = "runs/mine";
  EXPECT_TRUE(has_text(reason_of(choices, "plan.tuning"), "plan.choices_from is given"));
  layout.plan.layout = config::ActivationLayout::last;
  EXPECT_TRUE(has_text(reason_of(layout, "plan.tuning"), "plan.layout is given"));
  config::RunConfig device = config;
  device.run.device = config::DeviceKind::cuda;
  EXPECT_TRUE(has_text(reason_of(device, "plan.tuning"), "run.device is given"));
  config.plan.measure = false;
  EXPECT_TRUE(has_text(reason_of(config, "plan.tuning"), "and plan.measure is false"));
}

TEST(IdleKeys, TilesAreOfTheCpuAndHostKernelsOfDevices) {
  for (const auto device :
       {config::DeviceKind::cpu, config::DeviceKind::cuda, config::DeviceKind::emulated}) {
    config::RunConfig config;
    config.run.device = device;
    const auto idle = idle_names(config, kClasses);
    const bool cpu = device == config::DeviceKind::cpu;
    EXPECT_NE(idle.contains("plan.tile_bytes"), cpu) << to_string(device);
    EXPECT_EQ(idle.contains("plan.host_kernels"), cpu) << to_string(device);
  }
}

TEST(IdleKeys, OnlyBf16HasKernelsOfMoreError) {
  config::RunConfig config;
  EXPECT_EQ(config.plan.bf16_error, plan::PlanOptions{}.most_error);
  config.plan.bf16_error = 3;
  EXPECT_TRUE(has_text(reason_of(config, "plan.bf16_error"), "and run.precision is fp32"));
  config.run.precision = config::Precision::bf16;
  EXPECT_EQ(reason_of(config, "plan.bf16_error"), "");
}

/// The reason names it even if it is the default.
TEST(IdleKeys, AValueThatIsNoNeedIsNamed) {
  EXPECT_TRUE(
      has_text(reason_of({}, "schedule.base_batch"), "and schedule.scale_with_batch is none"));
  EXPECT_TRUE(has_text(reason_of({}, "optimizer.ema_from"), "and optimizer.ema is 0.0"));
  EXPECT_TRUE(has_text(reason_of({}, "loss.mean_over"), "and loss.class_weights is not given"));
}

/// An image and a field to be learned; its samples are never read.
class NoSamples : public data::Dataset {
 public:
  explicit NoSamples(bool classes)
      : fields_{{.name = "image", .shape = {1, 8, 8}},
                {.name = "label",
                 .element = classes ? data::ElementType::u8 : data::ElementType::f32,
                 .shape = classes ? Shape{} : Shape{4},
                 .class_names = std::vector<std::string>(classes ? 4 : 0)}} {}
  int64_t size() const override { return 0; }
  const std::vector<data::Field>& fields() const override { return fields_; }
  void read(int64_t, data::Sample&) const override {}

 private:
  std::vector<data::Field> fields_;
};

std::string losses_of(const config::RunConfig& config) {
  const NoSamples data(config.model.task == config::ModelTask::classify);
  return ops_of({.model = model_spec(config, data, 2)});
}

TEST(IdleKeys, KeysOfTheLossAreThoseThatChangeIt) {
  for (const config::ModelTask task : {config::ModelTask::classify, config::ModelTask::regress})
    for (const bool weighted : {false, true})
      for (const std::string& pointwise : config::find_config_key("loss.pointwise")->choices) {
        config::RunConfig config;
        config.model.name = "mlp";
        config.model.task = task;
        config.data.transforms = {"image: divide 255"};
        config::find_config_key("loss.pointwise")->set(config, pointwise);
        if (weighted) config.loss.class_weights = {1, 2, 3, 4};
        // An unweighted loss has this attribute, too.
        expect_effects("loss.",
                       weighted ? std::set<std::string>{} : std::set<std::string>{"loss.mean_over"},
                       config, losses_of);
      }
}

TEST(IdleKeys, WhatNeedsAKeyWithoutEffectHasNoneEither) {
  config::RunConfig config;
  config.model.name = "mlp";
  config.loss.pointwise = ops::PointwiseLossKind::huber;
  config.loss.delta = 2;
  EXPECT_EQ(reason_of(config, "loss.delta", kClasses),
            "loss.delta = 2.0 has no effect: it is only for loss.pointwise = huber, and "
            "loss.pointwise has no effect either");
}

TEST(IdleKeys, FactorsTakeThePlaceOfGamma) {
  config::RunConfig config;
  config.schedule.name = config::ScheduleKind::steps;
  config.schedule.milestones = {4, 6};
  EXPECT_FALSE(idle_names(config, kClasses).contains("schedule.gamma"));
  config.schedule.factors = {0.5, 0.25};
  EXPECT_EQ(reason_of(config, "schedule.gamma", kClasses),
            "schedule.gamma = 0.1 has no effect: it is only for schedule.name = steps without "
            "schedule.factors, or schedule.name = plateau, and schedule.factors is given");
}

TEST(IdleKeys, NeedsNameKeysAndTheirWords) {
  for (const config::ConfigKey& key : config::config_keys())
    for (const config::KeyNeed& need : key.only_with) {
      const config::ConfigKey* other = config::find_config_key(need.key);
      ASSERT_NE(other, nullptr) << key.name;
      for (const std::string& without : need.without)
        EXPECT_NE(config::find_config_key(without), nullptr) << key.name;
      for (const std::string& word : need.words)
        EXPECT_TRUE(
            std::ranges::find(other->choices, word) != other->choices.end() ||
            (other->type == config::ConfigType::boolean && (word == "true" || word == "false")))
            << key.name << ": " << word;
    }
}

/// A help text that names another key's choice in brackets, "(sgd, lars)", informs only people.
TEST(IdleKeys, WhatAKeyIsOnlyForStandsInTheTableAndNotInItsHelp) {
  std::set<std::string> words;
  for (const char* choice : {"optimizer.name", "schedule.name", "data.dataset", "loss.pointwise"})
    for (const std::string& word : config::find_config_key(choice)->choices) words.insert(word);
  for (const config::ConfigKey& key : config::config_keys())
    // Models refuse keys that they do not support.
    for (size_t at = key.help.find('('); at != std::string::npos; at = key.help.find('(', at + 1)) {
      const std::string word =
          key.help.substr(at + 1, key.help.find_first_of(",):; ", at) - at - 1);
      EXPECT_FALSE(words.contains(word) && !key.name.starts_with("model."))
          << key.name << " is for (" << word << "): use only_with";
    }
}

TEST(IdleKeys, TheReasonNamesBothKeys) {
  config::RunConfig config;
  config.optimizer.name = config::OptimizerKind::adamw;
  config.optimizer.momentum = 0.5;
  EXPECT_EQ(reason_of(config, "optimizer.momentum", kClasses),
            "optimizer.momentum = 0.5 has no effect: it is only for optimizer.name = sgd or "
            "lars, and optimizer.name is adamw");
}

}  // namespace
}  // namespace tutti::train
