// Finds the checkpoint that a path means.

#include <algorithm>
#include <system_error>

#include "tutti/base/error.h"
#include "tutti/base/log.h"
#include "tutti/keep/checkpoint.h"
#include "tutti/keep/checkpoint_folder.h"

namespace tutti::keep {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFolder = "checkpoints";  ///< in a run's folder

/// Whether `path` is the file `latest`, or the file that stands for the link `best`.
bool is_file_with_a_name(const fs::path& path) {
  std::error_code none;
  return (path.filename() == kLatest || path.filename() == kBest) &&
         fs::is_regular_file(path, none);
}

}  // namespace

fs::path checkpoints_in(const fs::path& path) {
  std::error_code none;
  return fs::is_directory(path / kFolder, none) ? path / kFolder : path;
}

bool is_in_checkpoint(const fs::path& path) {
  std::error_code none;
  if (is_file_with_a_name(path)) return true;
  const fs::path folder = path.parent_path();
  // Other programs' exports also have weights of this name beside a manifest.
  return path.filename() == kWeightsFile && fs::exists(folder / kManifest, none) &&
         (is_checkpoint_name(folder.filename().string()) || fs::exists(folder / kStateFile, none));
}

fs::path checkpoint_at(const fs::path& path, std::string_view key,
                       std::span<const fs::path> except) {
  std::error_code error;
  if (is_file_with_a_name(path)) {
    const std::string name = name_in(path);
    if (name.empty())
      throw IoError(
          fmt::format("{}: '{}' is empty: give the folder that it lies in, or a checkpoint in it",
                      key, path.string()));
    return path.parent_path() / name;
  }
  if (is_in_checkpoint(path)) return path.parent_path();
  if (fs::exists(path / kManifest, error)) return path;
  if (error) throw IoError(fmt::format("{}: '{}': {}", key, path.string(), error.message()));
  const fs::path directory = checkpoints_in(path);
  if (const auto found = find_latest_valid(directory, except)) return *found;
  const size_t damaged = list_checkpoints(directory).size();
  throw IoError(fmt::format(
      "{}: no valid checkpoint in '{}'{}", key, directory.string(),
      !fs::exists(path, error) ? ", which does not exist"
      : damaged > 0            ? fmt::format(": the log says what is damaged in its {}", damaged)
                    : std::string("; give the folder of a run, its checkpoints, or one of them")));
}

std::optional<fs::path> find_best(const fs::path& directory) {
  const fs::path best = best_of(directory);
  if (best.empty()) return std::nullopt;
  try {
    verify_checkpoint(best);
    return best;
  } catch (const IntactFileError&) {
    throw;
  } catch (const IoError& damage) {
    log::warn("the best checkpoint, {}, is damaged and will not be used: {}",
              best.filename().string(), damage.what());
    return std::nullopt;
  }
}

std::vector<fs::path> list_checkpoints(const fs::path& directory) {
  std::vector<fs::path> paths;
  for (FoundCheckpoint& f : find_checkpoints(directory)) paths.push_back(std::move(f.path));
  return paths;
}

int64_t newest_step(const fs::path& directory) {
  const std::vector<FoundCheckpoint> found = find_checkpoints(directory);
  return found.empty() ? -1 : found.front().step;
}

std::optional<fs::path> find_latest_valid(const fs::path& directory,
                                          std::span<const fs::path> except) {
  std::vector<FoundCheckpoint> candidates = find_checkpoints(directory);
  std::ranges::stable_partition(candidates, [](const FoundCheckpoint& f) {
    return f.serial == kSerialDamaged;
  });  // first, so that the damage is reported
  std::error_code error;
  if (fs::exists(directory / kLatest, error)) {
    const std::string name = name_in(directory / kLatest);
    const fs::path named = directory / name;
    const auto place = std::ranges::find(candidates, named, &FoundCheckpoint::path);
    if (place != candidates.end()) {
      // A process may have been killed after it named a newer one and before it updated `latest`.
      const auto older =
          std::stable_partition(candidates.begin(), place,
                                [&](const FoundCheckpoint& f) { return f.serial > place->serial; });
      std::rotate(older, place, place + 1);
    } else if (name.empty())
      log::warn("{}: is empty; the newest checkpoint that is whole is taken",
                (directory / kLatest).string());
    else
      log::warn("{}: names {}, which is not there", (directory / kLatest).string(), name);
  }
  for (const FoundCheckpoint& candidate : candidates) {
    if (std::ranges::find(except, candidate.path) != except.end()) continue;
    try {
      verify_checkpoint(candidate.path);
      return candidate.path;
    } catch (const IntactFileError&) {
      throw;  // falling back to an older one would lose this one's training
    } catch (const IoError& damage) {
      log::warn("checkpoint {} is damaged and will not be used: {}",
                candidate.path.filename().string(), damage.what());
    }
  }
  return std::nullopt;
}

}  // namespace tutti::keep
