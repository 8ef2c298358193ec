#include "tutti/data/images/image_places.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <optional>
#include <unordered_map>

#include "tutti/base/error.h"
#include "tutti/data/format/tar.h"
#include "tutti/data/images/coded_image.h"

namespace tutti::data {
namespace {

namespace fs = std::filesystem;

std::vector<std::string_view> part_names(std::string_view part) {
  if (part == "validation") return {"validation", "val", "valid"};
  return {part};
}

/// What lies in a folder, by name; hidden entries are nobody's.
std::vector<fs::directory_entry> entries_of(const fs::path& folder) {
  std::vector<fs::directory_entry> entries;
  std::error_code failed;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, failed))
    if (!entry.path().filename().string().starts_with('.')) entries.push_back(entry);
  if (failed)
    throw BadFile(
        fmt::format("{}: cannot look into the folder: {}", folder.string(), failed.message()));
  std::ranges::sort(entries, {}, [](const fs::directory_entry& e) { return e.path().string(); });
  return entries;
}

bool is_folder(const fs::directory_entry& entry) {
  std::error_code unknown;
  return entry.is_directory(unknown);
}

std::vector<fs::path> archives_in(const fs::path& folder) {
  std::vector<fs::path> archives;
  for (const fs::directory_entry& entry : entries_of(folder))
    if (entry.path().extension() == ".tar" && !is_folder(entry)) archives.push_back(entry.path());
  return archives;
}

/// Whether a file's name has the part as a word: "imagenet-train-000012.tar", "img_val.tar".
bool says_part(const fs::path& file, std::string_view part) {
  const std::string stem = file.stem().string();
  const auto is_letter = [&](size_t at) {
    return at < stem.size() && std::isalpha(static_cast<unsigned char>(stem[at])) != 0;
  };
  for (const std::string_view name : part_names(part))
    for (size_t at = stem.find(name); at != stem.npos; at = stem.find(name, at + 1))
      if (!(at > 0 && is_letter(at - 1)) && !is_letter(at + name.size())) return true;
  return false;
}

bool says_any_part(const fs::path& file) {
  return says_part(file, "train") || says_part(file, "validation") || says_part(file, "test");
}

bool holds_images(const fs::path& folder) {
  std::error_code unknown;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder, unknown))
    if (is_image_name(entry.path().filename().string())) return true;
  return false;
}

/// Images in a folder and those below it, as paths from `below` on.
void list_images(const fs::path& folder, const std::string& below,
                 std::vector<std::string>& names) {
  for (const fs::directory_entry& entry : entries_of(folder)) {
    const std::string name = entry.path().filename().string();
    if (is_image_name(name))
      names.push_back(below + name);
    else if (is_folder(entry))
      list_images(entry.path(), below + name + "/", names);
  }
}

/// A WebDataset sample's key: the path up to the first dot of the file's name.
std::string_view key_of(std::string_view name) {
  const size_t slash = name.rfind('/'), from = slash == name.npos ? 0 : slash + 1;
  return name.substr(0, std::min(name.find('.', from), name.size()));
}

/// The folder that a member lies in, without those above it.
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
    throw BadFile(
        fmt::format("{}, member {}: '{}' is no class number of 0 to {}: a .cls file holds "
                    "one",
                    file.name(), member.name, text, kMostClasses - 1));
  return number;
}

/// An image found in an archive, before classes have numbers.
struct FoundImage {
  std::string name, folder;
  int64_t offset, bytes;
};

/// The images and class numbers of one archive and of those in it (ImageNet's own has one a class).
struct FoundArchive {
  std::vector<FoundImage> images;
  std::unordered_map<std::string, int> numbers;  ///< of keys

  void read(const FileBytes& file, int64_t begin, int64_t end, const std::string& within) {
    walk_tar(file, begin, end, [&](const TarMember& member) {
      const fs::path path(member.name);
      if (path.filename().string().starts_with('.')) return;
      if (is_image_name(member.name)) {
        const std::string_view folder = folder_of(member.name);
        images.push_back({member.name, folder.empty() ? within : std::string(folder), member.offset,
                          member.bytes});
      } else if (path.extension() == ".cls") {
        numbers[std::string(key_of(member.name))] = class_number(file, member);
      } else if (path.extension() == ".tar" && within.empty()) {
        read(file, member.offset, member.offset + member.bytes, path.stem().string());
      }
    });
  }
};

}  // namespace

bool has_class_folders(const fs::path& folder) {
  for (const fs::directory_entry& entry : entries_of(folder))
    if (is_folder(entry) && holds_images(entry.path())) return true;
  return false;
}

ImageSource image_source(const fs::path& root, std::string_view part) {
  std::error_code unknown;
  const bool train = part == "train";
  if (is_file(root)) return {.tars = train ? std::vector{root} : std::vector<fs::path>{}};
  for (const std::string_view name : part_names(part)) {
    const fs::path folder = root / name;
    if (!fs::is_directory(folder, unknown)) continue;
    std::vector<fs::path> archives = archives_in(folder);
    if (archives.empty()) return {.folder = folder};
    return {.tars = std::move(archives)};
  }
  if (!fs::is_directory(root, unknown)) return {};
  ImageSource source;
  const std::vector<fs::path> archives = archives_in(root);
  for (const fs::path& archive : archives)
    if (says_part(archive, part)) source.tars.push_back(archive);
  if (source.found() || !train) return source;
  for (const fs::path& archive : archives)
    if (!says_any_part(archive)) source.tars.push_back(archive);
  if (!source.found() && has_class_folders(root)) source.folder = root;
  return source;
}

std::vector<fs::path> files_of(const ImageSource& source) {
  if (source.folder.empty()) return source.tars;
  std::vector<fs::path> files;
  const auto follow = fs::directory_options::follow_directory_symlink;
  for (const auto& entry : fs::recursive_directory_iterator(source.folder, follow))
    if (entry.is_regular_file()) files.push_back(entry.path());
  std::ranges::sort(files);
  return files;
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
  std::vector<std::string> names, loose;
  for (const fs::directory_entry& entry : entries_of(source_.folder)) {
    const std::string own = entry.path().filename().string();
    if (!is_folder(entry)) {
      if (is_image_name(own)) loose.push_back(own);
      continue;
    }
    names.clear();
    list_images(entry.path(), own + "/", names);
    if (names.empty())
      throw BadFile(fmt::format(
          "{}: the class folder has no images that end in .jpg, .jpeg or .png: fetch them, or "
          "remove the folder",
          entry.path().string()));
    for (const std::string& name : names) add(name, static_cast<int>(classes_.size()), 0, 0, -1);
    classes_.push_back(own);
  }
  if (classes_.empty())
    throw BadFile(fmt::format(
        "{}: has no class folders{}: each image must lie in a folder that is called as its class",
        source_.folder.string(),
        loose.empty()
            ? ""
            : fmt::format(", but {} loose images such as {}", loose.size(), loose.front())));
  if (!loose.empty())
    throw BadFile(
        fmt::format("{}: lies beside class folders, so it has no class: move it into one "
                    "of them, or away",
                    (source_.folder / loose.front()).string()));
}

void ImagePlaces::list_archives() {
  std::vector<FoundArchive> found;
  std::vector<std::string> folders;
  int greatest = -1;
  for (const fs::path& tar : source_.tars) {
    archives_.push_back(FileBytes::open(tar));
    FoundArchive& own = found.emplace_back();
    own.read(archives_.back(), 0, archives_.back().size(), "");
    numbered_ = numbered_ || !own.numbers.empty();
    for (const FoundImage& image : own.images)
      if (folders.empty() || folders.back() != image.folder) folders.push_back(image.folder);
  }
  std::ranges::sort(folders);
  folders.erase(std::unique(folders.begin(), folders.end()), folders.end());
  for (size_t t = 0; t < found.size(); ++t)
    for (const FoundImage& image : found[t].images) {
      int label = 0;
      if (numbered_) {
        const auto number = found[t].numbers.find(std::string(key_of(image.name)));
        if (number == found[t].numbers.end())
          throw BadFile(
              fmt::format("{}, member {}: has no {}.cls beside it, as others have: the "
                          "archive is incomplete; make it again",
                          archives_[t].name(), image.name, key_of(image.name)));
        greatest = std::max(greatest, label = number->second);
      } else if (image.folder.empty()) {
        throw BadFile(fmt::format(
            "{}, member {}: nothing says its class: images lie in folders (or archives) that are "
            "called as their class, or have a KEY.cls beside them",
            archives_[t].name(), image.name));
      } else {
        label = static_cast<int>(std::ranges::lower_bound(folders, image.folder) - folders.begin());
      }
      add(image.name, label, static_cast<int64_t>(t), image.offset, image.bytes);
    }
  if (entries_.empty())
    throw BadFile(fmt::format("{}: has no images that end in .jpg, .jpeg or .png",
                              source_.tars.front().string()));
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
