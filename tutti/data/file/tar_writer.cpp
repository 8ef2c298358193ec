#include "tutti/data/file/tar_writer.h"

#include <fmt/format.h>

#include <array>
#include <string>

#include "tutti/base/error.h"
#include "tutti/base/own_file.h"

namespace tutti::data {

TarWriter::TarWriter(const std::filesystem::path& path) : path_(path), out_(output_stream(path)) {}

void TarWriter::add(std::string_view name, std::span<const uint8_t> bytes) {
  constexpr size_t kBlock = 512;
  CHECK(!name.empty() && name.size() <= 100, "a tar member of the name '{}'", name);
  std::array<char, kBlock> header{};
  const auto put = [&](size_t at, std::string_view text) {
    std::copy(text.begin(), text.end(), header.begin() + static_cast<std::ptrdiff_t>(at));
  };
  put(0, name);
  put(100, "0000644");
  put(108, "0000000");
  put(116, "0000000");
  put(124, fmt::format("{:011o}", bytes.size()));
  put(136, "00000000000");
  put(148, "        ");
  header[156] = '0';
  put(257, std::string_view("ustar\00000", 8));
  int sum = 0;
  for (const char byte : header) sum += static_cast<unsigned char>(byte);
  put(148, fmt::format("{:06o}", sum));
  header[154] = 0;
  out_.write(header.data(), kBlock);
  out_.write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
  const std::array<char, kBlock> zeros{};
  out_.write(zeros.data(), static_cast<std::streamsize>((kBlock - bytes.size() % kBlock) % kBlock));
}

void TarWriter::finish() {
  const std::array<char, 1024> zeros{};
  out_.write(zeros.data(), zeros.size());
  out_.close();
  if (!out_) throw IoError(fmt::format("{}: cannot be written: is the disk full?", path_.string()));
}

}  // namespace tutti::data
