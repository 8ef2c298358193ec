#pragma once
// Saved compression state in memory, for tests, that counts the floats read.

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "tutti/base/error.h"
#include "tutti/comm/compress/state.h"

namespace tutti::comm {

class SavedSample final : public SavedState {
 public:
  /// Takes the pieces of `ranks` ranks, which outlive this.
  SavedSample(int ranks, std::vector<SavedPiece> pieces)
      : ranks_(ranks), pieces_(std::move(pieces)) {}

  int ranks() const override { return ranks_; }
  std::vector<std::string> names(int) override {
    std::vector<std::string> names;
    for (const SavedPiece& piece : pieces_) names.push_back(piece.name);
    return names;
  }
  size_t floats(int, const std::string& name) override { return find(name).size(); }
  std::vector<float> read(int rank, const std::string& name) override {
    if (rank == broken_rank) throw IoError("the file of rank " + std::to_string(rank));
    const std::span<const float> values = find(name);
    floats_read += values.size();
    largest_read = std::max(largest_read, values.size());
    return {values.begin(), values.end()};
  }

  int broken_rank = -1;
  size_t floats_read = 0, largest_read = 0;

 private:
  std::span<const float> find(const std::string& name) const {
    return std::ranges::find(pieces_, name, &SavedPiece::name)->values;
  }
  int ranks_;
  std::vector<SavedPiece> pieces_;
};

}  // namespace tutti::comm
