// Tests the messages about unknown keys.

#include "tutti/cli/config/config_hints.h"

#include <gtest/gtest.h>

#include "tutti/base/error.h"
#include "tutti/base/expect_text.h"
#include "tutti/base/scratch_directory.h"
#include "tutti/cli/config/config.h"
#include "tutti/cli/flags/arguments.h"
#include "tutti/cli/verbs/verbs.h"

namespace tutti::cli {
namespace {

/// Returns the message of the ConfigError.
template <class F>
std::string refusal(const F& run) {
  return message_of<ConfigError>("", [&] { run(); });
}

std::string refusal_of_set(const std::string& key, const std::string& value) {
  return refusal([&] { read_config({.flags = {{key, value, "--set " + key}}}); });
}

TEST(UnknownKeys, OneOfAnEarlierVersionLeadsToTheOneInItsPlace) {
  const std::string coarse =
      "unknown key 'plan.coarse_bf16': it is 'plan.bf16_error' now, where 1 stands for false, and "
      "3 for true";
  EXPECT_EQ(unknown_key("plan.coarse_bf16"), coarse);
  EXPECT_EQ(refusal_of_set("plan.coarse_bf16", "true"), "--set plan.coarse_bf16: " + coarse);
  const ScratchDirectory scratch;
  const std::string path = scratch.write("run.toml", std::string("[plan]\ncoarse_bf16 = true\n"));
  EXPECT_EQ(refusal([&] { read_config({.file = path}); }), path + ":2:1: " + coarse);
}

/// The keys that the hints name exist.
TEST(UnknownKeys, WhatIsInThePlaceOfFormerOnesIsThere) {
  for (const char* former :
       {"plan.coarse_bf16", "data.pad", "data.crop", "data.flip", "data.mean", "data.std"}) {
    EXPECT_EQ(config::find_config_key(former), nullptr) << former;
    const std::string text = unknown_key(former);
    const size_t at = text.find("it is '") + 7;
    EXPECT_NE(config::find_config_key(text.substr(at, text.find('\'', at) - at)), nullptr) << text;
    const size_t line = text.find('"');
    if (line == text.npos) continue;
    const std::string quoted = text.substr(line, text.find('"', line + 1) + 1 - line);
    EXPECT_EQ(refusal_of_set("data.transforms", "[" + quoted + "]"), "") << text;
  }
}

/// The verb that times operations of the CPU says which one knows devices.
TEST(ForeignFlags, BenchOpsLeadsToBenchStepForDevices) {
  for (const char* flag : {"--gpu", "--device"})
    EXPECT_TRUE(throws<ConfigError>({"not one of tutti bench ops", "tutti bench step --gpu"}, [&] {
      const std::vector<Verb> verbs = all_verbs();
      parse_arguments(find_verb(verbs, {"bench", "ops", flag}));
    }));
}

/// Returns why `tutti bench step` refuses these flags.
std::string refusal_of_bench(const std::vector<std::string>& flags) {
  return refusal([&] {
    const std::vector<Verb> verbs = all_verbs();
    std::vector<std::string> words = {"bench", "step", "--model", "mlp", "--batch", "1"};
    words.insert(words.end(), flags.begin(), flags.end());
    const Request request = find_verb(verbs, words);
    parse_arguments(request);
    request.verb->run();
  });
}

TEST(UnknownKeys, BenchStepSuggestsAsTheOthersDo) {
  const auto refused = [](const std::string& set) { return refusal_of_bench({"--set", set}); };
  EXPECT_EQ(refused("plan.bf16_eror=2"),
            "--set plan.bf16_eror: unknown key 'plan.bf16_eror', did you mean 'plan.bf16_error'?");
  EXPECT_EQ(refused("optimizer.lr=1"),
            "--set optimizer.lr=1: write it as --set comm.KEY=VALUE, or plan.memory or "
            "plan.bf16_error or plan.host_kernels");
}

TEST(IdleFlags, BenchStepRefusesThoseOfOtherDevices) {
  EXPECT_TRUE(has_text(refusal_of_bench({"--set", "plan.host_kernels=true"}),
                       "plan.host_kernels has no effect"));
  EXPECT_TRUE(has_text(refusal_of_bench({"--device", "emulated", "--tile-bytes", "4096"}),
                       "--tile-bytes has no effect"));
}

}  // namespace
}  // namespace tutti::cli
