#pragma once
// Meeting: how replicas combine their weights when each replica's updates use only its own
// gradients. docs/synchronisation.md says what the schemes are good for.
//
// Call before(step, replicas) before each step and after(step, ...) after its update. All results
// are functions of the replicas' values and numbers, summed in the tree over replicas or in the
// order of their numbers: the bits are the same on any number of ranks.

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tutti/device/cpu/buffer.h"
#include "tutti/exchange/replicas.h"

namespace tutti::comm {
class Communicator;
}

namespace tutti::sync {

enum class MeetingKind {
  average,     ///< all take the average of all (local SGD; McMahan et al. 2017, Stich 2019)
  elastic,     ///< each is drawn to a centre, and the centre to all (EASGD, Zhang et al. 2015)
  tree,        ///< as elastic, with a hierarchy of centres (EASGD's tree)
  neighbours,  ///< each takes the average of its neighbours in a graph (D-PSGD, Lian et al. 2017)
  gossip,      ///< each sends to one other now and then (GoSGD, Blot et al. 2016)
  never        ///< independent runs
};
/// The optimizer state's treatment when replicas take the average of their weights.
enum class MetState { keep, average, reset };
/// The step that is taken with d, the average change of the weights since the last meeting.
enum class OuterStep {
  none,      ///< w - d: the average itself
  momentum,  ///< u = mu u + d / rate, w - lr rate u (SlowMo, Wang et al. 2020, algorithm 1)
  nesterov   ///< u = mu u + d, w - lr (d + mu u) (DiLoCo, Douillard et al. 2023, algorithm 1)
};
enum class MixingGraph {
  ring,        ///< both neighbours, a third each
  torus,       ///< the four neighbours on the squarest possible grid, a fifth each
  exponential  ///< one at distance 1, 2, 4, ... in turn, a half (Assran et al. 2019)
};

struct MeetingSettings {
  MeetingKind kind = MeetingKind::average;
  int64_t every = 1;        ///< steps
  int64_t first_steps = 0;  ///< so many first steps each end with a meeting, and average the states
  int fragments = 1;        ///< parts of the weights, which meet one after another
  MetState state = MetState::keep;
  OuterStep outer = OuterStep::none;
  double outer_lr = 1, outer_momentum = 0.9;
  int delay = 0;           ///< average: meetings after which it is applied, 0 or 1
  double alpha = 0;        ///< elastic: step size; 0: 0.9 / replicas, in a tree 0.9 / children
  int children = 0;        ///< tree: children of a node
  int64_t up = 0;          ///< tree: steps between meetings of centres, a multiple of `every`
  double probability = 0;  ///< gossip: probability of sending, after each step
  uint64_t seed = 0;       ///< gossip: chooses senders and receivers
  MixingGraph graph = MixingGraph::ring;
  std::string spill = {};  ///< folder for the copies that each replica needs; empty: memory

  /// Allocates space for one of these copies.
  device::Buffer room(size_t floats) const { return {floats * sizeof(float), spill}; }
};

/// Returns how many copies of the trained weights a rank holds for such meetings, besides the
/// replicas' own: what they meet through, centres, anchors, and what is under way.
int copies_for_meetings(const MeetingSettings& settings, int local_replicas);

/// Addresses of one local replica's values, `floats` each.
struct ReplicaValues {
  float* parameters = nullptr;
  std::vector<float*> states = {};  ///< one of each kind
};

/// Values besides the weights that are the same for all replicas, laid out like the weights;
/// checkpoints include them.
struct SharedValues {
  std::string name;  ///< "center", "anchor", "outer_momentum"
  std::span<float> values;
  bool like_weights = false;  ///< they are weights; others begin at 0
};

/// Each local replica's values besides weights and states, laid out like the weights; they belong
/// to the replicas' rows in checkpoints.
struct OwnValues {
  std::string name;  ///< "center1", "sent"
  std::vector<float*> of_local;
};

/// Not thread-safe; used by the thread that uses the communicator.
class Meeting {
 public:
  virtual ~Meeting() = default;
  /// Call once, before the first step. Either all replicas have the same weights, or shared() and
  /// own() have been filled and restore() has been called.
  virtual void begin(std::span<const ReplicaValues> local, bool filled) = 0;
  /// Call before the step whose update is the `step`-th, from 0. Never blocks.
  virtual void before(int64_t step, std::span<const ReplicaValues> local) = 0;
  /// Call after that update, which used learning rate `rate`. Returns whether any weights have
  /// changed. If the step ends with a meeting, the call is collective and blocking.
  virtual bool after(int64_t step, double rate, std::span<const ReplicaValues> local) = 0;
  /// Returns the weights that represent all replicas, for evaluations and as the model. Collective.
  virtual void model(std::span<const ReplicaValues> local, std::span<float> weights) = 0;
  virtual std::vector<SharedValues> shared() { return {}; }
  virtual std::vector<OwnValues> own() { return {}; }
  /// Stores numbers that are the same on all ranks as metrics of a checkpoint. restore() returns
  /// whether they are present.
  virtual void save(std::map<std::string, double>&) const {}
  virtual bool restore(const std::map<std::string, double>&) { return true; }

  /// Returns the bytes of weights and states that this rank has sent at meetings.
  int64_t bytes_sent() const { return bytes_sent_; }
  /// Returns the number of meetings, the same on every rank. For gossip, the number of messages
  /// that have arrived.
  int64_t meetings() const { return meetings_; }
  /// Sums over the local replicas at the last meeting: the squared change of their weights, and the
  /// squared weights themselves (`of`).
  struct Moved {
    double squares = 0, of = 0;
  };
  const Moved& moved() const { return moved_; }

 protected:
  /// Replaces a replica's weights, or a part of them, by `to`, and adds to moved_.
  void move(std::span<const float> to, float* weights);

  int64_t bytes_sent_ = 0, meetings_ = 0;
  Moved moved_;
};

/// Collective. `floats` is the size of a replica's weights, and of each kind of its state. The
/// communicator must outlive the result.
std::unique_ptr<Meeting> make_meeting(const MeetingSettings& settings,
                                      comm::Communicator& communicator,
                                      const exchange::ReplicaMap& map, size_t floats);

/// Updates `anchor`, the weights of the last meeting, by an outer step towards this meeting's
/// average; without an outer step it becomes the average. `rate` is the inner learning rate.
/// `momentum` is empty without an outer step. All spans are as long as `average`.
void outer_step(const MeetingSettings& settings, std::span<const float> average, double rate,
                std::span<float> anchor, std::span<float> momentum);

/// Returns the replica to which `replica` sends after a step, if it sends. The same on every rank.
std::optional<int> gossip_to(const MeetingSettings& settings, int replicas, int replica,
                             int64_t step);

/// The centres above replicas, level by level: a centre of level 1 has `children` replicas, one of
/// level 2 as many centres of level 1, up to a single centre.
class CenterTree {
 public:
  CenterTree(int replicas, int children);
  int levels() const { return static_cast<int>(first_.size()) - 1; }
  /// Returns the number of nodes in a level; level 0 holds the replicas.
  int nodes(int level) const { return static_cast<int>(first_[static_cast<size_t>(level)].size()); }
  /// Returns the first replica below a node; the node's values are kept on its rank.
  int first(int level, int node) const {
    return first_[static_cast<size_t>(level)][static_cast<size_t>(node)];
  }
  int parent(int node) const { return node / children_; }
  int first_child(int node) const { return node * children_; }
  int end_child(int level, int node) const {
    return std::min((node + 1) * children_, nodes(level - 1));
  }
  /// Returns how many levels exchange after a step: 1 for replicas with their centres, and all
  /// levels where a meeting of the centres is due.
  int met(const MeetingSettings& settings, int64_t step) const {
    return (step + 1) % settings.every != 0 ? 0 : (step + 1) % settings.up != 0 ? 1 : levels();
  }

 private:
  int children_;
  std::vector<std::vector<int>> first_;  // by level
};

/// A replica whose weights another one uses at a meeting. Rows include the replica itself and are
/// sorted by number.
struct MixingWeight {
  int replica;
  float weight;
};
/// Returns a row of the mixing matrix at the `meeting`-th meeting; rows and columns sum to 1.
std::vector<MixingWeight> mixing_row(MixingGraph graph, int replicas, int replica, int64_t meeting);

}  // namespace tutti::sync
