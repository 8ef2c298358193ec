#pragma once
#include <string>

namespace tutti {

/// Returns the linker's identity of the program (or shared library) that holds this code, in
/// hexadecimal digits: a digest of its contents, so builds of different sources differ. Empty if it
/// was linked without --build-id.
std::string build_id();

}  // namespace tutti
