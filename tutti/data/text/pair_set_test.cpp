#include "tutti/data/text/pair_set.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>

#include "tutti/data/file/file_bytes.h"
#include "tutti/data/file_checks.h"
#include "tutti/data/text/token_file.h"
#include "tutti/data/text/tokenize.h"
#include "tutti/data/text/tokenizer.h"
#include "tutti/generate/token_pairs.h"

namespace tutti::data {
namespace {

using Tokens = std::vector<int32_t>;

Tokens tokens_named(const PairSet& set, int64_t index, const char* name) {
  return values_of<int32_t>(set, index, name);
}

std::filesystem::path write_documents(const std::filesystem::path& path, const Tokens& tokens,
                                      int32_t end_token = 9) {
  TokenWriter writer(path, {.vocabulary = 10, .end_token = end_token});
  writer.write(tokens);
  writer.close(1);
  return path;
}

TEST(PairSet, ASampleIsADocumentAndWhatIsMadeFromIt) {
  const ScratchDirectory scratch;
  const auto source = write_documents(scratch.path() / "s", {9, 1, 2, 3, 9, 4, 9, 9, 5, 6, 7, 8}),
             target = write_documents(scratch.path() / "t", {9, 3, 2, 9, 4, 4, 4, 9, 1, 9, 5});
  const PairSet set({.source = {source}, .target = {target}, .window = 4});
  ASSERT_EQ(set.size(), 3);  // the third document of the source is empty
  EXPECT_EQ(set.left_out(), 1);
  EXPECT_EQ(tokens_named(set, 0, "source"), (Tokens{1, 2, 3, -1}));
  EXPECT_EQ(tokens_named(set, 0, "tokens"), (Tokens{9, 3, 2, -1}));
  EXPECT_EQ(tokens_named(set, 0, "next"), (Tokens{3, 2, 9, -1}));
  EXPECT_EQ(tokens_named(set, 1, "tokens"), (Tokens{9, 4, 4, 4}));
  EXPECT_EQ(tokens_named(set, 1, "next"), (Tokens{4, 4, 4, 9}));
  EXPECT_EQ(tokens_named(set, 2, "source"), (Tokens{5, 6, 7, 8}));
  // A window of 3 holds neither three tokens and their end token nor four tokens of a source.
  EXPECT_EQ(PairSet({.source = {source}, .target = {target}, .window = 3}).size(), 1);
  expect_config_error([&] { PairSet({.source = {source}, .target = {target}, .window = 1}); },
                      {source.string(), "none of 4 pairs", "data.window = 1"});
  const auto fewer = write_documents(scratch.path() / "f", {9, 1, 9, 2});
  expect_io_error([&] { PairSet({.source = {source}, .target = {fewer}}); },
                  {"has 4 documents", fewer.string(), "has 2"});
  const auto none = write_documents(scratch.path() / "n", {1, 2}, -1);
  expect_io_error([&] { PairSet({.source = {none}, .target = {target}}); },
                  {none.string(), "--separator"});
}

TEST(PairSet, AnEmptyDocumentOfATextShiftsNoPair) {
  const ScratchDirectory scratch;
  const auto tokenized = [&](const char* name, const std::string& text) {
    const auto to = scratch.path() / (std::string(name) + ".out");
    tokenize({.inputs = {scratch.write(name, text)}, .to = to, .kind = "bytes", .separator = "|"});
    return to / "train-00000.tokens";
  };
  const auto source = tokenized("s", "|a|b||d|"), target = tokenized("t", "A|B|C|D");
  const PairSet set({.source = {source}, .target = {target}, .window = 2});
  ASSERT_EQ(set.size(), 3);
  const auto tokenizer = byte_tokenizer(true);
  for (const auto& [i, a, b] : {std::tuple{0, 'a', 'A'}, {1, 'b', 'B'}, {2, 'd', 'D'}}) {
    EXPECT_EQ(tokenizer->text_of(tokens_named(set, i, "source")[0]), std::string(1, a));
    EXPECT_EQ(tokenizer->text_of(tokens_named(set, i, "next")[0]), std::string(1, b));
  }
}

TEST(PairSet, TasksAreWhatTheyAreCalled) {
  const ScratchDirectory scratch;
  const auto source = scratch.path() / "s", target = scratch.path() / "t";
  for (const std::string task : {"copy", "reverse", "sort"}) {
    const generate::SequenceSpec spec{.seed = 3, .task = task, .symbols = 12, .longest = 7};
    generate::write_sequences(source, target, spec, 100, 50);
    const PairSet set({.source = {source}, .target = {target}, .window = 8});
    ASSERT_EQ(set.size(), 50);
    EXPECT_EQ(set.fields()[0].class_names.size(), 13u);
    size_t longest = 0;
    for (int64_t i = 0; i < set.size(); ++i) {
      Tokens asked = generate::generate_sequence(spec, 100 + i);
      longest = std::max(longest, asked.size());
      Tokens whole = tokens_named(set, i, "source");
      whole.resize(asked.size());
      EXPECT_EQ(whole, asked);
      if (task == "reverse") std::ranges::reverse(asked);
      if (task == "sort") std::ranges::sort(asked);
      asked.push_back(12);
      asked.resize(8, -1);
      EXPECT_EQ(tokens_named(set, i, "next"), asked) << task;
    }
    EXPECT_EQ(longest, 7u);
  }
  expect_config_error([] { generate::asked_of({.task = "add"}, {}); },
                      {"'add'", "copy, reverse and sort"});
}

}  // namespace
}  // namespace tutti::data
