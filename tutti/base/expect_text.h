#pragma once
// For tests: what texts and messages of errors have to say.

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace tutti {

/// Returns whether `text` has `part` in it; a failure shows the whole text.
inline testing::AssertionResult has_text(std::string_view text, std::string_view part) {
  const bool found = text.find(part) != text.npos;
  return (found ? testing::AssertionSuccess() : testing::AssertionFailure())
         << "'" << part << "' is " << (found ? "" : "not ") << "in: " << text;
}

/// Returns the message of the `Expected` error that `work` throws; `otherwise` when it throws none.
template <class Expected, class Work>
std::string message_of(const std::string& otherwise, Work work) {
  try {
    work();
  } catch (const Expected& error) {
    return error.what();
  }
  return otherwise;
}
template <class Expected, class Work>
std::string message_of(Work work) {
  return message_of<Expected>("no error", work);
}

/// Returns whether `work` throws an `Expected` error whose message has each of `parts` in it.
template <class Expected, class Work>
testing::AssertionResult throws(const std::vector<std::string>& parts, Work work) {
  try {
    work();
  } catch (const Expected& error) {
    for (const std::string& part : parts)
      if (const auto found = has_text(error.what(), part); !found) return found;
    return testing::AssertionSuccess();
  }
  return testing::AssertionFailure() << "no error";
}

}  // namespace tutti
