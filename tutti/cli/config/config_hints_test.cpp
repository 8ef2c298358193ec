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

TEST(UnknownKeys, BenchStepSuggestsAsTheOthersDo) {
  const auto refused = [](const std::string& set) {
    return refusal([&] {
      const std::vector<Verb> verbs = all_verbs();
      const Request request =
          find_verb(verbs, {"bench", "step", "--model", "mlp", "--batch", "1", "--set", set});
      parse_arguments(request);
      request.verb->run();
    });
  };
  EXPECT_EQ(refused("plan.bf16_eror=2"),
            "--set plan.bf16_eror: unknown key 'plan.bf16_eror', did you mean 'plan.bf16_error'?");
  EXPECT_EQ(refused("optimizer.lr=1"),
            "--set optimizer.lr=1: write it as --set comm.KEY=VALUE, or plan.memory or "
            "plan.bf16_error");
}

}  // namespace
}  // namespace tutti::cli
