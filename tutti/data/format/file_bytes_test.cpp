#include "tutti/data/format/file_bytes.h"

#include <gtest/gtest.h>

#include <utility>

#include "tutti/base/rng.h"
#include "tutti/data/format/scratch_directory.h"

namespace tutti::data {
namespace {

Bytes content(const FileBytes& file) { return {file.bytes().begin(), file.bytes().end()}; }

Bytes half_random(size_t n) {  // compresses, but not to nothing
  Rng rng(1, Purpose::test, n);
  Bytes bytes(n);
  for (uint8_t& x : bytes) x = static_cast<uint8_t>(rng.below(16));
  return bytes;
}

TEST(FileBytes, MapsInflatesAndMoves) {
  const ScratchDirectory scratch;
  const Bytes bytes = half_random(300'000);
  FileBytes mapped = FileBytes::map(scratch.write("plain", bytes));
  FileBytes inflated = FileBytes::inflate(scratch.write("packed.gz", gzipped(bytes)));
  EXPECT_EQ(content(mapped), bytes);
  EXPECT_EQ(content(inflated), bytes);
  const uint8_t* at = inflated.bytes().data();
  FileBytes moved = std::move(inflated);
  EXPECT_EQ(moved.bytes().data(), at);
  EXPECT_TRUE(inflated.bytes().empty());
  moved = std::move(mapped);
  EXPECT_EQ(content(moved), bytes);
  EXPECT_TRUE(content(FileBytes::map(scratch.write("empty", Bytes{}))).empty());
  EXPECT_TRUE(content(FileBytes::inflate(scratch.write("empty.gz", gzipped({})))).empty());
}

TEST(FileBytes,
     InflatesAsMuchAsDeflateCanPack) {  // zeros reach deflate's largest ratio, about 1030
  const ScratchDirectory scratch;
  const Bytes zeros(20'000'000);
  EXPECT_EQ(content(FileBytes::inflate(scratch.write("zeros.gz", gzipped(zeros)))), zeros);
}

TEST(FileBytes, NamesTheFileAndWhatIsWrong) {
  const ScratchDirectory scratch;
  expect_io_error([&] { FileBytes::map(scratch.path() / "none"); }, {"/none", "No such file"});
  expect_io_error([&] { FileBytes::map(scratch.path()); }, {"expected a file"});
  const Bytes good = gzipped(half_random(100'000));
  const auto inflate = [&](const Bytes& bytes) {
    return FileBytes::inflate(scratch.write("x.gz", bytes));
  };
  expect_io_error([&] { inflate(half_random(500)); }, {"/x.gz", "expected a gzip file"});
  for (const size_t keep : {good.size() - 1, good.size() - 8, good.size() / 2, size_t{20}})
    expect_io_error(
        [&] { inflate(Bytes(good.begin(), good.begin() + static_cast<ptrdiff_t>(keep))); },
        {"/x.gz", "truncated"});
  Bytes wrong_crc = good;
  wrong_crc[good.size() - 6] ^= 1;  // the CRC is in bytes -8 to -5
  expect_io_error([&] { inflate(wrong_crc); }, {"corrupted", "incorrect data check"});
  Bytes wrong_length = good;
  wrong_length.back() ^= 0x80;  // announces 2 GiB more; must not allocate them
  expect_io_error([&] { inflate(wrong_length); }, {"corrupted", "incorrect length check"});
  Bytes longer = good;
  longer.push_back(0);
  expect_io_error([&] { inflate(longer); }, {"1 unexpected bytes"});
  for (size_t at = 10; at < good.size(); at += 977) {  // any damage is noticed
    Bytes damaged = good;
    damaged[at] ^= 0x10;
    EXPECT_THROW(inflate(damaged), IoError) << at;
  }
}

}  // namespace
}  // namespace tutti::data
