#include "tutti/config/config.h"

#include <gtest/gtest.h>

#include <set>

#include "tutti/base/error.h"
#include "tutti/base/expect_text.h"
#include "tutti/exchange/compression_policy.h"
#include "tutti/train/settings/validation.h"

namespace tutti::config {
namespace {

std::string failure(const std::function<void()>& act) {
  return message_of<ConfigError>("", [&] { act(); });
}

TEST(ConfigTable, NamesAreUniqueAlsoAsEnvironmentVariables) {
  std::set<std::string> seen;
  for (const ConfigKey& row : config_keys()) {
    std::string flat = row.name;
    for (char& c : flat)
      if (c == '.') c = '_';
    EXPECT_TRUE(seen.insert(flat).second) << row.name;
    EXPECT_FALSE(row.help.empty()) << row.name;
  }
}

TEST(ConfigTable, DefaultsKeepTheirOwnLimits) {
  for (const ConfigKey& row : config_keys()) {
    RunConfig config;
    EXPECT_NO_THROW(row.set(config, row.get(RunConfig{}))) << row.name;
  }
  EXPECT_NO_THROW(train::validate(RunConfig{}));
}

TEST(ConfigTable,
     EveryRowReachesItsOwnMember) {  // two rows on one member would overwrite each other
  for (const ConfigKey& row : config_keys()) {
    RunConfig config;
    ConfigValue other = row.get(config);
    if (auto* b = std::get_if<bool>(&other)) *b = !*b;
    if (auto* i = std::get_if<int64_t>(&other)) ++*i;
    if (auto* x = std::get_if<double>(&other))
      *x = *x < 0 ? 0.125 : *x < 0.5 ? *x + 0.125 : *x - 0.125;
    if (auto* list = std::get_if<std::vector<int64_t>>(&other)) *list = {3, 5};
    if (auto* list = std::get_if<std::vector<double>>(&other)) *list = {0.25};
    if (auto* list = std::get_if<std::vector<std::string>>(&other))
      *list = {row.choices.empty() ? "x" : row.choices.back()};
    if (auto* text = std::get_if<std::string>(&other))
      *text = row.or_count              ? "7"
              : row.choices.empty()     ? "x"
              : *text == row.choices[0] ? row.choices[1]
                                        : row.choices[0];
    ASSERT_NO_THROW(row.set(config, other)) << row.name;
    EXPECT_EQ(row.get(config), other) << row.name;
    for (const ConfigKey& rest : config_keys())
      EXPECT_TRUE(rest.name == row.name || rest.get(config) == rest.get(RunConfig{}))
          << row.name << " changed " << rest.name;
  }
}

TEST(ConfigTable, RefusesWrongTypesRangesAndWords) {
  RunConfig config;
  const auto set = [&](std::string_view name, ConfigValue value) {
    return failure([&] { find_config_key(name)->set(config, value); });
  };
  EXPECT_EQ(set("optimizer.lr", std::string("fast")), "must be a number, is \"fast\"");
  EXPECT_EQ(set("optimizer.lr", int64_t{1}), "");
  EXPECT_EQ(config.optimizer.lr, 1.0);
  EXPECT_EQ(set("run.epochs", 1.5), "must be an integer, is 1.5");
  EXPECT_EQ(set("optimizer.lr", -0.5), "must be at least 0, is -0.5");
  EXPECT_EQ(set("optimizer.name", std::string("sgdd")),
            "must be one of sgd, lars, adam, adamw, lamb, rmsprop, is \"sgdd\", did you mean "
            "'sgd'?");
  EXPECT_EQ(set("optimizer.exclude", std::vector<std::string>{"bias", "weights"}),
            "must be one of bias, norm, is \"weights\"");
  EXPECT_EQ(set("optimizer.exclude", std::vector<int64_t>{}), "");
  EXPECT_EQ(set("loss.class_weights", std::vector<int64_t>{1, 2}), "");
  EXPECT_EQ(config.loss.class_weights, (std::vector<double>{1, 2}));
  EXPECT_EQ(config.optimizer.lr, 1.0) << "a refused value must change nothing";
  EXPECT_EQ(find_config_key("optimiser.lr"), nullptr);
  // Below 0, a dropout may only be -1, the model's own.
  for (const char* key : {"model.dropout", "model.attention_dropout"}) {
    const std::string range = "must be between 0 and 0.999, or -1 for the model's own, is ";
    EXPECT_EQ(set(key, int64_t{-1}), "");
    EXPECT_EQ(set(key, 0.1), "");
    EXPECT_EQ(set(key, -0.5), range + "-0.5");
    EXPECT_EQ(set(key, int64_t{-2}), range + "-2");
  }
}

TEST(ConfigRelations, CompressionIsCheckedAndReadable) {
  RunConfig config;
  config.comm.compression = "auto:topk:0.02";
  config.comm.compression_min_bytes = 1000;
  config.comm.compression_warmup_steps = 5;
  config.comm.compression_ramp_steps = 7;
  config.comm.compression_exclude = {"fc.*"};
  EXPECT_NO_THROW(train::validate(config));
  const exchange::CompressionPolicy policy = compression_policy(config.comm);
  EXPECT_EQ(to_string(policy), "auto:topk:0.02");
  EXPECT_EQ(policy.min_bytes, 1000u);
  EXPECT_EQ(policy.warmup_steps, 5);
  EXPECT_EQ(policy.ramp_steps, 7);
  EXPECT_EQ(policy.exclude, config.comm.compression_exclude);

  const auto refused = [](const CommSection& comm) {
    RunConfig c;
    c.comm = comm;
    return failure([&] { train::validate(c); });
  };
  for (const auto& [method, message] :
       {std::pair{"topk:2", "comm.compression: compression 'topk:2': the ratio is"},
        {"zip", "comm.compression: unknown compression 'zip'; one of none, bf16"},
        {"auto:none", "comm.compression: compression 'auto:none' has nothing to choose"}})
    EXPECT_TRUE(refused({.compression = method}).starts_with(message)) << method;
  EXPECT_TRUE(refused({.compression = "int8", .compression_ramp_steps = 1})
                  .starts_with("comm.compression_ramp_steps"));
  EXPECT_TRUE(refused({.compression_exclude = {""}})
                  .starts_with("comm.compression_exclude has an empty pattern"));
}

TEST(ConfigText, Toml) {
  EXPECT_EQ(to_toml(ConfigValue{0.1}), "0.1");
  EXPECT_EQ(to_toml(ConfigValue{2.0}), "2.0");
  EXPECT_EQ(to_toml(ConfigValue{1e-20}), "1e-20");
  EXPECT_EQ(to_toml(ConfigValue{std::string("a\"b\\c\n")}), R"("a\"b\\c\u000A")");
  EXPECT_EQ(to_toml(ConfigValue{std::vector<std::string>{"bias", "norm"}}), R"(["bias", "norm"])");
  EXPECT_EQ(to_string(Precision::bf16), "bf16");
  EXPECT_EQ(to_string(log::Level::warn), "warn");
}

TEST(BatchSizes, FromEitherEnd) {
  EXPECT_EQ(batch_sizes({.local = 64, .global = 0}, 3).global, 192);
  EXPECT_EQ(batch_sizes({.local = 0, .global = 128}, 2).local, 64);
  EXPECT_EQ(batch_sizes({}, 1).global, 128);
  EXPECT_EQ(batch_sizes({.local = 8, .global = 0, .accumulate = 4}, 2).global, 64);
  EXPECT_EQ(batch_sizes({.local = 0, .global = 64, .accumulate = 4}, 2).local, 8);
  EXPECT_TRUE(has_text(failure([] { batch_sizes({.local = 0, .global = 12, .accumulate = 4}, 2); }),
                       "2 replicas and batch.accumulate = 4"));
  EXPECT_EQ(batch_sizes({.local = 64, .global = 128}, 2).local, 64);
  EXPECT_NE(failure([] { batch_sizes({.local = 64, .global = 128}, 4); }), "");
  EXPECT_NE(failure([] { batch_sizes({.local = 0, .global = 128}, 3); }), "");
}

TEST(ReplicaCount, AtLeastOnePerRank) {
  EXPECT_EQ(replica_count({}, 4), 4);
  RunSection run;
  run.replicas = 3;
  EXPECT_EQ(replica_count(run, 2), 3);
  EXPECT_EQ(failure([&] { replica_count(run, 4); }),
            "run.replicas = 3 is less than the 4 ranks: R replicas run on 1 to R ranks; start at "
            "most 3 rank(s), or give a new run more replicas");
}

TEST(ConfigTable, CountsThatAreKeptAsIntHaveALimit) {
  RunConfig config;
  for (const char* name : {"run.replicas", "checkpoint.keep"})
    EXPECT_NE(failure([&] { find_config_key(name)->set(config, int64_t{1} << 32); }), "") << name;
}

TEST(Validate, RelationsBetweenKeys) {
  const auto refused = [](const std::function<void(RunConfig&)>& change) {
    RunConfig config;
    change(config);
    return failure([&] { train::validate(config); });
  };
  EXPECT_EQ(refused([](RunConfig&) {}), "");
  EXPECT_NE(refused([](RunConfig& c) { c.run.epochs = 0; }), "");
  EXPECT_NE(refused([](RunConfig& c) { c.data.transforms = {"image: devide 255"}; }), "");
  EXPECT_NE(refused([](RunConfig& c) { c.schedule.name = ScheduleKind::steps; }), "");
  EXPECT_NE(refused([](RunConfig& c) { c.schedule.milestones = {10, 10}; }), "");
  EXPECT_NE(refused([](RunConfig& c) { c.optimizer.nesterov = true, c.optimizer.momentum = 0; }),
            "");
  EXPECT_NE(refused([](RunConfig& c) { c.optimizer.beta2 = 1; }), "");
  EXPECT_NE(
      refused([](RunConfig& c) { c.optimizer.name = OptimizerKind::lamb, c.optimizer.eps = 0; }),
      "");
  EXPECT_EQ(
      refused([](RunConfig& c) { c.optimizer.name = OptimizerKind::lars, c.optimizer.eps = 0; }),
      "");
}

}  // namespace
}  // namespace tutti::config
