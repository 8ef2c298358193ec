#pragma once
// Helps tests with files of given bytes and with checks of error messages.

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <zlib.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tutti/base/error.h"
#include "tutti/base/expect_text.h"
#include "tutti/base/scratch_directory.h"
#include "tutti/data/dataset.h"

namespace tutti::data {

using Bytes = std::vector<uint8_t>;

inline Bytes read_all(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Returns an IDX file; type 8 means bytes.
inline Bytes idx(uint8_t type, const std::vector<uint32_t>& extents, size_t elements) {
  Bytes bytes = {0, 0, type, static_cast<uint8_t>(extents.size())};
  for (const uint32_t extent : extents)
    for (int shift = 24; shift >= 0; shift -= 8)
      bytes.push_back(static_cast<uint8_t>(extent >> shift));
  for (size_t i = 0; i < elements; ++i) bytes.push_back(static_cast<uint8_t>(i % 7));
  return bytes;
}

inline Bytes gzipped(const Bytes& bytes) {
  z_stream stream{};
  deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  Bytes out(deflateBound(&stream, bytes.size()));
  stream.next_in = const_cast<Bytef*>(bytes.data());
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = out.data();
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

/// Expect that `call` throws this type of error with a message that holds every one of `parts`.
template <class Expected, class Call>
void expect_error(Call call, const std::vector<std::string>& parts) {
  EXPECT_TRUE(throws<Expected>(parts, call)) << parts.front();
}
template <class Call>
void expect_io_error(Call call, const std::vector<std::string>& parts) {
  expect_error<IoError>(call, parts);
}
template <class Call>
void expect_config_error(Call call, const std::vector<std::string>& parts) {
  expect_error<ConfigError>(call, parts);
}

/// While it lives, this process may have at most `most` files open.
class FewFiles {
 public:
  explicit FewFiles(rlim_t most) {
    EXPECT_EQ(getrlimit(RLIMIT_NOFILE, &before_), 0);
    rlimit few = before_;
    few.rlim_cur = most;
    EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
  }
  ~FewFiles() { setrlimit(RLIMIT_NOFILE, &before_); }
  FewFiles(const FewFiles&) = delete;
  FewFiles& operator=(const FewFiles&) = delete;

 private:
  rlimit before_{};
};

/// One sample of StoredImages.
struct ReadImage {
  Bytes pixels;
  int label;
};
inline ReadImage read_image(const Dataset& set, int64_t index) {
  Sample sample(set.fields());
  set.read(index, sample);
  const auto* pixels = static_cast<const uint8_t*>(sample.at(field_index(set, "image")));
  return {Bytes(pixels, pixels + field_named(set, "image").bytes()),
          *static_cast<const uint8_t*>(sample.at(field_index(set, "label")))};
}

}  // namespace tutti::data
