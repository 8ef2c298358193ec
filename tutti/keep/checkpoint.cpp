#include "tutti/keep/checkpoint.h"

#include <algorithm>
#include <random>
#include <system_error>

#include "tutti/base/error.h"
#include "tutti/base/log.h"
#include "tutti/keep/checkpoint_folder.h"
#include "tutti/keep/manifest.h"
#include "tutti/keep/rank_file.h"
#include "tutti/keep/safetensors.h"

namespace tutti::keep {
namespace {

namespace fs = std::filesystem;

/// A directory that is removed unless it is kept.
class PartialDirectory {
 public:
  explicit PartialDirectory(fs::path path) : path_(std::move(path)) {
    std::error_code error;
    if (!fs::create_directory(path_, error) || error)
      throw IoError(fmt::format("{}: cannot be created: {}", path_.string(),
                                error ? error.message() : "it exists"));
  }
  ~PartialDirectory() {
    std::error_code ignored;  // leftovers are removed when a run opens the folder
    fs::remove_all(path_, ignored);
  }
  PartialDirectory(const PartialDirectory&) = delete;
  PartialDirectory& operator=(const PartialDirectory&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

FileDigest expected_digest(const Manifest& manifest, const fs::path& checkpoint, const char* name) {
  const auto at = manifest.files.find(name);
  if (at == manifest.files.end())
    throw IoError(fmt::format("{}: does not list {}", (checkpoint / kManifest).string(), name));
  return at->second;
}

}  // namespace

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
  for (const FoundCheckpoint& earlier : find_checkpoints(parts_->directory))
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

void CheckpointWriter::write(const std::vector<TensorRef>& weights,
                             const std::vector<TensorRef>& state) {
  const TensorMetadata metadata = {
      {"format", "pt"},
      {"step", std::to_string(parts_->manifest.info.step)}};  // Python readers ask for "pt"
  auto& files = parts_->manifest.files;
  files[kWeightsFile] = write_safetensors(path() / kWeightsFile, weights, metadata);
  files[kStateFile] = write_safetensors(path() / kStateFile, state, metadata);
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
  give_name(path(), target);
  sync_directory(parts_->directory);
  replace_file(parts_->directory / kLatest, target.filename().string() + "\n");
  if (best) mark_best(target);
  if (keep > 0) prune_checkpoints(parts_->directory, keep);
  return target;
}

fs::path write_checkpoint(const fs::path& directory, const CheckpointContent& content, int keep) {
  CheckpointWriter writer(directory, content.info, 0);
  writer.write(content.weights, content.state);
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
  for (int64_t rank = 0; rank < manifest.rank_files.count; ++rank)
    expect_file(rank_file_path(checkpoint, rank));
  return manifest.info;
}

void verify_file_of_checkpoint(const fs::path& file) {
  const fs::path folder = fs::absolute(file).parent_path();
  const bool named = is_checkpoint_name(folder.filename().string());
  std::error_code none;
  if (!fs::exists(folder / kManifest, none)) {
    if (named)
      log::warn("{}: the checkpoint has no {} any more, so nothing says whether the file is whole",
                file.string(), kManifest);
    return;
  }
  Manifest manifest;
  try {
    manifest = read_manifest(folder / kManifest);
  } catch (const IoError&) {
    if (named) throw;
    return;
  }
  const FileDigest found = digest_of(file);
  if (std::ranges::none_of(manifest.files, [&](const auto& one) { return one.second == found; }))
    throw IoError(fmt::format(
        "{}: is not what was written into this checkpoint (checksum {:016x}), so it is damaged or "
        "of elsewhere",
        file.string(), found.xxh64));
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

}  // namespace tutti::keep
