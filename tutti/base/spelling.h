#pragma once
// Finds the nearest known word to a misspelt one, for messages.

#include <string>
#include <string_view>
#include <vector>

namespace tutti {

/// Returns the number of edits (insert, delete, replace, swap of neighbours) that turn a into b:
/// optimal string alignment distance.
int edit_distance(std::string_view a, std::string_view b);

/// Returns the candidate with the least distance to `word`, or "" if none is near enough to be
/// meant. A word without a dot is also compared with the last part of dotted candidates:
/// "learning.lr" and "lr" both find "optimizer.lr".
std::string nearest_spelling(std::string_view word, const std::vector<std::string>& candidates);

/// Returns ", did you mean 'x'?", or "" if nothing was found.
std::string did_you_mean(std::string_view found);

/// Returns `must be one of a, b, is "word"`, with the nearest choice if there are too many to list.
std::string must_be_one_of(const std::vector<std::string>& choices, std::string_view word);

}  // namespace tutti
