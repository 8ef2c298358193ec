#include "tutti/data/open/verify.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <fstream>
#include <map>
#include <memory>
#include <numeric>
#include <span>
#include <sstream>

#include "tutti/base/error.h"
#include "tutti/base/file_calls.h"
#include "tutti/base/numeric/sha256.h"
#include "tutti/data/arrays/array_set.h"
#include "tutti/data/clicks/click_set.h"
#include "tutti/data/content_hash.h"
#include "tutti/data/file/file_list.h"
#include "tutti/data/format/sets/idx.h"
#include "tutti/data/format/sets/lattices_file.h"
#include "tutti/data/images/coded_image.h"
#include "tutti/data/images/image_set.h"
#include "tutti/data/neurons/volume.h"
#include "tutti/data/open/catalog.h"
#include "tutti/data/open/sample_files.h"
#include "tutti/data/text/text_source.h"
#include "tutti/data/text/token_file.h"

namespace tutti::data {
namespace {

namespace fs = std::filesystem;
using Digests = std::map<std::string, std::string>;  // file name -> sha256

Digests read_digests(const fs::path& directory) {
  Digests digests;
  std::error_code unreadable;
  for (const auto& entry : fs::directory_iterator(directory, unreadable)) {
    if (!is_file(entry.path())) continue;
    if (entry.path().extension() != ".sha256" && entry.path().filename() != "SHA256SUMS") continue;
    std::ifstream lines(entry.path());
    for (std::string line; std::getline(lines, line);) {
      std::istringstream words(line);
      std::string digest, name;
      if (!(words >> digest >> name) || digest.size() != 64) continue;
      if (name.front() == '*') name.erase(0, 1);  // sha256sum's mark for binary mode
      std::transform(digest.begin(), digest.end(), digest.begin(),
                     [](unsigned char c) { return std::tolower(c); });
      digests[fs::path(name).filename().string()] = digest;
    }
  }
  return digests;
}

std::vector<int64_t> count_classes(const Dataset& set) {
  const size_t label = field_index(set, "label");
  std::vector<int64_t> counts(set.fields()[label].class_names.size());
  Sample sample(set.fields());
  for (int64_t i = 0; i < set.size(); ++i) {
    set.read(i, sample);
    ++counts[*static_cast<const uint8_t*>(sample.at(label))];
  }
  return counts;
}

void read_images(const Dataset& set, FileReport& report) {
  report.records = set.size();
  report.class_counts = count_classes(set);
}

struct Checksums {
  std::string xxhash64, sha256;
};

Checksums checksums(const FileBytes& file) {
  ContentHash hash;
  Sha256 sha;
  file.walk(0, [&](std::span<const uint8_t> block, int64_t) {
    hash.add(block);
    sha.update(block);
  });
  return {fmt::format("{:016x}", hash.value()), sha.digest()};
}

// `read` fills records and class counts, or throws the fault of the content. It goes first: if the
// file is no data at all, only its header is read.
template <class Read>
FileReport report_on(const fs::path& path, const Digests& digests, Read read) {
  FileReport report{.file = path};
  try {
    const FileBytes file = FileBytes::open(path);
    report.bytes = file.size();
    read(report);
    const Checksums found = checksums(file);
    report.xxhash64 = found.xxhash64;
    const auto known = digests.find(path.filename().string());
    if (known == digests.end()) return report;
    report.expected_sha256 = known->second;
    report.sha256 = found.sha256;
    if (report.sha256 != report.expected_sha256)
      throw BadFile("{}: expected sha256 {}, found {}: fetch the file again", path.string(),
                    report.expected_sha256, report.sha256);
  } catch (const Error& error) {
    report.problem = error.what();
  }
  return report;
}

/// Reads a set of images in few files of known names, or the one file that `dir` names. Each of the
/// files must be there, but for lattices, of which one is enough.
void verify_known_files(const KnownDataset& known, const fs::path& dir, const Digests& digests,
                        const ClassLimit& limit, VerifyReport& report) {
  std::vector<fs::path> files;
  if (is_file(dir)) files.push_back(dir);
  for (const auto& names : {known.train_files, known.test_files})
    for (const std::string& name : names)
      if (!is_file(dir) && (known.open_file || is_there(dir / name))) files.push_back(dir / name);
  for (const fs::path& path : files)
    report.files.push_back(report_on(path, digests, [&](FileReport& file) {
      if (known.open_file)
        read_images(known.open_file(path, limit), file);
      else
        read_images(*open_lattices_file(path, limit), file);
    }));
  if (files.empty())
    report.files.push_back(
        {.file = dir, .problem = fmt::format("{}: no lattices file in it", dir.string())});
}

void read_labels(const fs::path& path, const Classes& classes, FileReport& report) {
  const std::vector<uint8_t> labels = read_idx_labels(path);
  check_labels(labels, classes, path.string());
  report.records = std::ssize(labels);
  report.class_counts.resize(classes.names.size());
  for (const uint8_t label : labels) ++report.class_counts[label];
}

void verify_idx(const fs::path& dir, const Digests& digests, const ClassLimit& limit,
                VerifyReport& report) {
  const auto own = static_cast<size_t>(known_dataset("mnist").classes);
  const Classes classes = limited(std::vector<std::string>(own), limit);
  std::vector<int64_t> first_size;  // height and width of the training images
  for (const bool train : {true, false}) {
    const IdxFiles files = idx_files(dir, train);
    FileReport images = report_on(files.images, digests, [&](FileReport& r) {
      const std::vector<int64_t> extents = read_idx(files.images, 3).extents;
      r.records = extents[0];
      const std::vector<int64_t> size(extents.begin() + 1, extents.end());
      if (train) first_size = size;
      if (!first_size.empty() && size != first_size)
        throw BadFile(
            "{}: images of {} pixels, but the training images have {}: the files do not belong "
            "together",
            files.images.string(), fmt::join(size, "x"), fmt::join(first_size, "x"));
    });
    FileReport labels = report_on(files.labels, digests,
                                  [&](FileReport& r) { read_labels(files.labels, classes, r); });
    if (images.problem.empty() && labels.problem.empty() && images.records != labels.records)
      labels.problem = fmt::format("{}: {} labels for {} images: the files do not belong together",
                                   files.labels.string(), labels.records, images.records);
    report.files.push_back(std::move(images));
    report.files.push_back(std::move(labels));
  }
}

/// Counts of labels per class in the published files.
struct PublishedCounts {
  std::string_view set;
  std::vector<int64_t> train, test;
};

/// Another set may have the same form and names: with as many labels as published, each class must
/// have its published number.
void compare_counts(const std::string& name, VerifyReport& report) {
  static const PublishedCounts kKnown[] = {
      {"mnist",
       {5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949},
       {980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009}},
      {"fashion-mnist", std::vector<int64_t>(10, 6000), std::vector<int64_t>(10, 1000)}};
  const auto known = std::ranges::find(kKnown, name, &PublishedCounts::set);
  for (FileReport& file : report.files)
    for (const auto& published : {known->train, known->test}) {
      if (!file.problem.empty() || file.class_counts.size() != published.size() ||
          file.records != std::reduce(published.begin(), published.end()))
        continue;
      file.counts_as_published = file.class_counts == published;
      if (!file.counts_as_published)
        file.problem = fmt::format(
            "{}: labels of another data set: {} per class, {} as published has {}",
            file.file.string(), fmt::join(file.class_counts, " "), name, fmt::join(published, " "));
    }
}

/// Reads each sample as training would.
void verify_samples(const std::string& name, const fs::path& dir, std::string_view part,
                    const Digests& digests, VerifyReport& report) {
  std::vector<fs::path> files;
  std::unique_ptr<Dataset> set;
  std::vector<std::vector<int64_t>> samples;  // samples of each file
  try {
    files = sample_set_files(name, dir, part);
    set = open_sample_set(name, dir, part);
    samples.resize(files.size());
    const auto& placed = dynamic_cast<const FileSamples&>(*set);
    for (int64_t i = 0; i < set->size(); ++i) samples.at(placed.place(i).file).push_back(i);
  } catch (const Error& error) {
    report.files.push_back({.file = dir, .problem = error.what()});
    return;
  }
  Sample sample(set->fields());
  for (size_t i = 0; i < files.size(); ++i)
    report.files.push_back(report_on(files[i], digests, [&](FileReport& file) {
      for (const int64_t of_file : samples[i]) set->read(of_file, sample);
      file.records = std::ssize(samples[i]);
    }));
}

/// Decodes whole images: one line for a part, and one for each image that fails.
void verify_images(const fs::path& dir, std::string_view part, const ClassLimit& limit,
                   VerifyReport& report) {
  try {
    const auto set = open_image_set(dir, part, limit, {});
    FileReport whole{.file = part == "train" ? dir : dir / part};
    whole.class_counts.resize(set->fields()[1].class_names.size());
    ContentHash hash;
    Sample sample(set->fields());
    DecodedImage image;
    for (int64_t i = 0; i < set->size(); ++i) try {
        set->read(i, sample);
        const std::span<const uint8_t> coded = sample.coded_at(0);
        whole.bytes += std::ssize(coded);
        hash.add(coded);
        decode_whole(coded, sample.origin(), image);
        ++whole.records;
        ++whole.class_counts[static_cast<size_t>(*static_cast<const int32_t*>(sample.at(1)))];
      } catch (const IoError& error) {
        report.files.push_back({.file = set->origin(i), .problem = error.what()});
      }
    whole.xxhash64 = fmt::format("{:016x}", hash.value());
    report.files.push_back(std::move(whole));
  } catch (const Error& error) {
    report.files.push_back({.file = dir, .problem = error.what()});
  }
}

/// Reads the files of each part that lie there: `entry` behind a part's name leads to them.
void verify_parts(const fs::path& dir, const char* entry, const Digests& digests,
                  void (*read)(FileReport& file), VerifyReport& report) {
  for (const std::string_view part : {"train", "validation", "test"}) {
    std::error_code unknown;
    if (part != "train" && !fs::is_directory(dir / part, unknown)) continue;
    try {
      for (const fs::path& file : listed_files({fmt::format("{}{}", part, entry)}, dir, "DIR"))
        report.files.push_back(report_on(file, digests, read));
    } catch (const Error& error) {
      report.files.push_back({.file = dir / part, .problem = error.what()});
    }
  }
}

/// Reads a log up to its first bad line.
void read_clicks(FileReport& log) {
  const ClickSet set({.files = {log.file}});
  Sample sample(set.fields());
  log.class_counts.resize(2);
  for (; log.records < set.size(); ++log.records) {
    set.read(log.records, sample);
    ++log.class_counts[*static_cast<const uint8_t*>(sample.at(1))];
  }
}

/// Records are bytes for texts, and tokens for token files, which are read completely.
void verify_texts(const KnownDataset& known, const fs::path& dir, const Digests& digests,
                  VerifyReport& report) {
  std::vector<fs::path> files;
  std::error_code unknown;
  for (const auto& patterns : {known.train_files, known.validation_files, known.test_files})
    for (const fs::path pattern : patterns)
      for (const auto& entry : fs::directory_iterator(dir / pattern.parent_path(), unknown)) {
        const std::string name = entry.path().filename().string(), fits = pattern.filename();
        const size_t star = fits.find('*');
        if (name.starts_with(fits.substr(0, star)) && name.ends_with(fits.substr(star + 1)))
          files.push_back(entry.path());
      }
  std::ranges::sort(files);
  for (const fs::path& path : files)
    report.files.push_back(report_on(path, digests, [&](FileReport& file) {
      if (known.name == "text") {
        file.records = byte_text({path})->size();
      } else {
        const TokenFile tokens(FileBytes::open(path));
        tokens.verify();
        file.records = tokens.size();
      }
    }));
  if (files.empty())
    report.files.push_back(
        {.file = dir,
         .problem = fmt::format("{}: no {} in it", dir.string(), known.train_files.front())});
}

/// Reads the arrays of a volume that training uses by default; its objects count as records.
void read_objects(FileReport& file) {
  const Volume volume = read_volume(file.file, {});
  file.records = volume.labels.empty() ? 0 : *std::ranges::max_element(volume.labels);
}

}  // namespace

VerifyReport verify_dataset(const std::string& name, const fs::path& dir, int64_t classes) {
  const KnownDataset& known = known_dataset(name);
  if (name == "arrays")
    throw ConfigError("files of your own have no known form: 'tutti data inspect PATH' reads them");
  const ClassLimit limit{.count = classes, .key = "--classes"};
  VerifyReport report;
  const Digests digests = read_digests(is_file(dir) ? dir.parent_path() : dir);
  if (known.open_file || name == "lattices") {
    verify_known_files(known, dir, digests, limit, report);
  } else if (name == "neurons") {
    verify_parts(dir, "", digests, read_objects, report);
  } else if (name == "imagenet") {
    for (const std::string_view part : {"train", "validation", "test"})
      if (part == "train" || image_source(dir, part).found())
        verify_images(dir, part, limit, report);
  } else if (name == "text" || name == "tokens" || name == "token-pairs") {
    verify_texts(known, dir, digests, report);
  } else if (name == "clicks") {
    verify_parts(dir, "/*", digests, read_clicks, report);
  } else if (is_sample_set(name)) {
    for (const std::string_view part : {"train", "validation", "test"})
      if (part != "test" || is_there(dir / part)) verify_samples(name, dir, part, digests, report);
  } else {
    verify_idx(dir, digests, limit, report);
    if (classes == 0) compare_counts(name, report);
  }
  return report;
}

bool VerifyReport::sound() const {
  return std::all_of(files.begin(), files.end(),
                     [](const FileReport& file) { return file.problem.empty(); });
}

std::string VerifyReport::to_text() const {
  std::string text;
  for (const FileReport& file : files) {
    if (!file.problem.empty()) {
      text += fmt::format("BAD  {}\n", file.problem);
      continue;
    }
    text += fmt::format("ok   {}  {} bytes  xxh64 {}  sha256 {}  {} records", file.file.string(),
                        file.bytes, file.xxhash64,
                        file.expected_sha256.empty() ? "not listed" : "as listed", file.records);
    if (!file.class_counts.empty())
      text += fmt::format("  per class {}{}", fmt::join(file.class_counts, " "),
                          file.counts_as_published ? ", as published" : "");
    text += '\n';
  }
  if (sound() && std::ranges::all_of(files, [](const FileReport& file) {
        return file.expected_sha256.empty() && !file.counts_as_published;
      }))
    text +=
        "These files can be read as a whole. They were compared with nothing: no list of checksums "
        "(*.sha256, SHA256SUMS) lies beside them.\n";
  return text;
}

}  // namespace tutti::data
