#pragma once
// Reads numbers from text.

#include <charconv>
#include <string_view>
#include <system_error>

namespace tutti {

/// Whether the whole of `text` is one number that fits into the type; only then sets `number`. No
/// spaces, no sign "+", no locale.
template <class Number>
bool read_number(std::string_view text, Number& number) {
  Number read{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), read);
  if (error != std::errc{} || end != text.data() + text.size()) return false;
  number = read;
  return true;
}

}  // namespace tutti
