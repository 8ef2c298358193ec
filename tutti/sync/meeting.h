#pragma once
// Meeting: what replicas do with each other's weights when each has been updated by its own
// gradients alone. docs/synchronisation.md says what the schemes are good for.
//
// Before each step: before(step, replicas). After its update: after(step, ...). Everything is a
// function of the replicas' values and of their numbers, summed in the tree over replicas or in the
// order of their numbers: the same bits on any number of ranks.

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

namespace tutti {

namespace comm {
class Communicator;
}

enum class MeetingKind {
  average,     ///< all take the average of all (local SGD; McMahan et al. 2017, Stich 2019)
  elastic,     ///< each is drawn to a centre, and the centre to all (EASGD, Zhang et al. 2015)
  tree,        ///< the same with centres of centres (EASGD's tree)
  neighbours,  ///< each takes the average of its neighbours in a graph (D-PSGD, Lian et al. 2017)
  gossip,      ///< each sends to one other now and then (GoSGD, Blot et al. 2016)
  never        ///< independent runs
};
/// Of the optimizer, when replicas take the average of their weights.
enum class MetState { keep, average, reset };
/// What is done with the average change of the weights since the last meeting, d.
enum class OuterStep {
  none,      ///< w - d: the average itself
  momentum,  ///< u = mu u + d / rate, w - lr rate u (SlowMo, Wang et al. 2020, algorithm 1)
  nesterov   ///< u = mu u + d, w - lr (d + mu u) (DiLoCo, Douillard et al. 2023, algorithm 1)
};
enum class MixingGraph {
  ring,        ///< both neighbours, a third each
  torus,       ///< the four neighbours on a grid that is as square as may be, a fifth each
  exponential  ///< one at distance 1, 2, 4, ... in turn, a half (Assran et al. 2019)
};

struct MeetingSettings {
  MeetingKind kind = MeetingKind::average;
  int64_t every = 1;        ///< steps
  int64_t first_steps = 0;  ///< so many meet at every step, and average their states
  int fragments = 1;        ///< of the weights, which meet one after another between two meetings
  MetState state = MetState::keep;
  OuterStep outer = OuterStep::none;
  double outer_lr = 1, outer_momentum = 0.9;
  int delay = 0;           ///< average: meetings after which it is applied, 0 or 1
  double alpha = 0;        ///< elastic: how far; 0: 0.9 / replicas, in a tree 0.9 / children
  int children = 0;        ///< tree: of a node
  int64_t up = 0;          ///< tree: steps between meetings of centres, a multiple of `every`
  double probability = 0;  ///< gossip: of sending, after each step
  uint64_t seed = 0;       ///< gossip: of who sends to whom
  MixingGraph graph = MixingGraph::ring;
  std::string spill = {};  ///< folder for the copies that each replica needs; empty: memory

  /// Room for one of these copies.
  Buffer room(size_t floats) const { return {floats * sizeof(float), spill}; }
};

/// Where one local replica's values lie: `floats` of each.
struct ReplicaValues {
  float* parameters = nullptr;
  std::vector<float*> states = {};  ///< one of each kind
};

/// What all replicas have alike besides their weights, laid out as these; it belongs to
/// checkpoints.
struct SharedValues {
  std::string name;  ///< "center", "anchor", "outer_momentum"
  std::span<float> values;
  bool like_weights = false;  ///< they are weights; others begin at 0
};

/// What each local replica has besides weights and states, laid out as the weights; it belongs to
/// the rows of checkpoints.
struct OwnValues {
  std::string name;  ///< "center1", "sent"
  std::vector<float*> of_local;
};

/// Not thread-safe; used by the thread that uses the communicator.
class Meeting {
 public:
  virtual ~Meeting() = default;
  /// Once, before the first step: all replicas have the same weights, or shared() and own() have
  /// been filled, and restore() called.
  virtual void begin(std::span<const ReplicaValues> local, bool filled) = 0;
  /// Before the step whose update is the `step`-th, from 0. Never blocks.
  virtual void before(int64_t step, std::span<const ReplicaValues> local) = 0;
  /// After its update, which had this learning rate. Returns whether any weights have changed.
  /// Collective and blocking where it is a meeting.
  virtual bool after(int64_t step, double rate, std::span<const ReplicaValues> local) = 0;
  /// The weights that stand for all: what is evaluated, and kept as the model. Collective.
  virtual void model(std::span<const ReplicaValues> local, std::span<float> weights) = 0;
  virtual std::vector<SharedValues> shared() { return {}; }
  virtual std::vector<OwnValues> own() { return {}; }
  /// Numbers that all ranks have alike, as metrics of a checkpoint. Returns whether they are there.
  virtual void save(std::map<std::string, double>&) const {}
  virtual bool restore(const std::map<std::string, double>&) { return true; }

  /// Bytes that this rank has sent at meetings, of weights and states.
  int64_t bytes_sent() const { return bytes_sent_; }
  /// The same on every rank. Of gossip, those of two: how many messages have arrived.
  int64_t meetings() const { return meetings_; }
  /// How far the last meeting has moved the local replicas' weights: the squares of that and of the
  /// weights themselves, summed.
  struct Moved {
    double squares = 0, of = 0;
  };
  const Moved& moved() const { return moved_; }

 protected:
  /// Puts `to` in the place of a replica's weights, or a part of them, and adds to moved_.
  void move(std::span<const float> to, float* weights);

  int64_t bytes_sent_ = 0, meetings_ = 0;
  Moved moved_;
};

/// Collective. `floats`: of a replica's weights, and of each kind of its state. The communicator
/// must outlive it.
std::unique_ptr<Meeting> make_meeting(const MeetingSettings& settings,
                                      comm::Communicator& communicator, const ReplicaMap& map,
                                      size_t floats);

/// Moves `anchor`, the weights of the last meeting, by what the outer step makes of the average of
/// this one; without an outer step it becomes the average. `rate`: the inner learning rate.
/// `momentum` is empty without an outer step. All are as long as `average`.
void outer_step(const MeetingSettings& settings, std::span<const float> average, double rate,
                std::span<float> anchor, std::span<float> momentum);

/// The replica that `replica` sends to after a step, if it does. The same on every rank.
std::optional<int> gossip_to(const MeetingSettings& settings, int replicas, int replica,
                             int64_t step);

/// The centres above replicas, level by level: those of level 1 each have `children` replicas, of
/// level 2 as many centres of level 1, up to one alone.
class CenterTree {
 public:
  CenterTree(int replicas, int children);
  int levels() const { return static_cast<int>(first_.size()) - 1; }
  /// Of a level; level 0 are the replicas.
  int nodes(int level) const { return static_cast<int>(first_[static_cast<size_t>(level)].size()); }
  /// The first replica below a node, with which it lies.
  int first(int level, int node) const {
    return first_[static_cast<size_t>(level)][static_cast<size_t>(node)];
  }
  int parent(int node) const { return node / children_; }
  int first_child(int node) const { return node * children_; }
  int end_child(int level, int node) const {
    return std::min((node + 1) * children_, nodes(level - 1));
  }
  /// How many levels exchange after a step: 1 of replicas and their centres, and all others where
  /// it is time.
  int met(const MeetingSettings& settings, int64_t step) const {
    return (step + 1) % settings.every != 0 ? 0 : (step + 1) % settings.up != 0 ? 1 : levels();
  }

 private:
  int children_;
  std::vector<std::vector<int>> first_;  // by level
};

/// Whom a replica hears at a meeting, itself among them, by rising number.
struct MixingWeight {
  int replica;
  float weight;
};
/// The rows of the mixing matrix at the `meeting`-th meeting; rows and columns sum to 1.
std::vector<MixingWeight> mixing_row(MixingGraph graph, int replicas, int replica, int64_t meeting);

}  // namespace tutti
