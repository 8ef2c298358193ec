#pragma once
// Makes files of bytes, and defines which errors are answers.

#include <filesystem>
#include <string>
#include <vector>

#include "tests/fuzz/targets.h"
#include "tutti/base/error.h"
#include "tutti/base/scratch_directory.h"

namespace tutti::fuzz {

/// Makes a file of these bytes, at the same path each time. It lies in $TMPDIR: /dev/shm makes it
/// fast.
inline std::filesystem::path as_file(const std::string& name, Bytes bytes) {
  static const ScratchDirectory scratch;
  return scratch.write(name, bytes);
}

template <class Parse>
void answer(Parse parse) {
  try {
    parse();
  } catch (const IoError&) {
  } catch (const ConfigError&) {}
}

}  // namespace tutti::fuzz
