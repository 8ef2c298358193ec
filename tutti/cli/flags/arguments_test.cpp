#include "tutti/cli/flags/arguments.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "tutti/base/error.h"
#include "tutti/base/expect_text.h"

namespace tutti::cli {
namespace {

using Words = std::vector<std::string>;

/// Verbs whose variables the tests check.
struct Sample {
  std::string file, resume, lr, table = "none";
  Words sets, names;
  std::vector<int> ranks;
  int count = 0, verbose = 0;
  bool json = false, measure = true, tune = false;

  std::vector<Verb> verbs() {
    Verb train{.name = "train", .summary = "Train"};
    train.arguments = {{.names = "FILE", .bind = &file, .required = "train needs a file"}};
    train.flags = {
        {.names = "--resume", .value = "DIR", .bind = &resume, .alone = "latest"},
        {.names = "--lr", .value = "X", .bind = &lr},
        {.names = "--table", .value = "FILE", .bind = &table, .alone = ""},
        {.names = "--set", .value = "KEY=VALUE", .bind = &sets},
        {.names = "--ranks", .value = "N,N", .bind = &ranks, .least = 1},
        {.names = "-n,--count",
         .value = "N",
         .bind = &count,
         .least = 1,
         .greatest = 10,
         .variable = "TUTTI_TEST_COUNT"},
        {.names = "-v,--verbose", .bind = Counts{&verbose}},
        {.names = "-j,--json", .bind = &json},
        {.names = "--no-measure", .bind = Clears{&measure}},
        {.names = "--tune", .bind = &tune, .excludes = {"--count"}},
    };
    train.foreign = {{"-g", "write --ranks N."}};
    const Verb list{.name = "list",
                    .summary = "List",
                    .arguments = {{.names = "NAME", .bind = &names}},
                    .flags = {{.names = "--origins", .bind = &json}},
                    .run = [] { return 0; }};
    return {train, {.name = "data", .summary = "Data", .verbs = {list}}};
  }
};

/// Returns the variables after parsing.
Sample parsed(const Words& words) {
  Sample sample;
  const auto verbs = sample.verbs();
  parse_arguments(find_verb(verbs, words));
  return sample;
}

std::string error_of(const Words& words) {
  return message_of<ConfigError>("", [&] { parsed(words); });
}

TEST(Arguments, SpellingsOfAFlag) {
  EXPECT_EQ(parsed({"train", "x", "--lr", "0.1"}).lr, "0.1");
  EXPECT_EQ(parsed({"train", "x", "--lr=-1"}).lr, "-1");
  EXPECT_EQ(parsed({"train", "x", "--lr", "-1"}).lr, "-1") << "a number is no flag";
  EXPECT_EQ(parsed({"train", "x", "-n", "4"}).count, 4);
  EXPECT_EQ(parsed({"train", "-n4", "x"}).count, 4);
  EXPECT_EQ(parsed({"train", "x", "-vvj"}).verbose, 2);
  EXPECT_TRUE(parsed({"train", "x", "-vvj"}).json);
  EXPECT_FALSE(parsed({"train", "x", "--no_measure"}).measure) << "_ is as good as -";
  EXPECT_EQ(parsed({"train", "x", "--ranks", "1,2,4"}).ranks, (std::vector<int>{1, 2, 4}));
  EXPECT_EQ(parsed({"train", "--", "--lr"}).file, "--lr");
}

TEST(Arguments, KeysAreFlags) {
  EXPECT_EQ(parsed({"train", "x", "--optimizer.weight-decay", "1e-4", "--set", "a.b=2"}).sets,
            (Words{"--optimizer.weight_decay=1e-4", "a.b=2"}));
  EXPECT_EQ(parsed({"train", "x", "--optimizer.lr=0.1"}).sets, (Words{"--optimizer.lr=0.1"}));
}

TEST(Arguments, ResumeTakesAFolderOrNothing) {
  EXPECT_EQ(parsed({"train", "x", "--resume"}).resume, "latest");
  EXPECT_EQ(parsed({"train", "x", "--resume", "latest"}).resume, "latest");
  EXPECT_EQ(parsed({"train", "x", "--resume", "runs/a"}).resume, "runs/a");
  EXPECT_EQ(parsed({"train", "x", "--resume=runs/a"}).resume, "runs/a");
  EXPECT_EQ(parsed({"train", "--resume", "runs/a", "x"}).resume, "runs/a");
  EXPECT_EQ(parsed({"train", "--resume", "runs/a", "x"}).file, "x");
  EXPECT_EQ(parsed({"train", "x", "--resume", "-v"}).resume, "latest");
  const Sample only = parsed({"train", "--resume", "x.toml"});
  EXPECT_EQ(only.file, "x.toml") << "the verb needs its file more";
  EXPECT_EQ(only.resume, "latest");
}

TEST(Arguments, AFlagMayStandAloneForNothing) {
  EXPECT_EQ(parsed({"train", "x"}).table, "none");
  EXPECT_EQ(parsed({"train", "x", "--table"}).table, "");
  EXPECT_EQ(parsed({"train", "x", "--table", "-v"}).table, "");
  EXPECT_EQ(parsed({"train", "x", "--table="}).table, "") << "how it is handed to mpirun's ranks";
  EXPECT_EQ(parsed({"train", "x", "--table", "a.txt"}).table, "a.txt");
}

TEST(Arguments, FlagsBeforeTheVerb) {
  const Sample sample = parsed({"-v", "--lr", "0.1", "train", "x"});
  EXPECT_EQ(sample.verbose, 1);
  EXPECT_EQ(sample.lr, "0.1");
  EXPECT_EQ(sample.file, "x");
  EXPECT_EQ(parsed({"data", "list", "a", "b"}).names, (Words{"a", "b"}));
}

TEST(Arguments, TheEnvironmentStandsForAnAbsentFlag) {
  setenv("TUTTI_TEST_COUNT", "7", 1);
  EXPECT_EQ(parsed({"train", "x"}).count, 7);
  EXPECT_EQ(parsed({"train", "x", "-n", "2"}).count, 2);
  setenv("TUTTI_TEST_COUNT", "seven", 1);
  EXPECT_EQ(error_of({"train", "x"}),
            "TUTTI_TEST_COUNT must be a whole number from 1 to 10, is 'seven'");
  unsetenv("TUTTI_TEST_COUNT");
}

TEST(Arguments, MistakesSayWhatToDo) {
  const std::string see = " See tutti train --help.";
  const std::pair<Words, std::string> mistakes[] = {
      {{"trian", "x"}, "the verb 'trian' is unknown, did you mean 'train'? See tutti --help."},
      {{"export", "x"},
       "the verb 'export' is unknown: other programs read the weights.safetensors of a checkpoint "
       "as it is. See tutti --help."},
      {{"data", "lsit"}, "the verb 'lsit' is unknown, did you mean 'list'? See tutti data --help."},
      {{"train"}, "train needs a file." + see},
      {{"train", "x", "--jsno"}, "the flag '--jsno' is unknown, did you mean '--json'?" + see},
      {{"train", "x", "--learning-rate", "1"},
       "the flag '--learning-rate' is unknown, did you mean '--lr'?" + see},
      {{"train", "x", "--origins"},
       "the flag '--origins' is not one of tutti train, but of tutti data list." + see},
      {{"train", "x", "y"}, "the argument 'y' is one too many." + see},
      {{"train", "x", "-n", "two"}, "--count must be a whole number from 1 to 10, is 'two'"},
      {{"train", "x", "-n", "0"}, "--count must be a whole number from 1 to 10, is '0'"},
      {{"train", "x", "--lr"}, "--lr needs a value: --lr X." + see},
      {{"train", "x", "--lr", "--json"}, "--lr needs a value: --lr X." + see},
      {{"train", "x", "--json=1"}, "--json is a switch and takes no value." + see},
      {{"train", "x", "--lr", ""},
       "--lr is given an empty value, as by a shell variable that is not set." + see},
      {{"train", "x", "--resume="},
       "--resume is given an empty value, as by a shell variable that is not set." + see},
      {{"train", ""},
       "FILE is given an empty value, as by a shell variable that is not set." + see},
      {{"train", "x", "--lr=1", "--lr=2"}, "--lr is given twice." + see},
      {{"train", "x", "--tune", "-n2"},
       "--tune and --count contradict each other: give one." + see},
      {{"train", "x", "-g", "2"}, "the flag '-g' is not one of tutti train: write --ranks N."},
  };
  for (const auto& [words, message] : mistakes) EXPECT_EQ(error_of(words), message);
  EXPECT_EQ(error_of({"train", "x", "--lr="}), error_of({"train", "x", "--lr", ""}));
  EXPECT_EQ(error_of({"train", "x", "--resume", ""}), error_of({"train", "x", "--resume="}));
}

TEST(Arguments, Help) {
  EXPECT_TRUE(asks_for_help({"train", "-h"}));
  EXPECT_FALSE(asks_for_help({"train", "--", "-h"}));
}

}  // namespace
}  // namespace tutti::cli
