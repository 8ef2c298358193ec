#include "tutti/backend/conformance/op_case_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <utility>

namespace tutti::backend {

CaseLine::CaseLine(std::string_view text) : text_(text) {
  std::vector<std::string_view> words;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(' ', at), text.size());
    if (end > at) words.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  if (words.size() < 3)
    throw ConfigError(fmt::format("op case '{}': expected OP DTYPE EXTENTS ...", text));
  op = words[0];
  dtype = dtype_named(words[1]);
  std::vector<int64_t> dims;
  if (!read_extents(words[2], &dims))
    throw ConfigError(fmt::format("op case '{}': '{}' is not like n8c16h32w32", text, words[2]));
  x = Shape(std::span<const int64_t>(dims));
  for (size_t i = 3; i < words.size(); ++i) {
    if (read_extents(words[i], nullptr)) continue;
    const size_t digits = std::min(words[i].find_first_of("0123456789"), words[i].size());
    words_[std::string(words[i].substr(0, digits))] = {std::string(words[i].substr(digits)), false};
  }
}

int64_t CaseLine::extent(char letter, int64_t otherwise) const {
  const auto at = extents_.find(letter);
  return at == extents_.end() ? otherwise : at->second;
}

bool CaseLine::has(const char* word) {
  const auto at = words_.find(word);
  if (at != words_.end()) at->second.used = true;
  return at != words_.end();
}

double CaseLine::number(const char* word, double otherwise) {
  if (!has(word)) return otherwise;
  double value = 0;
  const std::string& t = words_.at(word).value;
  if (std::from_chars(t.data(), t.data() + t.size(), value).ec != std::errc()) fail(word);
  return value;
}

int64_t CaseLine::whole_number(const char* word, int64_t otherwise) {
  return static_cast<int64_t>(number(word, static_cast<double>(otherwise)));
}

CaseNumbers CaseLine::numbers(const char* word, int64_t otherwise) {
  CaseNumbers all{otherwise, otherwise, otherwise};
  if (!has(word)) return all;
  const std::string& t = words_.at(word).value;
  const char *at = t.data(), *const end = t.data() + t.size();
  for (size_t i = 0; i < 3; ++i) {
    const auto [next, error] = std::from_chars(at, end, all[i]);
    if (error != std::errc()) fail(word);
    if (next == end) {
      if (i == 0) all[1] = all[2] = all[0];
      break;
    }
    at = next + 1;
  }
  return all;
}

void CaseLine::check_all_used() const {
  for (const auto& [name, word] : words_)
    if (!word.used)
      throw ConfigError(fmt::format("op case '{}': '{}' means nothing to {}", text_, name, op));
}

void CaseLine::fail(std::string_view what) const {
  throw ConfigError(fmt::format("op case '{}': cannot read '{}'", text_, what));
}

DType CaseLine::dtype_named(std::string_view name) const {
  for (const DType type : {DType::f32, DType::bf16, DType::i32, DType::u8})
    if (name_of(type) == name) return type;
  fail(name);
}

bool CaseLine::read_extents(std::string_view word, std::vector<int64_t>* dims) {
  std::vector<std::pair<char, int64_t>> found;
  const char *at = word.data(), *const end = word.data() + word.size();
  while (at != end) {
    const char letter = *at++;
    int64_t value = 0;
    const auto [next, error] = std::from_chars(at, end, value);
    if (!std::isalpha(static_cast<unsigned char>(letter)) || error != std::errc()) return false;
    found.emplace_back(letter, value);
    at = next;
  }
  for (const auto& [letter, value] : found) {
    extents_[letter] = value;
    if (dims) dims->push_back(value);
  }
  return true;
}

std::optional<ops::ActivationAttributes> activation_of(CaseLine& line) {
  for (const ops::ActivationKind kind : ops::activation_kinds())
    if (line.has(std::string(name_of(kind)).c_str())) return ops::ActivationAttributes{kind, 0.2f};
  return std::nullopt;
}

}  // namespace tutti::backend
