#include <algorithm>

#include "tutti/base/error.h"
#include "tutti/cli/infer/unlabelled.h"
#include "tutti/data/file/file_list.h"
#include "tutti/data/file/folder_walk.h"
#include "tutti/data/images/coded_image.h"
#include "tutti/data/images/image_set.h"
#include "tutti/data/open/catalog.h"

namespace tutti::cli {
namespace {

class ImagesWithoutLabels final : public data::Dataset {
 public:
  ImagesWithoutLabels(std::vector<std::filesystem::path> files, std::vector<data::Field> fields)
      : files_(std::move(files)), fields_(std::move(fields)) {}
  std::vector<data::SamplesOfFile> files() const override {
    std::vector<data::SamplesOfFile> all;
    for (const std::filesystem::path& file : files_) all.push_back({file.string(), 1});
    return all;
  }
  int64_t size() const override { return std::ssize(files_); }
  const std::vector<data::Field>& fields() const override { return fields_; }
  void read(int64_t index, data::Sample& sample) const override {
    const std::filesystem::path& path = files_[static_cast<size_t>(index)];
    sample.set_origin(path.string());
    data::FileBytes file = data::FileBytes::open(path);
    const int64_t bytes = file.size();
    data::read_image_bytes({std::move(file), 0, bytes}, 0, sample);
  }

 private:
  std::vector<std::filesystem::path> files_;
  std::vector<data::Field> fields_;
};

void add_images(const std::filesystem::path& folder, std::vector<std::filesystem::path>& files) {
  std::vector<std::filesystem::path> found;
  data::walk_folder(folder,
                    [&](const std::filesystem::directory_entry& entry, const std::string& name) {
                      if (data::is_image_name(name)) found.push_back(entry.path());
                      return true;
                    });
  if (found.empty())
    throw data::BadFile(fmt::format(
        "--input: the folder {} holds no images that end in .jpg, .jpeg or .png", folder.string()));
  std::ranges::sort(found);
  files.insert(files.end(), found.begin(), found.end());
}

}  // namespace

std::vector<std::filesystem::path> listed_images(const std::vector<std::string>& entries) {
  std::vector<std::filesystem::path> files;
  for (const std::string& entry : entries) {
    std::error_code unknown;
    if (std::filesystem::is_directory(entry, unknown)) {
      add_images(std::filesystem::path(entry).lexically_normal(), files);
      continue;
    }
    const std::vector<std::filesystem::path> named = data::listed_files({entry}, ".", "--input");
    files.insert(files.end(), named.begin(), named.end());
  }
  for (const std::filesystem::path& file : files)
    if (file.extension() == ".tar")
      throw ConfigError(fmt::format(
          "--input: {} is an archive: unpack it, or predict for a part of the configured data set "
          "with --split",
          file.string()));
  return files;
}

std::unique_ptr<data::Dataset> open_unlabelled_images(
    config::RunConfig& config, const std::vector<std::filesystem::path>& files,
    const train::FoundWeights& found) {
  const std::string name = config.data.input.empty() ? "image" : config.data.input.front();
  std::vector<data::Field> fields = {
      {.name = name,
       .statistics = data::known_dataset(config.data.dataset).statistics,
       .coded = true}};
  for (data::Field& target : take_targets(config, found, {{.field = name}}))
    fields.push_back(std::move(target));
  return std::make_unique<ImagesWithoutLabels>(files, std::move(fields));
}

}  // namespace tutti::cli
