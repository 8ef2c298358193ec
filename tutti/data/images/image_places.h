#pragma once
// ImagePlaces: which images a data set has, where their bytes lie, and what class each is of: class
// folders, or tar archives in any of the ways that they are made.

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "tutti/data/dataset.h"
#include "tutti/data/file/file_bytes.h"

namespace tutti::data {

/// The files and folders that make up a part of a data set.
struct ImageSource {
  std::filesystem::path folder{};             ///< of class folders; empty: there are archives
  std::vector<std::filesystem::path> tars{};  ///< by name
  bool found() const { return !folder.empty() || !tars.empty(); }
};

/// The part ("train", "validation", "test") of the data set at `root`: a folder of that name (or
/// val, valid) with class folders or *.tar, or the *.tar in `root` with that word in their names.
/// Of "train" also `root` itself: class folders, archives whose names say no part, or one archive.
ImageSource image_source(const std::filesystem::path& root, std::string_view part);

/// All files of it, those that are no images too, by name.
std::vector<std::filesystem::path> files_of(const ImageSource& source);

/// Whether several archives lie in the folder of a part and may each be a class, as those are that
/// ImageNet's own archive holds. Parts of one set are called alike but for a number that stands
/// apart (x-0.tar, x_2000.tar, 0007.tar) or goes on by one, or "part_..." or "shard...".
bool are_called_as_classes(const ImageSource& source);

/// Whether a folder in `folder` holds an image somewhere.
bool has_class_folders(const std::filesystem::path& folder);

/// Compact: 1.3 million images take some 60 MB.
class ImagePlaces {
 public:
  /// Lists folders, or reads the archives' headers. IoError naming the file or folder where there
  /// are no images, classes cannot be told, or an archive is damaged.
  explicit ImagePlaces(const ImageSource& source);

  int64_t size() const { return static_cast<int64_t>(entries_.size()); }
  int label(int64_t i) const { return entry(i).label; }
  void set_label(int64_t i, int label) { entries_[static_cast<size_t>(i)].label = label; }
  /// In the order of their numbers. Of .cls files: "0", "1" ... up to the largest that is there.
  const std::vector<std::string>& classes() const { return classes_; }
  bool numbered() const { return numbered_; }  ///< by .cls files: names mean nothing
  /// "train/ants/a.jpg", or "shard-000.tar, member ants/a.jpg".
  std::string origin(int64_t i) const;

  /// Each image's file, or each archive and how many it has.
  std::vector<SamplesOfFile> files() const;

  /// An image's bytes: where they lie, in which file.
  struct Bytes {
    FileBytes file;
    int64_t offset = 0, bytes = 0;
  };
  Bytes open(int64_t i) const;

 private:
  struct Entry {
    uint64_t name = 0;  ///< where its name begins in names_
    int64_t offset = 0, bytes = -1;
    int32_t file = 0;  ///< of the archives
    int32_t label = 0;
  };
  const Entry& entry(int64_t i) const { return entries_[static_cast<size_t>(i)]; }
  std::string_view name(int64_t i) const;
  void add(std::string_view name, int label, int64_t file, int64_t offset, int64_t bytes);
  void list_folders();
  void list_archives();

  ImageSource source_;
  std::vector<FileBytes> archives_;
  std::vector<Entry> entries_;
  std::string names_;  ///< one after the other, each ended by a zero
  std::vector<std::string> classes_;
  bool numbered_ = false;
};

}  // namespace tutti::data
