#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <thread>

#include "tutti/base/expect_text.h"
#include "tutti/data/format/array/array_checks.h"
#include "tutti/data/format/array/hdf5_arrays.h"
#include "tutti/data/format/array/hdf5_probe.h"
#include "tutti/data/format/array/row_writer.h"
#include "tutti/data/format/open_array.h"

namespace tutti::data {
namespace {

std::filesystem::path written(const ScratchDirectory& scratch, const Hdf5Storage& storage,
                              const std::string& name = "x.h5") {
  const auto values = counted<float>(10 * 6 * 7);
  write_hdf5(scratch.path() / name, {{"climate/data", ElementType::f32, {10, 6, 7}, values.data()}},
             storage);
  return scratch.path() / name;
}

TEST(Hdf5, SlabsOfEveryStorage) {
  const ScratchDirectory scratch;
  const auto values = counted<float>(10 * 6 * 7);
  for (const Hdf5Storage& storage :
       std::vector<Hdf5Storage>{{},
                                {.chunk = {3, 4, 5}},
                                {.chunk = {3, 4, 5}, .deflate = 4},
                                {.chunk = {1, 6, 7}, .deflate = 9, .shuffle = true},
                                {.chunk = {10, 6, 7}, .shuffle = true}}) {
    const auto path = written(scratch, storage);
    for (const bool probe : {true, false}) {
      const ArrayFile file = open_array_file(path, {.probe = probe});
      ASSERT_EQ(file.arrays().size(), 1u);
      EXPECT_EQ(file.arrays()[0].chunk, storage.chunk);
      EXPECT_EQ(whole<float>(file, "/climate/data"), values);
      const Slab slab{{2, 3, 4}, {5, 3, 2}};
      const auto found = slab_of<float>(file, "climate/data", slab);
      size_t at = 0;
      for (int i = 2; i < 7; ++i)
        for (int j = 3; j < 6; ++j)
          for (int k = 4; k < 6; ++k)
            ASSERT_EQ(found[at++], static_cast<float>((i * 42 + j * 7 + k) % 100));
      file.verify();
    }
  }
}

TEST(Hdf5, EveryTypeIsWrittenAndRead) {
  const ScratchDirectory scratch;
  const Bytes values(8 * 5, 1);
  std::vector<ArrayRef> arrays;
  for (int i = 0; i < kElementTypes; ++i) {
    const auto type = static_cast<ElementType>(i);
    arrays.push_back(
        {.name = std::string(name_of(type)), .type = type, .shape = {5}, .values = values.data()});
  }
  arrays.push_back({.name = "one", .type = ElementType::u8, .shape = {}, .values = values.data()});
  write_hdf5(scratch.path() / "x", arrays);
  const ArrayFile file = open_array_file(scratch.path() / "x");
  EXPECT_EQ(file.arrays().size(), arrays.size());
  for (const ArrayRef& array : arrays) {
    const size_t index = file.find(array.name, array.type, array.shape);
    Bytes found(static_cast<size_t>(array.bytes()));
    file.read(index, Slab::all(file.arrays()[index]), found.data());
    EXPECT_EQ(found, Bytes(found.size(), 1)) << array.name;
  }
}

/// By default HDF5 stores the time at which a data set was made, in seconds.
TEST(Hdf5, EqualArraysMakeEqualFilesAtAnyTime) {
  const ScratchDirectory scratch;
  const auto write = [&](const std::string& name) {
    written(scratch, {}, name + ".h5");
    const auto rows = open_row_writer(
        scratch.path() / (name + ".nc"),
        {.name = "prediction", .shape = {1, 2}, .dimensions = {"sample", "output"}}, "--output");
    const float values[] = {1, 2};
    rows->append(values, 1);
    rows->close();
  };
  const auto bytes = [&](const std::string& name) { return read_all(scratch.path() / name); };
  write("early");
  std::this_thread::sleep_for(std::chrono::milliseconds(1100));
  write("late");
  EXPECT_TRUE(bytes("early.h5") == bytes("late.h5"));
  EXPECT_TRUE(bytes("early.nc") == bytes("late.nc"));
}

TEST(Hdf5, ManyThreadsReadAtOnce) {
  const ScratchDirectory scratch;
  const auto path = written(scratch, {.chunk = {1, 6, 7}, .deflate = 1});
  const ArrayFile file = open_array_file(path);
  const auto values = counted<float>(10 * 6 * 7);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (int turn = 0; turn < 10; ++turn) EXPECT_EQ(whole<float>(file, "climate/data"), values);
      EXPECT_EQ(open_array_file(path).arrays().size(), 1u);  // forks beside the others
    });
  for (auto& thread : threads) thread.join();
}

TEST(Hdf5, ErrorsNameFileAndDataSet) {
  const ScratchDirectory scratch;
  const auto path = written(scratch, {.chunk = {1, 6, 7}, .deflate = 1});
  expect_error<BadFile>([&] { open_array_file(path).find("climate/labels"); },
                        {"/x.h5", "'climate/labels'", "climate/data f32 [10, 6, 7]"});
  const Bytes sound = read_all(path);
  const auto cut = scratch.write("cut", sized(sound, sound.size() / 2)),
             head = scratch.write("head", sized(sound, 20));
  expect_error<BadFile>([&] { open_array_file(cut); }, {"/cut", "truncated"});
  expect_error<BadFile>([&] { open_array_file(head); },
                        {"/head", "found one of 20 bytes", "truncated or corrupted"});
}

TEST(Hdf5, EveryNameThatCanBeOpenedIsAnArray) {
  const ArrayFile file = open_array_file(corpus_file("hdf5/links"));
  const std::vector<int16_t> x = {0, 1, 2, 3, 4, 5};
  for (const char* name : {"raw/x", "again", "soft", "group/x"})
    EXPECT_EQ(whole<int16_t>(file, name), x) << name;
  EXPECT_EQ(whole<int16_t>(file, "outside"), (std::vector<int16_t>{10, 11, 12, 13, 14, 15}));
  EXPECT_EQ(file.arrays()[file.find("soft")].link, "soft link to /raw/x");
  EXPECT_EQ(file.arrays()[file.find("outside")].link, "external link to /y in linked_target");
  EXPECT_EQ(file.arrays()[file.find("again")].link, "");
  EXPECT_EQ(file.arrays()[file.find("raw/x")].link, "hard link, as again");
  EXPECT_EQ(file.arrays().size(), 7u);  // raw/up leads back
  expect_error<BadFile>([&] { file.find("nowhere"); }, {"soft link to /raw/z", "not there"});
  expect_error<BadFile>([&] { file.find("lost"); }, {"it is an external link to /y in gone.h5"});
  std::vector<std::string> names;
  for (const ArrayInfo& array : file.arrays()) names.push_back(array.name);
  EXPECT_TRUE(std::ranges::is_sorted(names));
}

TEST(Hdf5, ALinkToWhatIsNoFileIsAProblemOfItsArrayAlone) {
  const ScratchDirectory scratch;
  std::filesystem::copy(corpus_file("hdf5/links"), scratch.path() / "links");
  ASSERT_EQ(::mkfifo((scratch.path() / "linked_target").c_str(), 0600), 0);
  for (const bool probe : {true, false}) {
    const ArrayFile file = open_array_file(scratch.path() / "links", {.probe = probe});
    EXPECT_EQ(whole<int16_t>(file, "raw/x"), (std::vector<int16_t>{0, 1, 2, 3, 4, 5}));
    expect_error<BadFile>([&] { file.find("outside"); },
                          {"it is an external link to /y in linked_target", "is a pipe, a device"});
  }
}

/// Runs one of HDF5's programs in a folder and returns the shell's exit status.
int run_hdf5_tool(const std::filesystem::path& folder, const std::string& command) {
  return std::system(
      fmt::format("cd '{}' && {} > /dev/null 2>&1", folder.string(), command).c_str());
}

TEST(Hdf5, RemediesAreNamedAndWork) {
  const ScratchDirectory scratch;
  struct Remedy {
    const char *file, *array, *message, *command;
  };
  const Remedy remedies[] = {
      {"view", "v", "a virtual layout): copy it with 'h5repack -l CONTI OLD NEW'",
       "h5repack -l CONTI OLD NEW"},
      {"scaleoffset", "x", "repack it with 'h5repack -f GZIP=4 OLD NEW'",
       "h5repack -f GZIP=4 OLD NEW"},
      {"lzf", "x", "only h5py reads LZF, so write it again with h5py", nullptr},
      {"left_open", "x", "run 'h5clear -s FILE'", "cp OLD NEW && h5clear -s NEW"},
      {"newer_view", "x", "it has a newer format than HDF5 ", nullptr}};
  const std::vector<int16_t> x = {0, 1, 2, 3, 4, 5};
  for (const Remedy& one : remedies) {
    const std::filesystem::path folder = scratch.path() / one.file;
    std::filesystem::create_directory(folder);
    std::filesystem::copy(corpus_file(std::string("hdf5/") + one.file), folder / "OLD");
    const std::string message =
        message_of<BadFile>([&] { open_array_file(folder / "OLD").find(one.array); });
    EXPECT_TRUE(has_text(message, one.message)) << one.file;
    EXPECT_FALSE(has_text(message, "fetch it again"));
    if (one.command == nullptr || run_hdf5_tool(folder, "h5repack --version") != 0) continue;
    EXPECT_EQ(run_hdf5_tool(folder, one.command), 0) << one.command;
    EXPECT_EQ(whole<int16_t>(open_array_file(folder / "NEW"), one.array), x) << one.command;
  }
}

TEST(Hdf5, WhatTheSystemRefusesIsNoDamage) {
  const auto path = corpus_file("hdf5/links");
  const FileBytes file = FileBytes::open(path);
  const std::string message = message_of<IoError>([&] {
    const FewFiles few(3);
    read_hdf5(file, {.probe = false});
  });
  EXPECT_TRUE(has_text(message, "ulimit -n"));
  EXPECT_FALSE(has_text(message, "fetch it again"));
}

// MATLAB's files begin with a block of 512 bytes.
TEST(Hdf5, FilesWithAUserBlock) {
  const ScratchDirectory scratch;
  for (const Hdf5Storage& storage : std::vector<Hdf5Storage>{{}, {.chunk = {10, 6, 7}}}) {
    const Bytes moved = joined(Bytes(512), read_all(written(scratch, storage)));
    const ArrayFile file = open_array_file(scratch.write("moved.mat", moved));
    if (storage.chunk.empty())
      EXPECT_EQ(whole<float>(file, "climate/data"), counted<float>(10 * 6 * 7));
    else
      expect_error<BadFile>([&] { file.find("climate/data"); }, {"/moved.mat", "user block"});
  }
}

TEST(HdfProbe, AChildThatCrashesHangsOrEatsMemoryIsABadFile) {
  const auto refuse = [](int seconds, const std::function<Bytes()>& work,
                         const std::vector<std::string>& parts) {
    expect_error<BadFile>([&] { bytes_of_child("x.h5", seconds, work); }, parts);
  };
  const auto crash = [] {
    ::raise(SIGSEGV);
    return Bytes();
  };
  const auto hang = []() -> Bytes {
    for (;;) std::this_thread::sleep_for(std::chrono::seconds(1));
  };
  refuse(60, crash, {"x.h5", "by signal 11", "corrupted"});
  refuse(1, hang, {"x.h5", "within 1 seconds"});
  refuse(60, [] { return Bytes(size_t{1} << 46, 1); }, {"x.h5", "with code 1"});
  EXPECT_EQ(bytes_of_child("x.h5", 60, [] { return Bytes(300'000, 3); }), Bytes(300'000, 3));
  EXPECT_EQ(bytes_of_child("x.h5", 60, [] { return Bytes(); }), Bytes());
}

// HDF5 1.10.8 crashes on this file with SIGSEGV; other releases refuse it or read it. This test
// must survive.
TEST(HdfProbe, AFileThatCrashesTheLibraryEndsNothing) {
  const auto file = corpus_file("hdf5/crashes_hdf5_1.10.8");
  try {
    open_array_file(file);
  } catch (const BadFile& error) {
    const std::string message = error.what();
    EXPECT_TRUE(has_text(message, "fetch it again"));
    EXPECT_TRUE(has_text(message, file.string()));
  }
}

#ifdef TUTTI_TEST_DATA
const std::filesystem::path kRealData = TUTTI_TEST_DATA;

double array_sum(const ArrayFile& file, const std::string& name) {
  const size_t index = file.find(name);
  std::vector<float> values(static_cast<size_t>(file.arrays()[index].elements()));
  file.read_f32(index, Slab::all(file.arrays()[index]), values.data());
  return std::accumulate(values.begin(), values.end(), 0.0);
}

TEST(RealHdf5, NetCdfDimensionsAttributesAndFillValues) {
  const ArrayFile air = open_array_file(kRealData / "climate/E1_north_america.nc");
  const ArrayInfo& info = air.arrays()[air.find("air_temperature")];
  EXPECT_EQ(info.shape, (std::vector<int64_t>{240, 37, 49}));
  EXPECT_EQ(info.chunk, (std::vector<int64_t>{1, 37, 49}));
  EXPECT_EQ(info.dimensions, (std::vector<std::string>{"time", "latitude", "longitude"}));
  EXPECT_EQ(info.attributes.at("units").text, "K");
  EXPECT_NEAR(array_sum(air, "air_temperature"), 124459895.603, 1);
  EXPECT_EQ(array_sum(air, "latitude_longitude"), -2147483647.0 - 1);  // as f32
  EXPECT_NEAR(array_sum(air, "height"), 1.5, 0);
  for (const ArrayInfo& array : air.arrays()) EXPECT_NE(array.name, "bnds");  // not a variable
  air.verify();

  const ArrayFile sea = open_array_file(kRealData / "climate/nemo_sst_2015-01.nc");
  const size_t tos = sea.find("tos");
  EXPECT_FLOAT_EQ(static_cast<float>(sea.arrays()[tos].attributes.at("_FillValue").numbers.at(0)),
                  1e20f);
  EXPECT_EQ(sea.arrays()[tos].dimensions, (std::vector<std::string>{"time_counter", "y", "x"}));
  EXPECT_EQ(slab_of<float>(sea, "tos", {{0, 200, 100}, {1, 1, 3}}),
            (std::vector<float>{29.156567f, 29.02777f, 29.009602f}));
  EXPECT_NEAR(array_sum(sea, "bounds_lon"), -279245.128, 0.01);
}

TEST(RealHdf5, DeepCamStatisticsMicroscopyAndSegmentation) {
  const ArrayFile statistics = open_array_file(kRealData / "climate/deepcam_stats.h5");
  EXPECT_EQ(whole<int64_t>(statistics, "climate/count"), (std::vector<int64_t>{121266}));
  EXPECT_NEAR(whole<float>(statistics, "climate/mean")[0], 18.66, 0.01);

  const ArrayFile em = open_array_file(kRealData / "em/neuroproof_train2_z000-057.h5");
  EXPECT_EQ(slab_of<uint32_t>(em, "labels", {{28, 124, 124}, {2, 2, 2}}),
            std::vector<uint32_t>(8, 2150));  // across eight chunks
  const auto labels = whole<uint32_t>(em, "labels");
  EXPECT_EQ(std::accumulate(labels.begin(), labels.end(), int64_t{0}), 81400686760);
  EXPECT_EQ(slab_of<uint8_t>(em, "raw", {{57, 249, 249}, {1, 1, 1}}), (Bytes{158}));

  const ArrayFile frame = open_array_file(kRealData / "stem/si_in_graphene/Si1C3/10.hdf5");
  EXPECT_EQ(frame.arrays()[frame.find("nn_input")].shape, (std::vector<int64_t>{1, 256, 256, 1}));
  expect_error<BadFile>([&] { frame.find("defect_coord_0"); }, {"'defect_coord_0'", "texts"});
  frame.verify();
  EXPECT_NEAR(array_sum(open_array_file(kRealData / "stem/graphene/G-Si-2nm.hdf5"), "image_data"),
              2627741.0, 1);
}
#endif

}  // namespace
}  // namespace tutti::data
