#pragma once
// The nearest known word to a misspelt one, for messages.

#include <string>
#include <string_view>
#include <vector>

namespace tutti {

/// Edits (insert, delete, replace, swap of neighbours) that turn a into b: optimal string alignment
/// distance.
int edit_distance(std::string_view a, std::string_view b);

/// The candidate with the least distance to `word`, or "" when none is near enough to be what was
/// meant. A word without a dot is also compared with the last part of dotted candidates:
/// "learning.lr" and "lr" both find "optimizer.lr".
std::string nearest_spelling(std::string_view word, const std::vector<std::string>& candidates);

/// ", did you mean 'x'?", or "" where nothing was found.
std::string did_you_mean(std::string_view found);

/// `must be one of a, b, is "word"`, and the nearest where they are too many to look through.
std::string must_be_one_of(const std::vector<std::string>& choices, std::string_view word);

}  // namespace tutti
