#pragma once
// PartGrid: how ranks share samples, or the tensors of layers. `spatial` ranks along each of the
// outermost spatial dimensions hold the parts of one replica; neighbouring ranks are parts of one
// replica, with the innermost dimension varying first. Consecutive replicas may share the
// statistics of batch norms. Alternatively `tensor` neighbouring ranks hold one replica together,
// each with slices of its layers and all with whole samples: they are its parts, too. Or ranks are
// the stages of one replica, each with some of its layers.

#include <array>
#include <vector>

#include "tutti/graph/op.h"

namespace tutti::split {

/// A plain value, different on each rank.
class PartGrid {
 public:
  static constexpr int kAxes = 2;  ///< number of dimensions that may be shared

  PartGrid() = default;
  /// `spatial`: parts along each dimension; all ones or empty: whole samples. `sharing`:
  /// replicas whose batch norms see one batch. `stages`: ranks among which a replica's layers are
  /// divided; not together with the other two. Throws ConfigError if the ranks do not divide.
  PartGrid(const std::vector<int64_t>& spatial, int64_t sharing, int ranks, int rank,
           int64_t stages = 1);

  /// Makes a grid in which `tensor` ranks share the layers of each replica and, with `positions`,
  /// the operations between these layers by the positions of sequences. Throws ConfigError if the
  /// ranks do not divide.
  static PartGrid of_tensors(int64_t tensor, int ranks, int rank, bool positions = false);

  /// Returns the ranks of a replica.
  int parts() const { return along_[0] * along_[1] * tensor_; }
  int part() const { return rank_ % parts(); }
  int along(int axis) const { return along_[static_cast<size_t>(axis)]; }
  /// Returns where a part lies along an axis.
  int at(int part, int axis) const { return axis == 0 ? part / along_[1] : part % along_[1]; }
  int at(int axis) const { return at(part(), axis); }
  /// The number of ranks that share a replica's layers, and this rank's place among them.
  int tensor() const { return tensor_; }
  int tensor_place() const { return rank_ % tensor_; }
  bool positions() const { return positions_; }
  /// Returns the grid for sharing samples only: ranks that share or divide layers have whole
  /// samples.
  PartGrid of_samples() const { return tensor_ > 1 || stages_ > 1 ? PartGrid() : *this; }
  /// Returns the grid as another part of the same replica has it.
  PartGrid with_part(int part) const {
    PartGrid other = *this;
    other.rank_ = rank_ - this->part() + part;
    return other;
  }
  int stages() const { return stages_; }
  int stage() const { return rank_ % stages_; }
  /// Returns the grid as another stage of the same replica has it.
  PartGrid with_stage(int stage) const {
    PartGrid other = *this;
    other.rank_ = rank_ - this->stage() + stage;
    return other;
  }
  /// Returns the grid without shared statistics, for networks that need no statistics of a batch.
  PartGrid without_sharing() const {
    PartGrid other = *this;
    other.sharing_ = 1;
    return other;
  }
  /// The groups of ranks with a replica each, and this rank's group.
  int groups() const { return ranks_ / group_size(); }
  int group() const { return rank_ / group_size(); }
  int group_size() const { return parts() * stages_; }

  /// Throws ConfigError unless replicas on several ranks each have ranks of their own.
  void require_own_ranks(int64_t replicas) const;

  /// Returns the number of ranks that exchange within a step: those of all replicas that share
  /// statistics, in order or, with stages, those of one replica.
  int peers() const { return group_size() * sharing_; }
  int me() const { return rank_ % peers(); }
  int first_peer() const { return rank_ - me(); }
  /// Returns the peer that has this part of the same replica.
  int peer_of(int part) const { return me() - this->part() + part; }

  /// Returns the rows of `extent` that a part has along an axis.
  graph::Rows rows(int64_t extent, int part, int axis) const {
    return {extent * at(part, axis) / along(axis), extent * (at(part, axis) + 1) / along(axis)};
  }

 private:
  std::array<int, kAxes> along_{1, 1};
  int tensor_ = 1, sharing_ = 1, stages_ = 1, ranks_ = 1, rank_ = 0;
  bool positions_ = false;
};

}  // namespace tutti::split
