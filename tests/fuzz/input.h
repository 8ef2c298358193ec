#pragma once
// Bytes as a file, and which errors are answers.

#include <filesystem>
#include <string>
#include <vector>

#include "tests/fuzz/targets.h"
#include "tutti/base/error.h"
#include "tutti/base/scratch_directory.h"

namespace tutti::fuzz {

/// A file of these bytes, the same path each time. $TMPDIR says where: /dev/shm makes it fast.
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
