#pragma once
// Arrays in numpy's format 1.0, for the programs here.

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>

// numpy's format 1.0: magic, the length of a header that ends at a multiple of 64 bytes, the
// header.
inline void write_npy(const std::filesystem::path& path, const std::string& type,
                      const std::string& shape, const void* bytes, size_t size) {
  std::string header =
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({},), }}", type, shape);
  header.resize((header.size() + 10 + 64) / 64 * 64 - 10, ' ');
  header.back() = '\n';
  std::ofstream file(path, std::ios::binary);
  file.write("\x93NUMPY\x01\x00", 8);
  const char length[2] = {static_cast<char>(header.size() & 0xff),
                          static_cast<char>(header.size() >> 8)};
  file.write(length, 2);
  file << header;
  file.write(static_cast<const char*>(bytes), static_cast<std::streamsize>(size));
  if (!file.flush()) throw std::runtime_error("cannot write " + path.string());
}
