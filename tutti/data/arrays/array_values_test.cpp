#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "tutti/base/expect_text.h"
#include "tutti/data/arrays/climate_values.h"
#include "tutti/data/arrays/sample_file.h"
#include "tutti/data/arrays/set_checks.h"
#include "tutti/data/arrays/statistics_file.h"
#include "tutti/data/file/file_bytes.h"
#include "tutti/data/format/open_array.h"

namespace tutti::data {
namespace {

TEST(ArraySet, ClimateVariablesAreStackedAndDecoded) {
  const ScratchDirectory scratch;
  const auto file = scratch.path() / "climate.nc";
  const auto warm = rising<float>(3 * 4);
  std::vector<int16_t> packed = rising<int16_t>(3 * 4);
  const auto write = [&] {
    std::vector<ArrayRef> arrays = {array_ref("T", {3, 2, 2}, warm),
                                    array_ref("P", {3, 2, 2}, packed)};
    arrays[1].attributes = {{"scale_factor", {.numbers = {0.5}}},
                            {"add_offset", {.numbers = {100}}},
                            {"_FillValue", {.numbers = {-999}}},
                            {"units", {.text = "hPa"}}};
    write_hdf5(file, arrays);
  };
  write();
  const auto set = set_of({file}, {"data: from T, P"});
  ASSERT_EQ(set->size(), 3);
  EXPECT_EQ(set->fields()[0].to_string(), "f32 data 2x2x2");
  EXPECT_EQ(values_of<float>(*set, 1, "data"),
            (std::vector<float>{4, 5, 6, 7, 102, 102.5, 103, 103.5}));
  packed[6] = -999;
  write();
  const auto gaps = set_of({file}, {"data: from T, P"});
  EXPECT_EQ(values_of<float>(*gaps, 0, "data")[7], 101.5f);
  expect_error<BadFile>([&] { values_of<float>(*gaps, 1, "data"); },
                        {"climate.nc, sample 1", "'P'", "missing value", "[1, 1, 0]", "missing V"});
  EXPECT_EQ(values_of<float>(*set_of({file}, {"data: from T, P missing 7"}), 1, "data")[6], 7);
}

/// Attributes of a variable, stored values, and the values of netCDF4-python 1.7 or, for single
/// bytes, of NetCDF's guide; NaN: masked.
struct PackedCase {
  ElementType type;
  std::map<std::string, ArrayAttribute> attributes;
  std::vector<double> stored, expected;
};

TEST(ClimateValues, AreThoseOfNetcdf4Python) {
  using enum ElementType;
  const double fill = 9.969209968386869e36;
  const PackedCase cases[] = {
      {i16, {}, {1, -32767, 2}, {1, NAN, 2}},
      {i32, {}, {1, -2147483647, 2}, {1, NAN, 2}},
      {u16, {}, {1, 65535, 2}, {1, NAN, 2}},
      {f32, {}, {1, fill, 2}, {1, NAN, 2}},
      {i8, {}, {1, -127, 2}, {1, -127, 2}},  // netCDF4-python masks it if filling is on
      {u8, {}, {1, 255, 2}, {1, 255, 2}},
      {i16, {{"_FillValue", {.numbers = {2}}}}, {1, 2, -32767}, {1, NAN, -32767}},
      {i16, {{"missing_value", {.numbers = {5}}}}, {5, -32767, 2}, {NAN, NAN, 2}},
      {f32, {{"missing_value", {.numbers = {5}}}}, {5, fill, 2}, {NAN, NAN, 2}},
      {i16, {{"missing_value", {.numbers = {1, 2}}}}, {1, 2, 3, 4}, {NAN, NAN, 3, 4}},
      {i16, {{"missing_value", {.numbers = {99999}}}}, {1, 2}, {1, 2}},
      {i16, {{"missing_value", {.text = "2"}}}, {1, 2}, {1, 2}},
      {i16,
       {{"scale_factor", {.numbers = {0.1}}}, {"valid_range", {.numbers = {0, 50}}}},
       {0, 10, 100, -1},
       {0, 1, NAN, NAN}},
      {i16,
       {{"scale_factor", {.numbers = {0.1}}}, {"valid_range", {.numbers = {0.5, 50}}}},
       {0, 10, 100},
       {0, 1, 10}},
      {i16, {{"valid_min", {.numbers = {1}}}}, {0, 10, 600}, {NAN, 10, 600}},
      {i16, {{"valid_max", {.numbers = {10}}}}, {0, 10, 600}, {0, 10, NAN}},
      {f32, {{"valid_range", {.numbers = {0, 1}}}}, {-1, 0, 1, 2}, {NAN, 0, 1, NAN}},
      {i16,
       {{"valid_range", {.numbers = {2, 3}}}, {"valid_min", {.numbers = {0}}}},
       {1, 2, 3, 4},
       {NAN, 2, 3, NAN}},
      {i16,
       {{"valid_range", {.numbers = {2, 3, 9}}}, {"valid_min", {.numbers = {3}}}},
       {1, 2, 3, 4},
       {NAN, NAN, 3, 4}},
      {f32,
       {{"scale_factor", {.numbers = {2}}}, {"valid_max", {.numbers = {3}}}},
       {1, 3, 4},
       {2, 6, NAN}},
      {i16, {{"scale_factor", {.numbers = {0.5, 0.25}}}}, {1, 2}, {1, 2}},
      {i16, {{"add_offset", {.numbers = {273.5}}}}, {1, 2}, {274.5, 275.5}},
      // A deliberate difference: netCDF4-python ignores a number that f32 cannot hold.
      {f32, {{"missing_value", {.numbers = {-9999.9}}}}, {1, -9999.9}, {1, NAN}},
      {f32, {{"valid_max", {.numbers = {0.1}}}}, {0.1, 0.2}, {0.1, NAN}},
  };
  for (size_t c = 0; c < std::size(cases); ++c) {
    const PackedCase& one = cases[c];
    const ArrayInfo info{.type = one.type,
                         .shape = {std::ssize(one.stored)},
                         .dimensions = {"x"},
                         .attributes = one.attributes};
    std::vector<uint8_t> stored(one.stored.size() * size_of(one.type));
    with_elements(one.type, stored.data(), [&](const auto* x) {
      using T = std::remove_cvref_t<decltype(*x)>;
      if constexpr (std::is_arithmetic_v<T>)
        for (size_t i = 0; i < one.stored.size(); ++i)
          const_cast<T*>(x)[i] = static_cast<T>(one.stored[i]);
    });
    std::vector<float> found(one.stored.size());
    decode_values(value_coding(info), one.type, stored.data(), std::ssize(found), NAN,
                  found.data());
    for (size_t i = 0; i < found.size(); ++i)
      if (std::isnan(one.expected[i]))
        EXPECT_TRUE(std::isnan(found[i])) << "case " << c << ", value " << i << ": " << found[i];
      else
        EXPECT_FLOAT_EQ(found[i], static_cast<float>(one.expected[i])) << "case " << c;
  }
  // An array outside NetCDF has no default fill value.
  EXPECT_TRUE(is_plain(value_coding({.type = i16, .shape = {3}})));
}

// h5py and ncatted let people write a string where a number is meant.
TEST(ClimateValues, AScaleThatIsNoNumberIsAnErrorOfItsArray) {
  const ScratchDirectory scratch;
  const auto file = scratch.path() / "a.h5";
  const std::vector<int16_t> x = {1, 2, 3};
  for (const char* name : {"scale_factor", "add_offset"})
    for (const ArrayAttribute& wrong :
         {ArrayAttribute{.text = "0.01"}, ArrayAttribute{.numbers = {NAN}},
          ArrayAttribute{.numbers = {INFINITY}}}) {
      std::vector<ArrayRef> arrays = {array_ref("x", {3}, x), array_ref("y", {3}, x)};
      arrays[0].attributes = {{name, wrong}};
      write_hdf5(file, arrays);
      EXPECT_EQ(set_of({file}, {"y: from y axis 0"})->size(), 3);
      expect_error<BadFile>([&] { set_of({file}, {"x: from x axis 0"}); },
                            {"a.h5: array 'x'", name, "expected a number", "h5py.File"});
    }
}

TEST(ClimateValues, AttributesThatSayNothingAreNamed) {
  const ScratchDirectory scratch;
  const auto file = scratch.path() / "a.h5";
  const std::vector<int16_t> stored = {1, 2, 3};
  ArrayRef x = array_ref("passed_over_x", {3}, stored);
  x.attributes = {{"scale_factor", {.numbers = {2, 3}}}, {"add_offset", {.numbers = {5}}},
                  {"missing_value", {.text = "2"}},      {"valid_min", {.numbers = {1.5}}},
                  {"valid_range", {.text = "2 3"}},      {"_FillValue", {.numbers = {3}}}};
  write_hdf5(file, {x});
  testing::internal::CaptureStderr();
  for (int turn = 0; turn < 2; ++turn)
    EXPECT_EQ(
        values_of<int16_t>(*set_of({file}, {"x: from passed_over_x whole missing 9"}), 0, "x"),
        (std::vector<int16_t>{1, 2, 9}));
  const std::string message = testing::internal::GetCapturedStderr();
  EXPECT_TRUE(has_text(
      message, "passed over: scale_factor, add_offset, missing_value, valid_range, valid_min"));
  EXPECT_TRUE(has_once(message, "passed over"));
}

TEST(ClimateValues, UnsignedByConvention) {
  const ScratchDirectory scratch;
  const auto file = scratch.path() / "a.h5";
  const std::vector<int8_t> bytes = {0, 100, -56, -1};
  for (const std::string unsigned_text : {"true", "True", "false"}) {
    ArrayRef array = array_ref("bright", {4}, bytes);
    array.attributes = {{"_Unsigned", {.text = unsigned_text}},
                        {"scale_factor", {.numbers = {0.5}}},
                        {"_FillValue", {.numbers = {-1}}},
                        {"valid_range", {.numbers = {0, -56}}},
                        {"valid_max", {.numbers = {200}}}};
    write_hdf5(file, {array});
    const ArrayFile opened = open_array_file(file);
    const bool is = unsigned_text != "false";
    EXPECT_EQ(opened.arrays()[0].type, is ? ElementType::u8 : ElementType::i8);
    if (!is) continue;
    EXPECT_EQ(whole<uint8_t>(opened, "bright"), (Bytes{0, 100, 200, 255}));
    EXPECT_EQ(values_of<float>(*set_of({file}, {"x: from bright whole missing -1"}), 0, "x"),
              (std::vector<float>{0, 50, 100, -1}));
    EXPECT_EQ(opened.arrays()[0].attributes.contains("valid_max"), false);  // not of its type
  }
}

// The default fill value is of the signed type, so netCDF4-python finds it in no unsigned variable.
TEST(ClimateValues, UnsignedByConventionHasNoDefaultFillValue) {
  const ScratchDirectory scratch;
  const auto file = scratch.path() / "a.nc";
  const std::vector<uint16_t> stored = {65535, 0, 1, 32769, 32768};
  std::vector<int16_t> as_signed(stored.begin(), stored.end());
  ArrayRef array = array_ref("x", {5}, as_signed);
  array.attributes = {{"CLASS", {.text = "DIMENSION_SCALE"}},
                      {"_Unsigned", {.text = "true"}},
                      {"scale_factor", {.numbers = {0.5}}}};
  for (const bool is : {true, false}) {
    if (!is) array.attributes.erase("_Unsigned");
    write_hdf5(file, {array});
    const auto found = values_of<float>(*set_of({file}, {"x: from x whole missing 7"}), 0, "x");
    EXPECT_EQ(found, is ? (std::vector<float>{32767.5f, 0, 0.5f, 16384.5f, 16384})
                        : (std::vector<float>{-0.5f, 0, 0.5f, 7, -16384}));
  }
}

TEST(ArraySet, NanIsRefusedOrReplaced) {
  const ScratchDirectory scratch;
  const auto file = scratch.path() / "a.npy";
  const auto check = [&]<class T>(const std::vector<T>& values) {
    write_npy_array(file, array_ref("", {2, 2}, values));
    expect_error<BadFile>([&] { values_of<T>(*set_of({file}, {"x: from array"}), 1, "x"); },
                          {"a.npy, sample 1", "nan", "[0]"});
    EXPECT_EQ(values_of<T>(*set_of({file}, {"x: from array missing 9"}), 1, "x")[0], 9);
  };
  check(std::vector<float>{1, 2, NAN, 4});
  check(std::vector<double>{1, 2, NAN, 4});
  // 'missing' does not replace an infinite value, so the message must not propose it.
  const std::vector<float> infinite = {1, 2, -INFINITY, 4};
  write_npy_array(file, array_ref("", {2, 2}, infinite));
  const std::string message = message_of<BadFile>(
      [&] { values_of<float>(*set_of({file}, {"x: from array missing 9"}), 1, "x"); });
  EXPECT_TRUE(has_text(message, "'x' is -inf"));
  EXPECT_TRUE(has_text(message, "numpy.clip"));
  EXPECT_FALSE(has_text(message, "give 'missing V'"));
}

#ifdef TUTTI_TEST_DATA
const std::filesystem::path kRealFiles = TUTTI_TEST_DATA;

TEST(RealArraySet, ClimateMicroscopyAndRecords) {
  const auto air = set_of({kRealFiles / "climate/E1_north_america.nc"},
                          {"air: from air_temperature", "period: from forecast_period"});
  ASSERT_EQ(air->size(), 240);
  EXPECT_EQ(field_named(*air, "air").shape, (Shape{37, 49}));
  EXPECT_NEAR(values_of<float>(*air, 7, "air")[0], 280, 25);

  // Land has no sea surface temperature.
  const Paths sea = {kRealFiles / "climate/nemo_sst_2015-01.nc"};
  expect_error<BadFile>([&] { values_of<float>(*set_of(sea, {"tos: from tos"}), 0, "tos"); },
                        {"nemo_sst", "'tos'", "missing value", "missing V"});
  const auto filled = values_of<float>(*set_of(sea, {"tos: from tos missing -5"}), 0, "tos");
  EXPECT_EQ(filled[0], -5);
  EXPECT_FLOAT_EQ(filled[200 * 360 + 100], 29.156567f);

  const auto em = set_of({kRealFiles / "em/neuroproof_train2_z000-057.h5"},
                         {"raw: from raw cut 29 125 125", "labels: from labels cut 29 125 125"});
  EXPECT_EQ(em->size(), 8);
  EXPECT_EQ(values_of<uint8_t>(*em, 7, "raw").back(), 158);

  const auto digits =
      set_of({kRealFiles / "tfrecord/mnist.tfrecord"},
             {"image: from image_floats as 1 28 28", "label: from image_class classes 10"});
  ASSERT_EQ(digits->size(), 1000);
  EXPECT_EQ(values_of<int64_t>(*digits, 0, "label")[0], 9);
}

TEST(RealArraySet, DeepCamsPublishedStatistics) {
  const auto found = read_statistics(
      kRealFiles / "climate/deepcam_stats.h5",
      parse_field_lines({"data: from climate/data", "m: from climate/labels_0 classes 3"}));
  EXPECT_NEAR(found[0].greatest[0], 108.997, 0.001);
  EXPECT_EQ(found[0].least.size(), 16u);
  EXPECT_TRUE(found[0].mean.empty()) << "channel 7's squares are below its mean's";
  EXPECT_TRUE(found[1].mean.empty());
}
#endif

TEST(Statistics, OfHdf5NpzAndJson) {
  const ScratchDirectory scratch;
  const std::vector<FieldLine> lines = parse_field_lines(
      {"data: from climate/data", "labels: from climate/labels classes 3", "other: from other"});
  const std::vector<float> low = {0, 1}, high = {2, 3}, mean = {1, 2}, squares = {2, 5};
  write_hdf5(scratch.path() / "s.h5",
             {array_ref("climate/minval", {2}, low), array_ref("climate/maxval", {2}, high),
              array_ref("climate/mean", {2}, mean), array_ref("climate/sqmean", {2}, squares)});
  const auto found = read_statistics(scratch.path() / "s.h5", lines);
  EXPECT_EQ(found[0].least, low);
  EXPECT_EQ(found[0].greatest, high);
  EXPECT_EQ(found[0].deviation, (std::vector<float>{1, 1}));
  EXPECT_TRUE(found[1].mean.empty());
  EXPECT_TRUE(found[2].mean.empty());

  std::vector<Field> fields(3);
  fields[0].name = "data";
  const std::string json = statistics_json(fields, found);
  const auto again = read_statistics(scratch.write("s.json", json), lines);
  EXPECT_EQ(again[0].mean, mean);
  EXPECT_EQ(again[0].least, low);

  // A constant channel, as `tutti data stats` writes it, and single numbers for stacked arrays.
  const std::string stacked = R"({"T": {"mean": [1], "std": [0]}, "U": {"mean": [2], "std": [3]}})";
  const auto channels =
      read_statistics(scratch.write("s.json", stacked), parse_field_lines({"x: from T, U"}));
  EXPECT_EQ(channels[0].mean, mean);
  EXPECT_EQ(channels[0].deviation, (std::vector<float>{0, 3}));

  const auto refuse = [&](const std::string& text, const std::vector<std::string>& parts) {
    expect_error<BadFile>([&] { read_statistics(scratch.write("s.json", text), lines); }, parts);
  };
  refuse("{\"x\": 1}", {"data/mean", "found x"});
  refuse("{", {"expected JSON: parse error"});
  refuse("{\"data\": {\"mean\": [NaN]}}", {"JSON has no NaN or Infinity"});
  refuse(std::string("\xff\xfe{\0}\0", 6), {"text as UTF-16", "iconv"});
  refuse("version https://git-lfs.github.com/spec/v1\noid sha256:0\n", {"git lfs pull"});
  refuse("{\"data\": {\"mean\": [1], \"std\": [-1]}}", {"negative"});
  refuse("{\"data\": {\"min\": [1], \"max\": [0]}}", {"below its minimum"});
  refuse("{\"data\": {\"mean\": [\"a\"]}}", {"list of numbers"});
}

TEST(FieldValues, AValueIsFoundWhereverItStands) {
  constexpr int64_t kCount = 150;  // several whole registers, and a rest
  const Field numbers{.name = "x", .element = ElementType::f32, .shape = Shape{kCount}};
  const auto refused = [&](const Field& field, const void* values) {
    try {
      check_field_values(field, values, {0, kCount}, "a.npy");
      return false;
    } catch (const Error&) {  // BadFile; ConfigError for classes
      return true;
    }
  };
  for (int64_t at = 0; at < kCount; ++at)
    for (const float bad :
         {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::quiet_NaN()}) {
      std::vector<float> x(kCount, -std::numeric_limits<float>::max());
      EXPECT_FALSE(refused(numbers, x.data()));
      x[static_cast<size_t>(at)] = bad;
      EXPECT_TRUE(refused(numbers, x.data())) << at;
    }
  const auto of_classes = [](ElementType type, size_t count) {
    return Field{.name = "label",
                 .element = type,
                 .shape = Shape{kCount},
                 .class_names = std::vector<std::string>(count)};
  };
  for (int64_t at = 0; at < kCount; ++at)
    for (const int bad : {-1, 3, 127, -128}) {
      std::vector<int8_t> x(kCount, 2);
      EXPECT_FALSE(refused(of_classes(ElementType::i8, 3), x.data()));
      x[static_cast<size_t>(at)] = static_cast<int8_t>(bad);
      EXPECT_TRUE(refused(of_classes(ElementType::i8, 3), x.data())) << at << " " << bad;
    }
  const std::vector<int8_t> negative(kCount, -1);
  EXPECT_TRUE(refused(of_classes(ElementType::i8, 1000), negative.data()));
  const std::vector<uint8_t> large(kCount, 255);
  EXPECT_FALSE(refused(of_classes(ElementType::u8, 1000), large.data()));
  EXPECT_TRUE(refused(of_classes(ElementType::u8, 255), large.data()));
}

}  // namespace
}  // namespace tutti::data
