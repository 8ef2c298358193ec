#include "tutti/comm/communicator.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <ctime>
#include <limits>
#include <thread>

#include "tutti/base/error.h"
#include "tutti/comm/shm/shared_reduction.h"
#include "tutti/comm/spin.h"

namespace tutti::comm {
namespace {

using Clock = std::chrono::steady_clock;

// How long a wait spins before it offers its core to others between two looks. Where every rank has a core, long enough to cover
// the exchange of a bucket: on a busy machine a core that is given away comes back milliseconds later. Where ranks share cores, the
// one that is waited for may need this very core.
constexpr auto kSpinAlone = std::chrono::milliseconds(1);
constexpr auto kSpinSharing = std::chrono::microseconds(50);
constexpr auto kLookAtPeers = std::chrono::milliseconds(500);

// Of the node, not of this rank's binding.
int cores() {
  static const int online = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  return online;
}

std::string time_of_day(std::time_t when) {
  std::tm parts{};
  localtime_r(&when, &parts);
  return fmt::format("{:02}:{:02}:{:02}", parts.tm_hour, parts.tm_min, parts.tm_sec);
}

// The sum of one rank is its own single part: nothing moves.
class LocalReduction final : public Reduction {
 public:
  LocalReduction(Communicator& communicator, const ReductionSpec& spec) : Reduction(communicator, spec) {}
  const float* result() const override { return spec().result != nullptr ? spec().result : spec().parts[0]; }
  size_t bytes_moved() const override { return 0; }

 protected:
  void begin() override {
    if (spec().result != nullptr && spec().result != spec().parts[0])
      std::memcpy(spec().result, spec().parts[0], spec().count * sizeof(float));
  }
  bool advance() override { return true; }
  Pending pending() const override { return {}; }
};

uint64_t fingerprint(const ReductionSpec& spec) {
  uint64_t hash = 14695981039346656037u;  // FNV-1a
  const auto mix = [&hash](uint64_t value) {
    for (int byte = 0; byte < 8; ++byte) hash = (hash ^ (value >> (8 * byte) & 0xFF)) * 1099511628211u;
  };
  for (const char c : spec.name) mix(static_cast<unsigned char>(c));
  mix(spec.count);
  mix(static_cast<uint64_t>(spec.replicas));
  for (const int f : spec.first) mix(static_cast<uint64_t>(f));
  return hash;
}

}  // namespace

Communicator::~Communicator() = default;

void Communicator::set_places(std::vector<Place> places) {
  CHECK(places.size() == static_cast<size_t>(size_));
  places_ = std::move(places);
  local_rank_ = local_size_ = 0;
  for (int p = 0; p < size_; ++p)
    if (place(p).node == place(rank_).node) {
      if (p < rank_) ++local_rank_;
      ++local_size_;
    }
}

std::string Communicator::who() const { return fmt::format("rank {}/{} on {}", rank_, size_, host()); }

std::string Communicator::signed_message(const std::string& message) const {
  return message.starts_with(who()) ? message : who() + ": " + message;
}

const char* Communicator::name_of(Collective kind) {
  switch (kind) {
    case Collective::barrier: return "barrier";
    case Collective::broadcast: return "broadcast";
    case Collective::allgather: return "allgather";
  }
  return "unknown operation";
}

void Communicator::barrier() { gather_all(Collective::barrier, {}, {}); }

void Communicator::broadcast(std::span<std::byte> data, int root) {
  CHECK(0 <= root && root < size_, "root {} of {}", root, size_);
  if (size_ > 1) spread(data, root);
}

void Communicator::allgather(std::span<const std::byte> mine, std::span<std::byte> all) {
  CHECK(all.size() == mine.size() * static_cast<size_t>(size_), "{} bytes of room for {} x {}", all.size(), size_, mine.size());
  gather_all(Collective::allgather, mine, all);
}

void Communicator::sum(std::span<double> values) {
  if (size_ == 1) return;
  const size_t n = values.size();
  std::vector<double> all(n * static_cast<size_t>(size_));
  allgather(std::as_bytes(values), std::as_writable_bytes(std::span(all)));
  const TreeSum tree(size_, all_parts(size_, first_replicas(size_, size_)));
  std::vector<double> column(static_cast<size_t>(size_));
  for (size_t i = 0; i < n; ++i) {
    for (size_t p = 0; p < column.size(); ++p) column[p] = all[p * n + i];
    values[i] = tree.evaluate(column);
  }
}

void Communicator::check_spec(const ReductionSpec& spec) const {
  CHECK(spec.count <= static_cast<size_t>(std::numeric_limits<int>::max()) / 2, "bucket '{}' of {} floats is too large", spec.name, spec.count);
  CHECK(spec.window != nullptr, "reduction '{}' has no window", spec.name);
  CHECK(spec.first.size() == static_cast<size_t>(size_) + 1 && spec.first.front() == 0 && spec.first.back() == spec.replicas,
        "reduction '{}': the table of first replicas does not cover {} replicas on {} ranks", spec.name, spec.replicas, size_);
  const auto mine = static_cast<size_t>(rank_);
  const size_t parts = maximal_subtrees(spec.replicas, {spec.first[mine], spec.first[mine + 1]}).size();
  CHECK(spec.parts.size() == parts, "reduction '{}': {} parts given, the range has {}", spec.name, spec.parts.size(), parts);
  for (const float* part : spec.parts)
    CHECK(spec.window->contains(part, spec.count * sizeof(float)), "reduction '{}': a part lies outside its window", spec.name);
}

std::unique_ptr<Reduction> Communicator::plan_reduction(const ReductionSpec& spec) {
  check_spec(spec);
  if (size_ == 1) return std::make_unique<LocalReduction>(*this, spec);
  const std::vector<uint64_t> prints = allgather_value(fingerprint(spec));
  for (int p = 0; p < size_; ++p)
    if (prints[static_cast<size_t>(p)] != prints[0])
      throw CommError(fmt::format(
          "reduction '{}': rank {} on {} plans another sum than rank 0 (name, size, replicas or distribution differ); "
          "all ranks need the same configuration and the same program", spec.name, p, host(p)));
  if (spec.window->shared()) return std::make_unique<SharedReduction>(*this, spec);
  return make_reduction(spec);
}

void Communicator::progress() {
  // test() takes a finished reduction off the list, so the index moves only past unfinished ones.
  for (size_t i = 0; i < in_flight_.size();)
    if (!in_flight_[i]->test()) ++i;
}

void Communicator::wait_for(const std::function<bool()>& done, const std::function<Pending()>& pending, double grace) {
  const auto begin = Clock::now();
  const std::time_t since = std::time(nullptr);
  const std::chrono::nanoseconds spin = local_size_ > cores() ? kSpinSharing : kSpinAlone;
  auto next_look = begin + kLookAtPeers;
  const auto fail = [&](const Pending& what, const std::string& how) {
    std::string missing;
    for (const int p : what.missing) missing += fmt::format("{}rank {} on {}", missing.empty() ? "" : ", ", p, host(p));
    throw CommError(fmt::format("{}: {} number {}: {}; waiting since {}; arrived: {}; not arrived: {}", who(), what.operation, what.sequence, how, time_of_day(since),
                                what.arrived.empty() ? "none" : (what.arrived.size() > 1 ? "ranks " : "rank ") + rank_list(what.arrived), missing.empty() ? "none" : missing));
  };
  for (;;) {
    for (int i = 0; i < 32; ++i) {
      if (done()) return;
      spin_pause();
    }
    progress();
    const auto now = Clock::now();
    if (now - begin > spin) std::this_thread::yield();
    if (now >= next_look) {
      next_look = now + kLookAtPeers;
      if (!lost_peer(pending().missing).empty()) {
        // It may have done its share and left between the two questions; what it did is visible now if so.
        if (done()) return;
        const Pending what = pending();
        if (const std::string lost = lost_peer(what.missing); !lost.empty()) fail(what, lost);
      }
    }
    if (std::chrono::duration<double>(now - begin).count() > timeout_ + grace)
      fail(pending(), fmt::format("no answer within {:g} s (a rank that is slow, stuck, or was started with another configuration)", timeout_ + grace));
  }
}

std::string rank_list(std::span<const int> ranks) {
  std::string text;
  for (size_t i = 0; i < ranks.size();) {
    size_t j = i;
    while (j + 1 < ranks.size() && ranks[j + 1] == ranks[j] + 1) ++j;
    text += text.empty() ? "" : ", ";
    text += j > i ? fmt::format("{}-{}", ranks[i], ranks[j]) : fmt::format("{}", ranks[i]);
    i = j + 1;
  }
  return text;
}

}  // namespace tutti::comm
