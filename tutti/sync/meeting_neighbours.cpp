#include "tutti/sync/meeting_kinds.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "tutti/base/error.h"
#include "tutti/comm/communicator.h"
#include "tutti/exchange/average.h"

namespace tutti::sync {
namespace {

/// Returns the number of rows of the squarest possible grid.
int torus_rows(int replicas) {
  int rows = static_cast<int>(std::sqrt(static_cast<double>(replicas)));
  while (replicas % rows != 0) --rows;
  return rows;
}

/// Returns the number of distances at which a replica receives from others in turn: 1, 2, 4, ...
/// below `replicas`.
int64_t distances_of(int replicas) {
  return std::max(static_cast<int>(std::bit_width(static_cast<unsigned>(replicas - 1))), 1);
}

/// D-PSGD (Lian et al. 2017, algorithm 1): the weights before the step are averaged with the
/// neighbours', and the step's own change is added. So they are sent while the step is computed.
class NeighbourMeeting final : public Meeting {
 public:
  NeighbourMeeting(const MeetingSettings& settings, comm::Communicator& communicator,
                   const exchange::ReplicaMap& map, size_t floats)
      : settings_(settings), every_(settings.every), graph_(settings.graph), floats_(floats),
        map_(map), average_(communicator, map, floats) {
    if (map.replicas() > comm::MessageSpec::kMostTag)
      throw ConfigError(fmt::format("sync.scheme = \"dpsgd\": {} replicas, at most {} can meet",
                                    map.replicas(), comm::MessageSpec::kMostTag));
    for (int local = 0; local < map.local_count(); ++local)
      before_[map.replica(local)] = settings.room(floats);
    const int64_t graphs = graph_ == MixingGraph::exponential ? distances_of(map.replicas()) : 1;
    for (int64_t round = 0; round < graphs; ++round) plan(communicator, round);
  }

  void begin(std::span<const ReplicaValues>, bool) override {}
  void before(int64_t step, std::span<const ReplicaValues> local) override {
    if ((step + 1) % every_ != 0) return;
    for (int i = 0; i < map_.local_count(); ++i)
      std::copy_n(local[static_cast<size_t>(i)].parameters, floats_,
                  weights_before(map_.replica(i)));
    for (auto& message : messages_of(step)) message->start();
  }

  bool after(int64_t step, double, std::span<const ReplicaValues> local) override {
    if ((step + 1) % every_ != 0) return false;
    for (auto& message : messages_of(step)) message->wait();
    moved_ = {};
    for (int i = 0; i < map_.local_count(); ++i)
      mix(map_.replica(i), meeting_of(step), local[static_cast<size_t>(i)].parameters);
    bytes_sent_ +=
        sends_[static_cast<size_t>(index_of(step))] * static_cast<int64_t>(floats_ * sizeof(float));
    ++meetings_;
    return true;
  }

  void model(std::span<const ReplicaValues> local, std::span<float> weights) override {
    std::ranges::copy(average_.average([&](int i, std::span<float> place) {
      std::copy_n(local[static_cast<size_t>(i)].parameters, place.size(), place.data());
    }),
                      weights.begin());
  }

 private:
  using Messages = std::vector<std::unique_ptr<comm::MessageOperation>>;

  int64_t meeting_of(int64_t step) const { return (step + 1) / every_ - 1; }
  int64_t index_of(int64_t step) const {
    return meeting_of(step) % static_cast<int64_t>(messages_.size());
  }
  Messages& messages_of(int64_t step) { return messages_[static_cast<size_t>(index_of(step))]; }

  /// Plans the messages of one graph of the cycle: each replica is sent once to every rank that
  /// uses it.
  void plan(comm::Communicator& communicator, int64_t round) {
    std::set<std::pair<int, int>> sent, received;  // replica and rank, replica alone
    for (int listener = 0; listener < map_.replicas(); ++listener)
      for (const MixingWeight& source : mixing_row(graph_, map_.replicas(), listener, round)) {
        const int to = map_.owner(listener), from = map_.owner(source.replica);
        if (to == from) continue;
        if (from == map_.rank()) sent.insert({source.replica, to});
        if (to == map_.rank()) received.insert({source.replica, from});
      }
    Messages& messages = messages_.emplace_back();
    const auto spec = [&](int replica, int peer) {
      device::Buffer& values = before_[replica];
      if (values.bytes() == 0) values = settings_.room(floats_);
      return comm::MessageSpec{.name = fmt::format("weights of replica {}", replica),
                               .peer = peer,
                               .tag = replica,
                               .data = {values.data(), values.bytes()}};
    };
    for (const auto& [replica, rank] : received)
      messages.push_back(communicator.plan_receive(spec(replica, rank)));
    for (const auto& [replica, rank] : sent)
      messages.push_back(communicator.plan_send(spec(replica, rank)));
    sends_.push_back(static_cast<int64_t>(sent.size()));
  }

  float* weights_before(int replica) const {
    return reinterpret_cast<float*>(before_.at(replica).data());
  }

  /// Adds the difference between the neighbours' average before the step and the replica's own
  /// weights at that time.
  void mix(int replica, int64_t round, float* weights) {
    const auto row = mixing_row(graph_, map_.replicas(), replica, round);
    const float* const own = weights_before(replica);
    std::vector<const float*> source;
    for (const MixingWeight& entry : row) source.push_back(weights_before(entry.replica));
    mixed_.resize(floats_);
    for (size_t k = 0; k < floats_; ++k) {
      float mean = 0;
      for (size_t e = 0; e < row.size(); ++e) mean += row[e].weight * source[e][k];
      mixed_[k] = weights[k] + (mean - own[k]);
    }
    move(mixed_, weights);
  }

  const MeetingSettings settings_;
  const int64_t every_;
  const MixingGraph graph_;
  const size_t floats_;
  const exchange::ReplicaMap map_;
  exchange::ReplicaAverage average_;
  std::map<int, device::Buffer> before_;  // by replica: local ones, and received ones
  std::vector<Messages> messages_;        // by graph of the cycle
  std::vector<int64_t> sends_;
  std::vector<float> mixed_;
};

}  // namespace

std::vector<MixingWeight> mixing_row(MixingGraph graph, int replicas, int replica,
                                     int64_t meeting) {
  std::vector<int> source{replica};  // with few replicas some occur more than once
  const auto around = [](int at, int extent) { return (at % extent + extent) % extent; };
  switch (graph) {
    case MixingGraph::ring:
      source.push_back(around(replica - 1, replicas));
      source.push_back(around(replica + 1, replicas));
      break;
    case MixingGraph::torus: {
      const int rows = torus_rows(replicas), columns = replicas / rows;
      const int row = replica / columns, column = replica % columns;
      for (const int step : {-1, 1}) {
        source.push_back(around(row + step, rows) * columns + column);
        source.push_back(row * columns + around(column + step, columns));
      }
      break;
    }
    case MixingGraph::exponential: {
      const int distance = 1 << (meeting % distances_of(replicas));
      source.push_back(around(replica + distance, replicas));
      break;
    }
  }
  std::map<int, int> times;
  for (const int other : source) ++times[other];
  std::vector<MixingWeight> row;
  for (const auto& [other, count] : times)
    row.push_back({other, static_cast<float>(count) / static_cast<float>(source.size())});
  return row;
}

std::unique_ptr<Meeting> make_neighbour_meeting(const MeetingSettings& settings,
                                                comm::Communicator& communicator,
                                                const exchange::ReplicaMap& map, size_t floats) {
  return std::make_unique<NeighbourMeeting>(settings, communicator, map, floats);
}

}  // namespace tutti::sync
