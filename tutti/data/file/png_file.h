#pragma once
// Writes PNG pictures: 8 bits each of red, green and blue, deflated as differences between rows.

#include <cstdint>
#include <filesystem>
#include <span>

namespace tutti::data {

/// `rgb` has three bytes per pixel, rows from top to bottom. IoError names the file.
void write_png(const std::filesystem::path& path, int64_t width, int64_t height,
               std::span<const uint8_t> rgb);

}  // namespace tutti::data
