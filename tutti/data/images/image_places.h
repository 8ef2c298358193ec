#pragma once
// ImagePlaces knows which images a data set has, where their bytes lie, and the class of each. The
// images lie in class folders, or in tar archives of any usual layout.

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
  std::filesystem::path folder{};             ///< holds class folders; empty: there are archives
  std::vector<std::filesystem::path> tars{};  ///< by name
  bool found() const { return !folder.empty() || !tars.empty(); }
};

/// Finds the part ("train", "validation", "test") of the data set at `root`: a folder of that name
/// (or val, valid) with class folders or *.tar, or the *.tar in `root` with that word in their
/// names. "train" may also be `root` itself: class folders, archives whose names say no part, or
/// one archive.
ImageSource image_source(const std::filesystem::path& root, std::string_view part);

/// Returns all its files by name, also those that are no images.
std::vector<std::filesystem::path> files_of(const ImageSource& source);

/// Says whether several archives lie in the folder of a part and may each be a class, like the
/// archives in ImageNet's own. They are parts of one set instead if their names differ only in a
/// number that stands apart (x-0.tar, x_2000.tar, 0007.tar) or counts up by one, or begin with
/// "part_..." or "shard...".
bool are_called_as_classes(const ImageSource& source);

/// Says whether a folder in `folder` holds an image at any depth.
bool has_class_folders(const std::filesystem::path& folder);

/// Compact: 1.3 million images take about 60 MB.
class ImagePlaces {
 public:
  /// Lists folders, or reads the archives' headers. IoError naming the file or folder if there are
  /// no images, classes cannot be told, or an archive is damaged.
  explicit ImagePlaces(const ImageSource& source);

  int64_t size() const { return static_cast<int64_t>(entries_.size()); }
  int label(int64_t i) const { return entry(i).label; }
  void set_label(int64_t i, int label) { entries_[static_cast<size_t>(i)].label = label; }
  /// Returns names in the order of class numbers. With .cls files: "0", "1" ... up to the largest
  /// found.
  const std::vector<std::string>& classes() const { return classes_; }
  bool numbered() const { return numbered_; }  ///< by .cls files: names mean nothing
  /// Returns "train/ants/a.jpg", or "shard-000.tar, member ants/a.jpg".
  std::string origin(int64_t i) const;

  /// Returns each image's file, or each archive and the number of its images.
  std::vector<SamplesOfFile> files() const;

  /// Says in which file, and where, an image's bytes lie.
  struct Bytes {
    FileBytes file;
    int64_t offset = 0, bytes = 0;
  };
  Bytes open(int64_t i) const;

 private:
  struct Entry {
    uint64_t name = 0;  ///< where its name begins in names_
    int64_t offset = 0, bytes = -1;
    int32_t file = 0;  ///< index of the archive
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
