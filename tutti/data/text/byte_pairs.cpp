#include "tutti/data/text/byte_pairs.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <string_view>

#include "tutti/base/error.h"
#include "tutti/base/log.h"
#include "tutti/data/file/file_bytes.h"
#include "tutti/data/text/pre_tokens.h"

namespace tutti::data {

BytePairTokenizer::BytePairTokenizer(BytePairs pairs, const std::string& name)
    : pairs_(std::move(pairs)) {
  std::unordered_map<std::string_view, int32_t> known;
  for (size_t t = 0; t < pairs_.tokens.size(); ++t)
    if (!known.emplace(pairs_.tokens[t], static_cast<int32_t>(t)).second)
      throw BadFile("{}: tokens {} and {} are the same", name, known.at(pairs_.tokens[t]), t);
  std::vector<bool> made(pairs_.tokens.size(), false);
  for (size_t byte = 0; byte < 256; ++byte) {
    const auto found = known.find(std::string(1, static_cast<char>(byte)));
    if (found == known.end())
      throw BadFile("{}: has no token for the byte 0x{:02x}: a text with it could not be encoded",
                    name, byte);
    of_byte_[byte] = found->second;
    made[static_cast<size_t>(found->second)] = true;
  }
  for (size_t m = 0; m < pairs_.merges.size(); ++m) {
    const TokenPair pair = pairs_.merges[m];
    const auto left = static_cast<size_t>(pair.left), right = static_cast<size_t>(pair.right);
    const auto result = known.find(pairs_.tokens.at(left) + pairs_.tokens.at(right));
    if (!made[left] || !made[right] || result == known.end() || result->second == end_token())
      throw BadFile("{}: merge {} is of tokens {} and {}, {}", name, m + 1, left, right,
                    made[left] && made[right] ? "which make no token of the vocabulary"
                                              : "which no earlier merge has made");
    made[static_cast<size_t>(result->second)] = true;
    merges_.emplace(pair.key(), Merge{static_cast<int32_t>(m), result->second});
  }
  // No merge has tokens with a meaning of their own, such as "<pad>".
  size_t lacking = 0;
  std::string first;
  for (size_t t = 0; t < made.size(); ++t)
    if (const std::string& text = pairs_.tokens[t];
        !made[t] && static_cast<int32_t>(t) != end_token() &&
        !(text.starts_with('<') && text.ends_with('>')) && lacking++ == 0)
      first = text;
  if (lacking > 0)
    log::warn_once(
        "{}: the {} merges make {} of the {} tokens not, such as '{}', so no text has them: if the "
        "file of merges was cut off, fetch it again",
        name, pairs_.merges.size(), lacking, made.size(), first);
}

const BytePairTokenizer::Merge* BytePairTokenizer::merge_of(int32_t left, int32_t right) const {
  const auto found = merges_.find(TokenPair{left, right}.key());
  return found == merges_.end() ? nullptr : &found->second;
}

void BytePairTokenizer::encode_piece(std::string_view piece, std::vector<int32_t>& tokens) const {
  struct Symbol {
    int32_t token, before, after;  // token -1: merged into its predecessor
  };
  struct Found {
    int32_t rank, at, left, right;
    bool operator>(const Found& other) const {
      return std::pair(rank, at) > std::pair(other.rank, other.at);
    }
  };
  std::vector<Symbol> symbols;
  symbols.reserve(piece.size());
  for (const char byte : piece) {
    const auto i = static_cast<int32_t>(symbols.size());
    symbols.push_back({of_byte_[static_cast<uint8_t>(byte)], i - 1, i + 1});
  }
  const auto end = static_cast<int32_t>(symbols.size());
  const auto symbol = [&](int32_t i) -> Symbol& { return symbols[static_cast<size_t>(i)]; };
  std::priority_queue<Found, std::vector<Found>, std::greater<>> queue;
  std::vector<Found> later;  // pairs that arise while those of the current rank are merged
  const auto look = [&](int32_t at, std::vector<Found>& list) {
    if (at < 0 || symbol(at).after == end) return;
    const int32_t left = symbol(at).token, right = symbol(symbol(at).after).token;
    if (const Merge* merge = merge_of(left, right)) list.push_back({merge->rank, at, left, right});
  };
  const auto queue_later = [&] {
    for (const Found& found : later) queue.push(found);
    later.clear();
  };
  for (int32_t i = 0; i < end; ++i) look(i, later);
  queue_later();
  while (!queue.empty()) {
    const Found next = queue.top();
    queue.pop();
    Symbol& left = symbol(next.at);
    if (left.token == next.left && left.after != end && symbol(left.after).token == next.right) {
      const int32_t gone = left.after;
      left.token = merge_of(next.left, next.right)->token;
      left.after = symbol(gone).after;
      if (left.after != end) symbol(left.after).before = next.at;
      symbol(gone).token = -1;
      look(left.before, later);
      look(next.at, later);
    }
    if (queue.empty() || queue.top().rank != next.rank) queue_later();
  }
  for (int32_t i = 0; i != end; i = symbol(i).after) tokens.push_back(symbol(i).token);
}

void BytePairTokenizer::encode(std::string_view text, const TextPlace&,
                               std::vector<int32_t>& tokens) const {
  if (merges_.empty()) {
    for (const char byte : text) tokens.push_back(of_byte_[static_cast<uint8_t>(byte)]);
    return;
  }
  struct Place {
    size_t first = 0, count = 0;  // in `tokens`
  };
  constexpr size_t kLongestKept = 64;  // longer pieces rarely recur
  std::unordered_map<std::string_view, Place> known;
  for (size_t at = 0; at < text.size();) {
    const std::string_view piece = text.substr(at, first_piece(text.substr(at)));
    at += piece.size();
    const auto found = known.find(piece);
    if (found == known.end()) {
      const size_t first = tokens.size();
      encode_piece(piece, tokens);
      if (piece.size() <= kLongestKept) known.emplace(piece, Place{first, tokens.size() - first});
    } else {
      for (size_t i = 0; i < found->second.count; ++i)
        tokens.push_back(tokens[found->second.first + i]);
    }
  }
}

std::string_view BytePairTokenizer::text_of(int32_t token) const {
  CHECK(token >= 0 && token < size(), "token {} of {}", token, size());
  if (token == end_token()) return {};
  return pairs_.tokens[static_cast<size_t>(token)];
}

}  // namespace tutti::data
