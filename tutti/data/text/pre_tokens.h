#pragma once
// GPT-2's pieces of text, which byte pairs are merged within:
//
//   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
//
// with Unicode's letters, numbers and white space. Bytes that are no UTF-8 count as characters that
// are none of these, each by itself. A piece that is longer than kLongestPiece is cut there, so
// that texts without white space need no more memory than others.

#include <cstddef>
#include <string_view>

namespace tutti::data {

inline constexpr size_t kLongestPiece = 64 << 10;  ///< bytes, and what the last character has

/// Bytes of the first piece of `text`, which is not empty.
size_t first_piece(std::string_view text);

/// The greatest cut of `text` at which no piece and no character is divided, whatever follows: 0
/// where none is found. A white space behind something else begins a piece.
size_t last_safe_cut(std::string_view text);

}  // namespace tutti::data
