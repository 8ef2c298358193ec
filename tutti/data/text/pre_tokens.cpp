#include "tutti/data/text/pre_tokens.h"

#include <unicode/uchar.h>

#include <algorithm>
#include <array>
#include <cstdint>

#include "tutti/data/text/utf8.h"

namespace tutti::data {
namespace {

enum class CharacterKind : uint8_t { letter, number, space, other };

CharacterKind kind_by_unicode(char32_t code) {
  const auto character = static_cast<UChar32>(code);
  const uint32_t general = U_MASK(u_charType(character));
  if (general & U_GC_L_MASK) return CharacterKind::letter;
  if (general & U_GC_N_MASK) return CharacterKind::number;
  return u_isUWhiteSpace(character) ? CharacterKind::space : CharacterKind::other;
}

CharacterKind character_kind(char32_t code) {
  static const std::array<CharacterKind, 128> ascii = [] {
    std::array<CharacterKind, 128> kinds{};
    for (char32_t c = 0; c < 128; ++c) kinds[c] = kind_by_unicode(c);
    return kinds;
  }();
  return code < 128 ? ascii[code] : kind_by_unicode(code);
}

struct Seen {
  CharacterKind kind = CharacterKind::other;
  size_t bytes = 1;
};

Seen look_at(std::string_view text, size_t at) {
  const Utf8Character character = first_character(text.substr(at));
  if (character.bytes == 0) return {};
  return {character_kind(character.code), character.bytes};
}

size_t contraction(std::string_view text) {
  for (const std::string_view ending : {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"})
    if (text.starts_with(ending)) return ending.size();
  return 0;
}

/// Returns where the current run of this kind ends, or is cut; `last` becomes the start of its last
/// character.
size_t end_of_run(std::string_view text, size_t at, CharacterKind kind, size_t& last) {
  while (at < std::min(text.size(), kLongestPiece)) {
    const Seen seen = look_at(text, at);
    if (seen.kind != kind) break;
    last = at;
    at += seen.bytes;
  }
  return at;
}

}  // namespace

size_t first_piece(std::string_view text) {
  if (text[0] == '\'')
    if (const size_t bytes = contraction(text); bytes > 0) return bytes;
  const size_t blank = text[0] == ' ' && text.size() > 1 ? 1 : 0;
  Seen first = look_at(text, blank);
  size_t last = 0;
  if (first.kind != CharacterKind::space)
    return end_of_run(text, blank + first.bytes, first.kind, last);
  if (blank) first = look_at(text, 0);
  const size_t end = end_of_run(text, first.bytes, CharacterKind::space, last);
  return end == text.size() || last == 0 ? end : last;  // the last blank belongs to the next piece
}

size_t last_safe_cut(std::string_view text) {
  for (size_t cut = text.size(); cut-- > 1;) {
    if (text[cut] != ' ' && text[cut] != '\n') continue;
    size_t before = cut - 1;  // start of the previous character
    for (int i = 0; i < 3 && before > 0 && continues_character(text[before]); ++i) --before;
    const Seen seen = look_at(text, before);
    const bool whole = before + seen.bytes == cut;  // otherwise it is no UTF-8, hence no blank
    if (!whole || seen.kind != CharacterKind::space) return cut;
  }
  return 0;
}

}  // namespace tutti::data
