// Communicator::wait_for: the loop behind every wait, and the report when a wait fails.

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <optional>
#include <thread>

#include "tutti/base/error.h"
#include "tutti/base/log.h"
#include "tutti/base/running_time.h"
#include "tutti/comm/communicator.h"
#include "tutti/comm/spin.h"

namespace tutti::comm {
namespace {

using Clock = std::chrono::steady_clock;

// How long a wait spins before it offers its core to others between two polls. Where every rank has
// a core, this covers the exchange of a bucket: on a busy machine a core that is given away comes
// back milliseconds later. Where ranks share cores, the awaited rank may need this very core.
constexpr auto kSpinAlone = std::chrono::milliseconds(1);
constexpr auto kSpinSharing = std::chrono::microseconds(50);
// Polls between two offers of the core. Where ranks share cores, a poll that calls the system, as
// over TCP, costs as much as an offer, so the core is offered after few polls: the awaited work may
// belong to a rank that has no core. This halves the time of exchanges of 1 to 64 KiB by four ranks
// on two cores.
constexpr int kLooks = 32, kLooksStalled = 8, kLooksOfSystem = 2;
constexpr auto kLookInMemory = std::chrono::nanoseconds(500);
constexpr auto kLookAround = std::chrono::milliseconds(200);
// A yield or a nap that takes kSlowYield too long shows that others queue for this core. For the
// next kCrowded the thread naps: a thread that yields runs after all others have used their whole
// time slices, a thread that wakes is served first. With ten times as many runnable threads as
// cores the waits of nine ranks end four times as soon.
constexpr auto kSlowYield = std::chrono::milliseconds(1);
constexpr auto kCrowded = std::chrono::seconds(1);
constexpr auto kNap = std::chrono::microseconds(20);
constexpr auto kCrowdedNap = std::chrono::milliseconds(1);
// A wait that lasts longer than kLongExchange is mostly for a rank that computes. Its naps grow,
// and it also naps where ranks share cores. Naps that grew from the start delayed each round of an
// exchange: 16 MiB among four ranks on two cores took a fifth longer.
constexpr auto kLongExchange = std::chrono::milliseconds(10);
// A wait that lasts longer than kStalled is mostly for a rank that computes, starts, is stopped or
// is gone. It naps, so that others have its core; messages are found that much later.
constexpr auto kStalled = std::chrono::milliseconds(500);
constexpr auto kStalledNap = std::chrono::microseconds(100);
// Where no message has come for kSilent, a further delay does not matter, and naps of 0.1 ms would
// take a sixth of a core.
constexpr auto kSilent = std::chrono::seconds(5);
constexpr auto kSilentNap = std::chrono::milliseconds(1);
constexpr auto kLongNap = std::chrono::milliseconds(10);  // longest nap of a patient wait
constexpr size_t kNamedRanks = 16;  // a longer list of ranks is cut to this many with their hosts

// Counts the cores of the node, not only the cores that this rank is bound to.
int cores() {
  static const int online = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  return online;
}

// Naps or yields after a wait that has lasted `waited`, of which `silent` without a message. A rank
// that waits for long leaves the core to others: in a crowd naps grow to a tenth of the wait.
void give_core_away(Clock::duration waited, Clock::duration silent, bool is_sharing) {
  static thread_local Clock::time_point crowded_until{};
  const auto now = Clock::now();
  Clock::duration nap{};
  if (now < crowded_until || (is_sharing && waited > kLongExchange))
    nap = std::clamp<Clock::duration>((waited - kLongExchange) / 10, kNap, kCrowdedNap);
  else if (waited > kStalled)
    nap = silent > kSilent ? kSilentNap : kStalledNap;
  if (nap > Clock::duration::zero())
    std::this_thread::sleep_for(nap);
  else
    std::this_thread::yield();
  if (const auto back = Clock::now(); back - now > nap + kSlowYield)
    crowded_until = back + kCrowded;
}

std::string time_of_day(std::time_t when) {
  std::tm parts{};
  localtime_r(&when, &parts);
  return fmt::format("{:02}:{:02}:{:02}", parts.tm_hour, parts.tm_min, parts.tm_sec);
}

std::string plural(std::span<const int> ranks) {
  return ranks.empty() ? "none" : (ranks.size() > 1 ? "ranks " : "rank ") + rank_list(ranks);
}

}  // namespace

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

std::vector<int> Communicator::job_ranks(std::span<const int> ranks) const {
  std::vector<int> all;
  for (const int p : ranks) all.push_back(job_rank(p));
  std::ranges::sort(all);
  return all;
}

std::string Communicator::who() const {
  return fmt::format("rank {}/{} on {}", job_rank(rank_), job_size_, host());
}

std::string Communicator::rank_name(int rank) const {
  return fmt::format("rank {} on {}", job_rank(rank), host(rank));
}

std::string Communicator::describe_group() const {
  std::vector<int> ranks = job_ranks_;
  std::ranges::sort(ranks);
  return fmt::format("group '{}' ({})", name_, plural(ranks));
}

std::string Communicator::report(const Pending& what, const std::string& how,
                                 std::time_t since) const {
  std::string missing;
  for (size_t i = 0; i < std::min(what.missing.size(), kNamedRanks); ++i)
    missing += (missing.empty() ? "" : ", ") + rank_name(what.missing[i]);
  if (what.missing.size() > kNamedRanks)
    missing += " and ranks " + rank_list(job_ranks(std::span(what.missing).subspan(kNamedRanks)));
  std::vector<int> unknown;
  for (int p = 0; p < size_; ++p)
    if (std::ranges::find(what.arrived, p) == what.arrived.end() &&
        std::ranges::find(what.missing, p) == what.missing.end())
      unknown.push_back(p);
  return fmt::format(
      "{}: {}: {} number {}: {}; waiting since {}; arrived: {}; not arrived: {}{}{}", who(),
      describe_group(), what.operation, what.sequence, how, time_of_day(since),
      plural(job_ranks(what.arrived)), missing.empty() ? "none" : missing,
      unknown.empty()
          ? ""
          : fmt::format("; not known to this rank, which exchanges nothing with them now: {}",
                        plural(job_ranks(unknown))),
      patience_.empty() ? "" : "; " + patience_);
}

/// One call of wait_for().
class Communicator::Wait {
 public:
  Wait(Communicator& communicator, const std::function<bool()>& done,
       const std::function<Pending()>& pending, double grace)
      : c_(communicator), done_(done), pending_(pending), allowed_(c_.timeout_ + grace),
        is_sharing_(c_.places_.sharing_cores() > cores()), limit_(allowed_),
        looks_(is_sharing_ ? kLooksOfSystem : kLooks) {}

  void run() {
    for (;;) {
      if (look()) return;
      c_.progress_->pass();
      const auto now = Clock::now();
      count_looks(now);
      forgive_stop(now);
      give_way(now);
      if (now >= next_look_) {
        next_look_ = now + kLookAround;
        if (look_around()) return;
      }
      check_limit(now);
    }
  }

 private:
  /// Returns whether the wait is done.
  bool look() {
    for (int i = 0; i < looks_; ++i) {
      if (done_()) return true;
      c_.progress_->work().help();
      spin_pause();
    }
    return false;
  }

  /// A poll may call the system, with a wire over TCP. Each takes in all that a socket holds, so
  /// that naps do not slow a long transfer.
  void count_looks(Clock::time_point now) {
    const bool asks_system = now - last_ > looks_ * kLookInMemory;
    looks_ = now - begin_ > kStalled      ? kLooksStalled
             : is_sharing_ && asks_system ? kLooksOfSystem
                                          : kLooks;
  }

  /// Discounts time in which this process was stopped, as by Ctrl-Z, and the others with it: no
  /// rank could answer then.
  void forgive_stop(Clock::time_point now) {
    if (now - last_ > RunningTime::kStopped) {
      begin_ += now - last_;
      answered_ += now - last_;
    }
    last_ = now;
  }

  void give_way(Clock::time_point now) {
    const std::chrono::nanoseconds spin = is_sharing_ ? kSpinSharing : kSpinAlone;
    if (!c_.patience_.empty())
      std::this_thread::sleep_for(std::min<Clock::duration>((now - begin_) / 10, kLongNap));
    else if (now - begin_ > spin || looks_ == kLooksOfSystem)
      give_core_away(now - begin_, now - answered_, is_sharing_);
  }

  /// Returns whether the wait is done. A rank may have done its share and left, or given up,
  /// between two looks: a completed share counts first.
  bool look_around() {
    Pending now = pending_();
    // Something has come since the last look: the answer is on its way, however long it takes.
    // Messages before the first look are not known, so the time-out begins there.
    if (before_ != now) {
      answered_ = Clock::now();
      limit_ = allowed_;
    }
    before_ = std::move(now);
    if (c_.lost_peer(before_->missing).empty() && c_.alarm().empty()) return false;
    if (done_()) return true;
    const Pending what = pending_();
    if (const std::string lost = c_.lost_peer(what.missing); !lost.empty()) fail(what, lost);
    if (const std::string other = c_.alarm(); !other.empty()) fail(what, other);
    return false;
  }

  void check_limit(Clock::time_point now) {
    if (std::chrono::duration<double>(now - answered_).count() <= limit_) return;
    const std::string how = fmt::format(
        "no answer within {:g} s (a rank that is slow, stuck, or was started with another "
        "configuration)",
        limit_);
    if (c_.on_timeout_ == OnTimeout::abort) fail(pending_(), how);
    log::warn("{}; waiting goes on, as comm.on_timeout asks", c_.report(pending_(), how, since_));
    limit_ *= 2;  // a wait of an hour needs no line a minute from each rank
  }

  [[noreturn]] void fail(const Pending& what, const std::string& how) {
    c_.raise_alarm();
    throw CommError(c_.report(what, how, since_));
  }

  Communicator& c_;
  const std::function<bool()>& done_;
  const std::function<Pending()>& pending_;
  const double allowed_;  // seconds without a message
  const bool is_sharing_;
  const std::time_t since_ = std::time(nullptr);
  Clock::time_point begin_ = Clock::now(), last_ = begin_, answered_ = begin_,
                    next_look_ = begin_ + kLookAround;
  double limit_;
  int looks_;
  std::optional<Pending> before_;  // at the last look
};

void Communicator::wait_for(const std::function<bool()>& done,
                            const std::function<Pending()>& pending, double grace) {
  Wait(*this, done, pending, grace).run();
}

}  // namespace tutti::comm
