#pragma once
// Cuts text into GPT-2's pieces, within which byte pairs are merged:
//
//   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
//
// with Unicode's letters, numbers and white space. Each byte that is no UTF-8 counts as a character
// outside all of these classes. A piece longer than kLongestPiece is cut there, so that texts
// without white space need no more memory than others.

#include <cstddef>
#include <string_view>

namespace tutti::data {

inline constexpr size_t kLongestPiece = 64 << 10;  ///< bytes; the last character may exceed it

/// Returns the length in bytes of the first piece of `text`, which is not empty.
size_t first_piece(std::string_view text);

/// Returns the greatest place where `text` can be cut without dividing a piece or a character,
/// whatever follows; 0 if none is found. White space after another character begins a piece.
size_t last_safe_cut(std::string_view text);

}  // namespace tutti::data
