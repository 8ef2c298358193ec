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

/// Returns a file of the fuzzers' corpus.
inline std::filesystem::path corpus_file(const std::string& name) {
  return std::filesystem::path(TUTTI_SOURCE_DIR) / "tests/fuzz/corpus" / name;
}

inline Bytes read_all(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline Bytes bytes_of(std::string_view text) { return {text.begin(), text.end()}; }

/// Return bytes cut to a size, or filled with zeros; with a byte changed; and with others behind.
inline Bytes sized(Bytes bytes, size_t size) {
  bytes.resize(size);
  return bytes;
}
inline Bytes changed(Bytes bytes, size_t at, int value) {
  bytes[at] = static_cast<uint8_t>(value);
  return bytes;
}
inline Bytes flipped(const Bytes& bytes, size_t at, int bits = 1) {
  return changed(bytes, at, bytes[at] ^ bits);
}
inline Bytes joined(Bytes bytes, const Bytes& others) {
  bytes.insert(bytes.end(), others.begin(), others.end());
  return bytes;
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

/// Returns whether `part` is in `text` exactly once.
inline testing::AssertionResult has_once(std::string_view text, std::string_view part) {
  const size_t first = text.find(part);
  if (first != text.npos && first == text.rfind(part)) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "'" << part << "' is not once in: " << text;
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

/// Reads a field of a sample.
template <class T>
std::vector<T> values_of(const Dataset& set, int64_t index, const std::string& field) {
  Sample sample(set.fields());
  set.read(index, sample);
  const auto* x = static_cast<const T*>(sample.at(field_index(set, field)));
  return {x, x + field_named(set, field).elements()};
}

/// One sample of StoredImages.
struct ReadImage {
  Bytes pixels;
  int label;
};
inline ReadImage read_image(const Dataset& set, int64_t index) {
  return {values_of<uint8_t>(set, index, "image"), values_of<uint8_t>(set, index, "label")[0]};
}

}  // namespace tutti::data
