// Tests TIFF files that tifffile wrote, from the fuzzers' corpus, and files cut and changed by
// hand.

#include <gtest/gtest.h>

#include <cstdlib>

#include "tutti/base/expect_text.h"
#include "tutti/data/format/array/array_checks.h"
#include "tutti/data/format/array/tiff_arrays.h"
#include "tutti/data/format/array/tiff_codecs.h"
#include "tutti/data/format/open_array.h"

namespace tutti::data {
namespace {

namespace fs = std::filesystem;

fs::path tiff_sample(const std::string& name) {
  return fs::path(TUTTI_SOURCE_DIR) / "tests/fuzz/corpus/tiff" / name;
}

/// The expected content: the formula that made the files.
struct TiffCase {
  const char* name;
  ElementType type;
  std::vector<int64_t> shape;  ///< shape of the listed array
  int64_t pages, channels, modulus;
  double factor = 1, offset = 0;
};

const TiffCase kTiffCases[] = {
    {"u8_strips", ElementType::u8, {2, 5, 7}, 2, 1, 251},
    {"u16_big_lzw_differences", ElementType::u16, {3, 20, 30}, 3, 1, 997},
    {"u16_lzw_long", ElementType::u16, {64, 64}, 1, 1, 997},
    {"u32_tiles_deflate", ElementType::u32, {2, 40, 33}, 2, 1, 997},
    {"f32_float_differences", ElementType::f32, {12, 9}, 1, 1, 997, 0.5},
    {"f32_big_float_differences", ElementType::f32, {12, 9}, 1, 1, 997, 0.5},
    {"f16_packbits", ElementType::f16, {2, 6, 8}, 2, 1, 97, 0.5},
    {"rgb_lzw_differences", ElementType::u8, {10, 11, 3}, 1, 3, 251},
    {"bigtiff_i16", ElementType::i16, {2, 5, 6}, 2, 1, 997, 1, -400},
    {"imagej_one_directory", ElementType::u16, {8, 5, 6}, 8, 1, 997},
    {"imagej_hyperstack", ElementType::u16, {4, 2, 5, 6}, 8, 1, 997},
    {"shaped_one_directory", ElementType::u16, {2, 3, 5, 6}, 6, 1, 997},
    {"ome_planes", ElementType::u16, {2, 3, 5, 6}, 6, 1, 997},
    {"volume_tiles", ElementType::u16, {5, 10, 20}, 5, 1, 997},
    {"volume_strips", ElementType::i16, {3, 5, 6}, 3, 1, 997},
    {"planes_lzw", ElementType::u8, {3, 10, 11}, 3, 1, 251},
    {"levels", ElementType::u16, {2, 16, 16}, 2, 1, 997}};

double value_at(const TiffCase& of, int64_t p, int64_t y, int64_t x, int64_t c) {
  return static_cast<double>((p * 37 + y * y * 13 + x * x * 7 + x * y * 5 + c * 50) % of.modulus) *
             of.factor +
         of.offset;
}

TEST(Tiff, ReadsWhatOthersWrite) {
  for (const TiffCase& of : kTiffCases) {
    const ArrayFile file = open_array_file(tiff_sample(of.name));
    const size_t index = file.find("image", of.type, of.shape);
    const ArrayInfo& info = file.arrays()[index];
    std::vector<float> values(static_cast<size_t>(info.elements()));
    file.read_f32(index, Slab::all(info), values.data());
    const size_t rows = of.shape.size() - (of.channels > 1 ? 3 : 2);
    size_t at = 0;
    for (int64_t p = 0; p < of.pages; ++p)
      for (int64_t y = 0; y < of.shape[rows]; ++y)
        for (int64_t x = 0; x < of.shape[rows + 1]; ++x)
          for (int64_t c = 0; c < of.channels; ++c, ++at)
            ASSERT_EQ(static_cast<double>(values[at]), value_at(of, p, y, x, c))
                << of.name << " page " << p << " at " << y << " " << x;
    EXPECT_NO_THROW(file.verify()) << of.name;
  }
}

TEST(Tiff, ReadsSlabsAcrossPagesStripsAndTiles) {
  for (const char* name : {"u32_tiles_deflate", "u16_big_lzw_differences", "u8_strips"}) {
    const ArrayFile file = open_array_file(tiff_sample(name));
    const ArrayInfo& info = file.arrays()[0];
    std::vector<float> all(static_cast<size_t>(info.elements()));
    file.read_f32(0, Slab::all(info), all.data());
    const Slab slab{{0, 1, 2}, {2, info.shape[1] - 2, info.shape[2] - 3}};
    std::vector<float> some(static_cast<size_t>(slab.elements()));
    file.read_f32(0, slab, some.data());
    size_t at = 0;
    for (int64_t p = 0; p < 2; ++p)
      for (int64_t y = 1; y < info.shape[1] - 1; ++y)
        for (int64_t x = 2; x < info.shape[2] - 1; ++x)
          ASSERT_EQ(some[at++],
                    all[static_cast<size_t>((p * info.shape[1] + y) * info.shape[2] + x)])
              << name;
  }
}

TEST(Tiff, SmallerVersionsAreArraysOfTheirOwn) {
  const ArrayFile file = open_array_file(tiff_sample("levels"));
  ASSERT_EQ(file.arrays().size(), 2u);
  const std::vector<uint16_t> full = whole<uint16_t>(file, "image"),
                              half = whole<uint16_t>(file, "level1");
  EXPECT_EQ(file.arrays()[1].shape, (std::vector<int64_t>{2, 8, 8}));
  for (size_t i = 0; i < half.size(); ++i)
    ASSERT_EQ(half[i], full[i / 64 * 256 + i % 64 / 8 * 32 + i % 8 * 2]) << i;
}

TEST(Tiff, PagesOfAnotherShapeAreArraysOfTheirOwn) {
  const ArrayFile file = open_array_file(tiff_sample("other_page"));
  ASSERT_EQ(file.arrays().size(), 2u);
  EXPECT_EQ(file.arrays()[0].shape, (std::vector<int64_t>{2, 5, 6}));
  EXPECT_EQ(file.arrays()[1].name, "page2");
  EXPECT_EQ(file.arrays()[1].shape, (std::vector<int64_t>{3, 4}));
}

std::string refusal_of(const Bytes& bytes, bool read = true) {
  return message_of<BadFile>("", [&] {
    const FileBytes file = FileBytes::own(bytes, "x.tif");
    const ArrayFile arrays(file.name(), read_tiff(file));
    (void)arrays.find("image");
    if (read) arrays.verify();
  });
}

Bytes bytes_of_sample(const std::string& name) {
  const FileBytes file = FileBytes::open(tiff_sample(name));
  Bytes bytes(static_cast<size_t>(file.size()));
  file.read(0, bytes);
  return bytes;
}

/// Replaces `from` by `to`, which has the same length.
Bytes with_text(Bytes bytes, std::string_view from, std::string_view to) {
  const auto found = std::search(bytes.begin(), bytes.end(), from.begin(), from.end());
  EXPECT_NE(found, bytes.end()) << from;
  std::ranges::copy(to, found);
  return bytes;
}

TEST(Tiff, StacksThatAreNotWholeAreNamed) {
  const auto names = [](const Bytes& bytes, const char* declared) {
    EXPECT_TRUE(has_text(refusal_of(bytes), declared));
  };
  Bytes cut = bytes_of_sample("imagej_one_directory");
  cut.pop_back();
  names(cut, "ImageJ's images=8 speaks of more than the 1 page of the file");
  names(with_text(bytes_of_sample("imagej_hyperstack"), "images=8", "images=9"), "images=9");
  names(with_text(bytes_of_sample("ome_planes"), "SizeT=\"2\"", "SizeT=\"4\""),
        "OME's description of 12 planes speaks of more than the 6 pages");
  // Without a valid number of images the pages are taken as they are.
  EXPECT_EQ(refusal_of(with_text(bytes_of_sample("imagej_hyperstack"), "images=8", "images=x")),
            "");
}

/// Returns a file with this description and pages of 2x3 bytes: 0, 1, 2 ... With `planes` samples
/// per pixel, each in its own plane.
Bytes described_pages(const std::string& description, uint32_t pages, uint32_t planes = 1) {
  constexpr uint32_t kBytes = 2 * 3, kEntries = 9, kDirectory = 2 + 12 * kEntries + 4;
  Bytes bytes = {'I', 'I', 42, 0};
  const auto put = [&](uint32_t value, int count) {
    for (int i = 0; i < count; ++i) bytes.push_back(static_cast<uint8_t>(value >> 8 * i));
  };
  const auto length = static_cast<uint32_t>(description.size() + 1);
  // After the header: the description, the tables of each page's planes, and the values.
  const uint32_t table = 8 + length, values = table + pages * planes * 8,
                 first = values + pages * planes * kBytes;
  put(first, 4);
  bytes.insert(bytes.end(), description.begin(), description.end());
  put(0, 1);
  for (uint32_t p = 0; p < pages; ++p) {
    for (uint32_t c = 0; c < planes; ++c) put(values + (p * planes + c) * kBytes, 4);
    for (uint32_t c = 0; c < planes; ++c) put(kBytes, 4);
  }
  for (uint32_t i = 0; i < pages * planes * kBytes; ++i) put(i, 1);
  for (uint32_t p = 0; p < pages; ++p) {
    const uint32_t places = planes == 1 ? values + p * kBytes : table + p * planes * 8,
                   sizes = planes == 1 ? kBytes : places + planes * 4;
    const std::array<uint32_t, 4> entries[kEntries] = {
        {256, 4, 1, 3},      {257, 4, 1, 2},           {258, 3, 1, 8},
        {270, 2, length, 8}, {273, 4, planes, places}, {277, 3, 1, planes},
        {278, 4, 1, 2},      {279, 4, planes, sizes},  {284, 3, 1, planes > 1 ? 2u : 1u}};
    put(kEntries, 2);
    for (const auto& [tag, type, count, value] : entries)
      put(tag, 2), put(type, 2), put(count, 4), put(value, 4);
    put(p + 1 < pages ? first + (p + 1) * kDirectory : 0, 4);
  }
  return bytes;
}

std::string ome_pixels(int channels, int depth, const std::string& planes = "") {
  return fmt::format(
      "<?xml version=\"1.0\"?><OME><Image><Pixels DimensionOrder=\"XYCZT\" SizeX=\"3\" SizeY=\"2\" "
      "SizeC=\"{}\" SizeZ=\"{}\" SizeT=\"1\">{}</Pixels></Image></OME>",
      channels, depth, planes);
}

// OME counts the samples of a pixel as channels, both interleaved and in planes.
TEST(Tiff, OmeCountsChannelsOfPlanes) {
  const auto shape = [](const Bytes& bytes) {
    EXPECT_EQ(refusal_of(bytes), "");
    return ArrayFile("x.tif", read_tiff(FileBytes::own(bytes, "x.tif"))).arrays()[0].shape;
  };
  using Extents = std::vector<int64_t>;
  EXPECT_EQ(shape(described_pages(ome_pixels(3, 1), 1, 3)), (Extents{3, 2, 3}));
  EXPECT_EQ(shape(described_pages(ome_pixels(3, 4), 4, 3)), (Extents{4, 3, 2, 3}));
  EXPECT_TRUE(has_text(refusal_of(described_pages(ome_pixels(6, 1), 1, 3)), "of 2 planes"));
}

/// Bio-Formats writes one file per plane, and lists all planes in each description.
TEST(Tiff, APlaneOfASetOfFilesIsReadAndSaid) {
  const ScratchDirectory scratch;
  std::string planes;
  for (int z = 0; z < 4; ++z)
    planes += fmt::format(
        "<TiffData FirstZ=\"{0}\"><UUID FileName=\"z{0}.ome.tif\">u</UUID></TiffData>", z);
  testing::internal::CaptureStderr();
  for (int z = 0; z < 4; ++z) {
    const auto path =
        scratch.write(fmt::format("z{}.ome.tif", z), described_pages(ome_pixels(1, 4, planes), 1));
    EXPECT_EQ(whole<uint8_t>(open_array_file(path), "image"), (Bytes{0, 1, 2, 3, 4, 5}));
  }
  const std::string declared = testing::internal::GetCapturedStderr();
  EXPECT_TRUE(has_text(declared, "OME's description of 4 planes speaks of more than the 1 page"));
  EXPECT_FALSE(has_text(declared, "z1.ome.tif")) << "once for a folder: ";
}

TEST(Tiff, APageOfAStackIsReadWithoutItsDescription) {
  const ScratchDirectory scratch;
  const auto path =
      scratch.write("FILE", described_pages("ImageJ=1.53\nimages=60\nslices=60\nloop=false\n", 1));
  const std::string command = "tiffset -u 270 FILE";
  expect_error<BadFile>([&] { open_array_file(path).find("image"); },
                        {"images=60 speaks of more than the 1 page", "'" + command + "'"});
  // 127: tiffset is not installed.
  const int ended = std::system(
      fmt::format("cd '{}' && {} 2> /dev/null", scratch.path().string(), command).c_str());
  if (WEXITSTATUS(ended) == 127) return;
  EXPECT_EQ(ended, 0);
  EXPECT_EQ(whole<uint8_t>(open_array_file(path), "image"), (Bytes{0, 1, 2, 3, 4, 5}));
}

TEST(Tiff, SaysWhatItCannotRead) {
  EXPECT_TRUE(
      has_text(refusal_of(bytes_of_sample("jpeg_refused")), "compression 7 is not known here"));
}

TEST(Tiff, RefusesFilesThatAreCut) {
  for (const TiffCase& of : kTiffCases) {
    const Bytes bytes = bytes_of_sample(of.name);
    for (size_t end = 0; end < bytes.size(); end += 1 + bytes.size() / 97) {
      const std::string refusal =
          refusal_of({bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(end)});
      // Some bytes at the end may be padding or another page's; a fault in bytes that are read must
      // be reported.
      if (end < bytes.size() / 2) {
        EXPECT_TRUE(has_text(refusal, "x.tif")) << of.name << " " << end;
      }
    }
  }
}

/// Builds a file with one page: entries of (tag, type, count, value).
Bytes made_by_hand(const std::vector<std::array<uint32_t, 4>>& entries, uint32_t next = 0) {
  Bytes bytes = {'I', 'I', 42, 0, 8, 0, 0, 0, static_cast<uint8_t>(entries.size()), 0};
  const auto put = [&](uint32_t value, int count) {
    for (int i = 0; i < count; ++i) bytes.push_back(static_cast<uint8_t>(value >> 8 * i));
  };
  for (const auto& [tag, type, count, value] : entries)
    put(tag, 2), put(type, 2), put(count, 4), put(value, 4);
  put(next, 4);
  bytes.resize(bytes.size() + 64);
  return bytes;
}

TEST(Tiff, RefusesHostileFiles) {
  using Entries = std::vector<std::array<uint32_t, 4>>;
  const Entries sound = {{256, 4, 1, 4}, {257, 4, 1, 4}, {258, 3, 1, 8},
                         {273, 4, 1, 8}, {278, 4, 1, 4}, {279, 4, 1, 16}};
  EXPECT_EQ(refusal_of(made_by_hand(sound)), "");
  EXPECT_TRUE(has_text(refusal_of(made_by_hand(sound, 8)), "a page of its own"));
  const auto changed = [&](uint32_t tag, uint32_t value) {
    Entries entries = sound;
    for (auto& entry : entries)
      if (entry[0] == tag) entry[3] = value;
    return refusal_of(made_by_hand(entries));
  };
  EXPECT_TRUE(has_text(changed(256, 0), "the width of a page is 0"));
  EXPECT_TRUE(has_text(changed(256, 0x7fffffff), "truncated or corrupted"));
  EXPECT_TRUE(has_text(changed(257, 0x7fffffff), "truncated or corrupted"));
  EXPECT_TRUE(has_text(changed(273, 0xffffffff), "beyond the end of the file"));
  EXPECT_TRUE(has_text(changed(279, 3), "a part of 16 bytes has 3"));
  EXPECT_TRUE(has_text(changed(278, 0), "no rows"));
  EXPECT_TRUE(has_text(changed(258, 12), "12 bits"));
  // MetaMorph's stacks have one directory, and as many planes as the count of a tag.
  const auto planes = [&](uint32_t count) {
    Entries entries = sound;
    entries.push_back({33629, 5, count, 8});
    return ArrayFile("x.stk", read_tiff(FileBytes::own(made_by_hand(entries), "x.stk")))
        .arrays()[0];
  };
  EXPECT_EQ(planes(3).shape, (std::vector<int64_t>{3, 4, 4}));
  EXPECT_TRUE(has_text(planes(11).problem, "MetaMorph's 11 planes"));
  Entries sparse = sound;  // an omitted part is zeros
  sparse[3][3] = sparse[5][3] = 0;
  EXPECT_EQ(refusal_of(made_by_hand(sparse)), "");
  Entries tiles = {{256, 4, 1, 4},          {257, 4, 1, 4}, {258, 3, 1, 8}, {322, 4, 1, 0x7fffffff},
                   {323, 4, 1, 0x7fffffff}, {324, 4, 1, 8}, {325, 4, 1, 16}};
  EXPECT_TRUE(has_text(refusal_of(made_by_hand(tiles)), "larger than the file can hold"));
}

TEST(Tiff, PackedBytesThatEndAreRefused) {
  Bytes out(100);
  EXPECT_THROW(unpack_lzw(Bytes{0x80, 0x00}, out, "x"), BadFile);
  EXPECT_THROW(unpack_lzw(Bytes{0xff, 0xff, 0xff}, out, "x"), BadFile);
  EXPECT_THROW(unpack_packbits(Bytes{0xf0}, out, "x"), BadFile);
  EXPECT_THROW(unpack_packbits(Bytes{5, 1, 2}, out, "x"), BadFile);
  unpack_packbits(Bytes{0x81, 7}, out, "x");  // 128 bytes, 100 of them requested
  EXPECT_EQ(out, Bytes(100, 7));
}

}  // namespace
}  // namespace tutti::data
