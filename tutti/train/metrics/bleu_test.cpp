#include "tutti/train/metrics/bleu.h"

#include <gtest/gtest.h>

#include <cmath>
#include <sstream>

namespace tutti::train {
namespace {

using BleuWords = std::vector<std::string>;

BleuWords split_words(const std::string& text) {
  std::istringstream stream(text);
  BleuWords words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

TEST(Bleu, OfOneSentenceByHand) {
  Bleu bleu;
  // The second "the" does not occur in the reference.
  bleu.add(split_words("the cat the on a mat"), split_words("a cat the on a mat"));
  EXPECT_DOUBLE_EQ(bleu.precision(1), 5.0 / 6);
  EXPECT_DOUBLE_EQ(bleu.precision(2), 4.0 / 5);
  EXPECT_DOUBLE_EQ(bleu.precision(3), 3.0 / 4);
  EXPECT_DOUBLE_EQ(bleu.precision(4), 2.0 / 3);
  EXPECT_DOUBLE_EQ(bleu.brevity(), 1);
  EXPECT_NEAR(bleu.value(), std::pow(5.0 / 6 * 4 / 5 * 3 / 4 * 2 / 3, 0.25), 1e-12);
}

TEST(Bleu, WordsCountAsOftenAsInTheReference) {
  Bleu bleu;  // example from section 2.1.1 of the paper
  bleu.add(split_words("the the the the the the the"), split_words("the cat is on the mat"));
  EXPECT_DOUBLE_EQ(bleu.precision(1), 2.0 / 7);
  EXPECT_EQ(bleu.value(), 0);
}

TEST(Bleu, SumsOverTheCorpusAndPunishesBrevity) {
  Bleu bleu;
  bleu.add(split_words("a b c d"), split_words("a b c d e f"));
  bleu.add(split_words("x y z w"), split_words("x y z w"));
  EXPECT_DOUBLE_EQ(bleu.precision(4), 1);
  EXPECT_EQ(bleu.written(), 8);
  EXPECT_EQ(bleu.references(), 10);
  EXPECT_NEAR(bleu.value(), std::exp(1 - 10.0 / 8), 1e-12);
  EXPECT_EQ(Bleu().value(), 0);
}

TEST(Bleu, WordsAreThoseOfTheOriginalScript) {
  EXPECT_EQ(bleu_words("Hello, world! It's 3.5 or 1,000."),
            (BleuWords{"Hello", ",", "world", "!", "It's", "3.5", "or", "1,000", "."}));
  EXPECT_EQ(bleu_words("a well-known 5-4 (\"x\") &amp; y/z..."),
            (BleuWords{"a", "well-known", "5", "-", "4", "(", "\"", "x", "\"", ")", "&", "y", "/",
                       "z", ".", ".", "."}));
  EXPECT_EQ(bleu_words("  gr\xc3\xbc\xc3\x9f dich\t"), (BleuWords{"gr\xc3\xbc\xc3\x9f", "dich"}));
}

}  // namespace
}  // namespace tutti::train
