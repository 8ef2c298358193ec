#include "tutti/keep/safetensors.h"

#include <gtest/gtest.h>

#include <cstring>

#include "tutti/base/error.h"
#include "tutti/base/expect_text.h"
#include "tutti/base/scratch_directory.h"

namespace tutti::keep {
namespace {

class Safetensors : public testing::Test {
 protected:
  void write_raw(const std::string& header, const std::string& data) const {
    const uint64_t size = header.size();
    DurableFile file(path_);
    file.write(std::as_bytes(std::span(&size, 1)));
    file.write(header);
    file.write(data);
    file.close();
  }
  /// Returns the message of the IoError on opening the file, which must name the file.
  std::string refusal() const {
    const std::string message = message_of<IoError>("accepted", [&] { SafetensorsFile{path_}; });
    if (message != "accepted") {
      EXPECT_TRUE(has_text(message, path_.string()));
    }
    return message;
  }
  std::string refusal(const std::string& header, const std::string& data) const {
    write_raw(header, data);
    return refusal();
  }

  const ScratchDirectory scratch_;
  const std::filesystem::path path_ = scratch_.path() / "file.safetensors";
};

std::vector<std::byte> bytes_of(std::initializer_list<float> values) {
  const auto bytes = std::as_bytes(std::span(values.begin(), values.size()));
  return {bytes.begin(), bytes.end()};
}

TEST_F(Safetensors, ReadsBackWhatItWrote) {
  const NamedTensor odd{"a.u8", {DType::u8, {3}, {}}, std::vector<std::byte>(3, std::byte{7})};
  const NamedTensor weight{"b.weight", {DType::f32, {2, 2}, {}}, bytes_of({1, -2, 3, 0.5f})};
  const NamedTensor scalar{
      "c \"quoted\"", {DType::i32, {}, {}}, std::vector<std::byte>(4, std::byte{1})};
  const NamedTensor empty{"d.empty", {DType::f32, {0, 4}, {}}, {}};
  const NamedTensor half{"e.bf16", {DType::bf16, {1}, {}}, {std::byte{0x80}, std::byte{0x3f}}};
  const std::vector<TensorRef> refs = {odd.ref(), weight.ref(), scalar.ref(), empty.ref(),
                                       half.ref()};
  const FileDigest digest = write_safetensors(path_, refs, {{"step", "12"}});
  EXPECT_EQ(digest, digest_of(path_));

  const SafetensorsFile file(path_);
  EXPECT_EQ(file.metadata(), (TensorMetadata{{"step", "12"}}));
  EXPECT_EQ(file.entries().size(), 5u);
  for (const NamedTensor* t : {&odd, &weight, &scalar, &empty, &half}) {
    const auto* entry = file.find(t->name);
    ASSERT_NE(entry, nullptr) << t->name;
    const NamedTensor back = file.read(*entry);
    EXPECT_EQ(back.desc, t->desc);
    EXPECT_EQ(back.bytes, t->bytes);
    EXPECT_EQ(entry->begin % size_of(t->desc.dtype), 0u) << t->name;
  }
  EXPECT_EQ(file.read_f32(*file.find("e.bf16")), std::vector<float>{1});
  EXPECT_EQ(file.find("nothing"), nullptr);
}

TEST_F(Safetensors, TensorsThatAreMadeGiveTheSameFile) {
  const NamedTensor first{"a", {DType::f32, {2}, {}}, bytes_of({1, 2})};
  const NamedTensor second{"b", {DType::f32, {3}, {}}, bytes_of({3, 4, 5})};
  const FileDigest held = write_safetensors(path_, std::vector{first.ref(), second.ref()});
  const auto other = scratch_.path() / "made.safetensors";
  EXPECT_EQ(write_safetensors(other, std::vector{owned(first), owned(second)}), held);
}

// Searching all names for each tensor would take minutes.
TEST_F(Safetensors, ManyTensorsComeBack) {
  std::vector<NamedTensor> tensors;
  for (int i = 0; i < 50'000; ++i)
    tensors.push_back(
        {fmt::format("layer.{}.\"weight\"", i), {DType::u8, {1}, {}}, {std::byte(i)}});
  std::vector<TensorRef> refs;
  for (const NamedTensor& tensor : tensors) refs.push_back(tensor.ref());
  write_safetensors(path_, refs, {{"step", "1"}});
  const SafetensorsFile file(path_);
  ASSERT_EQ(file.entries().size(), tensors.size());
  EXPECT_EQ(file.metadata().at("step"), "1");
  for (const NamedTensor& tensor : tensors) {
    const auto* const entry = file.find(tensor.name);
    ASSERT_TRUE(entry);
    EXPECT_EQ(file.bytes(*entry), tensor.bytes);
  }
}

/// The header of a tensor 'a' of F32.
std::string header_of_a(const char* shape, const char* offsets) {
  return fmt::format(R"({{"a":{{"dtype":"F32","shape":{},"data_offsets":{}}}}})", shape, offsets);
}

TEST_F(Safetensors, RefusesBadHeaders) {
  const std::string four(4, '\0'), eight(8, '\0'), sound = header_of_a("[1]", "[0,4]");
  EXPECT_EQ(refusal(sound, four), "accepted");
  struct Row {
    std::string header, data;
    const char* part;
  };
  const Row rows[] = {
      {sound.substr(0, sound.size() - 2), four, "damaged"},
      {R"({"a":{"dtype":"F31","shape":[1],"data_offsets":[0,4]}})", four, "'a': dtype \"F31\""},
      {header_of_a("[-1]", "[0,4]"), four, "'a': shape"},
      {header_of_a("[2]", "[0,4]"), four, "'a': data_offsets"},
      {header_of_a("[1]", "[4,0]"), four, "'a': data_offsets"},
      {header_of_a("[4294967296,4294967296]", "[0,0]"), "", "too large"},
      {header_of_a("[2]", "[0,8]"), four, "truncated"},
      {sound, eight, "after the last tensor"},
      {header_of_a("[1]", "[4,8]"), eight, "unused"},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
       R"("b":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
       eight, "'b': overlaps"},
      {sound.substr(0, sound.size() - 1) + "," + sound.substr(1), four, "named twice"},
      {R"({"__metadata__":{"x":1}})", "", "__metadata__"},
      {"[]", "", "JSON object"}};
  for (const Row& row : rows) EXPECT_TRUE(has_text(refusal(row.header, row.data), row.part));
  EXPECT_FALSE(has_text(refusal("{", ""), "json.exception"));
  const std::string eighth =
      refusal(R"({"a":{"dtype":"F8_E4M3","shape":[4],"data_offsets":[0,4]}})", four);
  EXPECT_TRUE(has_text(eighth, "'a' is of dtype \"F8_E4M3\", a sound one"));
  EXPECT_FALSE(has_text(eighth, "not a valid"));
}

TEST_F(Safetensors, RefusesShortFiles) {
  replace_file(path_, "1234");
  EXPECT_TRUE(has_text(refusal(), "expected safetensors, found text (4 bytes)"));
  replace_file(path_, std::string("\xff\xff\xff\xff\xff\xff\xff\x7f{}", 10));
  EXPECT_TRUE(has_text(refusal(), "expected safetensors"));
  std::filesystem::remove(path_);
  EXPECT_TRUE(has_text(refusal(), "No such file"));
}

#ifdef TUTTI_TEST_DATA
TEST_F(Safetensors, ReadsFilesOfOtherWriters) {
  const std::filesystem::path data(TUTTI_TEST_DATA);
  const SafetensorsFile all(data / "safetensors/samples/overall.safetensors");
  EXPECT_EQ(all.metadata(), (TensorMetadata{{"test", "a"}}));
  ASSERT_EQ(all.entries().size(), 9u);
  const std::vector<float> expected = all.read_f32(*all.find("d"));
  ASSERT_EQ(expected.size(), 6u);
  for (const auto& entry : all.entries()) {
    const SafetensorsFile single(data / "safetensors/samples" / (entry.name + ".safetensors"));
    EXPECT_EQ(single.bytes(single.entries().front()), all.bytes(entry)) << entry.name;
  }
  EXPECT_EQ(all.read_f32(*all.find("f")), expected);
  EXPECT_EQ(all.read_f32(*all.find("e")), expected);
  EXPECT_THROW(all.read(*all.find("d")), IoError);
  EXPECT_EQ(expected, (std::vector<float>{-3, -2, -1, 0, 1, 2}));
  EXPECT_EQ(all.read_as_f32(*all.find("b")).bytes, all.bytes(*all.find("f")));

  const SafetensorsFile mnist(data / "safetensors/mnist_tinygrad.safetensors");
  EXPECT_EQ(mnist.read(*mnist.find("l1.weight")).desc.shape, (Shape{128, 784}));

  const SafetensorsFile weights(data / "cifar10_resnet44/resnet44_cifar10.safetensors");
  ASSERT_EQ(weights.entries().size(), 217u);
  EXPECT_EQ(weights.entries().front().name, "conv1.weight");
  EXPECT_EQ(weights.read_as_f32(weights.entries().front()).desc,
            (TensorDesc{DType::f32, {16, 3, 3, 3}, {}}));
}
#endif

// Users sometimes have such files under the name of weights.
TEST_F(Safetensors, OtherFilesAreNamed) {
  const auto refused = [&](const std::string& text) {
    DurableFile file(path_);
    file.write(text);
    file.close();
    return refusal();
  };
  using namespace std::string_literals;
  for (const auto& [text, remedy] :
       {std::pair{"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\n"s, "git lfs pull"},
        {"PK\3\4"s + std::string(200, '\0'), "torch.load"},
        {"\x80\x02\x8a\nl\xfc\x9c\x46\xf9\x20j\xa8P\x19.\x80\x02M\xe9\x03."s, "torch.load"},
        {"\x1f\x8b\x08\0\0\0\0\0\0\0"s, "gzip -dc"},
        {std::string(4096, '\0'), "zeros alone"}})
    EXPECT_TRUE(has_text(refused(text), remedy));
  // A truncated file in the right format is damaged.
  EXPECT_TRUE(has_text(refused("\x40\0\0\0\0\0\0\0{\"a\":{\"dtype"s), "truncated or corrupted"));
}

TEST_F(Safetensors, AnIndexAndItsFilesAreOne) {
  const auto write = [&](const char* name, const std::string& tensor, std::vector<float> values) {
    const NamedTensor one{
        tensor,
        {DType::f32, {static_cast<int64_t>(values.size())}, {}},
        {std::as_bytes(std::span(values)).begin(), std::as_bytes(std::span(values)).end()}};
    const std::vector<TensorRef> refs = {one.ref()};
    write_safetensors(scratch_.path() / name, refs);
  };
  write("model-00001-of-00002.safetensors", "b", {1, 2, 3});
  write("model-00002-of-00002.safetensors", "a", {4, 5});
  const auto index = [&](const std::string& map) {
    DurableFile file(path_);
    file.write("{\"metadata\": {\"total_size\": 20}, \"weight_map\": " + map + "}");
    file.close();
  };
  index(R"({"a": "model-00002-of-00002.safetensors", "b": "model-00001-of-00002.safetensors"})");
  const SafetensorsFile file(path_);
  ASSERT_EQ(file.entries().size(), 2u);
  EXPECT_EQ(file.read_f32(*file.find("a")), (std::vector<float>{4, 5}));
  EXPECT_EQ(file.read_f32(*file.find("b")), (std::vector<float>{1, 2, 3}));
  const SafetensorsFile moved = SafetensorsFile(path_);
  EXPECT_EQ(moved.find("a")->file, 1u);
  index(R"({"a": "model-00003-of-00002.safetensors"})");
  EXPECT_TRUE(has_text(refusal(), "model-00003-of-00002.safetensors, which is not there"));
  std::filesystem::create_directory(scratch_.path() / "model-folder");
  index(R"({"a": "model-folder"})");
  const std::string folder = message_of<IoError>([&] { SafetensorsFile{path_}; });
  EXPECT_TRUE(has_text(folder, "model-folder: "));
  EXPECT_FALSE(has_text(folder, "is not there"));
  index(R"({"c": "model-00001-of-00002.safetensors"})");
  EXPECT_TRUE(has_text(refusal(), "tensor 'c' is not in model-00001"));
  index(R"({"a": "../x.safetensors"})");
  EXPECT_TRUE(has_text(refusal(), "no name of a file beside it"));
  index(R"({"a": 1})");
  EXPECT_TRUE(has_text(refusal(), "the index"));
  write("model-00002-of-00002.safetensors", "b", {4, 5});
  index(R"({"b": "model-00002-of-00002.safetensors", "c": "model-00001-of-00002.safetensors"})");
  EXPECT_TRUE(has_text(refusal(), "two of its files have a tensor 'b'") ||
              has_text(refusal(), "tensor 'c' is not in"));
}

}  // namespace
}  // namespace tutti::keep
