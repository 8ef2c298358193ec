#include "tutti/cli/job/rank_watch.h"

#include <fmt/format.h>
#include <signal.h>

#include <string_view>

#include "tutti/base/process_state.h"
#include "tutti/cli/job/job_end.h"

namespace tutti::cli {

void RankWatch::look(bool ending) {
  std::vector<int> now_gone;
  for (int rank = 0; rank < table_.ranks(); ++rank) {
    const RankRow& row = table_.row(rank);
    const auto process = is_alive(rank) ? process_state(row.process) : std::nullopt;
    const bool gone = is_alive(rank) && !(process && process->runs());
    const bool ended = row.state == RankState::ended;  // stored before the process ends
    if (!gone) continue;
    gone_[static_cast<size_t>(rank)] = true;
    if (!ended && !row.sent_off) now_gone.push_back(rank);
  }
  if (first_gone_.empty() && !ending && !failed_before(now_gone)) first_gone_ = now_gone;
}

bool RankWatch::failed_before(const std::vector<int>& gone) const {
  bool has_missed = false, has_waited = false;
  for (int rank = 0; rank < table_.ranks(); ++rank) {
    const RankRow& row = table_.row(rank);
    if (row.state != RankState::ended || !is_failure(row.code)) continue;
    if (!row.waited) return true;
    has_waited = true;
    const std::string_view text = row.message.data();
    for (const int lost : gone)
      if (text.find(fmt::format("(process {} has ended)", table_.row(lost).process.load())) !=
          text.npos)
        has_missed = true;
  }
  return has_waited && !has_missed;
}

std::vector<int> RankWatch::alive() const {
  std::vector<int> ranks;
  for (int rank = 0; rank < table_.ranks(); ++rank)
    if (is_alive(rank)) ranks.push_back(rank);
  return ranks;
}

std::vector<int> RankWatch::stopped() const {
  std::vector<int> ranks;
  for (const int rank : alive())
    if (const auto process = process_state(table_.row(rank).process); process && process->stopped())
      ranks.push_back(rank);
  return ranks;
}

void RankWatch::kill_stopped() const {
  for (const int rank : stopped()) kill(table_.row(rank).process, SIGKILL);
}

void RankWatch::signal(int number) const {
  for (const int rank : alive()) kill(table_.row(rank).process, number);
}

}  // namespace tutti::cli
