#include "tutti/train/checkpoint.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <random>
#include <system_error>

#include "tutti/base/error.h"
#include "tutti/base/log.h"
#include "tutti/train/manifest.h"
#include "tutti/train/rank_file.h"
#include "tutti/train/safetensors.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;

constexpr const char* kWeightsFile = "weights.safetensors";
constexpr const char* kStateFile = "state.safetensors";
constexpr const char* kManifest = "manifest.json";
constexpr const char* kLatest = "latest";
constexpr const char* kBest = "best";
constexpr const char* kFolder = "checkpoints";  ///< in a run's folder
constexpr std::string_view kPrefix = "step_";
constexpr const char* kAbandoned = ".abandoned";  ///< after the name of a course that was left
/// Why a hidden name was given.
constexpr std::string_view kPartial = "partial", kRemoved = "removed", kReplaced = "replaced";

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
    std::error_code ignored;  // a leftover is removed when a run opens the folder
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

fs::path checkpoint_of_step(const fs::path& directory, int64_t step) {
  return directory / fmt::format("{}{:07}", kPrefix, step);
}

fs::path hidden_name(const fs::path& checkpoint, std::string_view why) {
  return checkpoint.parent_path() /
         fmt::format(".{}.{}-{}", checkpoint.filename().string(), why, ::getpid());
}

/// "step_0000008" and "partial" of ".step_0000008.partial-4711"; two empty ones of another name.
std::pair<std::string_view, std::string_view> split_hidden(std::string_view name) {
  if (!name.starts_with('.')) return {};
  name.remove_prefix(1);
  const size_t dot = name.find('.'), dash = name.find('-', dot == name.npos ? 0 : dot);
  if (dot == name.npos || dash == name.npos) return {};
  return {name.substr(0, dot), name.substr(dot + 1, dash - dot - 1)};
}

/// A kill between the two renames of publish() leaves the earlier checkpoint of a step under its
/// hidden name only. Whether `hidden` was one and has its name again.
bool put_back(const fs::path& hidden) {
  const std::string name = hidden.filename().string();
  const auto [of, why] = split_hidden(name);
  if (why != kReplaced || !is_checkpoint_name(of)) return false;
  const fs::path checkpoint = hidden.parent_path() / of;
  std::error_code error;
  if (fs::exists(checkpoint, error)) return false;
  if (!error) fs::rename(hidden, checkpoint, error);
  if (error) {
    log::warn("{}: cannot be renamed to {}: {}", hidden.string(), of, error.message());
    return true;  // nothing else holds that step
  }
  log::info("'{}' is whole: a killed run was about to replace it", checkpoint.string());
  return true;
}

/// Renames `from` to `to`. If `to` exists the two change places in one step, so that a complete
/// checkpoint is there at any moment.
void publish(const fs::path& from, const fs::path& to) {
  if (::rename(from.c_str(), to.c_str()) == 0) return;
  if (errno == ENOTEMPTY || errno == EEXIST) {
    if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_EXCHANGE) == 0) return;
    const fs::path aside = hidden_name(to, kReplaced);  // a file system without exchange: two steps
    if (::rename(to.c_str(), aside.c_str()) == 0) {
      std::error_code ignored;
      if (::rename(from.c_str(), to.c_str()) == 0) {
        fs::remove_all(aside, ignored);
        return;
      }
      const int reason = errno;
      fs::rename(aside, to, ignored);  // else remove_leftovers() does it
      errno = reason;
    }
  }
  throw IoError(fmt::format("{}: cannot be renamed to {}: {}", from.string(),
                            to.filename().string(), file_error(errno)));
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
      checkpoint, kRemoved);  // so that a crash half-way leaves no torso under a valid name
  fs::rename(checkpoint, hidden, error);
  if (!error) fs::remove_all(hidden, error);
  if (error)
    log::warn("{}: an old checkpoint cannot be removed: {}", checkpoint.string(), error.message());
}

/// The checkpoint that `best` names; empty if there is no such link.
fs::path best_of(const fs::path& directory) {
  std::error_code none;
  const fs::path target = fs::read_symlink(directory / kBest, none);
  return none ? fs::path() : directory / target.filename();
}

/// The name that the file `latest` holds.
std::string name_in(const fs::path& latest) {
  const std::string text = read_text(latest);
  return text.substr(0, text.find('\n'));
}

/// Replaces the link in one step: a reader sees the old one or the new one.
void mark_best(const fs::path& checkpoint) {
  const fs::path link = checkpoint.parent_path() / kBest,
                 partial = link.parent_path() / fmt::format(".{}.partial-{}", kBest, ::getpid());
  std::error_code error;
  fs::remove(partial, error);
  fs::create_directory_symlink(checkpoint.filename(), partial, error);
  if (!error) fs::rename(partial, link, error);
  if (error) throw IoError(fmt::format("{}: cannot be made: {}", link.string(), error.message()));
  sync_directory(link.parent_path());
}

/// The first of step_N.abandoned, step_N.abandoned-2 and so on that is not there.
fs::path abandoned_name(const fs::path& checkpoint) {
  std::error_code none;
  for (int n = 1;; ++n) {
    fs::path name = checkpoint;
    name += n == 1 ? kAbandoned : fmt::format("{}-{}", kAbandoned, n);
    if (!fs::exists(name, none)) return name;
  }
}

/// Removes all but the newest `keep` ones, the one just written among them, and the best one.
void prune(const fs::path& directory, int keep) {
  const fs::path best = best_of(directory);
  const std::vector<fs::path> all = list_checkpoints(directory);
  for (size_t i = static_cast<size_t>(keep); i < all.size(); ++i)
    if (all[i] != best) remove_checkpoint(all[i]);
}

FileDigest expected_digest(const Manifest& manifest, const fs::path& checkpoint, const char* name) {
  const auto at = manifest.files.find(name);
  if (at == manifest.files.end())
    throw IoError(fmt::format("{}: does not list {}", (checkpoint / kManifest).string(), name));
  return at->second;
}

}  // namespace

void remove_leftovers(const fs::path& directory) {
  std::error_code error;
  std::vector<fs::path> leftovers;
  for (const auto& entry : fs::directory_iterator(directory, error)) {
    const std::string name = entry.path().filename().string();
    const auto [of, why] = split_hidden(name);
    if ((is_checkpoint_name(of) || of == kLatest || of == kBest) &&
        (why == kPartial || why == kRemoved || why == kReplaced))
      leftovers.push_back(entry.path());
  }
  for (const fs::path& leftover : leftovers) {
    if (put_back(leftover)) continue;
    fs::remove_all(leftover, error);
    if (!error) log::debug("removed '{}', which a killed run left", leftover.string());
  }
}

void set_aside_after(const fs::path& directory, const fs::path& from, int64_t step) {
  const fs::path best = best_of(directory), start = checkpoint_of_step(directory, step);
  const auto rename = [&](const fs::path& checkpoint, const fs::path& to) {
    publish(checkpoint, to);
    if (checkpoint.filename() == best.filename()) mark_best(to);
  };
  const auto set_aside = [&](const fs::path& left) {
    const fs::path aside = abandoned_name(left);
    rename(left, aside);
    log::warn("checkpoint {} is of a course that was left by this resume: it is {} now",
              left.filename().string(), aside.filename().string());
  };
  std::error_code elsewhere;
  if (is_abandoned(from) && fs::equivalent(from, directory / from.filename(), elsewhere)) {
    if (fs::exists(start, elsewhere)) set_aside(start);
    rename(from, start);
    log::info("{} is {} again", from.filename().string(), start.filename().string());
  }
  // Before the others, so that a kill at any moment leaves a folder whose newest checkpoint is this
  // one.
  if (fs::exists(start, elsewhere))
    replace_file(directory / kLatest, start.filename().string() + "\n");
  for (const Found& found : find_all(directory))
    if (found.step > step) set_aside(found.path);
}

bool is_abandoned(const fs::path& checkpoint) {
  return checkpoint.filename().string().find(kAbandoned) != std::string::npos;
}

struct CheckpointWriter::Parts {
  Parts(fs::path in, const CheckpointInfo& info)
      : directory(std::move(in)), target(checkpoint_of_step(directory, info.step)),
        partial(hidden_name(target, kPartial)), manifest{.info = info,
                                                         .serial = 1,
                                                         .files = {},
                                                         .rank_files = {}} {}

  const fs::path directory, target;
  const PartialDirectory partial;
  Manifest manifest;
};

CheckpointWriter::CheckpointWriter(fs::path directory, const CheckpointInfo& info, int64_t ranks) {
  CHECK(info.step >= 0 && ranks >= 0);
  std::error_code error;
  fs::create_directories(directory, error);
  if (error)
    throw IoError(fmt::format("{}: cannot be created: {}", directory.string(), error.message()));
  parts_ = std::make_unique<Parts>(std::move(directory), info);
  for (const Found& earlier : find_all(parts_->directory))
    parts_->manifest.serial = std::max(parts_->manifest.serial, earlier.serial + 1);
  if (ranks == 0) return;
  const fs::path folder = path() / kRankFolder;
  if (!fs::create_directory(folder, error) || error)
    throw IoError(fmt::format("{}: cannot be created: {}", folder.string(), error.message()));
  std::random_device random;
  parts_->manifest.rank_files = {ranks, fmt::format("{:08x}{:08x}", random(), random())};
}

CheckpointWriter::~CheckpointWriter() = default;

const fs::path& CheckpointWriter::path() const { return parts_->partial.path(); }

const RankFiles& CheckpointWriter::rank_files() const { return parts_->manifest.rank_files; }

void CheckpointWriter::write(const CheckpointContent& content) {
  const TensorMetadata metadata = {
      {"format", "pt"},
      {"step", std::to_string(content.info.step)}};  // "pt": what Python readers ask for
  auto& files = parts_->manifest.files;
  files[kWeightsFile] = write_safetensors(path() / kWeightsFile, content.weights, metadata);
  files[kStateFile] = write_safetensors(path() / kStateFile, content.state, metadata);
}

uint64_t CheckpointWriter::bytes() const {
  uint64_t bytes = to_json(parts_->manifest).size();
  for (const auto& [name, digest] : parts_->manifest.files) bytes += digest.bytes;
  return bytes;
}

fs::path CheckpointWriter::publish(bool best, int keep) {
  CHECK(keep >= 0 && !parts_->manifest.files.empty());
  const fs::path& target = parts_->target;
  DurableFile file(path() / kManifest);
  file.write(to_json(parts_->manifest));
  file.close();
  if (rank_files().count > 0) sync_directory(path() / kRankFolder);
  sync_directory(path());
  verify_checkpoint(path());
  tutti::publish(path(), target);
  sync_directory(parts_->directory);
  replace_file(parts_->directory / kLatest, target.filename().string() + "\n");
  if (best) mark_best(target);
  if (keep > 0) prune(parts_->directory, keep);
  return target;
}

fs::path write_checkpoint(const fs::path& directory, const CheckpointContent& content, int keep) {
  CheckpointWriter writer(directory, content.info, 0);
  writer.write(content);
  return writer.publish(content.best, keep);
}

CheckpointInfo verify_checkpoint(const fs::path& checkpoint) {
  const Manifest manifest = read_manifest(checkpoint / kManifest);
  for (const char* name : {kWeightsFile, kStateFile}) expected_digest(manifest, checkpoint, name);
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
  for (int64_t rank = 0; rank < manifest.rank_files.count; ++rank) {
    const fs::path path = rank_file_path(checkpoint, rank);
    std::error_code error;
    if (!fs::is_regular_file(path, error))
      throw IoError(fmt::format("{}: is missing", path.string()));
  }
  return manifest.info;
}

Checkpoint open_checkpoint(const fs::path& checkpoint) {
  Manifest manifest = read_manifest(checkpoint / kManifest);
  for (const char* name : {kWeightsFile, kStateFile}) {
    const uint64_t bytes = InputFile(checkpoint / name).size(),
                   written = expected_digest(manifest, checkpoint, name).bytes;
    if (bytes != written)
      throw IoError(fmt::format("{}: has {} bytes, {} were written", (checkpoint / name).string(),
                                bytes, written));
  }
  return {.path = checkpoint,
          .info = std::move(manifest.info),
          .checksum = std::move(manifest.checksum),
          .weights = SafetensorsFile(checkpoint / kWeightsFile),
          .state = SafetensorsFile(checkpoint / kStateFile),
          .rank_files = std::move(manifest.rank_files)};
}

std::string manifest_checksum(const fs::path& checkpoint) {
  return read_manifest(checkpoint / kManifest).checksum;
}

RankFiles rank_files_of(const fs::path& checkpoint) {
  return read_manifest(checkpoint / kManifest).rank_files;
}

fs::path checkpoints_in(const fs::path& path) {
  std::error_code none;
  return fs::is_directory(path / kFolder, none) ? path / kFolder : path;
}

bool is_in_checkpoint(const fs::path& path) {
  std::error_code none;
  if (path.filename() == kLatest) return fs::is_regular_file(path, none);
  const fs::path folder = path.parent_path();
  // Other programs' exports, too, have weights of this name beside a manifest.
  return path.filename() == kWeightsFile && fs::exists(folder / kManifest, none) &&
         (is_checkpoint_name(folder.filename().string()) || fs::exists(folder / kStateFile, none));
}

fs::path checkpoint_at(const fs::path& path, std::string_view key,
                       std::span<const fs::path> except) {
  std::error_code error;
  if (is_in_checkpoint(path))
    return path.filename() == kLatest ? path.parent_path() / name_in(path) : path.parent_path();
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
  } catch (const IoError& damage) {
    log::warn("the best checkpoint, {}, is damaged and will not be used: {}",
              best.filename().string(), damage.what());
    return std::nullopt;
  }
}

std::vector<fs::path> list_checkpoints(const fs::path& directory) {
  std::vector<fs::path> paths;
  for (Found& f : find_all(directory)) paths.push_back(std::move(f.path));
  return paths;
}

std::optional<fs::path> find_latest_valid(const fs::path& directory,
                                          std::span<const fs::path> except) {
  std::vector<Found> candidates = find_all(directory);
  std::ranges::stable_partition(
      candidates, [](const Found& f) { return f.serial == 0; });  // so that the damage is told
  std::error_code error;
  if (fs::exists(directory / kLatest, error)) {
    const fs::path named = directory / name_in(directory / kLatest);
    const auto place = std::ranges::find(candidates, named, &Found::path);
    if (place != candidates.end())
      std::rotate(candidates.begin(), place, place + 1);
    else
      log::warn("{}: names {}, which is not there", (directory / kLatest).string(),
                named.filename().string());
  }
  for (const Found& candidate : candidates) {
    if (std::ranges::find(except, candidate.path) != except.end()) continue;
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
