#include "tutti/data/text/tokenizer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "tutti/base/numeric/rng.h"
#include "tutti/data/file/file_bytes.h"
#include "tutti/data/file_checks.h"
#include "tutti/data/text/pair_training.h"
#include "tutti/data/text/pre_tokens.h"
#include "tutti/data/text/utf8.h"

namespace tutti::data {
namespace {

using Words = std::vector<std::string>;
using Tokens = std::vector<int32_t>;

Words pieces_of(std::string_view text) {
  Words pieces;
  while (!text.empty()) {
    const size_t bytes = first_piece(text);
    EXPECT_GT(bytes, 0u);
    pieces.emplace_back(text.substr(0, bytes));
    text.remove_prefix(bytes);
  }
  return pieces;
}

Tokens encoded(const Tokenizer& tokenizer, std::string_view text) {
  Tokens tokens;
  tokenizer.encode(text, "text", tokens);
  return tokens;
}

/// Returns any bytes, those of a few words more often.
std::string any_bytes(uint64_t stream, size_t size) {
  Rng rng(3, Purpose::test, stream);
  std::string text;
  while (text.size() < size) {
    const Words words = {"the", " then", "\n\n", "  ", "aaaa", "'ll", " 12", "\xc3\xa9t\xc3\xa9"};
    if (rng.below(3) == 0)
      text += static_cast<char>(rng.below(256));
    else
      text += words[rng.below(8)];
  }
  return text;
}

TEST(PreTokens, AreThoseOfTheExpression) {
  EXPECT_EQ(pieces_of("I've 3 dogs,  don't"),
            (Words{"I", "'ve", " 3", " dogs", ",", " ", " don", "'t"}));
  EXPECT_EQ(pieces_of("a\n\n  b \n"), (Words{"a", "\n\n ", " b", " \n"}));
  EXPECT_EQ(pieces_of("a\nb\tc  "), (Words{"a", "\n", "b", "\t", "c", "  "}));
  EXPECT_EQ(pieces_of(" 'S 's'"), (Words{" '", "S", " '", "s", "'"}));
  EXPECT_EQ(pieces_of("x2y!?"), (Words{"x", "2", "y", "!?"}));
  // Unicode: letters with marks apart, numbers of other scripts, a no-break space, an ideograph.
  EXPECT_EQ(pieces_of("\xc3\xa9t\xc3\xa9 \xd9\xa3\xc2\xa0\xe6\x97\xa5"),
            (Words{"\xc3\xa9t\xc3\xa9", " \xd9\xa3", "\xc2\xa0", "\xe6\x97\xa5"}));
  EXPECT_EQ(pieces_of("e\xcc\x81"), (Words{"e", "\xcc\x81"}));
  EXPECT_EQ(pieces_of("a\xff\xfe z"), (Words{"a", "\xff\xfe", " z"}));  // no UTF-8
}

TEST(PreTokens, ASafeCutChangesNoPiece) {
  for (uint64_t stream = 0; stream < 50; ++stream) {
    const std::string text = any_bytes(stream, 200);
    const Words whole = pieces_of(text);
    const size_t cut = last_safe_cut(text);
    if (cut == 0) continue;
    Words parts = pieces_of(std::string_view(text).substr(0, cut));
    const Words rest = pieces_of(std::string_view(text).substr(cut));
    parts.insert(parts.end(), rest.begin(), rest.end());
    EXPECT_EQ(parts, whole);
  }
  EXPECT_EQ(last_safe_cut("onewordalone"), 0u);
  EXPECT_EQ(last_safe_cut("one two"), 3u);
  EXPECT_EQ(last_safe_cut("\xe6\x97\xa5 "), 3u);
  EXPECT_EQ(last_safe_cut("\xc2\xa0 a"), 0u);  // a blank before it
}

/// Counts all pairs of all pieces anew for each merge: slow, but simple enough to be right.
struct SlowBytePairs {
  std::vector<std::pair<std::string, std::string>> merges;
  std::map<std::string, int32_t> numbers;

  SlowBytePairs(const std::string& text, size_t vocabulary) {
    const auto hidden = [](int byte) {
      return !((byte >= 33 && byte <= 126) || (byte >= 161 && byte != 173));
    };
    for (const bool wanted : {false, true})
      for (int byte = 0; byte < 256; ++byte)
        if (hidden(byte) == wanted)
          numbers.emplace(std::string(1, static_cast<char>(byte)),
                          static_cast<int32_t>(numbers.size()));
    std::vector<Words> pieces;
    for (const std::string& piece : pieces_of(text)) pieces.push_back(letters(piece));
    while (numbers.size() + 1 < vocabulary) {
      std::map<std::pair<int32_t, int32_t>, int64_t> counts;
      for (const Words& piece : pieces)
        for (size_t i = 0; i + 1 < piece.size(); ++i)
          ++counts[{numbers.at(piece[i]), numbers.at(piece[i + 1])}];
      const auto best = std::ranges::max_element(
          counts, [](const auto& a, const auto& b) { return a.second < b.second; });
      if (best == counts.end() || best->second < 2) break;
      const auto named = [&](int32_t number) {
        return std::ranges::find(numbers, number, [](const auto& n) { return n.second; })->first;
      };
      merges.emplace_back(named(best->first.first), named(best->first.second));
      numbers.emplace(merges.back().first + merges.back().second,
                      static_cast<int32_t>(numbers.size()));
      for (Words& piece : pieces) merge(piece, merges.back());
    }
  }

  static Words letters(const std::string& piece) {
    Words all;
    for (const char byte : piece) all.emplace_back(1, byte);
    return all;
  }
  static void merge(Words& piece, const std::pair<std::string, std::string>& pair) {
    for (size_t i = 0; i + 1 < piece.size(); ++i)
      if (piece[i] == pair.first && piece[i + 1] == pair.second) {
        piece[i] += piece[i + 1];
        piece.erase(piece.begin() + static_cast<std::ptrdiff_t>(i) + 1);
      }
  }
  Tokens encode(const std::string& text) const {
    Tokens tokens;
    for (const std::string& piece : pieces_of(text)) {
      Words parts = letters(piece);
      for (bool merged = true; merged;) {
        merged = false;
        for (const auto& pair : merges) {
          const size_t before = parts.size();
          merge(parts, pair);
          merged = parts.size() < before;
          if (merged) break;
        }
      }
      for (const std::string& part : parts) tokens.push_back(numbers.at(part));
    }
    return tokens;
  }
};

TEST(BytePairs, AreThoseOfASlowImplementation) {
  for (uint64_t stream = 0; stream < 6; ++stream) {
    const std::string text = any_bytes(stream, 3000);
    const SlowBytePairs slow(text, 400);
    PieceCounts pieces;
    const size_t cut = last_safe_cut(text);  // counts of parts add up
    pieces.add(std::string_view(text).substr(0, cut));
    PieceCounts rest;
    rest.add(std::string_view(text).substr(cut));
    pieces.add(rest);
    const auto fast = train_byte_pairs(pieces, 400);
    ASSERT_EQ(fast->size(), std::ssize(slow.numbers) + 1);
    EXPECT_EQ(fast->end_token(), fast->size() - 1);
    EXPECT_EQ(fast->kind(), "bpe");
    for (const auto& [bytes, number] : slow.numbers) EXPECT_EQ(fast->text_of(number), bytes);
    const std::string other = any_bytes(100 + stream, 2000);
    EXPECT_EQ(encoded(*fast, other), slow.encode(other));
    EXPECT_EQ(fast->decode(encoded(*fast, other)), other);
  }
}

TEST(BytePairs, ALongPieceIsEncodedAsAShortOne) {
  PieceCounts pieces;
  pieces.add(std::string(64, 'a'));
  const auto tokenizer = train_byte_pairs(pieces, 300);
  const std::string text(300'000, 'a');
  const Tokens tokens = encoded(*tokenizer, text);
  EXPECT_LT(tokens.size(), text.size() / 30);
  EXPECT_EQ(tokenizer->decode(tokens), text);
}

TEST(Tokenizers, GiveBackAnyBytes) {
  PieceCounts pieces;
  pieces.add(any_bytes(0, 2000));
  for (const auto& tokenizer : {byte_tokenizer(false), byte_tokenizer(true),
                                train_byte_pairs(pieces, 300), train_byte_pairs(pieces, 257)})
    for (uint64_t stream = 1; stream < 20; ++stream) {
      const std::string text = any_bytes(stream, 500);
      EXPECT_EQ(tokenizer->decode(encoded(*tokenizer, text)), text) << tokenizer->kind();
    }
}

TEST(Tokenizers, CharactersHaveTheOrderOfUnicode) {
  const auto tokenizer = character_tokenizer({U'\n', U'a', U'b', U'\u00e9', U'\u65e5'}, true);
  EXPECT_EQ(tokenizer->size(), 6);
  EXPECT_EQ(tokenizer->end_token(), 5);
  EXPECT_EQ(encoded(*tokenizer,
                    "\xe6\x97\xa5\xc3\xa9"
                    "ba\n"),
            (Tokens{4, 3, 2, 1, 0}));
  EXPECT_EQ(tokenizer->decode(Tokens{1, 5, 4}), "a\xe6\x97\xa5");
  expect_config_error([&] { encoded(*tokenizer, "ab\xc3\xa8"); },
                      {"text: the character '\xc3\xa8' (U+00E8)", "not in the vocabulary"});
  expect_io_error([&] { encoded(*tokenizer, "a\xc3"); }, {"text: byte 1 (0xc3) is no UTF-8"});
  // A terminal obeys control characters, and a line break misleads a reader of the log.
  expect_config_error([&] { encoded(*tokenizer, "a\x1b"); }, {"the character U+001B at byte 1"});
}

TEST(Tokenizers, FilesGiveTheSameTokenizer) {
  PieceCounts pieces;
  pieces.add(any_bytes(0, 4000));
  for (const auto& tokenizer :
       {byte_tokenizer(false), byte_tokenizer(true), train_byte_pairs(pieces, 350),
        character_tokenizer({U'\n', U'"', U'\\', U'\u00e9'}, false),
        character_tokenizer({U'a'}, true)}) {
    const ScratchDirectory scratch;
    EXPECT_FALSE(has_tokenizer(scratch.path()));
    write_tokenizer(*tokenizer, scratch.path());
    const auto again = read_tokenizer(scratch.path());
    EXPECT_EQ(again->kind(), tokenizer->kind());
    EXPECT_EQ(again->size(), tokenizer->size());
    EXPECT_EQ(again->end_token(), tokenizer->end_token());
    EXPECT_EQ(again->identity(), tokenizer->identity());
    for (int32_t t = 0; t < tokenizer->size(); ++t)
      EXPECT_EQ(again->text_of(t), tokenizer->text_of(t));
    EXPECT_EQ(again->files().merges, tokenizer->files().merges);
  }
  EXPECT_NE(byte_tokenizer(false)->identity(), byte_tokenizer(true)->identity());
}

TEST(Tokenizers, WhatIsWrongInAFileIsNamed) {
  const ScratchDirectory scratch;
  const auto refuse = [&](const std::string& vocabulary, const std::string& merges,
                          const std::vector<std::string>& parts) {
    expect_io_error([&] { parse_tokenizer({vocabulary, merges}, "here"); }, parts);
  };
  expect_io_error([&] { read_tokenizer(scratch.path()); },
                  {scratch.path().string(), "holds no vocab.json"});
  refuse("{", "", {"here/vocab.json", "is no JSON"});
  refuse("[1]", "", {"here/vocab.json", "expected an object"});
  refuse("{}", "", {"here/vocab.json", "has no tokens"});
  refuse(R"({"a": 0, "b": 2})", "", {"token 'b' has the number 2", "0 to 1"});
  refuse(R"({"a": 0, "b": 0})", "", {"each once"});
  refuse(R"({"a": 0, "b": 1.5})", "", {"expected an object", "1.5 is no whole number"});
  refuse(R"({"a": {"b": 0}})", "", {"'a' is no whole number"});
  refuse(R"({"a": 1e999})", "", {"here/vocab.json", "1e999"});
  refuse(R"({"a": 0, "a": 1})", "", {"'a' is named twice"});
  refuse(R"({"b": 0, "a": 1})", "", {"token 1 is 'a'", "in the order"});
  refuse(R"({"ab": 0})", "", {"single characters"});
  refuse(R"({"a": 0})", "\n", {"here: has no token for the byte 0x00"});
  Tokenizer::Files files = byte_tokenizer(false)->files();
  refuse(files.vocabulary, "#version: 0.2\na b\n", {"here: merge 1", "no token of the vocabulary"});
  refuse(files.vocabulary, "#version: 0.2\n\nab\n", {"here/merges.txt:3", "found 'ab'"});
  refuse(files.vocabulary, "a bc\n", {"here/merges.txt:1", "found 'a bc'"});
  files.vocabulary.replace(files.vocabulary.rfind('}'), 1, ", \"abc\": 256, \"ab\": 257}");
  refuse(files.vocabulary, "ab c\na b\n", {"merge 1", "no earlier merge"});
  EXPECT_EQ(encoded(*parse_tokenizer({files.vocabulary, "a b\nab c\n"}, "here"), "abcab"),
            (Tokens{256, 257}));
  // Files as an editor of Windows leaves them, and other files in their place.
  const std::string mark = "\xef\xbb\xbf";
  EXPECT_EQ(
      encoded(*parse_tokenizer({mark + files.vocabulary, mark + "#version: 0.2\r\na b\r\nab c\r\n"},
                               "here"),
              "abcab"),
      (Tokens{256, 257}));
  const std::string pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:0\n";
  refuse(pointer, "", {"here/vocab.json", "git lfs pull"});
  refuse(files.vocabulary, pointer, {"here/merges.txt", "git lfs pull"});
  refuse(files.vocabulary,
         std::string("\xff\xfe"
                     "a\0 \0b\0",
                     8),
         {"here/merges.txt", "UTF-16"});
}

TEST(BytePairs, AVocabularyHoldsTheBytes) {
  expect_config_error([] { train_byte_pairs(PieceCounts(), 256); }, {"256", "257 or more"});
  EXPECT_EQ(train_byte_pairs(PieceCounts(), 1000)->size(), 257);
}

}  // namespace
}  // namespace tutti::data
