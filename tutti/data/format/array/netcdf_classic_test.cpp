#include "tutti/data/format/array/netcdf_classic.h"

#include <gtest/gtest.h>

#include "tutti/data/format/molecules/trajectory_files.h"
#include "tutti/data/format/open_array.h"

namespace tutti::data {
namespace {

/// Returns a file as the NetCDF library writes it: y (2x3, i16), and along the records t (f64) and
/// x (3, i16), with an attribute of x and a text.
struct ClassicForm {
  int version = 1;
  int64_t records = 4, announced = -1;  ///< -1: the true number
  bool time = true;                     ///< false: only x lies along the records, without padding
  bool no_sign = false;                 ///< x has the attribute _Unsigned
};

Bytes classic_bytes(const ClassicForm& form) {
  const auto write = [&](const std::vector<int64_t>& places) {
    ByteWriter out;
    const int wide = form.version == 5 ? 8 : 4;
    const auto name = [&](std::string_view text) {
      out.whole(std::ssize(text), wide).text(text).padded();
    };
    out.text("CDF").whole(form.version, 1);
    out.whole(form.announced < 0 ? form.records : form.announced, wide);
    out.whole(10).whole(3, wide);
    name("step"), out.whole(0, wide);
    name("row"), out.whole(2, wide);
    name("column"), out.whole(3, wide);
    out.whole(12).whole(1, wide);
    name("title"), out.whole(2).whole(4, wide).text("test");
    out.whole(11).whole(form.time ? 3 : 2, wide);
    const auto place = [&](size_t i) { out.whole(places[i], form.version == 1 ? 4 : 8); };
    name("y"), out.whole(2, wide).whole(1, wide).whole(2, wide);
    out.whole(0).whole(0, wide).whole(3).whole(12, wide), place(0);
    if (form.time) {
      name("t"), out.whole(1, wide).whole(0, wide);
      out.whole(0).whole(0, wide).whole(6).whole(8, wide), place(1);
    }
    name("x"), out.whole(2, wide).whole(0, wide).whole(2, wide).whole(12);
    out.whole(form.no_sign ? 3 : 2, wide);
    if (form.no_sign) name("_Unsigned"), out.whole(2).whole(4, wide).text("true");
    name("scale_factor"), out.whole(5).whole(1, wide).f32(0.5f);
    name("units"), out.whole(2).whole(1, wide).text("m").padded();
    out.whole(3).whole(8, wide), place(2);
    return out;
  };
  const auto header = static_cast<int64_t>(write({0, 0, 0}).size());
  ByteWriter out = write({header, header + 12, header + 12 + (form.time ? 8 : 0)});
  for (int i = 0; i < 6; ++i) out.whole(i, 2);
  for (int64_t r = 0; r < form.records; ++r) {
    if (form.time) out.f64(static_cast<double>(r) / 2);
    for (int i = 0; i < 3; ++i) out.whole(10 * r + i - 5, 2);
    if (form.time) out.zeros(2);
  }
  return out.bytes();
}

TEST(NetcdfClassic, ArraysAndRecordsOfAllVersions) {
  const ScratchDirectory scratch;
  for (const int version : {1, 2, 5}) {
    const ArrayFile file =
        open_array_file(scratch.write("x.nc", classic_bytes({.version = version})));
    ASSERT_EQ(file.arrays().size(), 3u);
    EXPECT_EQ(whole<int16_t>(file, "y"), (std::vector<int16_t>{0, 1, 2, 3, 4, 5}));
    EXPECT_EQ(whole<double>(file, "t"), (std::vector<double>{0, 0.5, 1, 1.5}));
    EXPECT_EQ(whole<int16_t>(file, "x"),
              (std::vector<int16_t>{-5, -4, -3, 5, 6, 7, 15, 16, 17, 25, 26, 27}));
    EXPECT_EQ(slab_of<int16_t>(file, "x", {{1, 1}, {2, 2}}), (std::vector<int16_t>{6, 7, 16, 17}));
    const ArrayInfo& x = file.arrays()[2];
    EXPECT_EQ(x.dimensions, (std::vector<std::string>{"step", "column"}));
    EXPECT_EQ(x.attributes.at("scale_factor").numbers, std::vector<double>{0.5});
    EXPECT_EQ(x.attributes.at("units").text, "m");
    file.verify();
  }
}

TEST(NetcdfClassic, SignedNumbersMayMeanUnsignedOnes) {
  const ScratchDirectory scratch;
  const ArrayFile file =
      open_array_file(scratch.write("x.nc", classic_bytes({.records = 1, .no_sign = true})));
  EXPECT_EQ(whole<uint16_t>(file, "x"), (std::vector<uint16_t>{65531, 65532, 65533}));
  EXPECT_EQ(file.arrays()[0].type, ElementType::i16);
}

TEST(NetcdfClassic, OneVariableAlongTheRecordsIsNotPadded) {
  const ScratchDirectory scratch;
  // The second number says that the file is still being written.
  for (const int64_t announced : {int64_t{4}, int64_t{0xffffffff}}) {
    const ArrayFile file = open_array_file(
        scratch.write("x.nc", classic_bytes({.announced = announced, .time = false})));
    EXPECT_EQ(whole<int16_t>(file, "x"),
              (std::vector<int16_t>{-5, -4, -3, 5, 6, 7, 15, 16, 17, 25, 26, 27}));
  }
}

TEST(NetcdfClassic, SaysWhatIsWrong) {
  const ScratchDirectory scratch;
  const auto refuse = [&](const Bytes& bytes, const std::vector<std::string>& parts) {
    expect_error<BadFile>([&] { open_array_file(scratch.write("x.nc", bytes)).find("x"); }, parts);
  };
  refuse(classic_bytes({.announced = 5}), {"/x.nc", "'x'", "beyond the end of the file"});
  refuse(classic_bytes({.announced = 2'000'000'000}), {"/x.nc", "'x'", "beyond the end"});
  refuse(sized(classic_bytes({}), 100), {"/x.nc", "truncated"});
  refuse(changed(classic_bytes({}), 11, 9), {"/x.nc", "a list of dimensions", "the tag 9"});
  const Bytes odd = changed(classic_bytes({}), 19, 200);
  refuse(odd, {"/x.nc"});
  refuse(changed(odd, 17, 200), {"/x.nc", "bytes of a name"});
}

}  // namespace
}  // namespace tutti::data
