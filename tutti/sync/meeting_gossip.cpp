#include "tutti/sync/meeting_kinds.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "tutti/base/error.h"
#include "tutti/base/log.h"
#include "tutti/base/numeric/rng.h"
#include "tutti/comm/communicator.h"
#include "tutti/exchange/average.h"

namespace tutti::sync {
namespace {

/// GoSGD (Blot, Picard, Cord, Thome 2016, algorithms 3 and 4). Each replica has a share, initially
/// 1 / R. After its step, with probability p, it halves its share and sends its weights with the
/// other half to a random other replica. A replica that receives weights w_j with share a_j takes
///   w_i <- (a_i w_i + a_j w_j) / (a_i + a_j), a_i <- a_i + a_j
/// so the shares, including those in flight, sum to 1, and the sum of a w is conserved. Weights
/// that are sent after a step arrive after the next one: a message has a step's time, and the
/// results do not depend on its speed. Senders and receivers are a function of the seed, so every
/// rank knows all shares and when to expect a message.
class GossipMeeting final : public Meeting {
 public:
  GossipMeeting(const MeetingSettings& settings, comm::Communicator& communicator,
                const exchange::ReplicaMap& map, size_t floats)
      : settings_(settings), communicator_(communicator), map_(map), floats_(floats),
        average_(communicator, map, floats),
        shares_(static_cast<size_t>(map.replicas()), 1.0 / map.replicas()),
        flights_(static_cast<size_t>(map.replicas())) {
    if (map.replicas() > comm::MessageSpec::kMostTag)
      throw ConfigError(fmt::format("sync.scheme = \"gossip\": {} replicas, at most {} can meet",
                                    map.replicas(), comm::MessageSpec::kMostTag));
    for (int local = 0; local < map.local_count(); ++local)
      flight_of(map.replica(local)).weights = settings.room(floats);
  }

  /// Messages in flight belong to this rank's communicator until they have arrived.
  ~GossipMeeting() override {
    if (std::uncaught_exceptions() > 0) return;
    try {
      for (Flight& flight : flights_)
        if (flight.message) flight.message->wait();
    } catch (const std::exception& error) {
      log::warn("weights that were sent last have not arrived: {}", error.what());
    }
  }

  void begin(std::span<const ReplicaValues>, bool) override {
    for (int replica = 0; replica < map_.replicas(); ++replica)
      if (flight_of(replica).to >= 0) send(replica);  // resend messages of the interrupted run
  }

  void before(int64_t, std::span<const ReplicaValues>) override {}
  bool after(int64_t step, double, std::span<const ReplicaValues> local) override {
    const auto arrivals =
        std::ranges::count_if(flights_, [](const Flight& f) { return f.to >= 0; });
    if (arrivals > 0) moved_ = {};  // the same on all ranks, like the counts
    meetings_ += arrivals;
    bool changed = false;
    for (int from = 0; from < map_.replicas(); ++from) changed |= arrive(from, local);
    for (int from = 0; from < map_.replicas(); ++from) {
      const auto to = gossip_to(settings_, map_.replicas(), from, step);
      if (!to) continue;
      Flight& flight = flight_of(from);
      flight.to = *to;
      share_of(from) /= 2;
      flight.share = share_of(from);
      if (map_.owner(from) == map_.rank())
        std::copy_n(local[local_of(from)].parameters, floats_, flight.values());
      send(from);
    }
    return changed;
  }

  /// Weights each replica by its share, so that values which no step has changed count once,
  /// whether in flight or not.
  void model(std::span<const ReplicaValues> local, std::span<float> weights) override {
    std::ranges::copy(average_.average([&](int i, std::span<float> place) {
      const int replica = map_.replica(i);
      const Flight& flight = flight_of(replica);
      const auto own = static_cast<float>(share_of(replica) * map_.replicas()),
                 sent = flight.to < 0 ? 0.0f : static_cast<float>(flight.share * map_.replicas());
      const float* const w = local[static_cast<size_t>(i)].parameters;
      const float* const under_way = flight.values();
      for (size_t k = 0; k < place.size(); ++k)
        place[k] = own * w[k] + (sent == 0 ? 0 : sent * under_way[k]);
    }),
                      weights.begin());
  }

  std::vector<OwnValues> own() override {
    OwnValues sent{"sent", {}};
    for (int local = 0; local < map_.local_count(); ++local)
      sent.of_local.push_back(flight_of(map_.replica(local)).values());
    return {sent};
  }

  void save(std::map<std::string, double>& metrics) const override {
    for (int r = 0; r < map_.replicas(); ++r) {
      const auto i = static_cast<size_t>(r);
      metrics[fmt::format("gossip.{}.share", r)] = shares_[i];
      if (flights_[i].to < 0) continue;
      metrics[fmt::format("gossip.{}.sent", r)] = flights_[i].share;
      metrics[fmt::format("gossip.{}.to", r)] = flights_[i].to;
    }
  }
  bool restore(const std::map<std::string, double>& metrics) override {
    const auto last = fmt::format("gossip.{}.share", map_.replicas() - 1);
    if (!metrics.contains(last) ||
        metrics.contains(fmt::format("gossip.{}.share", map_.replicas())))
      return false;
    for (int r = 0; r < map_.replicas(); ++r) {
      share_of(r) = metrics.at(fmt::format("gossip.{}.share", r));
      const auto sent = metrics.find(fmt::format("gossip.{}.sent", r));
      if (sent == metrics.end()) continue;
      flight_of(r).share = sent->second;
      flight_of(r).to = static_cast<int>(metrics.at(fmt::format("gossip.{}.to", r)));
    }
    return true;
  }

 private:
  /// A message that a replica has sent, known on both replicas' ranks.
  struct Flight {
    int to = -1;  // -1: no message
    double share = 0;
    device::Buffer weights;
    std::unique_ptr<comm::MessageOperation> message;  // between two ranks

    float* values() const { return reinterpret_cast<float*>(weights.data()); }
  };
  Flight& flight_of(int replica) { return flights_[static_cast<size_t>(replica)]; }
  double& share_of(int replica) { return shares_[static_cast<size_t>(replica)]; }
  size_t local_of(int replica) const { return static_cast<size_t>(replica - map_.owned().lo); }

  void send(int from) {
    Flight& flight = flight_of(from);
    const int source = map_.owner(from), target = map_.owner(flight.to);
    if (source == target || (source != map_.rank() && target != map_.rank())) return;
    if (flight.weights.bytes() == 0) flight.weights = settings_.room(floats_);
    const bool sends = source == map_.rank();
    const comm::MessageSpec spec{.name = fmt::format("weights of replica {}", from),
                                 .peer = sends ? target : source,
                                 .tag = from,
                                 .data = {flight.weights.data(), flight.weights.bytes()}};
    flight.message = sends ? communicator_.plan_send(spec) : communicator_.plan_receive(spec);
    flight.message->start();
    if (sends) bytes_sent_ += static_cast<int64_t>(spec.data.size());
  }

  /// Returns whether it has changed the weights of a replica on this rank.
  bool arrive(int from, std::span<const ReplicaValues> local) {
    Flight& flight = flight_of(from);
    if (flight.to < 0) return false;
    if (flight.message) flight.message->wait();
    flight.message.reset();
    const int to = std::exchange(flight.to, -1);
    double& share = share_of(to);
    const double all = share + flight.share;
    const bool here = map_.owner(to) == map_.rank();
    if (here) {
      const auto part = static_cast<float>(flight.share / all);
      float* const w = local[local_of(to)].parameters;
      const float* const come = flight.values();
      mixed_.resize(floats_);
      for (size_t k = 0; k < floats_; ++k) mixed_[k] = w[k] + part * (come[k] - w[k]);
      move(mixed_, w);
    }
    share = all;
    if (here && map_.owner(from) != map_.rank()) flight.weights = {};  // another sends next
    return here;
  }

  const MeetingSettings settings_;
  comm::Communicator& communicator_;
  const exchange::ReplicaMap map_;
  const size_t floats_;
  exchange::ReplicaAverage average_;
  std::vector<double> shares_;   // by replica
  std::vector<Flight> flights_;  // by sender
  std::vector<float> mixed_;
};

}  // namespace

std::optional<int> gossip_to(const MeetingSettings& settings, int replicas, int replica,
                             int64_t step) {
  if (replicas < 2) return std::nullopt;
  Rng rng(settings.seed, Purpose::gossip,
          static_cast<uint64_t>(step) << 24 | static_cast<uint64_t>(replica));
  if (static_cast<double>(rng.uniform()) >= settings.probability) return std::nullopt;
  const auto other = static_cast<int>(rng.below(static_cast<uint32_t>(replicas - 1)));
  return other < replica ? other : other + 1;
}

std::unique_ptr<Meeting> make_gossip_meeting(const MeetingSettings& settings,
                                             comm::Communicator& communicator,
                                             const exchange::ReplicaMap& map, size_t floats) {
  return std::make_unique<GossipMeeting>(settings, communicator, map, floats);
}

}  // namespace tutti::sync
