#include "tutti/data/text/text_set.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "tutti/base/expect_text.h"
#include "tutti/data/file/file_bytes.h"
#include "tutti/data/file_checks.h"
#include "tutti/data/open/open.h"
#include "tutti/data/text/token_file.h"

namespace tutti::data {
namespace {

namespace fs = std::filesystem;
using Tokens = std::vector<int32_t>;

Tokens field_of(const TextSet& set, int64_t index, size_t field) {
  return values_of<int32_t>(set, index, set.fields()[field].name);
}

/// Returns the tokens of consecutive windows, without the padding of the last one.
Tokens tokens_of_windows(const TextSet& set) {
  Tokens all;
  for (int64_t i = 0; i < set.size(); ++i) {
    const Tokens tokens = field_of(set, i, 0), next = field_of(set, i, 1);
    if (i == 0) all.push_back(tokens[0]);
    for (size_t k = 0; k < next.size(); ++k)
      if (next[k] >= 0) {
        EXPECT_EQ(tokens[k], all.back());
        all.push_back(next[k]);
      }
  }
  return all;
}

TEST(TextSet, WindowsOfBytesCoverAText) {
  const ScratchDirectory scratch;
  const auto first = scratch.write("a.txt", std::string("to be, or"));
  const auto second = scratch.write("b.txt", std::string(" not"));
  const TextSet set({.files = {first, second}, .window = 5});
  ASSERT_EQ(set.size(), 3);
  EXPECT_EQ(set.spacing(), 1);
  EXPECT_EQ(set.fields()[0].to_string(), "i32 tokens 5");
  EXPECT_EQ(set.fields()[1].class_names.size(), 256u);
  EXPECT_EQ(field_of(set, 0, 0), (Tokens{'t', 'o', ' ', 'b', 'e'}));
  EXPECT_EQ(field_of(set, 0, 1), (Tokens{'o', ' ', 'b', 'e', ','}));
  EXPECT_EQ(field_of(set, 1, 0), (Tokens{',', ' ', 'o', 'r', ' '}));
  EXPECT_EQ(field_of(set, 2, 0), (Tokens{'n', 'o', 0, 0, 0}));
  EXPECT_EQ(field_of(set, 2, 1), (Tokens{'o', 't', -1, -1, -1}));
  EXPECT_EQ(set.tokenizer()->decode(tokens_of_windows(set)), "to be, or not");
}

TEST(TextSet, InTrainingAWindowBeginsAnywhere) {
  const ScratchDirectory scratch;
  const auto file = scratch.write("a.txt", std::string("abcdefgh"));
  const TextSet set({.files = {file}, .window = 3, .anywhere = true});
  ASSERT_EQ(set.size(), 5);
  EXPECT_EQ(set.spacing(), 3);
  EXPECT_EQ(field_of(set, 4, 0), (Tokens{'e', 'f', 'g'}));
  EXPECT_EQ(field_of(set, 4, 1), (Tokens{'f', 'g', 'h'}));
}

TEST(TextSet, TheEndOfTheTextValidates) {
  const ScratchDirectory scratch;
  std::string text;
  for (int i = 0; i < 999; ++i) text += static_cast<char>('a' + i % 26);
  const auto file = scratch.write("a.txt", text);
  TextSetSpec spec{.files = {file}, .window = 10, .cut = 0.1};
  spec.part = TextSetSpec::Part::before_cut;
  const TextSet train(spec);
  spec.part = TextSetSpec::Part::behind_cut;
  const TextSet validation(spec);
  EXPECT_EQ(train.tokens(), 899);  // int(0.9 * n)
  EXPECT_EQ(validation.tokens(), 100);
  EXPECT_EQ(train.tokenizer()->decode(tokens_of_windows(train)) +
                train.tokenizer()->decode(tokens_of_windows(validation)),
            text);
  EXPECT_EQ(tokens_before(250, 999), 749);
  EXPECT_EQ(tokens_before(0.1, 1115394), 1003854);
}

TEST(TextSet, CharactersHaveTheVocabularyOfTheTrainingText) {
  const ScratchDirectory scratch;
  std::string text;  // longer than the stride of places and than a block
  const std::vector<std::string> characters = {"a", "\xc3\xa9", "\xe6\x97\xa5", "\xf0\x9f\x8e\xb5"};
  for (size_t i = 0; i < 60'000; ++i) text += characters[(i * i / 7) % 4];
  const auto file = scratch.write("a.txt", text);
  TextSetSpec spec{.kind = TextSetSpec::Kind::characters, .files = {file, file}, .window = 777};
  const TextSet set(spec);
  EXPECT_EQ(set.vocabulary(), 4);
  EXPECT_EQ(set.tokens(), 120'000);
  EXPECT_EQ(set.fields()[1].class_names[1], "\xc3\xa9");
  EXPECT_EQ(set.tokenizer()->decode(tokens_of_windows(set)), text + text);

  const auto other = scratch.write("b.txt", std::string("aaaa\u00e9a"));
  const TextSet validation(
      {.kind = TextSetSpec::Kind::characters, .files = {other}, .window = 4, .training = {file}});
  EXPECT_EQ(validation.tokenizer()->identity(), set.tokenizer()->identity());
  EXPECT_EQ(field_of(validation, 1, 0), (Tokens{1, 0, 0, 0}));
  const auto refuse = [](const TextSetSpec& wrong, const std::vector<std::string>& parts) {
    expect_config_error([&] { TextSet{wrong}; }, parts);
  };
  TextSetSpec wrong{.kind = TextSetSpec::Kind::characters, .files = {file}, .window = 4};
  wrong.training = {other};
  refuse(wrong, {file.string(), "the character '\xe6\x97\xa5' (U+65E5)", "not in the vocabulary"});
  // The message names file and byte of the first one; here it is in the second file.
  const auto good = scratch.write("good.txt", std::string(5000, 'a'));
  const auto bad = scratch.write("bad.txt", std::string(4500, 'a') + "\xc3\xa9Z a Z");
  wrong.files = {good, bad};
  refuse(wrong, {bad.string() + ": the character ' ' (U+0020) at byte 4503"});
  // A byte-order mark is no character.
  const auto marked = scratch.write("m.txt", "\xef\xbb\xbf" + text);
  spec.files = {marked, marked};
  EXPECT_EQ(tokens_of_windows(TextSet(spec)), tokens_of_windows(set));
  // In a cut, characters come from the part before it.
  const auto late = scratch.write("c.txt", std::string("aaaaaaaaab"));
  spec = {.kind = TextSetSpec::Kind::characters, .files = {late}, .window = 2, .cut = 0.3};
  spec.part = TextSetSpec::Part::behind_cut;
  refuse(spec, {"the character 'b'"});
  write_tokenizer(*set.tokenizer(), scratch.path());
  spec = {.kind = TextSetSpec::Kind::characters, .files = {other}, .window = 2};
  spec.vocabulary = scratch.path();
  EXPECT_EQ(TextSet(spec).vocabulary(), 4);
}

fs::path write_tokens(const fs::path& path, const Tokens& tokens, TokenHeader header = {}) {
  if (header.vocabulary == 0) header.vocabulary = 10;
  TokenWriter writer(path, header);
  writer.write(tokens);
  writer.close(header.shards);
  return path;
}

TEST(TextSet, TokenFilesAreShardsOfOneText) {
  const ScratchDirectory scratch;
  const auto write = [&](int64_t shard, const Tokens& tokens) {
    return write_tokens(scratch.path() / fmt::format("train-{}.tokens", shard), tokens,
                        {.vocabulary = 10, .end_token = 9, .shard = shard, .shards = 3});
  };
  const fs::path a = write(0, {9, 1, 2, 3}), b = write(1, {}), c = write(2, {9, 4, 9, 5, 6});
  TextSetSpec spec{.kind = TextSetSpec::Kind::tokens, .files = {c, a, b}, .window = 6};
  spec.segments = true;
  const TextSet set(spec);
  EXPECT_EQ(tokens_of_windows(set), (Tokens{9, 1, 2, 3, 9, 4, 9, 5, 6}));
  ASSERT_EQ(set.fields().size(), 3u);
  // The end token begins a document and follows the previous one.
  EXPECT_EQ(field_of(set, 0, 1), (Tokens{1, 2, 3, 9, 4, 9}));
  EXPECT_EQ(field_of(set, 0, 2), (Tokens{0, 0, 0, 0, 1, 1}));
  EXPECT_EQ(field_of(set, 1, 0), (Tokens{9, 5, 0, 0, 0, 0}));
  EXPECT_EQ(field_of(set, 1, 2), (Tokens{0, 0, 0, 0, 0, 0}));

  spec.files = {a, b};
  expect_io_error([&] { TextSet{spec}; }, {b.string(), "2 of 3 shards"});
  spec.files = {a, c};
  expect_io_error([&] { TextSet{spec}; }, {c.string(), "is shard 2 of 3, and 1 is missing"});
  spec.files = {a, a, b};
  expect_io_error([&] { TextSet{spec}; }, {a.string(), "is shard 0 of 3", "there twice"});
  const fs::path other = write_tokens(scratch.path() / "other.tokens", {1},
                                      {.vocabulary = 11, .shard = 1, .shards = 3});
  spec.files = {a, other, c};
  expect_io_error([&] { TextSet{spec}; }, {other.string(), "belong together"});
  // A tokenizer with another vocabulary lies beside them.
  write_tokenizer(*byte_tokenizer(true), scratch.path());
  spec.files = {a, b, c};
  expect_io_error([&] { TextSet{spec}; }, {a.string(), "vocab.json", "257 tokens"});
}

TEST(TextSet, RefusesWhatIsNoText) {
  const ScratchDirectory scratch;
  const auto refused = [&](const std::string& text, TextSetSpec spec,
                           const std::vector<std::string>& parts) {
    spec.files = {scratch.write("text", text)};
    expect_error<Error>([&] { TextSet{spec}; }, parts);
  };
  const std::string name = (scratch.path() / "text").string();
  refused("", {}, {name, "has no text"});
  refused("abc", {.window = 3, .anywhere = true}, {name, "3 tokens", "needs 4", "data.window (3)"});
  refused("a", {.window = 3}, {name, "has 1 tokens"});
  refused("abcdef", {.window = 2, .part = TextSetSpec::Part::behind_cut, .cut = 0.1},
          {"has 1 tokens", "data.validation"});
  refused("ab\xff", {.kind = TextSetSpec::Kind::characters}, {name, "byte 2 (0xff) is no UTF-8"});
  refused("abcdef", {.window = 2, .segments = true}, {name, "--separator"});
  refused("\x1f\x8b", {}, {name, "gzip"});
  refused(std::string("\xff\xfeT\0o\0", 6), {.kind = TextSetSpec::Kind::characters},
          {name, "UTF-16", "iconv -f UTF-16 -t UTF-8"});
  for (const std::string& binary : {std::string("%PDF-1.4\n1 0 obj\n"), std::string(64, '\0'),
                                    std::string("SQLite format 3\0", 16),
                                    std::string("PAR1\x15\0", 6), std::string("GGUF\3\0\0\0", 8)})
    refused(binary, {.kind = TextSetSpec::Kind::characters},
            {name, "expected a text in UTF-8, found"});
  refused("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n", {},
          {name, "git lfs pull"});
  refused("TUTTITOK", {}, {name, "data.dataset = \"tokens\""});
  refused("TUTTITOK", {.kind = TextSetSpec::Kind::tokens}, {name, "fewer than the header"});
  refused("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n",
          {.kind = TextSetSpec::Kind::tokens}, {name, "is no token file", "git lfs pull"});
  const TextSet page({.kind = TextSetSpec::Kind::characters,
                      .files = {scratch.write("page", "<!DOCTYPE html><html>and more</html>")},
                      .window = 3});
  EXPECT_GT(page.size(), 0) << "a page is a text";
}

TEST(TokenFile, GivesBackWhatWasWritten) {
  const ScratchDirectory scratch;
  for (const int64_t vocabulary : {10, 65536, 100'000}) {
    Tokens tokens;
    for (int64_t i = 0; i < 5000; ++i)
      tokens.push_back(static_cast<int32_t>(i * 7919 % vocabulary));
    const auto path = write_tokens(scratch.path() / "x", tokens,
                                   {.token_bytes = token_bytes_of(vocabulary),
                                    .vocabulary = vocabulary,
                                    .end_token = 3,
                                    .tokenizer = 77});
    const TokenFile file(FileBytes::open(path));
    EXPECT_EQ(fs::file_size(path), 64 + 5000 * (vocabulary > 65536 ? 4 : 2));
    EXPECT_EQ(file.size(), 5000);
    EXPECT_EQ(file.header().end_token, 3);
    EXPECT_EQ(file.header().tokenizer, 77u);
    Tokens part(1234);
    file.read(501, part);
    EXPECT_TRUE(std::equal(part.begin(), part.end(), tokens.begin() + 501));
    file.verify();
  }
}

TEST(TokenFile, RefusesWhatIsDamaged) {
  const ScratchDirectory scratch;
  const auto path = write_tokens(scratch.path() / "x", {1, 2, 3});
  const Bytes whole = read_all(path);
  const auto refused = [&](Bytes bytes, const std::vector<std::string>& parts) {
    expect_io_error([&] { TokenFile(FileBytes::own(std::move(bytes), "file")).verify(); }, parts);
  };
  refused(sized(whole, 20), {"file: has 20 bytes", "data tokenize"});
  refused(changed(whole, 0, 'X'), {"file: is no token file"});
  refused(changed(whole, 8, 2), {"file: is of version 2"});
  refused(changed(whole, 16, 11), {"file: its header is damaged"});
  refused(sized(whole, 68), {"3 tokens of 2 bytes, and 4 bytes follow"});
  refused(sized(whole, 69), {"and 5 bytes follow"});
  refused(changed(whole, 64, 2), {"file: the checksum of its tokens"});
  Bytes large = changed(whole, 19, 1);  // a vocabulary of 2^24 + 10
  const uint64_t sum = token_header_sum(large);
  std::memcpy(large.data() + 56, &sum, sizeof sum);
  refused(large, {"file: says that its vocabulary has 16777226 tokens, of 1 to 1048576"});
  Tokens token(1);
  expect_io_error([&] { TokenFile(FileBytes::own(changed(whole, 66, 99), "file")).read(1, token); },
                  {"file: token number 1 is 99", "the vocabulary has 10"});
}

TEST(TextSet, AFolderIsRefusedWithThePatternOfItsFiles) {
  const ScratchDirectory scratch;
  fs::create_directory(scratch.path() / "texts");
  DatasetSpec spec{.name = "text", .dir = scratch.path(), .split = "train"};
  spec.arrays.train = {"texts"};
  EXPECT_EQ(message_of<ConfigError>([&] { open_dataset(spec); }),
            "data.train_files: " + (scratch.path() / "texts").string() +
                " is a folder: name the text files in it, or a pattern such as \"texts/*.txt\"");
}

}  // namespace
}  // namespace tutti::data
