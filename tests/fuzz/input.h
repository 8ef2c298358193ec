#pragma once
// Makes files of bytes.

#include <filesystem>
#include <string>
#include <vector>

#include "tests/fuzz/targets.h"
#include "tutti/base/scratch_directory.h"

namespace tutti::fuzz {

/// Makes a file of these bytes, at the same path each time. It lies in $TMPDIR: /dev/shm makes it
/// fast.
inline std::filesystem::path as_file(const std::string& name, Bytes bytes) {
  static const ScratchDirectory scratch;
  return scratch.write(name, bytes);
}

}  // namespace tutti::fuzz
