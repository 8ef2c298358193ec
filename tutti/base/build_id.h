#pragma once
#include <string>

namespace tutti {

/// The linker's identity of the program (or shared library) that holds this code, in hexadecimal
/// digits: a digest of its contents, so two builds of different sources have different ones. Empty
/// where it was linked without --build-id.
std::string build_id();

}  // namespace tutti
