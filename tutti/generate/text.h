#pragma once
// Generates text from a seed: sentences of a small made-up language, one per line. Words are drawn
// by Zipf's law; a sentence follows
//
//   S  -> NP VP | NP VP "," "and" S
//   NP -> article [adjective] noun [clause]     a noun has a number; in the plural it ends in "s"
//   VP -> verb [NP]                             its verb agrees: in the singular it ends in "s"
//   clause -> "that" VP | "(" S ")"
//
// so that a model can learn letters, words, agreement over a distance and matching brackets. It
// cannot know which words are drawn.

#include <cstdint>
#include <string>

namespace tutti::generate {

/// Test sentences start at this index.
inline constexpr int64_t kFirstTestSentence = 1'000'000'000'000;

struct SentenceSpec {
  uint64_t seed = 1;
  int64_t words = 200;  ///< nouns; half as many adjectives, and half as many verbs
};

/// Generates a sentence with full stop and line end: a pure function of both arguments.
std::string generate_sentence(const SentenceSpec& spec, int64_t index);

}  // namespace tutti::generate
