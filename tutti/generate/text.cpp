#include "tutti/generate/text.h"

#include <algorithm>
#include <cmath>

#include "tutti/base/numeric/rng.h"

namespace tutti::generate {
namespace {

enum class WordKind : uint8_t { noun, adjective, verb };

/// Returns a word of one to three syllables; streams of words follow those of sentences.
std::string word_of(const SentenceSpec& spec, WordKind kind, int64_t number) {
  constexpr std::string_view kConsonants = "bdfgklmnprtv", kVowels = "aeiou";
  Rng rng(spec.seed, Purpose::generate,
          uint64_t{1} << 62 | static_cast<uint64_t>(kind) << 48 | static_cast<uint64_t>(number));
  std::string word;
  for (uint32_t i = 0, syllables = 1 + rng.below(3); i < syllables; ++i) {
    word += kConsonants[rng.below(static_cast<uint32_t>(kConsonants.size()))];
    word += kVowels[rng.below(static_cast<uint32_t>(kVowels.size()))];
  }
  return word + kConsonants[rng.below(static_cast<uint32_t>(kConsonants.size()))];
}

class Sentence {
 public:
  Sentence(const SentenceSpec& spec, int64_t index)
      : spec_(spec), rng_(spec.seed, Purpose::generate, static_cast<uint64_t>(index)) {}

  std::string write() && {
    clause(0);
    return text_ + ".\n";
  }

 private:
  bool chance(double share) { return static_cast<double>(rng_.uniform()) < share; }

  void add(std::string_view word) {
    if (!text_.empty() && !text_.ends_with('(')) text_ += ' ';
    text_ += word;
  }

  std::string word(WordKind kind) {
    const auto all = static_cast<double>(
        std::max<int64_t>(1, kind == WordKind::noun ? spec_.words : spec_.words / 2));
    const double u = (rng_.next_u32() + 0.5) * 0x1p-32;
    const double drawn = std::floor(std::exp(u * std::log(all + 1))) - 1;
    return word_of(spec_, kind, static_cast<int64_t>(std::clamp(drawn, 0.0, all - 1)));
  }

  void clause(int depth) {
    verb_phrase(noun_phrase(depth), depth);
    if (depth > 0 || !chance(0.2)) return;
    text_ += ',';
    add("and");
    clause(depth + 1);
  }

  /// Returns whether the phrase is plural.
  bool noun_phrase(int depth) {
    const bool plural = chance(0.4);
    add(plural ? chance(0.5) ? "some" : "the" : chance(0.5) ? "a" : "the");
    if (chance(0.3)) add(word(WordKind::adjective));
    add(word(WordKind::noun) + (plural ? "s" : ""));
    if (depth < 3 && chance(0.15)) {
      add("that");
      verb_phrase(plural, depth + 1);
    } else if (depth < 3 && chance(0.1)) {
      add("(");
      clause(depth + 1);
      text_ += ')';
    }
    return plural;
  }

  void verb_phrase(bool plural, int depth) {
    add(word(WordKind::verb) + (plural ? "" : "s"));
    if (chance(0.6)) noun_phrase(depth + 1);
  }

  const SentenceSpec& spec_;
  Rng rng_;
  std::string text_;
};

}  // namespace

std::string generate_sentence(const SentenceSpec& spec, int64_t index) {
  return Sentence(spec, index).write();
}

}  // namespace tutti::generate
