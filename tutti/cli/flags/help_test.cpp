// Every verb and flag of the program has a help that reads well, and every example parses.

#include "tutti/cli/flags/help.h"

#include <gtest/gtest.h>

#include <cctype>
#include <functional>
#include <set>
#include <sstream>

#include "tutti/base/error.h"
#include "tutti/base/expect_text.h"
#include "tutti/cli/flags/arguments.h"
#include "tutti/cli/flags/man_page.h"
#include "tutti/cli/verbs/verbs.h"

namespace tutti::cli {
namespace {

using Visit = std::function<void(const Verb&, const std::string& command)>;

void walk(const std::vector<Verb>& verbs, const std::string& prefix, const Visit& visit) {
  for (const Verb& verb : verbs) {
    visit(verb, prefix + " " + verb.name);
    walk(verb.verbs, prefix + " " + verb.name, visit);
  }
}

void every_verb(const Visit& visit) { walk(all_verbs(), "tutti", visit); }

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

/// Returns the words of an example's command after `tutti`, up to the first that only a shell
/// understands.
std::vector<std::string> words_of(const std::string& command) {
  std::istringstream stream(command.substr(command.find("tutti ") + 6));
  std::vector<std::string> words;
  for (std::string word; stream >> word && word != ">" && word != "|";) words.push_back(word);
  return words;
}

void expect_sentence(const std::string& text, const std::string& of) {
  ASSERT_FALSE(text.empty()) << of << " has no help";
  EXPECT_TRUE(std::isupper(static_cast<unsigned char>(text.front())) ||
              !std::isalpha(text.front()) || text.find(':') != std::string::npos ||
              text.find(',') != std::string::npos || text == "lattices")
      << of << ": " << text;
  EXPECT_TRUE(std::isalnum(static_cast<unsigned char>(text.back())) || text.back() == ')' ||
              text.back() == '?')
      << of << " ends in debris: " << text;
  for (const char* debris : {"{", "}", "REQUIRED", " in [", "  ", ":INT", ":FLOAT", "\n"})
    EXPECT_FALSE(has_text(text, debris)) << of;
}

TEST(Help, EveryFlagExplainsItself) {
  every_verb([](const Verb& verb, const std::string& command) {
    expect_sentence(verb.summary, command);
    EXPECT_LE(verb.summary.size(), 72u) << command;
    for (const Flag& argument : verb.arguments)
      expect_sentence(argument.help, command + " " + argument.names);
    for (const Flag& flag : verb.flags) {
      expect_sentence(flag.help, command + " " + flag.names);
      for (const std::string& name : flag.excludes)
        EXPECT_NE(find_flag(verb, name), nullptr) << command << " " << flag.names << ": " << name;
      EXPECT_FALSE(takes_value(flag) && flag.value.empty() && flag.choices.empty())
          << command << " " << flag.names << " does not name its value";
      for (const std::string& name : names_of(flag))
        EXPECT_EQ(find_flag(verb, name), &flag) << command << " " << name << " stands twice";
    }
  });
}

TEST(Help, EveryVerbHasAnExampleThatParses) {
  every_verb([](const Verb& verb, const std::string& command) {
    EXPECT_NE(verb.verbs.empty(), !verb.run) << command << " runs or has verbs";
    EXPECT_FALSE(verb.verbs.empty() && verb.examples.empty()) << command << " has no example";
    for (const Example& example : verb.examples) {
      expect_sentence(example.meaning, example.command);
      const auto verbs = all_verbs();
      EXPECT_NO_THROW({
        const Request request = find_verb(verbs, words_of(example.command));
        EXPECT_EQ(request.command, command) << example.command;
        parse_arguments(request);
      }) << example.command;
    }
  });
}

TEST(Help, FitsTheTerminal) {
  for (const int width : {40, 80, 100}) {
    const auto fits = [&](const std::string& text) {
      for (const std::string& line : lines_of(text)) {
        if (line.find("tutti ") != std::string::npos) continue;  // a command is not broken
        const std::string trimmed = line.substr(std::min(line.find_first_not_of(' '), line.size()));
        EXPECT_TRUE(line.size() <= static_cast<size_t>(width) ||
                    trimmed.find(' ') == std::string::npos ||
                    trimmed.starts_with("-"))  // a flag with its value
            << width << ": " << line;
      }
    };
    fits(overview(all_verbs(), width));
    every_verb([&](const Verb& verb, const std::string& command) {
      fits(help_text(verb, command, width));
    });
  }
}

/// The command line of a run then fits these verbs, too, with its words after the verb unchanged.
TEST(Help, ConfigAndPlanTakeTheFlagsOfTrainThatStandForKeys) {
  const auto verbs = all_verbs();
  int keys = 0;
  for (const Flag& flag : find_verb(verbs, {"train"}).verb->flags) {
    if (flag.key.empty()) continue;
    ++keys;
    for (const char* verb : {"config", "plan"})
      EXPECT_NE(find_flag(*find_verb(verbs, {verb}).verb, long_name(flag)), nullptr)
          << verb << " " << flag.names;
  }
  EXPECT_GT(keys, 20);
}

TEST(Help, OnlyFlagsThatMeanSomething) {
  const std::set<std::string> of_training = {"tutti train", "tutti replay", "tutti study",
                                             "tutti config", "tutti plan"};
  every_verb([&](const Verb& verb, const std::string& command) {
    if (of_training.contains(command)) return;
    for (const char* name : {"--epochs", "--lr", "--target", "--resume", "--profile", "--seed"}) {
      const bool own = command + name == "tutti data generate--seed" ||
                       command + name == "tutti generate--seed" ||
                       command + name == "tutti bench step--profile";
      EXPECT_EQ(find_flag(verb, name) != nullptr, own) << command << " " << name;
    }
  });
}

TEST(Help, VerbsThatComputeTakeADevice) {
  const auto verbs = all_verbs();
  for (const char* command : {"train", "replay", "study", "config", "plan", "advise", "eval",
                              "infer", "generate", "translate", "model show", "bench step"}) {
    const Request request = find_verb(verbs, words_of(std::string("tutti ") + command));
    for (const char* name : {"--device", "--gpu"})
      EXPECT_NE(find_flag(*request.verb, name), nullptr) << command << " " << name;
  }
}

TEST(Help, VerbsThatPrintFactsPrintJson) {
  const auto verbs = all_verbs();
  for (const char* command : {"train", "infer", "data stats", "data inspect", "eval", "study",
                              "config", "plan", "model list", "model show", "data list",
                              "data verify", "doctor", "bench step", "bench ops", "bench comm"}) {
    const Request request = find_verb(verbs, words_of(std::string("tutti ") + command));
    const Flag* json = find_flag(*request.verb, "--json");
    ASSERT_NE(json, nullptr) << command;
    EXPECT_FALSE(takes_value(*json)) << command << ": --json is a switch";
  }
}

TEST(Help, ShowsUsageDefaultsAndExamples) {
  const auto verbs = all_verbs();
  const std::string train = help_text(verbs.front(), "tutti train", 100);
  EXPECT_TRUE(has_text(train, "Usage: tutti train FILE [FLAGS]\n"));
  EXPECT_TRUE(has_text(train, "--resume [DIR]"));
  EXPECT_TRUE(has_text(train, "Examples:\n  tutti train run.toml\n"));
  EXPECT_TRUE(has_text(train, "See also: "));
  EXPECT_TRUE(has_text(train, "variable TUTTI_RANKS"));
  const Request step = find_verb(verbs, {"bench", "step"});
  EXPECT_TRUE(has_text(help_text(*step.verb, step.command, 80), "default resnet44"));
  const std::string all = overview(verbs, 80);
  EXPECT_LT(all.find("Train:"), all.find("Look before you run:")) << "by task";
}

TEST(Help, Wrapping) {
  EXPECT_EQ(wrap("aa bb cc", 5, 0, 0), "aa bb\ncc");
  EXPECT_EQ(wrap("aa bb cc", 7, 2, 2), "aa bb\n  cc");
  EXPECT_EQ(wrap("a-word-that-is-too-long b", 5, 1, 1), "a-word-that-is-too-long\n b");
  EXPECT_EQ(wrap("a\nb", 80, 2, 0), "a\n  b");
}

TEST(ManPage, NamesEveryVerbAndFlag) {
  const std::string page = man_page(all_verbs());
  const auto escaped = [](std::string text) {
    for (size_t at = 0; (at = text.find('-', at)) != std::string::npos; at += 2)
      text.insert(at, "\\");
    return text;
  };
  every_verb([&](const Verb& verb, const std::string& command) {
    EXPECT_TRUE(has_text(page, ".SS " + escaped(usage_line(verb, command)) + "\n")) << command;
    for (const Flag& flag : verb.flags)
      EXPECT_TRUE(has_text(page, escaped(spelling(flag)))) << command << flag.names;
  });
  for (const char* section : {"ENVIRONMENT", "FILES", "SIGNALS", "EXIT STATUS", "EXAMPLES"})
    EXPECT_TRUE(has_text(page, std::string(".SH ") + section)) << section;
  for (const std::string& line : lines_of(page)) {
    if (!line.starts_with(".")) continue;
    const std::string request = line.substr(0, line.find(' '));
    EXPECT_TRUE(request == ".TH" || request == ".SH" || request == ".SS" || request == ".TP" ||
                request == ".PP" || request == ".br" || request == ".B" || request == ".BR" ||
                request == ".I" || request == ".\\\"")
        << line;
  }
}

}  // namespace
}  // namespace tutti::cli
