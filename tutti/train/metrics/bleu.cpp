#include "tutti/train/metrics/bleu.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <span>

#include "tutti/base/error.h"

namespace tutti::train {
namespace {

using Words = std::vector<std::string>;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// True for ASCII signs except the apostrophe, the hyphen, the comma and the full stop.
bool stands_alone(char c) {
  return (c >= '!' && c <= '/' && c != '\'' && c != ',' && c != '-' && c != '.') ||
         (c >= ':' && c <= '@') || (c >= '[' && c <= '`') || (c >= '{' && c <= '~');
}

std::string without_entities(std::string_view text) {
  constexpr std::array<std::pair<std::string_view, char>, 4> kEntities{
      {{"&quot;", '"'}, {"&amp;", '&'}, {"&lt;", '<'}, {"&gt;", '>'}}};
  std::string plain(text);
  for (const auto& [name, sign] : kEntities)
    for (size_t at = plain.find(name); at != std::string::npos; at = plain.find(name, at + 1))
      plain.replace(at, name.size(), 1, sign);
  return plain;
}

using Gram = std::span<const std::string>;
struct GramOrder {
  bool operator()(Gram a, Gram b) const { return std::ranges::lexicographical_compare(a, b); }
};

/// Counts each n-gram of the text.
std::map<Gram, int64_t, GramOrder> grams_of(const Words& words, size_t n) {
  std::map<Gram, int64_t, GramOrder> grams;
  for (size_t i = 0; i + n <= words.size(); ++i) ++grams[std::span(words).subspan(i, n)];
  return grams;
}

}  // namespace

std::vector<std::string> bleu_words(std::string_view text) {
  const std::string plain = without_entities(text);
  const auto at = [&](size_t i) { return i < plain.size() ? plain[i] : ' '; };
  Words words;
  std::string word;
  const auto end_word = [&] {
    if (!word.empty()) words.push_back(std::move(word));
    word.clear();
  };
  for (size_t i = 0; i < plain.size(); ++i) {
    const char c = plain[i], before = i > 0 ? plain[i - 1] : ' ';
    const bool of_number = c == '.' || c == ',';
    if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
      end_word();
    } else if (stands_alone(c) || (c == '-' && is_digit(before)) ||
               (of_number && !(is_digit(before) && is_digit(at(i + 1))))) {
      end_word();
      words.emplace_back(1, c);
    } else {
      word += c;
    }
  }
  end_word();
  return words;
}

void Bleu::add(const Words& written, const Words& reference) {
  written_ += std::ssize(written);
  references_ += std::ssize(reference);
  for (size_t n = 1; n <= kLongest; ++n) {
    const auto known = grams_of(reference, n);
    for (const auto& [gram, count] : grams_of(written, n)) {
      all_[n - 1] += count;
      if (const auto there = known.find(gram); there != known.end())
        found_[n - 1] += std::min(count, there->second);
    }
  }
}

double Bleu::precision(size_t n) const {
  CHECK(n >= 1 && n <= kLongest);
  return all_[n - 1] > 0 ? static_cast<double>(found_[n - 1]) / static_cast<double>(all_[n - 1])
                         : 0;
}

double Bleu::brevity() const {
  if (written_ == 0) return 0;
  return std::min(1.0,
                  std::exp(1 - static_cast<double>(references_) / static_cast<double>(written_)));
}

double Bleu::value() const {
  double logarithms = 0;
  for (size_t n = 1; n <= kLongest; ++n) {
    if (found_[n - 1] == 0) return 0;
    logarithms += std::log(precision(n)) / static_cast<double>(kLongest);
  }
  return brevity() * std::exp(logarithms);
}

}  // namespace tutti::train
