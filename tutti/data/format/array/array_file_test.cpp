#include "tutti/data/format/open_array.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <thread>

#include "tutti/base/expect_text.h"
#include "tutti/data/format/array/array_checks.h"

namespace tutti::data {
namespace {

template <class T>
Bytes as_bytes(const std::vector<T>& values) {
  const auto* at = reinterpret_cast<const uint8_t*>(values.data());
  return {at, at + values.size() * sizeof(T)};
}

TEST(ArrayFile, BytesBehindAZipFileAreSaidOnce) {
  const ScratchDirectory scratch;
  ZipBytes zip;
  zip.add("x.npy", npy_bytes("|u1", false, "(3,)", {1, 2, 3}), false);
  const auto path = scratch.write("a.npz", joined(zip.bytes(), Bytes(5, 7)));
  testing::internal::CaptureStderr();
  for (const auto& spelling : {path, path, scratch.path() / "." / "a.npz"})
    EXPECT_EQ(whole<uint8_t>(open_array_file(spelling), "x"), (Bytes{1, 2, 3}));
  const std::string message = testing::internal::GetCapturedStderr();
  EXPECT_TRUE(has_text(message, "a.npz: 5 bytes follow the end of the zip file"));
  EXPECT_TRUE(has_once(message, "bytes follow"));
}

TEST(ArrayFile, SlabsOfAnNpy) {
  const ScratchDirectory scratch;
  const auto path = scratch.path() / "x.npy";
  const auto values = counted<int32_t>(4 * 5 * 6);
  write_npy_array(path, {.type = ElementType::i32, .shape = {4, 5, 6}, .values = values.data()});
  const ArrayFile file = open_array_file(path);
  ASSERT_EQ(file.arrays().size(), 1u);
  EXPECT_EQ(file.arrays()[0].shape, (std::vector<int64_t>{4, 5, 6}));
  EXPECT_EQ(whole<int32_t>(file, "array"), values);
  const auto slab = slab_of<int32_t>(file, "array", {{1, 2, 3}, {2, 2, 2}});
  std::vector<int32_t> expected;
  for (const int i : {1, 2})
    for (const int j : {2, 3})
      for (const int k : {3, 4}) expected.push_back((i * 30 + j * 6 + k) % 100);
  EXPECT_EQ(slab, expected);
  EXPECT_EQ(slab_of<int32_t>(file, "array", {{4, 0, 0}, {0, 5, 6}}).size(), 0u);
  EXPECT_THROW(slab_of<int32_t>(file, "array", {{3, 0, 0}, {2, 5, 6}}), InternalError);
  std::vector<float> floats(6);
  file.read_f32(0, {{0, 1, 0}, {1, 1, 6}}, floats.data());
  EXPECT_EQ(floats, (std::vector<float>{6, 7, 8, 9, 10, 11}));
}

// Rows far apart are read one by one, close rows together: both must give the same.
TEST(ArrayFile, SlabsOfWideRows) {
  const ScratchDirectory scratch;
  std::vector<uint16_t> values(3 * 1'000'000);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<uint16_t>(i * 7 + i / 1000);
  write_npy_array(scratch.path() / "x",
                  {.type = ElementType::u16, .shape = {3, 1000, 1000}, .values = values.data()});
  const ArrayFile file = open_array_file(scratch.path() / "x");
  const Slab slab{{0, 990, 998}, {3, 10, 2}};
  const auto found = slab_of<uint16_t>(file, "array", slab);
  size_t at = 0;
  for (size_t i = 0; i < 3; ++i)
    for (size_t j = 990; j < 1000; ++j)
      for (size_t k = 998; k < 1000; ++k)
        ASSERT_EQ(found[at++], values[(i * 1000 + j) * 1000 + k]) << i << ' ' << j << ' ' << k;
}

TEST(ArrayFile, BigEndianAndFortranOrder) {
  const ScratchDirectory scratch;
  // Element (i, j) is 10 i + j; the first dimension lies contiguous.
  const Bytes values = {0, 0, 0, 10, 0, 1, 0, 11, 0, 2, 0, 12};
  const ArrayFile file =
      open_array_file(scratch.write("x.npy", npy_bytes(">i2", true, "(2, 3)", values)));
  EXPECT_EQ(whole<int16_t>(file, "array"), (std::vector<int16_t>{0, 1, 2, 10, 11, 12}));
  EXPECT_EQ(slab_of<int16_t>(file, "array", {{0, 1}, {2, 2}}),
            (std::vector<int16_t>{1, 2, 11, 12}));
  EXPECT_EQ(file.arrays()[0].type, ElementType::i16);
}

TEST(ArrayFile, EveryTypeOfNumPy) {
  const ScratchDirectory scratch;
  for (int i = 0; i < kElementTypes; ++i) {
    const auto type = static_cast<ElementType>(i);
    const Bytes values(3 * size_of(type), 1);
    const ArrayRef array{.type = type, .shape = {3}, .values = values.data()};
    const auto path = scratch.path() / std::string(name_of(type));
    if (type == ElementType::bf16) {
      EXPECT_THROW(write_npy_array(path, array), ConfigError);
      continue;
    }
    write_npy_array(path, array);
    const ArrayFile file = open_array_file(path);
    EXPECT_EQ(file.arrays()[0].type, type) << name_of(type);
    EXPECT_EQ(file.arrays()[0].bytes(), std::ssize(values));
  }
  for (const auto* descr : {"|O", "<U4", "<c8", "<M8[ns]", "<f16", "<i3", "", "f", "bf16"}) {
    const ArrayFile file =
        open_array_file(scratch.write("x", npy_bytes(descr, false, "(2,)", Bytes(16))));
    expect_error<BadFile>([&] { file.find("array"); }, {"/x", "not known here"});
  }
}

TEST(ArrayFile, NpzStoredAndDeflated) {
  const ScratchDirectory scratch;
  const auto values = counted<float>(1000);
  ZipBytes zip;
  zip.add("x.npy", npy_bytes("<f4", false, "(10, 100)", as_bytes(values)), false);
  zip.add("group/y.npy", npy_bytes("<f4", false, "(1000,)", as_bytes(values)), true);
  zip.add("readme.txt", Bytes(10), false);
  zip.add("none.npy", npy_bytes("|u1", false, "(0, 3)", {}), true);
  zip.add("one.npy", npy_bytes("|u1", false, "()", {7}), true);
  const Bytes sound = zip.bytes();
  // In sound files with an unsupported member, the message names it and the remedy.
  const auto first_entry = [](size_t at, uint8_t value, Bytes bytes) {
    const Bytes magic = {0x50, 0x4b, 0x01, 0x02};
    const auto entry = std::search(bytes.begin(), bytes.end(), magic.begin(), magic.end());
    *(entry + static_cast<ptrdiff_t>(at)) = value;
    return bytes;
  };
  const std::pair<Bytes, std::string> not_read[] = {
      {first_entry(10, 12, sound), "packed by bzip2 (method 12)"},
      {first_entry(10, 14, sound), "packed by LZMA (method 14)"},
      {first_entry(10, 93, sound), "packed by zstd (method 93)"},
      {first_entry(8, 1, sound), "is encrypted"}};
  for (const auto& [bytes, message] : not_read) {
    const std::string text =
        message_of<BadFile>([&] { open_array_file(scratch.write("x.npz", bytes)); });
    EXPECT_TRUE(has_text(text, message));
    EXPECT_TRUE(has_text(text, "numpy.savez"));
    EXPECT_FALSE(has_text(text, "fetch it again"));
  }
  const auto followed = scratch.write("x.npz", sized(sound, sound.size() + 5));
  EXPECT_EQ(open_array_file(followed).arrays().size(), 4u);
  expect_error<BadFile>(
      [&] { open_array_file(scratch.write("x.npz", joined(sound, sound))); },
      {fmt::format("{} bytes stand before the zip file, as where two were joined", sound.size()),
       fmt::format("tail -c +{} OLD", sound.size() + 1)});
  const ArrayFile file = open_array_file(scratch.write("x.npz", sound));
  ASSERT_EQ(file.arrays().size(), 4u);
  EXPECT_EQ(whole<float>(file, "x"), values);
  std::vector<std::thread> threads;  // the first use inflates, only once
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] { EXPECT_EQ(whole<float>(file, "group/y"), values); });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(whole<uint8_t>(file, "none").size(), 0u);
  EXPECT_EQ(whole<uint8_t>(file, "one"), (Bytes{7}));
  file.verify();
  const auto damaged = scratch.write("d.npz", flipped(sound, 300)),  // in x, which is stored
      cut = scratch.write("c.npz", sized(sound, sound.size() - 30));
  expect_error<BadFile>([&] { open_array_file(damaged).verify(); }, {"/d.npz", "'x'", "CRC-32"});
  expect_error<BadFile>([&] { open_array_file(cut); }, {"/c.npz", "truncated"});
}

TEST(ArrayFile, OfOneNameTheLastMemberOfAnNpzHolds) {
  const ScratchDirectory scratch;
  ZipBytes zip;
  for (const uint8_t value : {1, 2})
    zip.add("x.npy", npy_bytes("|u1", false, "(1,)", {value}), value == 1);
  const ArrayFile file = open_array_file(scratch.write("x.npz", zip.bytes()));
  ASSERT_EQ(file.arrays().size(), 1u);
  EXPECT_EQ(whole<uint8_t>(file, "x"), Bytes{2});
  EXPECT_EQ(whole<uint8_t>(file, ".//x"), Bytes{2});
}

TEST(ArrayFile, SaysWhatWasExpectedAndFound) {
  const ScratchDirectory scratch;
  const auto open = [&](const Bytes& bytes) { return open_array_file(scratch.write("x", bytes)); };
  const auto refuse = [&](const Bytes& bytes, const std::vector<std::string>& parts) {
    expect_error<BadFile>([&] { open(bytes); }, parts);
  };
  refuse(npy_bytes("<f4", false, "(3, 4)", Bytes(47)), {"/x", "f32 [3, 4]", "47"});
  refuse(npy_bytes("<f4", false, "(3, 4)", Bytes(49)),
         {"/x", "1 bytes follow the array's end at byte "});
  refuse(npy_bytes("<f4", false, "(3, -4)", Bytes(48)), {"extent"});
  refuse(npy_bytes("<f8", false, "(4294967296, 4294967296)", {}), {"/x", "at most 0 bytes"});
  refuse(Bytes(100, 'a'), {"/x", "expected an array file", "found text (100 bytes)"});
  refuse(Bytes(), {"/x", "found an empty file"});
  expect_error<BadFile>([&] { open_array_file(scratch.path() / "none"); }, {"No such file"});
  ASSERT_EQ(::mkfifo((scratch.path() / "pipe").c_str(), 0600), 0);
  expect_io_error([&] { open_array_file(scratch.path() / "pipe"); }, {"found a pipe"});

  const ArrayFile file = open(npy_bytes("<f4", false, "(2, 3)", Bytes(24)));
  expect_error<BadFile>([&] { file.find("labels"); }, {"'labels'", "array f32 [2, 3]"});
  const std::vector<int64_t> any{-1, 3}, other{2, 4};
  EXPECT_EQ(file.find("array", ElementType::f32, any), 0u);
  expect_error<BadFile>([&] { file.find("array", ElementType::f32, other); },
                        {"/x", "expected array 'array' as f32 [2, 4]", "found f32 [2, 3]"});
  expect_error<BadFile>([&] { file.find("array", ElementType::u8, any); }, {"u8", "found f32"});
}

TEST(ArrayFile, AFileThatShrinksIsAnError) {
  const ScratchDirectory scratch;
  const auto path = scratch.write("x", npy_bytes("<f4", false, "(2, 3)", Bytes(24)));
  const ArrayFile file = open_array_file(path);
  std::filesystem::resize_file(path, 80);
  expect_io_error([&] { whole<float>(file, "array"); }, {"/x", "shortened"});
}

TEST(ArrayFile, RawBinaryFromItsDescription) {
  const ScratchDirectory scratch;
  scratch.write("x.raw", Bytes{9, 9, 0, 1, 0, 2, 0, 3, 0, 4});
  const auto open = [&](const std::string& text) {
    return open_array_file(scratch.write("x.toml", text));
  };
  const auto refuse = [&](const std::string& text, const std::vector<std::string>& parts) {
    expect_error<BadFile>([&] { open(text); }, parts);
  };
  const std::string sound = "[[array]]\nname='x'\nfile='x.raw'\ntype='i16'\nshape=[2,2]\n";
  const ArrayFile file = open(sound + "offset=2\nbyte_order='big'\n");
  EXPECT_EQ(whole<int16_t>(file, "x"), (std::vector<int16_t>{1, 2, 3, 4}));
  refuse(sound + "offset=3", {"/x.raw", "i16 [2, 2] from byte 3", "found 10 bytes"});
  refuse(sound + "offset=11", {"from byte 11"});
  scratch.write("p.raw", std::string("version https://git-lfs.github.com/spec/v1\noid sha256:0\n"));
  refuse("[[array]]\nname='x'\nfile='p.raw'\ntype='f32'\nshape=[99]\n",
         {"/p.raw: expected raw numbers", "git lfs pull"});
  refuse("version https://git-lfs.github.com/spec/v1\noid a\n",
         {"/x.toml: expected a description of raw arrays", "git lfs pull"});
  refuse(sound + "ofset=2", {"/x.toml:6", "'ofset' is no key"});
  refuse(sound + "offset=-2", {"/x.toml:6", "'offset'"});
  refuse("[[array]]\nname='x'\ntype='i17'\n", {":3", "'i17'"});
  refuse("[[array]]\nname='x'\n", {":1", "needs 'type'"});
  refuse("array = 3\n", {"one [[array]]"});
  refuse("[[array\n", {"/x.toml:1"});
  refuse(sound + sound, {"two arrays are named 'x'"});
}

#ifdef TUTTI_TEST_DATA
const std::filesystem::path kReal = TUTTI_TEST_DATA;

TEST(RealArrays, NpyNpzAndRawBinary) {
  const ArrayFile stem = open_array_file(kReal / "stem/graphene/G-GrainBoundary-4nm.npy");
  const auto image = whole<float>(stem, "array");
  EXPECT_NEAR(std::accumulate(image.begin(), image.end(), 0.0), 14891.1113, 1e-3);
  EXPECT_FLOAT_EQ(image[3 * 512 + 4], 0.046126302f);

  const ArrayFile em = open_array_file(kReal / "em/ffn_fib25_sample-training2.npz");
  const auto ids = whole<uint8_t>(em, "segmentation");
  EXPECT_EQ(std::accumulate(ids.begin(), ids.end(), int64_t{0}), 871013686);
  expect_error<BadFile>([&] { em.find("origins"); }, {"'origins'", "'|O'"});
  em.verify();

  const ScratchDirectory scratch;
  const auto description = scratch.write(
      "nyx.toml", "[[array]]\nname='particles'\ntype='f64'\nshape=[32768,7]\noffset=16\nfile='" +
                      (kReal / "cosmology/nyx_lya_ic_32.nyx").string() + "'\n");
  const auto particle =
      slab_of<double>(open_array_file(description), "particles", {{7, 0}, {1, 7}});
  EXPECT_NEAR(particle[0], 7.98484739, 1e-8);
  EXPECT_NEAR(particle[6], -3.00699622, 1e-8);
}
#endif

}  // namespace
}  // namespace tutti::data
