#pragma once
// Distribution: how the ranks of a job share the layers of a network. The minibatch is cut into
// data parts, the feature maps and kernels into model parts; `data x model` ranks hold one replica,
// and a world of more ranks holds several replicas side by side.
//
//   within its replica a rank is  l = rank % (data * model)
//   its model index is            l % model    the model group is `model` consecutive ranks, which
//                                 share samples
//   its data index is             l / model    the data group is `data` ranks at a stride of
//                                 `model`, which share kernels
//
// Everything in mlsl/layout is a pure function of numbers that every rank knows; nothing
// communicates.

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace tutti::mlsl::layout {

enum class GroupKind : uint8_t { data, model, global };

/// Data parts x model parts, each at least 1.
struct Parts {
  int data = 1;
  int model = 1;
};

/// Ranks of equal data colour form a data group, ranks of equal model colour a model group. Colours
/// may be any numbers.
struct Colours {
  int data = 0;
  int model = 0;
};

/// Immutable value: any number of threads may read it.
class Distribution {
 public:
  /// Distributes ranks 0 .. world-1 by the formulas above. Throws ConfigError unless data * model
  /// divides the world.
  Distribution(int world, Parts parts);
  /// Makes groups by colour; entry r belongs to rank r, so the world is the list's length. Members
  /// are in the order of their ranks. Any colours make groups for communication, but only a grid
  /// can hold layers, see parts(). Throws ConfigError for an empty list.
  explicit Distribution(std::span<const Colours> colours);

  int world() const { return static_cast<int>(groups_[0].number.size()); }
  /// Returns the ranks of the group of this kind that holds `rank`, in the order of their index.
  const std::vector<int>& group(GroupKind kind, int rank) const;
  /// Returns the position of `rank` in its group.
  int index(GroupKind kind, int rank) const;
  /// Returns which group of this kind holds `rank`, counted in the order of the groups' first
  /// ranks: a colour for Communicator::split().
  int colour(GroupKind kind, int rank) const;
  /// Returns the replica of `rank`: the number of lower ranks with the same data index and the same
  /// model index.
  int replica(int rank) const { return replica_.at(static_cast<size_t>(rank)); }

  /// Returns the size of every group of this kind. Throws ConfigError, naming the groups, unless
  /// they form a grid: groups of a kind have one size, members of a model group share their data
  /// index (the samples), members of a data group their model index (the kernels).
  int parts(GroupKind kind) const;

  /// Returns "2 data x 4 model parts of 8 ranks", or the groups if colours made other ones.
  std::string to_string() const;
  /// Whether the groups are the same, however they were given.
  bool operator==(const Distribution& other) const { return groups_ == other.groups_; }

 private:
  struct Groups {
    std::vector<std::vector<int>> members;  // by group
    std::vector<int> number, index;         // by rank
    bool operator==(const Groups&) const = default;
  };
  static Groups gather(std::span<const Colours> colours, int Colours::*colour);
  bool is_grid() const;
  const Groups& of(GroupKind kind) const { return groups_[static_cast<size_t>(kind)]; }

  std::array<Groups, 3> groups_;  // by kind
  std::vector<int> replica_;
  bool grid_ = false;
};

}  // namespace tutti::mlsl::layout
