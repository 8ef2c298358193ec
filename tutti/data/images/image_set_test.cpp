#include "tutti/data/images/image_set.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <set>

#include "tutti/base/expect_text.h"
#include "tutti/data/file/tar_writer.h"
#include "tutti/data/file_checks.h"
#include "tutti/data/images/image_places.h"
#include "tutti/data/images/jpeg_encoder.h"
#include "tutti/data/open/open.h"
#include "tutti/data/open/verify.h"
#include "tutti/data/pipeline/pipeline.h"
#include "tutti/generate/pictures/picture_set.h"

namespace tutti::data {
namespace {

namespace fs = std::filesystem;

std::vector<uint8_t> grey_jpeg(uint8_t level, int64_t side = 20) {
  return encode_jpeg(std::vector<uint8_t>(static_cast<size_t>(side * side), level), {side, side},
                     1);
}

void put_file(const fs::path& path, const std::vector<uint8_t>& bytes) {
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), std::ssize(bytes));
}

int label_of(const Dataset& set, int64_t i) { return values_of<int32_t>(set, i, "label")[0]; }

TEST(ImageSet, ClassesAreTheSortedFolders) {
  const ScratchDirectory scratch;
  const fs::path root = scratch.path();
  put_file(root / "train/wasps/deep/c.PNG.jpg", grey_jpeg(3));
  put_file(root / "train/bees/b.jpeg", grey_jpeg(2));
  put_file(root / "train/ants/a.JPEG", grey_jpeg(1));
  put_file(root / "train/ants/notes.txt", {1});
  put_file(root / "val/wasps/z.jpg", grey_jpeg(9));
  const auto train = open_dataset({.name = "imagenet", .dir = root});
  EXPECT_EQ(train->size(), 3);
  EXPECT_EQ(train->fields()[1].class_names, (std::vector<std::string>{"ants", "bees", "wasps"}));
  EXPECT_EQ(label_of(*train, 0), 0);
  EXPECT_EQ(label_of(*train, 2), 2);
  // Class numbers come from the training set, also where a class is missing.
  const DatasetSpec validation{.name = "imagenet", .dir = root, .split = "validation"};
  ASSERT_TRUE(has_split(validation));
  EXPECT_EQ(label_of(*open_dataset(validation), 0), 2);
  EXPECT_FALSE(has_split({.name = "imagenet", .dir = root, .split = "test"}));
  EXPECT_EQ(dataset_files({.name = "imagenet", .dir = root}).size(), 4u) << "what staging copies";
  EXPECT_EQ(dataset_files(validation), std::vector{root / "val/wasps/z.jpg"});

  put_file(root / "val/hornets/z.jpg", grey_jpeg(9));
  expect_io_error([&] { open_dataset(validation); }, {"hornets", "called alike"});
  fs::create_directories(root / "train/empty");
  expect_io_error([&] { open_dataset({.name = "imagenet", .dir = root}); },
                  {"train/empty", "no images"});
  fs::remove(root / "train/empty");
  put_file(root / "train/loose.jpg", grey_jpeg(1));
  expect_io_error([&] { open_dataset({.name = "imagenet", .dir = root}); },
                  {"loose.jpg", "beside class folders"});
}

TEST(ImageSet, ReadsTarsOfEachKind) {
  struct Known {
    const char* file;
    std::vector<std::string> classes;
    std::vector<int> labels;
    const char* origin;
  };
  const Known known[] = {{"web.tar", {"0", "1", "2", "3"}, {3, 0}, "member a0.jpg"},
                         {"folders.tar", {"ants", "bees"}, {0, 1}, "member train/ants/x.jpg"},
                         {"nested.tar", {"n01", "n02"}, {0, 1}, "member n01_1.JPEG"},
                         {"gnu.tar", {std::string(160, 'x')}, {0}, "member d/longlong"},
                         {"pax.tar", {std::string(160, 'x')}, {0}, "member d/longlong"}};
  for (const Known& one : known) {
    const auto set = open_image_set(corpus_file(std::string("tar/") + one.file), "train", {}, {});
    ASSERT_EQ(set->size(), std::ssize(one.labels)) << one.file;
    EXPECT_TRUE(has_text(set->origin(0), one.origin));
    const std::vector<std::string>& classes = set->fields()[1].class_names;
    ASSERT_EQ(classes.size(), one.classes.size()) << one.file;
    for (size_t c = 0; c < classes.size(); ++c)
      if (one.classes[c].size() < 100)
        EXPECT_EQ(classes[c], one.classes[c]);
      else
        EXPECT_EQ(classes[c].size(), one.classes[c].size());
    Sample sample(set->fields());
    DecodedImage image;
    for (int64_t i = 0; i < set->size(); ++i) {
      EXPECT_EQ(label_of(*set, i), one.labels[static_cast<size_t>(i)]) << one.file;
      set->read(i, sample);
      decode_whole(sample.coded_at(0), sample.origin(), image);
      EXPECT_EQ(image.size, (ImageSize{36, 44}));
    }
  }
}

TEST(ImageSet, SeveralArchivesInThePartsFolderAreClasses) {
  const ScratchDirectory scratch;
  const auto pack = [&](const std::string& path, std::initializer_list<const char*> members) {
    fs::create_directories((scratch.path() / path).parent_path());
    TarWriter tar(scratch.path() / path);
    for (const char* member : members) tar.add(member, grey_jpeg(4));
    tar.finish();
  };
  pack("set/train/n01440764.tar", {"0.jpg", "1.jpg"});
  pack("set/train/n01443537.tar", {"./2.jpg"});
  pack("set/val/n01443537.tar", {"3.jpg"});
  pack("set/val/n01440764.tar", {"4.jpg"});
  const DatasetSpec train{.name = "imagenet", .dir = scratch.path() / "set"};
  testing::internal::CaptureStderr();
  const auto set = open_dataset(train), again = open_dataset(train);
  const std::string message = testing::internal::GetCapturedStderr();
  const std::string assumed =
      "set/train: 2 archives are taken as one class each, by their names: n01440764 ... n01443537";
  EXPECT_TRUE(has_once(message, assumed));
  EXPECT_EQ(set->fields()[1].class_names, (std::vector<std::string>{"n01440764", "n01443537"}));
  ASSERT_EQ(set->size(), 3);
  EXPECT_EQ(label_of(*set, 0), 0);
  EXPECT_EQ(label_of(*set, 2), 1);
  DatasetSpec validation = train;
  validation.split = "validation";
  EXPECT_EQ(label_of(*open_dataset(validation), 1), 1);
  // Parts of one set, or a single archive, say nothing about classes.
  for (const char* shard :
       {"shards/train/x-0007.tar", "shards/train/x-0008.tar", "one/train/a.tar"})
    pack(shard, {"0.jpg"});
  for (const char* root : {"shards", "one"})
    expect_io_error([&] { open_dataset({.name = "imagenet", .dir = scratch.path() / root}); },
                    {"nothing says its class", "ants.tar"});
}

TEST(ImageSet, PartsOfOneSetAreNoClasses) {
  const ScratchDirectory scratch;
  const auto are_classes = [&](const std::vector<std::string>& names) {
    ImageSource source;
    for (const std::string& name : names) source.tars.push_back("set/train/" + name + ".tar");
    return are_called_as_classes(source);
  };
  std::vector<std::string> unpadded;
  for (int i = 0; i < 12; ++i) unpadded.push_back(fmt::format("x-{}", i));
  std::ranges::sort(unpadded);
  for (const std::vector<std::string>& names : {unpadded,
                                                {"0007", "0009"},
                                                {"x-0007", "x-0009"},
                                                {"a_1000", "a_2000"},
                                                {"x.3", "x.99999999999999999999"},
                                                {"x-00000-of-00012", "x-00003-of-00012"},
                                                {"train1", "train10", "train2", "train3", "train4",
                                                 "train5", "train6", "train7", "train8", "train9"},
                                                {"part_a", "part_b"},
                                                {"part-00000-3f2a", "part-00001-77bc"},
                                                {"shardA", "shardB"}})
    EXPECT_FALSE(are_classes(names)) << names.front();
  for (const std::vector<std::string>& names : {std::vector<std::string>{"ants", "bees"},
                                                {"n01440764", "n01443537"},
                                                {"partridge", "party"},
                                                {"dog_1", "cat_1"},
                                                {"x-1", "ants"}})
    EXPECT_TRUE(are_classes(names)) << names.front();

  // The same names as a whole set.
  fs::create_directories(scratch.path() / "train");
  for (const std::string& name : unpadded) {
    TarWriter tar(scratch.path() / "train" / (name + ".tar"));
    tar.add("0.jpg", grey_jpeg(4));
    tar.finish();
  }
  expect_io_error([&] { open_dataset({.name = "imagenet", .dir = scratch.path()}); },
                  {"nothing says its class", "part_b.tar"});
}

TEST(ImageSet, DamagedTarsAreNamed) {
  const Bytes web = read_all(corpus_file("tar/web.tar"));
  const ScratchDirectory scratch;
  const auto refused = [&](const std::vector<uint8_t>& content, const std::string& why) {
    const fs::path path = scratch.write("damaged.tar", content);
    expect_io_error([&] { open_image_set(path, "train", {}, {}); }, {"damaged.tar", why});
  };
  refused({}, "an empty file");
  refused(sized(web, 700), "of which");
  refused(sized(web, 4096), "closing blocks");
  {  // joined as by 'cat a.tar b.tar'
    const auto twice = scratch.write("joined.tar", joined(web, web));
    const auto set = open_image_set(twice, "train", {}, {});
    EXPECT_EQ(set->size(), 4);
    EXPECT_EQ(label_of(*set, 2), label_of(*set, 0));
  }
  refused(joined(web, Bytes(700, 9)), "700 bytes that are no tar archive follow its end");
  refused(flipped(web, 3), "checksum");
  {
    TarWriter tar(scratch.path() / "lacking.tar");
    const std::vector<uint8_t> jpeg = grey_jpeg(4);
    tar.add("a.jpg", jpeg);
    tar.add("a.cls", std::array<uint8_t, 1>{'7'});
    tar.add("b.jpg", jpeg);
    tar.finish();
  }
  expect_io_error([&] { open_image_set(scratch.path() / "lacking.tar", "train", {}, {}); },
                  {"lacking.tar", "b.jpg", "no b.cls"});
}

TEST(ImageSet, FirstBytesDecideAndOtherPicturesAreNamed) {
  const ScratchDirectory scratch;
  const fs::path root = scratch.path();
  put_file(root / "train/ants/a.jpg", grey_jpeg(1));
  put_file(root / "train/ants/0001", grey_jpeg(2));
  put_file(root / "train/ants/b.jfif", grey_jpeg(3));
  put_file(root / "train/ants/c.webp", {'R', 'I', 'F', 'F', 4, 0, 0, 0, 'W', 'E', 'B', 'P'});
  put_file(root / "train/ants/notes.txt", grey_jpeg(4));
  testing::internal::CaptureStderr();
  const auto set = open_image_set(root, "train", {}, {});
  const std::string message = testing::internal::GetCapturedStderr();
  EXPECT_EQ(set->size(), 3);
  EXPECT_TRUE(has_text(
      message, "passed over: 1 picture of other formats, such as ants/c.webp (a WebP image)"));
  put_file(root / "train/bees/d.webp", {'R', 'I', 'F', 'F', 4, 0, 0, 0, 'W', 'E', 'B', 'P'});
  expect_io_error([&] { open_image_set(root, "train", {}, {}); },
                  {"train/bees", "no images", "d.webp (a WebP image)"});
  // A name does not prove the content of a file.
  put_file(root / "val/ants/a.jpg", {'v', 'e', 'r', 's', 'i', 'o', 'n', ' '});
  const std::string pointer = "version https://git-lfs.github.com/spec/v1\n";
  DecodedImage image;
  expect_io_error(
      [&] { decode_whole(std::vector<uint8_t>(pointer.begin(), pointer.end()), "a.jpg", image); },
      {"a.jpg is neither a JPEG nor a PNG, but a pointer file of Git LFS", "git lfs pull"});
}

TEST(ImageSet, LinksInCirclesEndAndAreNamed) {
  const ScratchDirectory scratch;
  const fs::path root = scratch.path();
  for (const char* name : {"train/cat/a.jpg", "train/dog/b.jpg", "deep/l0/c.jpg"})
    put_file(root / name, grey_jpeg(1));
  fs::create_directory_symlink(".", root / "train/cat/again");
  fs::create_directory_symlink("..", root / "train/cat/up");
  fs::create_directory_symlink("../..", root / "train/dog/up");
  fs::create_directory_symlink("..", root / "train/loop");
  // Folder i has two links to folder i - 1: 2^30 paths without a bound.
  for (int i = 1; i < 30; ++i) {
    const fs::path folder = root / fmt::format("deep/l{}", i);
    fs::create_directory(folder);
    fs::create_directory_symlink(fmt::format("../l{}", i - 1), folder / "a");
    fs::create_directory_symlink(fmt::format("../l{}", i - 1), folder / "b");
  }
  fs::create_directory_symlink("../../deep/l29", root / "train/cat/deep");
  testing::internal::CaptureStderr();
  const auto set = open_image_set(root, "train", {}, {});
  EXPECT_EQ(dataset_files({.name = "imagenet", .dir = root}).size(), 3u);
  const std::string message = testing::internal::GetCapturedStderr();
  EXPECT_EQ(set->size(), 3);
  EXPECT_EQ(set->fields()[1].class_names, (std::vector<std::string>{"cat", "dog"}));
  EXPECT_TRUE(has_text(message, "passed over: this link leads to a folder that lies above it"));
}

// A folder keeps its own name, even if a link to it comes first.
TEST(ImageSet, ALinkFromOneClassToAnotherTakesNothingFromIt) {
  const ScratchDirectory scratch;
  const fs::path root = scratch.path();
  for (const char* name : {"train/a/1.jpg", "train/b/2.jpg", "train/c/3.jpg"})
    put_file(root / name, grey_jpeg(1));
  fs::create_directory_symlink("../b", root / "train/a/more");
  testing::internal::CaptureStderr();
  const auto set = open_image_set(root, "train", {}, {});
  const std::string message = testing::internal::GetCapturedStderr();
  EXPECT_EQ(set->fields()[1].class_names, (std::vector<std::string>{"a", "b", "c"}));
  ASSERT_EQ(set->size(), 3);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(label_of(*set, i), i);
  EXPECT_TRUE(has_text(message, "a/more: passed over"));
  // A link is followed to a folder elsewhere, and so is a link through another link.
  put_file(root / "more/deep/4.jpg", grey_jpeg(1));
  put_file(root / "far/5.jpg", grey_jpeg(1));
  fs::create_directory_symlink("../../far", root / "more/deep/far");
  fs::create_directory_symlink("../../more", root / "train/c/more");
  EXPECT_EQ(open_image_set(root, "train", {}, {})->size(), 5);
}

TEST(ImageSet, GeneratedFoldersAndShardsAreTheSameImages) {
  const ScratchDirectory scratch;
  const generate::PictureSpec spec{.classes = 3, .side = 24, .seed = 5};
  for (const int64_t per_tar : {0, 4})
    generate::write_pictures(scratch.path() / (per_tar == 0 ? "folders" : "tars"), spec,
                             {.train = 9, .test = 3}, per_tar, false, 2);
  EXPECT_THROW(
      generate::write_pictures(scratch.path() / "tars", spec, {.train = 9, .test = 3}, 4, false, 1),
      ConfigError);
  generate::write_pictures(scratch.path() / "tars", spec, {.train = 9, .test = 3}, 4, true, 1);
  for (const char* part : {"train", "validation"}) {
    const auto folders = open_image_set(scratch.path() / "folders", part, {}, {}),
               tars = open_image_set(scratch.path() / "tars", part, {}, {});
    ASSERT_EQ(folders->size(), tars->size());
    std::multiset<std::pair<int, std::vector<uint8_t>>> a, b;
    for (const auto& [set, all] : {std::pair(folders.get(), &a), std::pair(tars.get(), &b)})
      for (int64_t i = 0; i < set->size(); ++i) {
        Sample sample(set->fields());
        set->read(i, sample);
        const std::span<const uint8_t> coded = sample.coded_at(0);
        all->emplace(label_of(*set, i), std::vector<uint8_t>(coded.begin(), coded.end()));
      }
    EXPECT_EQ(a, b);
  }
  EXPECT_TRUE(verify_dataset("imagenet", scratch.path() / "tars").sound());
  const auto files = open_image_set(scratch.path() / "folders", "train", {}, {});
  const std::vector<uint8_t> half(30, 0xFF);
  put_file(files->origin(1), half);
  const VerifyReport report = verify_dataset("imagenet", scratch.path() / "folders");
  EXPECT_FALSE(report.sound());
  EXPECT_TRUE(has_text(report.to_text(), files->origin(1)));
}

/// Returns two epochs' batches, which must not depend on the number of readers.
std::vector<float> batches_of(const Dataset& set, int threads) {
  constexpr int64_t kBatch = 4;
  const TensorDesc images{DType::f32, {kBatch, 3, 12, 12}, {}};
  const std::vector<BatchField> fields = {{.field = "image", .desc = images}};
  const std::vector<FieldSteps> steps = {
      parse_steps("image: resized-crop 12 of 14, flip x, divide 255")};
  const SampleWriter writer(set, fields, steps, 7);
  const Sampler sampler({.seed = 7, .size = set.size(), .local_batch = kBatch});
  Pipeline pipeline(set, writer, std::make_unique<TrainingOrder>(sampler, TrainingStart{}),
                    {.threads = threads, .chunk = 1});
  std::vector<float> all;
  for (int64_t k = 0; k < 2 * sampler.steps_per_epoch(); ++k) {
    const auto* x = static_cast<const float*>(pipeline.next().tensors[0]);
    all.insert(all.end(), x, x + images.shape.elements());
  }
  EXPECT_GT(pipeline.reading_seconds(), 0);
  return all;
}

TEST(ImageSet, BatchesDoNotDependOnThreads) {
  const ScratchDirectory scratch;
  generate::write_pictures(scratch.path(), {.classes = 2, .side = 30}, {.train = 9, .test = 2}, 0,
                           false, 1);
  const auto set = open_image_set(scratch.path(), "train", {}, {});
  const std::vector<float> inline_read = batches_of(*set, 0);
  EXPECT_EQ(inline_read, batches_of(*set, 1));
  EXPECT_EQ(inline_read, batches_of(*set, 3));
}

}  // namespace
}  // namespace tutti::data
