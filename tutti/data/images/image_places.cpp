#include "tutti/data/images/image_places.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <unordered_map>

#include "tutti/base/error.h"
#include "tutti/base/log.h"
#include "tutti/data/file/first_bytes.h"
#include "tutti/data/file/folder_walk.h"
#include "tutti/data/file/tar.h"
#include "tutti/data/images/coded_image.h"

namespace tutti::data {
namespace {

namespace fs = std::filesystem;

bool is_folder(const fs::directory_entry& entry) {
  std::error_code unknown;
  return entry.is_directory(unknown);
}

/// Says whether a name rules out an image, so that the file's bytes need not be read.
bool says_no_image(const fs::path& name) {
  constexpr std::string_view kOthers[] = {".txt", ".cls", ".json", ".xml", ".csv",  ".md",
                                          ".npy", ".h5",  ".yaml", ".yml", ".toml", ".log",
                                          ".tar", ".db",  ".py",   ".sh",  ".html"};
  return std::ranges::find(kOthers, name.extension().string()) != std::end(kOthers);
}

/// Tells the content by the bytes of [offset, offset + bytes).
FirstBytes first_bytes_in(const FileBytes& file, int64_t offset, int64_t bytes) {
  std::vector<uint8_t> head(static_cast<size_t>(std::min<int64_t>(bytes, 64)));
  file.read(offset, head);
  return first_bytes_of(head, bytes);
}

bool is_image(const FirstBytes& found) {
  return found.content == Content::jpeg || found.content == Content::png;
}

/// Tells the content of a file without an image's name; a file that does not open counts as
/// unknown.
FirstBytes first_bytes_at(const fs::path& path) {
  if (says_no_image(path)) return {};
  try {
    const FileBytes file = FileBytes::open(path);
    return first_bytes_in(file, 0, file.size());
  } catch (const IoError&) {
    return {};
  }
}

bool holds_images(const fs::path& folder) {
  bool found = false;
  walk_folder(folder, [&](const fs::directory_entry& entry, const std::string& name) {
    found = is_image_name(name) || is_image(first_bytes_at(entry.path()));
    return !found;
  });
  return found;
}

/// Returns a WebDataset sample's key: the path up to the first dot of the file's name.
std::string_view key_of(std::string_view name) {
  const size_t slash = name.rfind('/'), from = slash == name.npos ? 0 : slash + 1;
  return name.substr(0, std::min(name.find('.', from), name.size()));
}

/// Returns the name of the folder that a member lies in, without its parents.
std::string_view folder_of(std::string_view name) {
  const size_t end = name.rfind('/');
  if (end == name.npos) return {};
  const std::string_view path = name.substr(0, end);
  const size_t begin = path.rfind('/');
  const std::string_view own = begin == path.npos ? path : path.substr(begin + 1);
  return own == "." ? std::string_view{} : own;
}

int class_number(const FileBytes& file, const TarMember& member) {
  constexpr int64_t kMostDigits = 32;
  constexpr int kMostClasses = 1 << 24;
  std::vector<uint8_t> bytes(static_cast<size_t>(std::min(member.bytes, kMostDigits)));
  file.read(member.offset, bytes);
  std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())) != 0)
    text.remove_suffix(1);
  int number = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < 0 ||
      number >= kMostClasses)
    throw BadFile("{}, member {}: '{}' is no class number of 0 to {}: a .cls file holds one",
                  file.name(), member.name, text, kMostClasses - 1);
  return number;
}

/// Counts pictures of unsupported formats, so that they are reported.
struct PassedOver {
  int64_t count = 0;
  std::string first{}, what{}, remedy{};

  void add(const FirstBytes& found, std::string_view name) {
    switch (found.content) {
      case Content::bmp:
      case Content::webp:
      case Content::gif:
      case Content::tiff:
      case Content::heif:
      case Content::jpeg2000: break;
      default: return;
    }
    if (count++ == 0) first = name, what = found.name, remedy = found.remedy;
  }
  void add(const PassedOver& more) {
    if (count == 0 && more.count > 0)
      *this = more;
    else
      count += more.count;
  }
  /// Returns text such as ": 12 pictures such as a.bmp (a BMP image) ...".
  std::string text() const {
    return count == 0 ? std::string()
                      : fmt::format(
                            ": {} picture{} of other formats, such as {} ({}); only JPEG and "
                            "PNG are read: {}",
                            count, count == 1 ? "" : "s", first, what, remedy);
  }
  void warn(const std::string& where) const {
    if (count > 0) log::warn_once("{}: passed over{}", where, text());
  }
};

/// An image found in an archive, before classes have numbers.
struct FoundImage {
  std::string name, folder;
  int64_t offset, bytes;
};

/// The images and class numbers of one archive and of archives inside it (ImageNet's has one a
/// class).
struct FoundArchive {
  std::vector<FoundImage> images;
  std::unordered_map<std::string, int> numbers;  ///< by key
  PassedOver passed_over{};

  void read(const FileBytes& file, int64_t begin, int64_t end, const std::string& within) {
    walk_tar(file, begin, end, [&](const TarMember& member) {
      const fs::path path(member.name);
      if (path.filename().string().starts_with('.')) return;
      if (is_image_name(member.name)) {
        add(member, within);
      } else if (path.extension() == ".cls") {
        add_number(class_number(file, member), file, member);
      } else if (path.extension() == ".tar" && within.empty()) {
        read(file, member.offset, member.offset + member.bytes, path.stem().string());
      } else if (!says_no_image(path)) {
        const FirstBytes first = first_bytes_in(file, member.offset, member.bytes);
        if (is_image(first))
          add(member, within);
        else
          passed_over.add(first, member.name);
      }
    });
  }

 private:
  /// Archives that were joined, or that hold another, may have a name twice.
  void add_number(int number, const FileBytes& file, const TarMember& member) {
    const auto [known, is_first] = numbers.emplace(key_of(member.name), number);
    if (!is_first && known->second != number)
      throw BadFile(
          "{}, member {}: says class {}, another one of this name class {}: keep archives whose "
          "names are alike apart",
          file.name(), member.name, number, known->second);
  }
  void add(const TarMember& member, const std::string& within) {
    const std::string_view folder = folder_of(member.name);
    images.push_back(
        {member.name, folder.empty() ? within : std::string(folder), member.offset, member.bytes});
  }
};

/// Logs once per folder: nothing in the archives says that each is a class.
void tell_assumed_classes(const std::vector<fs::path>& tars) {
  const fs::path folder = tars.front().parent_path();
  if (first_warning(folder, "archives are taken as classes"))
    log::info("{}: {} archives are taken as one class each, by their names: {} ... {}",
              folder.string(), tars.size(), tars.front().stem().string(),
              tars.back().stem().string());
}

}  // namespace

bool has_class_folders(const fs::path& folder) {
  for (const fs::directory_entry& entry : folder_entries(folder))
    if (is_folder(entry) && holds_images(entry.path())) return true;
  return false;
}

ImagePlaces::ImagePlaces(const ImageSource& source) : source_(source) {
  if (source_.folder.empty())
    list_archives();
  else
    list_folders();
}

void ImagePlaces::add(std::string_view name, int label, int64_t file, int64_t offset,
                      int64_t bytes) {
  entries_.push_back({.name = names_.size(),
                      .offset = offset,
                      .bytes = bytes,
                      .file = static_cast<int32_t>(file),
                      .label = label});
  names_.append(name).push_back('\0');
}

void ImagePlaces::list_folders() {
  std::vector<std::string> folders, loose;
  for (const fs::directory_entry& entry : folder_entries(source_.folder))
    if (is_folder(entry)) folders.push_back(entry.path().filename().string());
  std::vector<std::vector<std::string>> names(folders.size());  // the images of each folder
  std::vector<PassedOver> others(folders.size());
  const std::vector<fs::path> passed_over =
      walk_folder(source_.folder, [&](const fs::directory_entry& entry, const std::string& name) {
        const bool called = is_image_name(name);
        const FirstBytes first = called ? FirstBytes() : first_bytes_at(entry.path());
        const size_t slash = name.find('/');
        const bool image = called || is_image(first);
        if (slash == name.npos) {
          if (image) loose.push_back(name);
          return true;
        }
        const auto of = static_cast<size_t>(
            std::ranges::lower_bound(folders, name.substr(0, slash)) - folders.begin());
        if (image)
          names[of].push_back(name);
        else
          others[of].add(first, name);
        return true;
      });
  PassedOver all_others;
  for (size_t f = 0; f < folders.size(); ++f) {
    const fs::path folder = source_.folder / folders[f];
    if (std::ranges::find(passed_over, folder) != passed_over.end()) continue;
    if (names[f].empty())
      throw BadFile(
          "{}: the class folder has no images, JPEG or PNG{}: fetch them, or remove the folder",
          folder.string(), others[f].text());
    for (const std::string& name : names[f]) add(name, static_cast<int>(classes_.size()), 0, 0, -1);
    all_others.add(others[f]);
    classes_.push_back(folders[f]);
  }
  all_others.warn(source_.folder.string());
  if (classes_.empty())
    throw BadFile(
        "{}: has no class folders{}: each image must lie in a folder that is called as its class",
        source_.folder.string(),
        loose.empty()
            ? ""
            : fmt::format(", but {} loose images such as {}", loose.size(), loose.front()));
  if (!loose.empty())
    throw BadFile(
        "{}: lies beside class folders, so it has no class: move it into one of them, or away",
        (source_.folder / loose.front()).string());
}

void ImagePlaces::list_archives() {
  std::vector<FoundArchive> found;
  const bool of_classes = are_called_as_classes(source_);
  bool assumed = false;
  std::vector<std::string> folders;
  int greatest = -1;
  for (const fs::path& tar : source_.tars) {
    archives_.push_back(FileBytes::open(tar));
    FoundArchive& own = found.emplace_back();
    own.read(archives_.back(), 0, archives_.back().size(), "");
    if (of_classes && own.numbers.empty() &&
        std::ranges::all_of(own.images, &std::string::empty, &FoundImage::folder))
      for (FoundImage& image : own.images) {
        image.folder = tar.stem().string();
        assumed = true;
      }
    numbered_ = numbered_ || !own.numbers.empty();
    for (const FoundImage& image : own.images)
      if (folders.empty() || folders.back() != image.folder) folders.push_back(image.folder);
  }
  if (assumed) tell_assumed_classes(source_.tars);
  PassedOver others;
  for (const FoundArchive& archive : found) others.add(archive.passed_over);
  others.warn(source_.tars.front().string());
  std::ranges::sort(folders);
  folders.erase(std::unique(folders.begin(), folders.end()), folders.end());
  for (size_t t = 0; t < found.size(); ++t)
    for (const FoundImage& image : found[t].images) {
      int label = 0;
      if (numbered_) {
        const auto number = found[t].numbers.find(std::string(key_of(image.name)));
        if (number == found[t].numbers.end())
          throw BadFile(
              "{}, member {}: has no {}.cls beside it, as others have: the archive is incomplete; "
              "make it again",
              archives_[t].name(), image.name, key_of(image.name));
        greatest = std::max(greatest, label = number->second);
      } else if (image.folder.empty()) {
        throw BadFile(
            "{}, member {}: nothing says its class: within the archive, images lie in folders or "
            "archives that are called as their class, or have a KEY.cls beside them; or each of "
            "several archives in the folder is called as its class (ants.tar, bees.tar), not as "
            "parts of one set are (x-0007.tar, part_b.tar)",
            archives_[t].name(), image.name);
      } else {
        label = static_cast<int>(std::ranges::lower_bound(folders, image.folder) - folders.begin());
      }
      add(image.name, label, static_cast<int64_t>(t), image.offset, image.bytes);
    }
  if (entries_.empty())
    throw BadFile("{}: has no images, JPEG or PNG{}", source_.tars.front().string(), others.text());
  if (!numbered_) classes_ = std::move(folders);
  for (int c = 0; numbered_ && c <= greatest; ++c) classes_.push_back(std::to_string(c));
}

std::string_view ImagePlaces::name(int64_t i) const { return names_.c_str() + entry(i).name; }

std::string ImagePlaces::origin(int64_t i) const {
  if (!source_.folder.empty()) return (source_.folder / name(i)).string();
  return fmt::format("{}, member {}", archives_[static_cast<size_t>(entry(i).file)].name(),
                     name(i));
}

std::vector<SamplesOfFile> ImagePlaces::files() const {
  std::vector<SamplesOfFile> all;
  if (source_.folder.empty())
    for (const FileBytes& archive : archives_) all.push_back({archive.name(), 0});
  for (int64_t i = 0; i < size(); ++i)
    if (source_.folder.empty())
      ++all[static_cast<size_t>(entry(i).file)].samples;
    else
      all.push_back({(source_.folder / name(i)).string(), 1});
  return all;
}

ImagePlaces::Bytes ImagePlaces::open(int64_t i) const {
  const Entry& own = entry(i);
  if (source_.folder.empty())
    return {archives_[static_cast<size_t>(own.file)], own.offset, own.bytes};
  FileBytes file = FileBytes::open(source_.folder / name(i));
  const int64_t bytes = file.size();
  return {std::move(file), 0, bytes};
}

}  // namespace tutti::data
