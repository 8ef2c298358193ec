#pragma once
// Reads and writes UTF-8, a character at a time.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace tutti::data {

struct Utf8Character {
  char32_t code = 0;
  size_t bytes = 0;  ///< 1 to 4; 0: the text there is no UTF-8
};

/// Returns the character at the beginning of `text`, which is not empty. Overlong forms, surrogates
/// and numbers beyond U+10FFFF are invalid.
inline Utf8Character first_character(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  const size_t bytes = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < bytes) return {};
  char32_t code = lead & (0x7f >> bytes);
  for (size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return {};
    code = code << 6 | (byte(i) & 0x3f);
  }
  const char32_t least = bytes == 4 ? 0x10000 : bytes == 3 ? 0x800 : 0x80;
  if (code < least || code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) return {};
  return {code, bytes};
}

inline void append_character(std::string& text, char32_t code) {
  const auto add = [&](char32_t byte) { text += static_cast<char>(static_cast<uint8_t>(byte)); };
  if (code < 0x80) return add(code);
  if (code < 0x800) {
    add(0xc0 | code >> 6);
  } else {
    if (code < 0x10000) {
      add(0xe0 | code >> 12);
    } else {
      add(0xf0 | code >> 18);
      add(0x80 | (code >> 12 & 0x3f));
    }
    add(0x80 | (code >> 6 & 0x3f));
  }
  add(0x80 | (code & 0x3f));
}

/// Says whether the byte continues a character.
inline bool continues_character(char byte) { return (static_cast<uint8_t>(byte) & 0xc0) == 0x80; }

}  // namespace tutti::data
