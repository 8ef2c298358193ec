#include "tutti/data/text/tokenize.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tutti/base/numeric/rng.h"
#include "tutti/data/file/file_bytes.h"
#include "tutti/data/file_checks.h"
#include "tutti/data/text/pre_tokens.h"
#include "tutti/data/text/text_source.h"
#include "tutti/data/text/tokenizer.h"

namespace tutti::data {
namespace {

namespace fs = std::filesystem;

/// Returns words of a small language, with blanks, lines and a few bytes that are no UTF-8.
std::string some_text(size_t size, bool utf8) {
  Rng rng(9, Purpose::test, 1);
  std::string text;
  while (text.size() < size) {
    for (uint32_t i = 0, letters = 1 + rng.below(7); i < letters; ++i)
      text += static_cast<char>('a' + rng.below(12));
    const std::vector<std::string> between = {" ",   " ",      " ",        ", ",
                                              ".\n", "\n\n  ", "\xc3\xa9", utf8 ? "-" : "\xff"};
    text += between[rng.below(8)];
  }
  return text;
}

std::string decoded(const fs::path& folder, const std::string& part) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.path().filename().string().starts_with(part + "-")) files.push_back(entry.path());
  const auto source = token_shards(files);
  std::vector<int32_t> tokens(static_cast<size_t>(source->size()));
  source->read(0, tokens);
  return read_tokenizer(folder)->decode(tokens);
}

TEST(Tokenize, TheSameFilesWithAnyNumberOfThreadsAndTheTextComesBack) {
  const ScratchDirectory scratch;
  const std::string text = some_text(700'000, false);  // several chunks
  const fs::path input = scratch.write("text", text);
  for (const std::string kind : {"bytes", "bpe"}) {
    TokenizeSpec spec{.inputs = {input}, .kind = kind, .vocabulary = 400, .validation = 0.25};
    spec.shard_tokens = 100'000;
    spec.to = scratch.path() / (kind + "1");
    const Tokenized made = tokenize(spec);
    EXPECT_EQ(made.kind, kind);
    EXPECT_EQ(made.vocabulary, kind == "bpe" ? 400 : 256);
    ASSERT_EQ(made.parts.size(), 2u);
    EXPECT_EQ(made.parts[0].bytes + made.parts[1].bytes, std::ssize(text));
    EXPECT_GT(made.parts[0].shards, 1);
    if (kind == "bpe") {
      EXPECT_LT(made.parts[0].tokens, made.parts[0].bytes * 2 / 3);
    }
    EXPECT_EQ(decoded(spec.to, "train") + decoded(spec.to, "validation"), text);
    spec.threads = 3;
    const fs::path one = spec.to;
    spec.to = scratch.path() / (kind + "3");
    tokenize(spec);
    for (const auto& entry : fs::directory_iterator(one))
      EXPECT_EQ(read_all(entry.path()), read_all(spec.to / entry.path().filename()))
          << entry.path();
  }
}

TEST(Tokenize, CharactersAreCutAsTextsAre) {
  const ScratchDirectory scratch;
  const std::string text = some_text(20'000, true);
  TokenizeSpec spec{.inputs = {scratch.write("text", text)}, .kind = "characters"};
  spec.to = scratch.path() / "out";
  spec.validation = 0.1;
  const Tokenized made = tokenize(spec);
  EXPECT_EQ(made.vocabulary, 18);  // 12 letters, five signs and an accent
  EXPECT_EQ(decoded(spec.to, "train") + decoded(spec.to, "validation"), text);
}

TEST(Tokenize, DocumentsBeginWithTheEndToken) {
  const ScratchDirectory scratch;
  const fs::path a = scratch.write("a", std::string("<s>one<s>two")),
                 b = scratch.write("b", std::string("three"));
  for (const std::string kind : {"bytes", "characters", "bpe"}) {
    TokenizeSpec spec{.inputs = {a, b}, .to = scratch.path() / kind, .kind = kind};
    spec.separator = "<s>";
    const Tokenized made = tokenize(spec);
    EXPECT_EQ(made.parts[0].documents, 3);
    EXPECT_EQ(made.parts[0].tokens, 3 + 11);
    const auto source = token_shards({spec.to / "train-00000.tokens"});
    std::vector<int32_t> tokens(14);
    source->read(0, tokens);
    EXPECT_EQ(source->end_token(), source->vocabulary() - 1);
    for (size_t i = 0; i < tokens.size(); ++i)
      EXPECT_EQ(tokens[i] == source->end_token(), i == 0 || i == 4 || i == 8) << i;
    EXPECT_EQ(decoded(spec.to, "train"), "onetwothree");
  }
  // An empty text between two separators is a document, before the first and after the last it is
  // none.
  const fs::path gaps = scratch.write("gaps", std::string("<s>one<s><s>two<s>"));
  const Tokenized made = tokenize(
      {.inputs = {gaps}, .to = scratch.path() / "gaps.out", .kind = "bytes", .separator = "<s>"});
  EXPECT_EQ(made.parts[0].documents, 3);
  EXPECT_EQ(made.parts[0].tokens, 3 + 6);
  // Another part must have the same tokens.
  TokenizeSpec more{.inputs = {b}, .to = scratch.path() / "bpe", .part = "test"};
  expect_config_error([&] { tokenize(more); }, {"the part 'test'", "--files"});
  more.files = more.to;
  tokenize(more);
  EXPECT_EQ(decoded(more.to, "test"), "three");
  expect_config_error([&] { tokenize(more); }, {"test-00000.tokens exists"});
  more.part = "validation";
  more.files = scratch.path() / "bytes";
  expect_config_error([&] { tokenize(more); }, {"vocab.json", "holds another tokenizer"});
}

TEST(Tokenize, RefusesWhatCannotBe) {
  const ScratchDirectory scratch;
  const fs::path text = scratch.write("text", std::string("some text\xff"));
  const fs::path to = scratch.path() / "out";
  const auto refuse = [](const TokenizeSpec& spec, const std::vector<std::string>& parts) {
    expect_config_error([&] { tokenize(spec); }, parts);
  };
  const auto refuse_file = [](const TokenizeSpec& spec, const std::vector<std::string>& parts) {
    expect_io_error([&] { tokenize(spec); }, parts);
  };
  refuse({.to = to}, {"needs a text"});
  refuse({.inputs = {text}, .to = to, .separator = "a b"}, {"'a b'", "white space"});
  refuse({.inputs = {text}, .to = to, .kind = "words"}, {"'words'", "known are"});
  refuse_file({.inputs = {text}, .to = to, .kind = "characters"},
              {text.string(), "0xff", "no UTF-8"});
  refuse({.inputs = {text}, .to = to, .vocabulary = 100}, {"100", "257"});
  refuse({.inputs = {text}, .to = to, .validation = 0.95}, {"0.95", "--validation"});
  refuse_file({.inputs = {scratch.write("e", std::string())}, .to = to}, {"is empty"});
  refuse({.inputs = {text}, .to = to, .files = to, .part = "validation", .validation = 0.5},
         {"--validation", "--part"});
  const fs::path packed = scratch.write("g", std::string("\x1f\x8b\x08"));
  refuse_file({.inputs = {packed}, .to = to}, {"/g", "gzip", "unpack"});
  const fs::path wide = scratch.write("w", std::string("\xff\xfeT\0o\0", 6));
  refuse_file({.inputs = {wide}, .to = to}, {"/w", "UTF-16", "iconv"});
  const fs::path paper = scratch.write("p.pdf", std::string("%PDF-1.4\n1 0 obj <<\n"));
  refuse_file({.inputs = {paper}, .to = to}, {"p.pdf", "a PDF document"});
  EXPECT_GT(tokenize({.inputs = {paper}, .to = to, .kind = "bytes"}).parts[0].tokens, 0);
  // The byte is counted from the start of the file, also after the first chunk and document.
  const fs::path late = scratch.write("late", std::string(300'000, 'a') + " <s> b\xff");
  refuse_file({.inputs = {late},
               .to = scratch.path() / "late.out",
               .kind = "characters",
               .separator = "<s>"},
              {"byte 300006 (0xff)"});
}

TEST(Tokenize, TextWithoutWhiteSpaceIsCutAtLongPieces) {
  const ScratchDirectory scratch;
  Rng rng(4, Purpose::test, 2);
  std::string text(600'000, 'a');
  for (char& c : text) c = static_cast<char>('a' + rng.below(3));
  TokenizeSpec spec{.inputs = {scratch.write("long", text)}, .to = scratch.path() / "long.out"};
  spec.vocabulary = 300;
  EXPECT_EQ(first_piece(text), kLongestPiece);
  EXPECT_GT(tokenize(spec).parts[0].tokens, 100'000);
  EXPECT_EQ(decoded(spec.to, "train"), text);
  // The tokens are those of pieces found from the beginning on.
  const auto source = token_shards({spec.to / "train-00000.tokens"});
  std::vector<int32_t> tokens(static_cast<size_t>(source->size()));
  source->read(0, tokens);
  std::vector<int32_t> whole = {source->end_token()};
  read_tokenizer(spec.to)->encode(text, "text", whole);
  EXPECT_EQ(tokens, whole);
  text.insert(500'000, "<s>");
  spec.inputs = {scratch.write("two", text)};
  spec.to = scratch.path() / "two.out";
  spec.separator = "<s>";
  EXPECT_EQ(tokenize(spec).parts[0].documents, 2);
}

}  // namespace
}  // namespace tutti::data
