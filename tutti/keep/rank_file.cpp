#include "tutti/keep/rank_file.h"

#include <fmt/ranges.h>
#include <xxhash.h>

#include <algorithm>
#include <memory>
#include <system_error>

#include "tutti/base/error.h"
#include "tutti/base/log.h"

namespace tutti::keep {
namespace {

namespace fs = std::filesystem;

constexpr const char* kContentHash = "xxh64";

/// Hashes a file's content: its identity, and names, shapes and bytes of its tensors in their
/// order.
class ContentHash {
 public:
  ContentHash(const RankFiles& files, int64_t rank) : state_(XXH64_createState(), XXH64_freeState) {
    XXH64_reset(state_.get(), 0);
    add(fmt::format("{} {} {}", files.id, rank, files.count));
  }
  void add(std::string_view text) { add(std::as_bytes(std::span(text))); }
  void add(std::span<const std::byte> bytes) {
    XXH64_update(state_.get(), bytes.data(), bytes.size());
  }
  template <class Extents>
  void begin_tensor(const std::string& name, const Extents& shape) {
    add(fmt::format("\n{} [{}]\n", name, fmt::join(shape, ",")));
  }
  std::string text() const { return fmt::format("{:016x}", XXH64_digest(state_.get())); }

 private:
  std::unique_ptr<XXH64_state_t, XXH_errorcode (*)(XXH64_state_t*)> state_;
};

/// The file's other metadata, which identify it.
TensorMetadata label(const RankFiles& files, int64_t rank) {
  return {{"format", "pt"},
          {"checkpoint", files.id},
          {"rank", std::to_string(rank)},
          {"ranks", std::to_string(files.count)}};
}

}  // namespace

fs::path rank_file_path(const fs::path& checkpoint, int64_t rank) {
  return checkpoint / kRankFolder / fmt::format("{}.safetensors", rank);
}

uint64_t write_rank_file(const fs::path& checkpoint, const RankFiles& files, int64_t rank,
                         std::span<const TensorRef> tensors) {
  const fs::path path = rank_file_path(checkpoint, rank);
  std::error_code none;
  if (!fs::is_directory(path.parent_path(), none))
    throw IoError(fmt::format(
        "{}: rank {} does not see the folder that rank 0 has made: run.output_dir must be on a "
        "file system that all hosts share",
        path.parent_path().string(), rank));
  TensorMetadata metadata = label(files, rank);
  ContentHash hash(files, rank);
  metadata[kContentHash] = hash.text();  // the true one is known at the end
  SafetensorsWriter file(path, tensors, metadata);
  for (const TensorRef& tensor : tensors) {
    CHECK(tensor.desc.dtype == DType::f32, "{}: {}", tensor.name, tensor.desc.to_string());
    hash.begin_tensor(tensor.name, tensor.desc.shape);
    give_bytes(tensor, [&](std::span<const std::byte> piece) {
      hash.add(piece);
      file.write(piece);
    });
  }
  file.replace(kContentHash, hash.text());
  const uint64_t bytes = file.close().bytes;
  verify_rank_file(checkpoint, files, rank);
  return bytes;
}

SafetensorsFile open_rank_file(const fs::path& checkpoint, const RankFiles& files, int64_t rank) {
  const fs::path path = rank_file_path(checkpoint, rank);
  SafetensorsFile file(path);
  for (const auto& [key, value] : label(files, rank)) {
    const auto found = file.metadata().find(key);
    if (found == file.metadata().end() || found->second != value)
      throw IoError(fmt::format("{}: it is not of this checkpoint: its {} is '{}', not '{}'",
                                path.string(), key,
                                found == file.metadata().end() ? "" : found->second, value));
  }
  return file;
}

void verify_rank_file(const fs::path& checkpoint, const RankFiles& files, int64_t rank) {
  const SafetensorsFile file = open_rank_file(checkpoint, files, rank);
  ContentHash hash(files, rank);
  std::vector<std::byte> block(size_t{1} << 20);
  for (const SafetensorsFile::Entry& entry : file.entries()) {
    hash.begin_tensor(entry.name, entry.shape);
    for (uint64_t at = entry.begin; at < entry.end; at += block.size()) {
      const auto part =
          std::span(block).first(static_cast<size_t>(std::min(block.size(), entry.end - at)));
      file.read_part(entry, at - entry.begin, part);
      hash.add(part);
    }
  }
  const auto expected = file.metadata().find(kContentHash);
  if (expected == file.metadata().end() || expected->second != hash.text())
    throw IoError(
        fmt::format("{}: its content has changed since it was written (checksum {}, expected {})",
                    rank_file_path(checkpoint, rank).string(), hash.text(),
                    expected == file.metadata().end() ? "none" : expected->second));
}

void verify_rank_files(const fs::path& checkpoint, const RankFiles& files, int rank, int ranks) {
  for (int64_t file = rank; file < files.count; file += ranks)
    verify_rank_file(checkpoint, files, file);
}

int RankFileReader::ranks() const {
  const RankFiles& files = checkpoint_.rank_files;
  return static_cast<int>(files.count > 0 ? files.count : checkpoint_.info.ranks);
}

const SafetensorsFile& RankFileReader::file(int rank) {
  if (checkpoint_.rank_files.count == 0) return checkpoint_.state;
  const auto found = open_.find(rank);
  if (found != open_.end()) return found->second;
  if (open_.size() == kMostOpen) open_.clear();
  return open_.emplace(rank, open_rank_file(checkpoint_.path, checkpoint_.rank_files, rank))
      .first->second;
}

std::vector<std::string> SavedCompression::names(int rank) {
  std::vector<std::string> names;
  for (const SafetensorsFile::Entry& entry : files_.file(rank).entries())
    names.push_back(entry.name);
  return names;
}

size_t SavedCompression::floats(int rank, const std::string& name) {
  const SafetensorsFile::Entry& entry = *files_.file(rank).find(name);
  return static_cast<size_t>(entry.end - entry.begin) / sizeof(float);
}

std::vector<float> SavedCompression::read(int rank, const std::string& name) {
  const SafetensorsFile& file = files_.file(rank);
  return file.read_f32(*file.find(name));
}

std::vector<TensorRef> unsent_tensors(int rank, std::span<const UnsentBucket> buckets) {
  std::vector<TensorRef> tensors;
  for (const UnsentBucket& kept : buckets)
    for (const comm::SavedPiece& piece :
         comm::save_state(kept.layout, rank, kept.bucket->name, kept.state))
      tensors.push_back({piece.name,
                         {DType::f32, Shape{static_cast<int64_t>(piece.values.size())}, {}},
                         std::as_bytes(piece.values)});
  return tensors;
}

void restore_unsent(comm::Communicator& communicator, comm::SavedState& saved,
                    std::span<const UnsentBucket> buckets) {
  bool dealt = false;
  for (const UnsentBucket& kept : buckets)
    dealt |= comm::restore_state(communicator, saved, kept.layout, kept.bucket->name,
                                 kept.bucket->floats(), kept.state) == comm::Restored::dealt;
  if (dealt && communicator.rank() == 0)
    log::warn(
        "what compression had not sent was kept for other ranks, another method or other kernels: "
        "its sum is dealt out anew, and the run goes on otherwise than the old one would have");
}

}  // namespace tutti::keep
