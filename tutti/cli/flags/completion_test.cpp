#include "tutti/cli/flags/completion.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>

#include "tutti/base/expect_text.h"
#include "tutti/base/scratch_directory.h"
#include "tutti/cli/verbs/verbs.h"
#include "tutti/models/registry.h"

namespace tutti::cli {
namespace {

namespace fs = std::filesystem;

/// Returns bash's completions of the last of `words` ("tutti", "train", "--pre"), one a line. bash
/// itself splits words at "=", so a caller passes it as a word of its own.
std::string offered(const std::vector<std::string>& words) {
  const ScratchDirectory scratch;
  const fs::path& folder = scratch.path();
  std::ofstream(folder / "tutti.bash") << completion(all_verbs(), "bash");
  std::string list;
  for (const std::string& word : words) list += " '" + word + "'";
  std::ofstream(folder / "ask.bash")
      << "compopt() { :; }\nsource " << (folder / "tutti.bash").string() << "\nCOMP_WORDS=(" << list
      << ")\nCOMP_CWORD=" << words.size() - 1 << "\n_tutti\nprintf '%s\\n' \"${COMPREPLY[@]}\"\n";
  FILE* pipe = popen(("bash " + (folder / "ask.bash").string() + " 2>&1").c_str(), "r");
  std::string out;
  std::array<char, 4096> part{};
  while (fgets(part.data(), part.size(), pipe)) out += part.data();
  EXPECT_EQ(pclose(pipe), 0) << out;
  return "\n" + out;
}

void expect_offers(const std::vector<std::string>& words, const std::string& word) {
  const std::string all = offered(words);
  EXPECT_TRUE(has_text(all, "\n" + word + "\n")) << words.back();
}

TEST(Completion, BashOffersWhatFits) {
  expect_offers({"tutti", ""}, "config");
  expect_offers({"tutti", "data", ""}, "verify");
  expect_offers({"tutti", "train", "--"}, "--resume");
  expect_offers({"tutti", "bench", "step", "--"}, "--serve");
  expect_offers({"tutti", "train", "x", "--precision", ""}, "bf16");
  expect_offers({"tutti", "train", "x", "--precision", "=", "b"}, "bf16");
  expect_offers({"tutti", "train", "x", "--set", "optimizer."}, "optimizer.lr=");
  expect_offers({"tutti", "train", "x", "--set", "optimizer.name", "="}, "lamb");
  expect_offers({"tutti", "train", "x", "--model.name", "=", "resnet2"}, "resnet20");
  expect_offers({"tutti", "model", "show", ""}, "resnet20");
  expect_offers({"tutti", "data", "verify", ""}, "cifar10");
  expect_offers({"tutti", "data", "generate", ""}, "deepcam");
  EXPECT_FALSE(has_text(offered({"tutti", "data", "generate", ""}), "cifar10"));
  expect_offers({"tutti", "help", ""}, "doctor");
  expect_offers({"tutti", "bench", "comm", "--transport", ""}, "threads");
}

/// Each shell's script names every verb, flag, model and choice.
TEST(Completion, EveryShellKnowsTheTable) {
  for (const char* shell : {"bash", "zsh", "fish"}) {
    const std::string script = completion(all_verbs(), shell);
    const std::function<void(const std::vector<Verb>&)> walk = [&](const std::vector<Verb>& verbs) {
      for (const Verb& verb : verbs) {
        EXPECT_TRUE(has_text(script, verb.name)) << shell << " " << verb.name;
        for (const Flag& flag : verb.flags) {
          const std::string name = long_name(flag);
          EXPECT_TRUE(
              has_text(script, std::string(shell) == "fish" ? "-l " + name.substr(2) : name))
              << shell << " " << name;
          for (const std::string& choice : flag.choices)
            EXPECT_TRUE(has_text(script, choice)) << shell << " " << choice;
        }
        walk(verb.verbs);
      }
    };
    walk(all_verbs());
    for (const models::ModelInfo& model : models::models())
      EXPECT_TRUE(has_text(script, model.name)) << shell << " " << model.name;
  }
}

}  // namespace
}  // namespace tutti::cli
