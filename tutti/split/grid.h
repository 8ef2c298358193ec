#pragma once
// PartGrid: how ranks share samples, or the tensors of layers. `spatial` ranks along each of the
// outermost spatial dimensions hold the parts of one replica; neighbouring ranks are parts of one
// replica, those of the innermost dimension first. Replicas that follow each other may share the
// statistics of batch norms. Or `tensor` neighbouring ranks hold one replica together, each with
// slices of its layers, and all with whole samples: they are its parts, too. Or they are the stages
// of one replica, which have some of its layers each.

#include <array>
#include <vector>

#include "tutti/graph/op.h"

namespace tutti {

/// A plain value; on each rank its own.
class PartGrid {
 public:
  static constexpr int kAxes = 2;  ///< dimensions that may be shared

  PartGrid() = default;
  /// `spatial`: parts along each dimension, none or empty: whole samples. `sharing`: replicas whose
  /// batch norms see one batch. `stages`: ranks that have a replica's layers, some each; not
  /// together with the other two. ConfigError where the ranks do not divide.
  PartGrid(const std::vector<int64_t>& spatial, int64_t sharing, int ranks, int rank,
           int64_t stages = 1);

  /// `tensor` ranks share the layers of each replica, and with `positions` what lies between them
  /// by the positions of sequences. ConfigError where the ranks do not divide.
  static PartGrid of_tensors(int64_t tensor, int ranks, int rank, bool positions = false);

  /// Ranks of a replica.
  int parts() const { return along_[0] * along_[1] * tensor_; }
  int part() const { return rank_ % parts(); }
  int along(int axis) const { return along_[static_cast<size_t>(axis)]; }
  /// Where a part lies along an axis.
  int at(int part, int axis) const { return axis == 0 ? part / along_[1] : part % along_[1]; }
  int at(int axis) const { return at(part(), axis); }
  /// How many share a replica's layers, and this rank's place among them.
  int tensor() const { return tensor_; }
  int tensor_place() const { return rank_ % tensor_; }
  bool positions() const { return positions_; }
  /// The sharing of samples alone: who shares layers, or has some of them, has whole ones.
  PartGrid of_samples() const { return tensor_ > 1 || stages_ > 1 ? PartGrid() : *this; }
  /// The grid as another part of the same replica has it.
  PartGrid with_part(int part) const {
    PartGrid other = *this;
    other.rank_ = rank_ - this->part() + part;
    return other;
  }
  int stages() const { return stages_; }
  int stage() const { return rank_ % stages_; }
  /// The grid as another stage of the same replica has it.
  PartGrid with_stage(int stage) const {
    PartGrid other = *this;
    other.rank_ = rank_ - this->stage() + stage;
    return other;
  }
  /// The parts alone: of what needs no statistics of a batch.
  PartGrid without_sharing() const {
    PartGrid other = *this;
    other.sharing_ = 1;
    return other;
  }
  /// Groups of ranks with a replica each, and this rank's.
  int groups() const { return ranks_ / group_size(); }
  int group() const { return rank_ / group_size(); }
  int group_size() const { return parts() * stages_; }

  /// ConfigError unless replicas of several ranks have these for themselves.
  void require_own_ranks(int64_t replicas) const;

  /// The ranks that exchange within a step: of the replicas that share statistics, in order; of
  /// stages, those of one replica.
  int peers() const { return group_size() * sharing_; }
  int me() const { return rank_ % peers(); }
  int first_peer() const { return rank_ - me(); }
  /// The peer that has this part of the same replica.
  int peer_of(int part) const { return me() - this->part() + part; }

  /// Rows of `extent` that a part has along an axis.
  Rows rows(int64_t extent, int part, int axis) const {
    return {extent * at(part, axis) / along(axis), extent * (at(part, axis) + 1) / along(axis)};
  }

 private:
  std::array<int, kAxes> along_{1, 1};
  int tensor_ = 1, sharing_ = 1, stages_ = 1, ranks_ = 1, rank_ = 0;
  bool positions_ = false;
};

}  // namespace tutti
