// Each flag of `tutti data generate` changes the files of the data sets that it belongs to, and is
// refused with the others.

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <sstream>

#include "tutti/base/error.h"
#include "tutti/base/expect_text.h"
#include "tutti/base/scratch_directory.h"
#include "tutti/cli/flags/arguments.h"
#include "tutti/cli/verbs/verbs.h"
#include "tutti/data/open/catalog.h"

namespace tutti::cli {
namespace {

namespace fs = std::filesystem;
using Values = std::map<std::string, std::string>;  // by flag; "" for a switch

/// Flags that make a small set of each kind.
const std::map<std::string, Values> kSmall = {
    {"lattices", {{"--train", "1"}, {"--test", "1"}}},
    {"cosmoflow", {{"--train", "1"}, {"--test", "1"}, {"--side", "16"}}},
    {"deepcam", {{"--train", "1"}, {"--test", "1"}, {"--height", "48"}, {"--width", "64"}}},
    {"imagenet", {{"--train", "3"}, {"--test", "3"}, {"--side", "16"}, {"--picture-classes", "2"}}},
    {"cbed", {{"--train", "1"}, {"--test", "1"}, {"--side", "16"}}},
    {"stem", {{"--train", "1"}, {"--test", "1"}, {"--side", "16"}}},
    {"vibrations", {{"--train", "3"}, {"--test", "1"}, {"--samples", "32"}}},
    {"protein", {{"--train", "3"}, {"--test", "1"}, {"--residues", "16"}, {"--stride", "9"}}},
    {"clicks", {{"--train", "3"}, {"--test", "1"}, {"--vocabulary", "100"}}},
    {"text", {{"--train", "30"}, {"--test", "1"}, {"--words", "100"}}},
    {"token-pairs", {{"--train", "20"}, {"--test", "1"}}},
    {"neurons", {{"--train", "1"}, {"--test", "1"}, {"--side", "16"}, {"--radius", "2"}}}};

/// Another value for each flag.
const Values kOther = {{"--train", "2"},       {"--masses", "3"},
                       {"--samples", "40"},    {"--sensor-noise", "0.5"},
                       {"--test", "2"},        {"--side", "8"},
                       {"--cell", "2"},        {"--spread", "0.2"},
                       {"--particles", "2"},   {"--height", "40"},
                       {"--width", "48"},      {"--seed", "2"},
                       {"--threads", "2"},     {"--force", ""},
                       {"--per-tar", "2"},     {"--picture-classes", "3"},
                       {"--radius", "3"},      {"--noise", "5"},
                       {"--vocabulary", "50"}, {"--words", "50"},
                       {"--task", "sort"},     {"--symbols", "5"},
                       {"--longest", "9"},     {"--residues", "20"},
                       {"--stride", "8"},      {"--temperature", "0.5"},
                       {"--swing", "0.1"},     {"--crystal", "fcc"},
                       {"--convergence", "5"}, {"--angle", "30"},
                       {"--thinnest", "3"},    {"--thickest", "9"},
                       {"--tilt", "2"},        {"--azimuth", "7"},
                       {"--strain", "0.1"},    {"--electrons", "100"},
                       {"--kilovolts", "300"}, {"--pixel", "0.1"},
                       {"--dose", "10"}};

/// Returns the files of a set made with these values, by their paths in its folder.
std::map<std::string, std::string> files_made(const std::string& set, const Values& values) {
  const ScratchDirectory scratch;
  std::vector<std::string> words = {"data", "generate", set, scratch.path().string()};
  for (const auto& [flag, value] : values) {
    words.push_back(flag);
    if (!value.empty()) words.push_back(value);
  }
  const std::vector<Verb> verbs = all_verbs();
  const Request request = find_verb(verbs, words);
  parse_arguments(request);
  EXPECT_EQ(request.verb->run(), 0);
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(scratch.path())) {
    if (!entry.is_regular_file()) continue;
    std::ostringstream bytes;
    bytes << std::ifstream(entry.path(), std::ios::binary).rdbuf();
    files[entry.path().lexically_relative(scratch.path()).string()] = bytes.str();
  }
  return files;
}

std::string refusal_of(const std::string& set, const Values& values) {
  return message_of<ConfigError>("", [&] { files_made(set, values); });
}

bool belongs(const Flag& flag, const std::string& set) {
  return flag.only_for.empty() || std::ranges::find(flag.only_for, set) != flag.only_for.end();
}

TEST(DataFlags, ChangeTheSetsThatTheyBelongToAndAreRefusedByTheOthers) {
  const std::vector<Verb> verbs = all_verbs();
  const std::vector<Flag>& flags = find_verb(verbs, {"data", "generate"}).verb->flags;
  for (const auto& [set, small] : kSmall) {
    const auto files = files_made(set, small);
    for (const Flag& flag : flags) {
      const auto other = kOther.find(flag.names);
      ASSERT_NE(other, kOther.end()) << flag.names << " has no other value here";
      Values values = small;
      values[flag.names] = other->second;
      if (!belongs(flag, set)) {
        const std::string refusal = refusal_of(set, values);
        EXPECT_TRUE(has_text(refusal, flag.names + " is a flag of " + flag.only_for.front()))
            << set;
        const std::string takes = refusal.substr(std::min(refusal.find("takes"), refusal.size()));
        for (const Flag& one : flags)
          EXPECT_EQ(takes.find(one.names) != std::string::npos, belongs(one, set))
              << one.names << " of " << set << ": " << refusal;
        continue;
      }
      const bool no_matter = flag.names == "--threads" || flag.names == "--force";
      EXPECT_EQ(files_made(set, values) == files, no_matter) << flag.names << " of " << set;
    }
  }
}

TEST(DataFlags, OfASetThatCannotBeGeneratedTheSetIsTheMistake) {
  EXPECT_TRUE(
      has_text(refusal_of("cifar10", {{"--particles", "2"}}), "not a data set that can be"));
}

TEST(DataFlags, AnUnknownSetListsThoseThatCanBeGenerated) {
  const std::string refusal = refusal_of("latices", {});
  EXPECT_TRUE(
      has_text(refusal,
               "did you mean 'lattices'?: lattices, cosmoflow, deepcam, imagenet, "
               "neurons, cbed, stem, clicks, text, token-pairs, protein and vibrations are"));
  for (const auto& [set, small] : kSmall) EXPECT_TRUE(has_text(refusal_of("mine", {}), set)) << set;
  for (const char* other : {"cifar10", "mnist", "arrays"})
    EXPECT_FALSE(has_text(refusal_of("mine", {}), other)) << other;
}

TEST(DataFlags, ASetHasSamplesOfBothParts) {
  for (const auto& [set, small] : kSmall)
    for (const char* flag : {"--train", "--test"}) {
      Values values = small;
      values[flag] = "0";
      EXPECT_TRUE(has_text(refusal_of(set, values), std::string(flag) + " 0: ")) << set;
      values[flag] = "-2";
      EXPECT_NE(refusal_of(set, values), "") << set;
    }
}

/// File names tell generated samples from downloaded ones, which advice must not replace.
TEST(DataFlags, AdviceKnowsTheSamplesThatHaveBeenGenerated) {
  for (const std::string set : {"cosmoflow", "deepcam"}) {
    const data::KnownDataset& known = data::known_dataset(set);
    const ScratchDirectory scratch;
    for (const auto& [file, bytes] : files_made(set, kSmall.at(set))) {
      fs::create_directories((scratch.path() / file).parent_path());
      std::ofstream(scratch.path() / file) << bytes;
    }
    const std::string own = data::how_to_get(known, scratch.path());
    EXPECT_TRUE(has_text(own, "generate " + set));
    EXPECT_TRUE(has_text(own, "--force"));
    std::ofstream(scratch.path() / "validation" /
                  (set == "deepcam" ? "data-2000-01-01-00-0.h5"
                                    : "univ_ics_2019-03_a10000668_00000000.tfrecord.gz"));
    const std::string downloaded = data::how_to_get(known, scratch.path());
    EXPECT_FALSE(has_text(downloaded, "generate"));
    EXPECT_TRUE(has_text(downloaded, "fetch what is missing or damaged (published: https://"));
  }
}

}  // namespace
}  // namespace tutti::cli
