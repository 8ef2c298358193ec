#include "tutti/sync/meeting_kinds.h"

#include <algorithm>
#include <utility>

#include "tutti/base/error.h"
#include "tutti/comm/communicator.h"

namespace tutti::sync {
namespace {

/// EASGD on a tree (Zhang, Choromanska, LeCun 2015, section 6): replicas are drawn to the centre of
/// their group and it to them, and at longer intervals centres to the one above. In the synchronous
/// form, at each meeting of a node (the centre) with its children,
///   d_c = alpha (w_c - w); w_c -= d_c for each child c; w += sum of d_c, in their order
/// so that the sum over all replicas and centres is conserved. A node is kept with the first
/// replica below it; children on other ranks send their weights there, and get them back.
class TreeMeeting final : public Meeting {
 public:
  TreeMeeting(const MeetingSettings& settings, comm::Communicator& communicator,
              const exchange::ReplicaMap& map, size_t floats)
      : settings_(settings), communicator_(communicator), map_(map), floats_(floats),
        tree_(map.replicas(), settings.children),
        alpha_(static_cast<float>(settings.alpha > 0 ? settings.alpha : 0.9 / settings.children)) {
    if (alpha_ * static_cast<float>(1 + settings.children) >= 2)
      throw ConfigError(fmt::format(
          "sync.alpha = {} of {} children: they and their centre would swing ever further; it must "
          "be below 2 / (1 + sync.tree) = {:.4g}",
          alpha_, settings.children, 2.0 / (1 + settings.children)));
    for (int level = 0; level <= tree_.levels(); ++level)
      if (tree_.nodes(level) > comm::MessageSpec::kMostTag)
        throw ConfigError(fmt::format("sync.scheme = \"easgd\": {} replicas, at most {} can meet",
                                      map.replicas(), comm::MessageSpec::kMostTag));
    centers_.resize(static_cast<size_t>(tree_.levels()));
    for (auto& level : centers_)
      for (int local = 0; local < map.local_count(); ++local)
        level.push_back(settings.room(floats));
    received_.resize(static_cast<size_t>(settings.children));
  }

  void begin(std::span<const ReplicaValues> local, bool filled) override {
    if (filled) return;
    for (auto& level : centers_)
      for (size_t i = 0; i < level.size(); ++i)
        std::copy_n(local[i].parameters, floats_, level[i].as<float>().data());
  }

  void before(int64_t, std::span<const ReplicaValues>) override {}
  bool after(int64_t step, double, std::span<const ReplicaValues> local) override {
    const int levels = tree_.met(settings_, step);
    if (levels == 0) return false;
    moved_ = {};
    for (int level = 1; level <= levels; ++level)
      for (int node = 0; node < tree_.nodes(level); ++node) meet(level, node, local);
    ++meetings_;
    return true;
  }

  void model(std::span<const ReplicaValues>, std::span<float> weights) override {
    if (map_.rank() == 0) std::ranges::copy(center(tree_.levels(), 0), weights.begin());
    communicator_.broadcast(std::as_writable_bytes(weights), 0);
  }

  /// Returns each level's centre, valid where the node is kept with the replica; elsewhere it is
  /// unused.
  std::vector<OwnValues> own() override {
    std::vector<OwnValues> all;
    for (size_t level = 0; level < centers_.size(); ++level) {
      OwnValues& values = all.emplace_back(OwnValues{fmt::format("center{}", level + 1), {}});
      for (auto& center : centers_[level]) values.of_local.push_back(center.as<float>().data());
    }
    return all;
  }

 private:
  int rank_of(int level, int node) const { return map_.owner(tree_.first(level, node)); }

  /// Returns the weights of a node that is kept on this rank.
  std::span<float> center(int level, int node) {
    return centers_[static_cast<size_t>(level - 1)]
                   [static_cast<size_t>(tree_.first(level, node) - map_.owned().lo)]
                       .as<float>();
  }
  /// Returns a node's weights, or a replica's.
  std::span<float> values(int level, int node, std::span<const ReplicaValues> local) {
    if (level > 0) return center(level, node);
    return {local[static_cast<size_t>(node - map_.owned().lo)].parameters, floats_};
  }

  void meet(int level, int node, std::span<const ReplicaValues> local) {
    const int here = map_.rank(), place = rank_of(level, node);
    const int begin = tree_.first_child(node), end = tree_.end_child(level, node);
    std::vector<std::pair<int, std::unique_ptr<comm::MessageOperation>>> messages;
    const auto message = [&](bool sends, int child, int peer, std::span<float> data) {
      const comm::MessageSpec spec{
          .name = fmt::format("weights of node {} of level {}", child, level - 1),
          .peer = peer,
          .tag = child,
          .data = std::as_writable_bytes(data)};
      messages.emplace_back(
          child, sends ? communicator_.plan_send(spec) : communicator_.plan_receive(spec));
      messages.back().second->start();
      if (sends) bytes_sent_ += static_cast<int64_t>(spec.data.size());
    };
    const auto finish = [&] {
      for (auto& [child, operation] : messages) operation->wait();
      messages.clear();
    };
    const auto elsewhere = [&](int child) { return rank_of(level - 1, child) != place; };
    const auto each_message = [&](bool up) {
      for (int child = begin; child < end; ++child) {
        if (!elsewhere(child)) continue;
        const int of_child = rank_of(level - 1, child);
        if (place == here)
          message(!up, child, of_child, received(child - begin));
        else if (of_child == here)
          message(up, child, place, values(level - 1, child, local));
      }
      finish();
    };
    each_message(true);
    if (place == here) {
      std::vector<std::span<float>> children;
      for (int child = begin; child < end; ++child)
        children.push_back(elsewhere(child) ? std::span<float>(received(child - begin))
                                            : values(level - 1, child, local));
      draw(center(level, node), children, level == 1);
    }
    each_message(false);
  }

  std::vector<float>& received(int index) {
    std::vector<float>& values = received_[static_cast<size_t>(index)];
    values.resize(floats_);
    return values;
  }

  void draw(std::span<float> center, const std::vector<std::span<float>>& children, bool replicas) {
    given_.assign(floats_, 0.0f);
    for (const std::span<float> w : children)
      for (size_t k = 0; k < floats_; ++k) {
        const float given = alpha_ * (w[k] - center[k]);
        w[k] -= given;
        given_[k] += given;
        if (!replicas) continue;
        moved_.squares += static_cast<double>(given) * static_cast<double>(given);
        moved_.of += static_cast<double>(w[k]) * static_cast<double>(w[k]);
      }
    for (size_t k = 0; k < floats_; ++k) center[k] += given_[k];
  }

  const MeetingSettings settings_;
  comm::Communicator& communicator_;
  const exchange::ReplicaMap map_;
  const size_t floats_;
  const CenterTree tree_;
  const float alpha_;
  std::vector<std::vector<device::Buffer>> centers_;  // by level from 1 on, and by local replica
  std::vector<std::vector<float>> received_;          // from children on other ranks
  std::vector<float> given_;
};

}  // namespace

CenterTree::CenterTree(int replicas, int children) : children_(children) {
  CHECK(children > 1, "a tree of {} children", children);
  std::vector<int>& leaves = first_.emplace_back();
  for (int r = 0; r < replicas; ++r) leaves.push_back(r);
  do {
    const std::vector<int> below = first_.back();
    std::vector<int>& level = first_.emplace_back();
    for (size_t node = 0; node < below.size(); node += static_cast<size_t>(children))
      level.push_back(below[node]);
  } while (first_.back().size() > 1);
}

std::unique_ptr<Meeting> make_tree_meeting(const MeetingSettings& settings,
                                           comm::Communicator& communicator,
                                           const exchange::ReplicaMap& map, size_t floats) {
  return std::make_unique<TreeMeeting>(settings, communicator, map, floats);
}

}  // namespace tutti::sync
