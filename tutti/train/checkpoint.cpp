#include "tutti/train/checkpoint.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <system_error>

#include "tutti/base/error.h"
#include "tutti/base/log.h"
#include "tutti/train/manifest.h"
#include "tutti/train/safetensors.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;

constexpr const char* kWeights = "weights.safetensors";
constexpr const char* kState = "state.safetensors";
constexpr const char* kManifest = "manifest.json";
constexpr const char* kLatest = "latest";
constexpr std::string_view kPrefix = "step_";

/// A directory that vanishes unless it is kept.
class PartialDirectory {
 public:
  explicit PartialDirectory(fs::path path) : path_(std::move(path)) {
    std::error_code error;
    fs::remove_all(path_, error);
    if (!fs::create_directories(path_, error) || error)
      throw IoError(fmt::format("{}: cannot be created: {}", path_.string(),
                                error ? error.message() : "it exists"));
  }
  ~PartialDirectory() {
    std::error_code ignored;  // a leftover is removed by a later checkpoint
    fs::remove_all(path_, ignored);
  }
  PartialDirectory(const PartialDirectory&) = delete;
  PartialDirectory& operator=(const PartialDirectory&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

bool is_checkpoint_name(std::string_view name) {
  return name.starts_with(kPrefix) && name.size() > kPrefix.size() &&
         std::ranges::all_of(name.substr(kPrefix.size()),
                             [](char c) { return c >= '0' && c <= '9'; });
}

fs::path hidden_name(const fs::path& checkpoint, std::string_view why) {
  return checkpoint.parent_path() /
         fmt::format(".{}.{}-{}", checkpoint.filename().string(), why, ::getpid());
}

/// Renames `from` to `to`. If `to` exists the two change places in one step, so that a complete
/// checkpoint is there at any moment.
void publish(const fs::path& from, const fs::path& to) {
  if (::rename(from.c_str(), to.c_str()) == 0) return;
  if (errno == ENOTEMPTY || errno == EEXIST) {
    if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_EXCHANGE) == 0) return;
    const fs::path aside =
        hidden_name(to, "replaced");  // a file system without exchange: two steps
    if (::rename(to.c_str(), aside.c_str()) == 0 && ::rename(from.c_str(), to.c_str()) == 0) {
      std::error_code ignored;
      fs::remove_all(aside, ignored);
      return;
    }
  }
  throw IoError(fmt::format("{}: cannot be renamed to {}: {}", from.string(),
                            to.filename().string(), std::strerror(errno)));
}

/// Serial number of a checkpoint; 0, older than all, for one whose manifest cannot be read.
int64_t serial_of(const fs::path& checkpoint) {
  try {
    return read_manifest(checkpoint / kManifest).serial;
  } catch (const IoError&) {
    return 0;
  }
}

struct Found {
  int64_t serial, step;
  fs::path path;
};

/// All checkpoints in a directory, last written first.
std::vector<Found> find_all(const fs::path& directory) {
  std::vector<Found> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(directory, error)) {
    const std::string name = entry.path().filename().string();
    if (is_checkpoint_name(name) && entry.is_directory(error))
      found.push_back(
          {serial_of(entry.path()), std::stoll(name.substr(kPrefix.size(), 18)), entry.path()});
  }
  std::ranges::sort(found, std::ranges::greater{},
                    [](const Found& f) { return std::pair(f.serial, f.step); });
  return found;
}

void remove_checkpoint(const fs::path& checkpoint) {
  std::error_code error;
  const fs::path hidden = hidden_name(
      checkpoint, "removed");  // so that a crash half-way leaves no torso under a valid name
  fs::rename(checkpoint, hidden, error);
  if (!error) fs::remove_all(hidden, error);
  if (error)
    log::warn("{}: an old checkpoint cannot be removed: {}", checkpoint.string(), error.message());
}

/// Hidden directories of runs that were killed while writing. An hour: none is being written for
/// that long.
void remove_leftovers(const fs::path& directory) {
  std::error_code error;
  const auto now = fs::file_time_type::clock::now();
  for (const auto& entry : fs::directory_iterator(directory, error)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(fmt::format(".{}", kPrefix)) || !entry.is_directory(error)) continue;
    const auto written = entry.last_write_time(error);
    if (!error && now - written > std::chrono::hours(1)) fs::remove_all(entry.path(), error);
  }
}

std::vector<NamedTensor> read_tensors(const fs::path& path) {
  const SafetensorsFile file(path);
  std::vector<NamedTensor> tensors;
  for (const auto& entry : file.entries()) tensors.push_back(file.read(entry));
  return tensors;
}

}  // namespace

fs::path write_checkpoint(const fs::path& directory, const CheckpointContent& content, int keep) {
  CHECK(content.info.step >= 0 && keep >= 0);
  const fs::path target = directory / fmt::format("{}{:07}", kPrefix, content.info.step);
  std::error_code error;
  fs::create_directories(directory, error);
  if (error)
    throw IoError(fmt::format("{}: cannot be created: {}", directory.string(), error.message()));

  Manifest manifest{.info = content.info, .serial = 1, .files = {}};
  for (const Found& earlier : find_all(directory))
    manifest.serial = std::max(manifest.serial, earlier.serial + 1);

  const PartialDirectory partial(hidden_name(target, "partial"));
  const TensorMetadata metadata = {
      {"format", "pt"},
      {"step", std::to_string(content.info.step)}};  // "pt": what Python readers ask for
  manifest.files[kWeights] =
      write_safetensors(partial.path() / kWeights, content.weights, metadata);
  manifest.files[kState] = write_safetensors(partial.path() / kState, content.state, metadata);
  DurableFile file(partial.path() / kManifest);
  file.write(to_json(manifest));
  file.close();
  sync_directory(partial.path());
  verify_checkpoint(partial.path());
  publish(partial.path(), target);
  sync_directory(directory);
  replace_file(directory / kLatest, target.filename().string() + "\n");

  if (keep > 0) {
    const std::vector<fs::path> all =
        list_checkpoints(directory);  // the one just written comes first, and it is valid
    for (size_t i = static_cast<size_t>(keep); i < all.size(); ++i) remove_checkpoint(all[i]);
  }
  remove_leftovers(directory);
  return target;
}

CheckpointInfo verify_checkpoint(const fs::path& checkpoint) {
  const Manifest manifest = read_manifest(checkpoint / kManifest);
  for (const char* name : {kWeights, kState})
    if (!manifest.files.contains(name))
      throw IoError(fmt::format("{}: does not list {}", (checkpoint / kManifest).string(), name));
  for (const auto& [name, expected] : manifest.files) {
    const fs::path path = checkpoint / name;
    const FileDigest found = digest_of(path);
    if (found.bytes != expected.bytes)
      throw IoError(fmt::format("{}: has {} bytes, {} were written", path.string(), found.bytes,
                                expected.bytes));
    if (found != expected)
      throw IoError(fmt::format(
          "{}: its content has changed since it was written (checksum {:016x}, expected {:016x})",
          path.string(), found.xxh64, expected.xxh64));
  }
  return manifest.info;
}

Checkpoint read_checkpoint(const fs::path& checkpoint) {
  CheckpointInfo info = verify_checkpoint(checkpoint);
  return {checkpoint, std::move(info), read_tensors(checkpoint / kWeights),
          read_tensors(checkpoint / kState)};
}

std::vector<fs::path> list_checkpoints(const fs::path& directory) {
  std::vector<fs::path> paths;
  for (Found& f : find_all(directory)) paths.push_back(std::move(f.path));
  return paths;
}

std::optional<fs::path> find_latest_valid(const fs::path& directory) {
  std::vector<Found> candidates = find_all(directory);
  std::ranges::stable_partition(
      candidates, [](const Found& f) { return f.serial == 0; });  // so that the damage is told
  std::error_code error;
  if (fs::exists(directory / kLatest, error)) {
    const std::string text = read_text(directory / kLatest);
    const fs::path named = directory / text.substr(0, text.find('\n'));
    const auto place = std::ranges::find(candidates, named, &Found::path);
    if (place != candidates.end())
      std::rotate(candidates.begin(), place, place + 1);
    else
      log::warn("{}: names {}, which is not there", (directory / kLatest).string(),
                named.filename().string());
  }
  for (const Found& candidate : candidates) {
    try {
      verify_checkpoint(candidate.path);
      return candidate.path;
    } catch (const IoError& damage) {
      log::warn("checkpoint {} is damaged and will not be used: {}",
                candidate.path.filename().string(), damage.what());
    }
  }
  return std::nullopt;
}

}  // namespace tutti
