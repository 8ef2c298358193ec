#include "tutti/generate/text.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <sstream>
#include <string>

#include "tutti/base/error.h"
#include "tutti/base/scratch_directory.h"
#include "tutti/generate/sample_sets.h"

namespace tutti::generate {
namespace {

TEST(GeneratedText, IsAFunctionOfSeedAndNumber) {
  const SentenceSpec spec{.seed = 3, .words = 50};
  std::set<std::string> all;
  for (int64_t i = 0; i < 200; ++i) {
    const std::string sentence = generate_sentence(spec, i);
    EXPECT_EQ(sentence, generate_sentence(spec, i));
    EXPECT_TRUE(sentence.ends_with(".\n"));
    EXPECT_EQ(std::ranges::count(sentence, '\n'), 1);
    EXPECT_EQ(std::ranges::count(sentence, '('), std::ranges::count(sentence, ')'));
    all.insert(sentence);
  }
  EXPECT_GT(all.size(), 195u);
  EXPECT_NE(generate_sentence({.seed = 4, .words = 50}, 0), generate_sentence(spec, 0));
  int same = 0;
  for (int64_t i = 0; i < 200; ++i)
    same += all.contains(generate_sentence({.seed = 3, .words = 5}, i)) ? 1 : 0;
  EXPECT_LT(same, 60);
}

/// In a sentence of only an article, a noun and a verb, the verb has an "s" if the noun has none.
TEST(GeneratedText, VerbsAgreeWithTheirNouns) {
  int seen = 0;
  std::map<std::string, int> words;
  for (int64_t i = 0; i < 3000; ++i) {
    std::istringstream stream(generate_sentence({.seed = 1, .words = 40}, i));
    std::string article, noun, verb, more;
    stream >> article >> noun >> verb >> more;
    if (!more.empty() || !verb.ends_with('.')) continue;
    verb.pop_back();
    EXPECT_NE(noun.ends_with('s'), verb.ends_with('s')) << article << ' ' << noun << ' ' << verb;
    EXPECT_EQ(article == "some" && !noun.ends_with('s'), false);
    ++seen;
    ++words[noun];
  }
  EXPECT_GT(seen, 300);
  // There are frequent words and rare ones.
  EXPECT_GT(words.size(), 20u);
  EXPECT_GT(std::ranges::max_element(words, {}, [](const auto& w) { return w.second; })->second,
            seen / 15);
}

TEST(GeneratedText, AFailureIsAnIoErrorAndLeavesNothing) {
  const ScratchDirectory scratch;
  const auto files = [&] {
    std::set<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(scratch.path()))
      names.insert(entry.path().filename());
    return names;
  };
  write_text(scratch.path(), {.seed = 3, .words = 50}, {.train = 3, .test = 2}, 1);
  EXPECT_EQ(files(), (std::set<std::string>{"train.txt", "validation.txt"}));
  std::filesystem::remove(scratch.path() / "validation.txt");
  std::filesystem::create_directories(scratch.path() / "validation.txt" / "in the way");
  EXPECT_THROW(write_text(scratch.path(), {.seed = 3, .words = 50}, {.train = 3, .test = 2}, 1),
               IoError);
  EXPECT_EQ(files(), (std::set<std::string>{"train.txt", "validation.txt"}));
}

}  // namespace
}  // namespace tutti::generate
