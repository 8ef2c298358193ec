#include "tutti/data/file/file_bytes.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <span>
#include <thread>
#include <vector>

#include "tutti/base/numeric/rng.h"
#include "tutti/data/file/gzip.h"
#include "tutti/data/file_checks.h"

namespace tutti::data {
namespace {

Bytes content(const FileBytes& file) {
  Bytes bytes(static_cast<size_t>(file.size()));
  file.read(0, bytes);
  return bytes;
}

Bytes half_random(size_t n) {  // compresses, but not to nothing
  Rng rng(1, Purpose::test, n);
  Bytes bytes(n);
  for (uint8_t& x : bytes) x = static_cast<uint8_t>(rng.below(16));
  return bytes;
}

TEST(FileBytes, ReadsByPositionAndWalks) {
  const ScratchDirectory scratch;
  const Bytes bytes = half_random(3'000'000);
  const FileBytes file = FileBytes::open(scratch.write("plain", bytes));
  EXPECT_EQ(content(file), bytes);
  EXPECT_EQ(content(FileBytes::own(bytes, "memory")), bytes);
  for (const FileBytes& source : {file, FileBytes::own(bytes, "memory")}) {
    Bytes seen;
    StridedBytes picked{.first = 7, .stride = 700'001};
    source.walk(5, [&](std::span<const uint8_t> block, int64_t at) {
      EXPECT_EQ(at, std::ssize(seen) + 5);
      seen.insert(seen.end(), block.begin(), block.end());
      picked.look(block, at);
    });
    EXPECT_EQ(seen, Bytes(bytes.begin() + 5, bytes.end()));
    EXPECT_EQ(picked.bytes, (Bytes{bytes[7], bytes[700'008], bytes[1'400'009], bytes[2'100'010],
                                   bytes[2'800'011]}));
  }
  EXPECT_TRUE(content(FileBytes::open(scratch.write("empty", Bytes{}))).empty());
  Bytes two(2);
  EXPECT_THROW(file.read(2'999'999, two), InternalError);
}

TEST(FileBytes, MoreFilesThanTheLimitAllowsAreReadInTurns) {
  const ScratchDirectory scratch;
  const FewFiles few(64);
  std::vector<FileBytes> files;
  const auto read_all_of_them = [&] {
    for (size_t i = 0; i < files.size(); ++i)
      EXPECT_EQ(content(files[i]), (Bytes{static_cast<uint8_t>(i), 7})) << i;
  };
  for (int i = 0; i < 200; ++i)
    files.push_back(FileBytes::open(
        scratch.write(fmt::format("shard-{}", i), Bytes{static_cast<uint8_t>(i), 7})));
  read_all_of_them();
  { const std::jthread one(read_all_of_them), another(read_all_of_them); }
  scratch.write("shard-3", Bytes{3, 7, 8});
  std::filesystem::remove(scratch.path() / "shard-4");
  expect_io_error([&] { content(files[3]); }, {"shard-3", "is another file"});
  expect_error<BadFile>([&] { content(files[4]); }, {"shard-4", "No such file"});
  scratch.write("shard-5", Bytes{8, 9});  // as long as it was
  std::filesystem::last_write_time(
      scratch.path() / "shard-5",
      std::filesystem::last_write_time(scratch.path() / "shard-6") + std::chrono::seconds(5));
  expect_io_error([&] { content(files[5]); }, {"shard-5", "is another file"});
}

TEST(FileBytes, DirectReadsAreTheSameBytesAndErrors) {
  const ScratchDirectory scratch;
  const Bytes bytes = half_random(3'000'001);
  const auto path = scratch.write("plain", bytes);
  FileBytes::set_direct(true);
  const FileBytes file = FileBytes::open(path);
  FileBytes::set_direct(false);
  EXPECT_EQ(content(file), bytes);
  const int64_t before = FileBytes::bytes_read();
  for (const int64_t first : {0, 1, 4095, 4096, 1'048'577, 2'900'000})
    for (const int64_t count : {int64_t{100}, int64_t{70'000}, 3'000'001 - first}) {
      Bytes some(static_cast<size_t>(std::min(count, 3'000'001 - first)));
      file.read(first, some);
      EXPECT_TRUE(std::ranges::equal(
          some, std::span(bytes).subspan(static_cast<size_t>(first), some.size())))
          << first << " " << count;
    }
  EXPECT_GT(FileBytes::bytes_read(), before);
  std::filesystem::resize_file(path, 2'000'000);
  Bytes some(1'000'000);
  expect_io_error([&] { file.read(1'500'000, some); }, {"plain", "shortened", "3000001 bytes"});
}

TEST(FileBytes, AFileShortenedInUseIsAnErrorAndNoSignal) {
  const ScratchDirectory scratch;
  const auto path = scratch.write("x.bin", half_random(100'000));
  const FileBytes file = FileBytes::open(path);
  std::filesystem::resize_file(path, 50'000);
  Bytes some(1000);
  file.read(49'000, some);
  expect_io_error([&] { file.read(49'500, some); },
                  {"x.bin", "shortened", "100000 bytes", "before byte 50500"});
}

TEST(FileBytes, NamesTheFileAndWhatIsWrong) {
  const ScratchDirectory scratch;
  expect_io_error([&] { FileBytes::open(scratch.path() / "none"); }, {"/none", "No such file"});
  EXPECT_THROW(FileBytes::open(scratch.path() / "none"), BadFile);
  expect_io_error([&] { FileBytes::open(scratch.path()); }, {"expected a file", "folder"});
  std::filesystem::create_symlink("loop", scratch.path() / "loop");
  expect_io_error([&] { FileBytes::open(scratch.path() / "loop"); }, {"/loop", "symbolic links"});
  EXPECT_FALSE(is_file(scratch.path() / "loop"));
}

TEST(FileBytes, AWarningOfAFileIsSaidOnceWhateverItsSpelling) {
  const ScratchDirectory scratch;
  scratch.write("a", Bytes{1});
  std::filesystem::create_symlink("a", scratch.path() / "b");
  EXPECT_TRUE(first_warning(scratch.path() / "a", "x"));
  EXPECT_FALSE(first_warning(scratch.path() / "." / "a", "x"));
  EXPECT_FALSE(first_warning(scratch.path() / "b", "x"));
  EXPECT_TRUE(first_warning(scratch.path() / "b", "y"));
}

TEST(FileBytes, APipeIsRefusedAndNotWaitedFor) {
  const ScratchDirectory scratch;
  ASSERT_EQ(::mkfifo((scratch.path() / "pipe").c_str(), 0600), 0);
  expect_io_error([&] { FileBytes::open(scratch.path() / "pipe"); }, {"/pipe", "found a pipe"});
}

// As much as `limit` bytes of a file, with one look beyond.
Bytes inflated(const std::filesystem::path& path, size_t limit) {
  GzipReader reader(path);
  Bytes bytes(limit);
  bytes.resize(reader.read(bytes));
  uint8_t beyond = 0;
  EXPECT_EQ(reader.read({&beyond, 1}), 0u);
  return bytes;
}

TEST(GzipReader, InflatesInPieces) {
  const ScratchDirectory scratch;
  const Bytes bytes = half_random(300'000);
  const auto path = scratch.write("packed.gz", gzipped(bytes));
  EXPECT_EQ(inflated(path, 400'000), bytes);
  EXPECT_EQ(inflated(path, 300'000), bytes);
  GzipReader reader(path);
  Bytes pieces;
  for (const size_t size : {1, 0, 16, 70'000, 200'000, 29'983}) {
    Bytes piece(size);
    ASSERT_EQ(reader.read(piece), size);
    pieces = joined(pieces, piece);
  }
  EXPECT_EQ(pieces, bytes);
  EXPECT_TRUE(inflated(scratch.write("empty.gz", gzipped({})), 10).empty());
  const Bytes zeros(20'000'000);  // zeros reach deflate's largest ratio, about 1030
  const auto packed = scratch.write("zeros.gz", gzipped(zeros));
  EXPECT_EQ(inflated(packed, zeros.size()), zeros);
  EXPECT_GE(GzipReader(packed).most_bytes(), std::ssize(zeros));
}

TEST(GzipReader, WhatFollowsTheEndIsNamedUnlessItIsZeros) {
  const ScratchDirectory scratch;
  const Bytes part = half_random(1000);
  const Bytes packed = gzipped(part);
  const size_t end = packed.size();
  EXPECT_EQ(inflated(scratch.write("padded.gz", sized(packed, end + 200'000)), 1000), part);
  const auto path = scratch.write("OLD", changed(sized(packed, end + 10), end + 9, 7));
  expect_error<BadFile>([&] { inflated(path, 1000); },
                        {fmt::format("10 bytes that are no gzip follow the end of the stream at "
                                     "byte {0}: take them off with 'head -c {0} OLD > NEW'",
                                     end)});
  ASSERT_EQ(
      std::system(
          fmt::format("cd '{}' && head -c {} OLD > NEW", scratch.path().string(), end).c_str()),
      0);
  EXPECT_EQ(inflated(scratch.path() / "NEW", 1000), part);
}

TEST(GzipReader, ReadsSeveralMembersAsOne) {
  const ScratchDirectory scratch;
  Bytes packed, whole;
  for (const size_t size : {70'000, 0, 5, 130'000}) {
    const Bytes part = half_random(size);
    whole = joined(whole, part);
    packed = joined(packed, gzipped(part));
  }
  EXPECT_EQ(inflated(scratch.write("x.gz", packed), whole.size()), whole);
  scratch.write("x.gz", sized(packed, packed.size() - 3));
  expect_io_error([&] { inflated(scratch.path() / "x.gz", whole.size()); }, {"/x.gz", "truncated"});
}

TEST(GzipReader, NamesTheFileAndWhatIsWrong) {
  const ScratchDirectory scratch;
  const Bytes good = gzipped(half_random(100'000));
  const size_t end = good.size();
  const auto refuse = [&](const Bytes& bytes, const std::vector<std::string>& parts) {
    expect_io_error([&] { inflated(scratch.write("x.gz", bytes), 10'000'000); }, parts);
  };
  refuse(half_random(500), {"/x.gz", "expected a gzip file"});
  for (const size_t keep : {end - 1, end - 8, end / 2, size_t{20}})
    refuse(sized(good, keep), {"/x.gz", "truncated"});
  // The CRC is in bytes -8 to -5.
  refuse(flipped(good, end - 6), {"corrupted", "incorrect data check"});
  refuse(flipped(good, end - 1, 0x80), {"corrupted", "incorrect length check"});
  refuse(changed(sized(good, end + 1), end, 1), {"1 bytes that are no gzip follow"});
  for (size_t at = 10; at < end; at += 977) {  // any damage is noticed
    SCOPED_TRACE(at);
    refuse(flipped(good, at, 0x10), {"x.gz"});
  }
}

}  // namespace
}  // namespace tutti::data
