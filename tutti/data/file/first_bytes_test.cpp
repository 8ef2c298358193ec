#include "tutti/data/file/first_bytes.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>
#include <string>
#include <string_view>

#include "tutti/base/expect_text.h"
#include "tutti/data/format/array/array_checks.h"

namespace tutti::data {
namespace {

using namespace std::string_view_literals;
namespace fs = std::filesystem;

Content content_of(std::string_view text) {
  const Bytes bytes = bytes_of(text);
  return first_bytes_of(bytes, std::ssize(bytes)).content;
}

constexpr std::string_view kPointer =
    "version https://git-lfs.github.com/spec/v1\noid "
    "sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 12345\n";

std::string zip_of(const std::string& member) {
  ZipBytes zip;
  zip.add(member, {1, 2, 3}, false);
  const Bytes bytes = zip.bytes();
  return {bytes.begin(), bytes.end()};
}

TEST(FirstBytes, NameWhatPeopleHave) {
  const std::string tar = std::string(257, 'a') + "ustar" + std::string(300, '\0');
  const std::pair<std::string_view, Content> rows[] = {
      {""sv, Content::empty},
      {kPointer, Content::lfs_pointer},
      {"/annex/objects/MD5E-s12--0123\n", Content::annex_pointer},
      {"outs:\n- md5: 0123\n  path: a\n", Content::dvc_pointer},
      {"<!DOCTYPE html><html><head><title>Sign in", Content::html},
      {"\n <HTML>\n<body>", Content::html},
      {"<?xml version=\"1.0\"?>\n<Error><Code>AccessDenied</Code>", Content::xml},
      {"{\"metadata\": {}, \"weight_map\": {\"a\": \"x-1-of-2.safetensors\"}}",
       Content::parts_index},
      {"{\"a\": 1}", Content::json},
      {"\x10\0\0\0\0\0\0\0{\"a\":{}}      "sv, Content::safetensors},
      {"\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19."sv, Content::torch_tar},
      {"\x80\x04\x95\x10"sv, Content::pickle},
      {"GGUF\3\0\0\0"sv, Content::gguf},
      {"\x1f\x8b\x08\0"sv, Content::gzip},
      {"BZh91AY&SY", Content::bzip2},
      {"\xfd"
       "7zXZ\0"sv,
       Content::xz},
      {"\x28\xb5\x2f\xfd..", Content::zstd},
      {"7z\xbc\xaf\x27\x1c..", Content::seven_zip},
      {tar, Content::tar},
      {"\x93NUMPY\1\0"sv, Content::npy},
      {"\x93NUMPY\4\0"sv, Content::newer_npy},
      {"\x89HDF\r\n\x1a\n", Content::hdf5},
      {"CDF\1"sv, Content::netcdf},
      {"CDF\7"sv, Content::newer_netcdf},
      {"II\x2a\0\x08\0\0\0"sv, Content::tiff},
      {"MM\0\x2b\0\x08"sv, Content::tiff},
      {"\xff\xd8\xff\xe0", Content::jpeg},
      {"\x89PNG\r\n\x1a\n", Content::png},
      {"BM\x46\0\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0\1"sv, Content::bmp},
      {"RIFF\x10\0\0\0WEBPVP8 "sv, Content::webp},
      {"GIF89a", Content::gif},
      {"\0\0\0\x1c"
       "ftypavif"sv,
       Content::heif},
      {"PAR1\x15", Content::parquet},
      {"MATLAB 5.0 MAT-file, Platform", Content::matlab},
      {"\0\0\x08\x03\0\0\0\1"sv, Content::idx},
      {"T\0\0\0CORD"sv, Content::dcd},
      {"title\n   1.000   2.500-103.125\n", Content::amber_text},
      {"22\nwater\n O 4.300   13.100    8.600\n", Content::xyz_text},
      {"\xff\xfeL\0a\0"sv, Content::utf16},
      {"\0L\0a\0b\0e\0l\0,"sv, Content::utf16},
      {"\xff\xfe\0\0s\0\0\0"sv, Content::utf32},
      {"\0\0\xfe\xff\0\0\0s"sv, Content::utf32},
      {"s\0\0\0e\0\0\0e\0\0\0d\0\0\0"sv, Content::utf32},
      {"CDF of the waiting times\n", Content::text},
      {"ITEM: TIMESTEP\n0\n", Content::lammps_text},
      {"CRYST1   25.733   25.733   25.733  70.53 109.47  70.53 P 1\nATOM  ", Content::pdb_text},
      {"water\n    3\n    1SOL     OW    1   0.126   1.624   1.679\n", Content::gro_text},
      {"a,b\n1,2\n", Content::csv},
      {"some words\nand more\n", Content::text},
      {"\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"sv, Content::zeros},
      {"\1\2\3\4\5\6"sv, Content::unknown},
  };
  for (const auto& [text, expected] : rows)
    EXPECT_EQ(content_of(text), expected) << text.substr(0, 40);
  EXPECT_EQ(content_of(std::string(512, '\0') + "\x89HDF\r\n\x1a\n"), Content::hdf5);
  EXPECT_EQ(content_of(zip_of("archive/data.pkl")), Content::torch_zip);
  EXPECT_EQ(content_of(zip_of("x.npy")), Content::npz);
  EXPECT_EQ(content_of(zip_of("x.txt")), Content::zip);
}

TEST(FirstBytes, AZipInThePlaceOfWeightsIsKnownByItsMembers) {
  const ScratchDirectory scratch;
  const auto expect = [&](const std::vector<std::string>& members, const std::string& part) {
    ZipBytes zip;
    for (const std::string& member : members) zip.add(member, {1, 2, 3}, false);
    const auto path = scratch.write("w", zip.bytes());
    EXPECT_TRUE(has_text(unreadable(path, Content::safetensors, "no header"), part));
  };
  expect({"w/version", "w/data/0", "w/data.pkl"}, "torch.load");
  expect({"ok.safetensors"}, "a zip archive (");
  expect({"ok.safetensors"}, "unpack it with 'unzip FILE' and give the .safetensors in it");
  expect({"notes.txt"}, "unpack it with 'unzip FILE'");
  expect({}, "a zip archive without members");
}

TEST(FirstBytes, AFileIsCalledDamagedOnlyWhereItBeginsAsItsFormatDoes) {
  const ScratchDirectory scratch;
  const auto expect = [&](std::string_view text, Content expected, const std::string& message) {
    const auto path = scratch.write("a.h5", bytes_of(text));
    EXPECT_EQ(unreadable(path, expected, "no root group"), path.string() + message);
  };
  expect("\x89HDF\r\n\x1a\n", Content::hdf5,
         ": no root group: it is truncated or corrupted; fetch it again");
  expect(kPointer, Content::hdf5,
         ": expected HDF5, found a pointer file of Git LFS (130 bytes): fetch its content with "
         "'git lfs pull'");
  expect("\1\2", Content::hdf5,
         ": expected HDF5, found 2 bytes that begin with 01 02: give another file, or fetch it "
         "again");
  expect("\1\2", Content::unknown, ": no root group: it is truncated or corrupted; fetch it again");
  expect("\x1f\x8b", Content::unknown,
         ": no root group; found a gzip file (2 bytes): unpack it with 'gzip -dc FILE > NEW' (a "
         ".tgz with 'tar -xzf')");
  EXPECT_EQ(unreadable(scratch.path() / "none", Content::hdf5, "x"),
            (scratch.path() / "none").string() + ": cannot open: No such file or directory");
}

TEST(FirstBytes, WhatTheSystemSaysComesWithWhatToDo) {
  const ScratchDirectory scratch;
  fs::create_symlink("../.git/annex/objects/X1/key", scratch.path() / "annexed");
  fs::create_symlink("round", scratch.path() / "round");
  const fs::path locked = scratch.write("a", Bytes{1});
  const auto opens = [&](const char* name) {
    return [&scratch, name] { FileBytes::open(scratch.path() / name); };
  };
  expect_error<BadFile>(opens("annexed"),
                        {"which is not there: fetch it with 'git annex get FILE'"});
  expect_io_error(opens("round"), {"Too many levels of symbolic links; its symbolic links lead"});
  const std::string printed = message_of<IoError>([&] {
    const FewFiles none(0);
    FileBytes::open(locked);
  });
  EXPECT_TRUE(has_text(printed, "open: raise the limit (ulimit -n)"));
  for (const int error : {EACCES, ENFILE, EIO, ESTALE, EISDIR, ENOSPC})
    EXPECT_TRUE(has_text(file_error(error), "; ")) << error;
  EXPECT_EQ(file_error(ENOENT), "No such file or directory");
}

}  // namespace
}  // namespace tutti::data
