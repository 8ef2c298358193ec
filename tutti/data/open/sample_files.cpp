#include "tutti/data/open/sample_files.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "tutti/base/error.h"
#include "tutti/base/log.h"
#include "tutti/data/arrays/array_set.h"
#include "tutti/data/arrays/statistics_file.h"
#include "tutti/data/file/file_bytes.h"
#include "tutti/data/file/file_list.h"

namespace tutti::data {
namespace {

namespace fs = std::filesystem;

/// Equivalent lines of data.fields.
const std::vector<std::string> kCosmoFlowFields = {"x: from x as i16 ? ? ? 4",
                                                   "y: from y as f32 4"};
const std::vector<std::string> kDeepCamFields = {
    "data: from climate/data whole",
    "labels: from climate/labels_0 whole classes background, 'tropical cyclone', 'atmospheric "
    "river'"};

const std::vector<std::string> kCbedFields = {
    "image: from image axis 0",
    "class: from class axis 0 classes fcc, bcc, hcp, diamond, zincblende, rocksalt, CsCl, "
    "perovskite, fluorite",
    "parameters: from parameters axis 0", "potential: from potential axis 0"};
const std::vector<std::string> kStemFields = {
    "image: from image axis 0",
    "class: from class axis 0 classes fcc, bcc, hcp, diamond, zincblende, rocksalt, CsCl, "
    "perovskite, fluorite, graphene",
    "columns: from columns axis 0 classes background, column", "clean: from clean axis 0"};

const std::vector<std::string>& fields_of(std::string_view name) {
  if (name == "cosmoflow") return kCosmoFlowFields;
  if (name == "cbed") return kCbedFields;
  return name == "stem" ? kStemFields : kDeepCamFields;
}

}  // namespace

std::vector<fs::path> sample_files(const fs::path& folder,
                                   const std::vector<std::string>& endings) {
  std::vector<fs::path> files;
  std::error_code failed;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, failed)) {
    const std::string name = entry.path().filename().string();
    const auto numbered = numbered_name(name);  // "x.tfrecord-00000-of-00002.gz"
    const std::string plain =
        numbered ? numbered->before.substr(0, numbered->before.rfind('-')) + numbered->after : name;
    if (std::ranges::any_of(endings, [&](const std::string& end) {
          return name.ends_with(end) || plain.ends_with(end);
        }))
      files.push_back(entry.path());
  }
  if (failed)
    throw BadFile("{}: cannot look into the folder: {}", folder.string(),
                  file_error(failed.value()));
  if (files.empty())
    throw BadFile("{}: holds no files that end in {}", folder.string(), fmt::join(endings, " or "));
  std::ranges::sort(files);
  if (const std::vector<fs::path> missing = missing_parts(files); !missing.empty())
    log::warn_once("{} is missing, and others of its set are there: fetch it again",
                   missing.front().string());
  return files;
}

bool is_sample_set(std::string_view name) {
  return name == "cosmoflow" || name == "deepcam" || name == "cbed" || name == "stem";
}

std::vector<fs::path> sample_set_files(std::string_view name, const fs::path& folder,
                                       std::string_view part) {
  if (name == "cosmoflow") return sample_files(folder / part, {".tfrecord", ".tfrecord.gz"});
  return sample_files(folder / part, {".h5", ".hdf5"});
}

std::unique_ptr<Dataset> open_sample_set(std::string_view name, const fs::path& folder,
                                         std::string_view part) {
  const bool deepcam = name == "deepcam";
  ArraySetSpec spec{.files = sample_set_files(name, folder, part),
                    .fields = parse_field_lines(fields_of(name)),
                    .key = fmt::format("{} ({})", name, part)};
  if (deepcam) spec.statistics = read_statistics(folder / "stats.h5", spec.fields);
  return open_array_set(spec);
}

}  // namespace tutti::data
