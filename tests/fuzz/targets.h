#pragma once
// One function for each parser of files that come from outside: it takes any bytes. A typed error
// that the parser may throw (IoError, ConfigError) is an answer; any other exception is a finding.

#include <cstdint>
#include <span>
#include <string_view>

#include "tutti/base/error.h"

namespace tutti::fuzz {

using Bytes = std::span<const uint8_t>;

/// Lets answers pass; any other exception leaves it.
template <class Parse>
void answer(Parse parse) {
  try {
    parse();
  } catch (const IoError&) {
  } catch (const ConfigError&) {}
}

struct Target {
  std::string_view name;  ///< also the name of its folder in corpus/
  void (*parse)(Bytes bytes);
  uint64_t damaged = 1000;  ///< inputs that the replay makes by damaging those of the corpus

  void run(Bytes bytes) const {
    answer([&] { parse(bytes); });
  }
};

/// Each returns parsers: of data sets, of texts, and of files that runs write and read.
std::span<const Target> data_targets();
std::span<const Target> text_targets();
std::span<const Target> run_targets();

}  // namespace tutti::fuzz
