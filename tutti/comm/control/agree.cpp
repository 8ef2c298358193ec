#include "tutti/comm/control/agree.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <exception>
#include <future>
#include <optional>
#include <utility>
#include <vector>

#include "tutti/base/error.h"
#include "tutti/base/error_type.h"
#include "tutti/base/log.h"
#include "tutti/base/numeric/hash.h"

namespace tutti::comm {
namespace {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

// The state of rank 0's work. `working`: another sign follows.
enum class State : uint32_t { working, done, failed };

struct Sign {
  State state = State::working;
  ErrorType error = ErrorType::other;  // type of the error, if the work failed
  double seconds = 0;                  // since the work began
};

std::string duration(double seconds) {
  return seconds < 100 ? fmt::format("{:.0f} s", seconds) : fmt::format("{:.0f} min", seconds / 60);
}

// Waits of this scope are expected to be long.
class Patience {
 public:
  Patience(Communicator& communicator, std::string because) : communicator_(communicator) {
    communicator.wait_patiently(std::move(because));
  }
  ~Patience() { communicator_.wait_patiently({}); }
  Patience(const Patience&) = delete;
  Patience& operator=(const Patience&) = delete;

 private:
  Communicator& communicator_;
};

// The end of the work: its text, or an error.
struct Outcome {
  State state = State::done;
  ErrorType type = ErrorType::other;
  std::string text;
  std::exception_ptr error;
};

bool is_ready(const std::future<std::string>& work) {
  return work.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
}

Outcome outcome_of(std::future<std::string>& work) {
  try {
    return {.state = State::done, .type = {}, .text = work.get(), .error = nullptr};
  } catch (const std::exception& error) {
    return {State::failed, type_of(error), error.what(), std::current_exception()};
  } catch (...) {
    return {State::failed, ErrorType::other, "an exception of unknown type",
            std::current_exception()};
  }
}

// Returns the text that other ranks throw: it names this rank, which met the error.
std::string passed_on(const Communicator& c, ErrorType type, const std::string& text) {
  return type == ErrorType::config || names_rank(text) ? text : c.who() + ": " + text;
}

// The future's destructor waits for the work, also when a rank is found dead meanwhile: the work
// reads memory of the caller.
Outcome work_and_give_signs(Communicator& c, const std::string& what,
                            const std::function<std::string()>& work) {
  const auto begin = Clock::now();
  const auto seconds = [&] { return Seconds(Clock::now() - begin).count(); };
  const auto interval = Seconds(std::min(1.0, c.timeout() / 4));
  double next_line = 10;
  std::future<std::string> result = std::async(std::launch::async, work);
  const auto pending = [&] {
    Pending all{.operation = what, .sequence = 1, .arrived = {0}, .missing = {}};
    for (int p = 1; p < c.size(); ++p) all.missing.push_back(p);
    return all;
  };
  for (;;) {
    const auto next_sign = Clock::now() + interval;
    c.wait_for([&] { return is_ready(result) || Clock::now() >= next_sign; }, pending);
    if (is_ready(result)) break;
    Sign sign{.state = State::working, .seconds = seconds()};
    c.broadcast_value(sign, 0);
    if (sign.seconds < next_line) continue;
    log::info("{}: {} so far{}", what, duration(sign.seconds),
              c.size() > 1 ? "; the other ranks wait" : "");
    next_line = (std::floor(sign.seconds / 60) + 1) * 60;
  }
  Outcome outcome = outcome_of(result);
  Sign last{.state = outcome.state, .error = outcome.type, .seconds = seconds()};
  c.broadcast_value(last, 0);
  return outcome;
}

Sign wait_for_signs(Communicator& c, const std::string& what) {
  std::string last_sign = "nothing was heard of it yet";
  for (;;) {
    const Patience patience(c, fmt::format("{} is {}: {}", c.rank_name(0), what, last_sign));
    Sign sign;
    c.broadcast_value(sign, 0);
    if (sign.state != State::working) return sign;
    last_sign = fmt::format("its last sign of life came after {} of it", duration(sign.seconds));
  }
}

struct Line {
  std::string_view key, value;
  bool operator==(const Line&) const = default;
};

std::vector<Line> lines_of(std::string_view text) {
  std::vector<Line> lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    const size_t equals = line.find(" = ");
    if (equals == std::string_view::npos)
      lines.push_back({line, {}});
    else
      lines.push_back({line.substr(0, equals), line.substr(equals + 3)});
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

const Line* line_named(const std::vector<Line>& lines, std::string_view key) {
  const auto found = std::ranges::find(lines, key, &Line::key);
  return found == lines.end() ? nullptr : &*found;
}

// The first difference between two unequal texts.
struct Difference {
  std::string_view key;
  std::optional<std::string_view> first, second;
};

Difference difference(std::string_view first, std::string_view second) {
  const std::vector<Line> a = lines_of(first), b = lines_of(second);
  for (const Line& line : a) {
    const Line* const other = line_named(b, line.key);
    if (other == nullptr) return {line.key, line.value, std::nullopt};
    if (other->value != line.value) return {line.key, line.value, other->value};
  }
  for (const Line& line : b)
    if (line_named(a, line.key) == nullptr) return {line.key, std::nullopt, line.value};
  return {"the order of its lines", std::nullopt, std::nullopt};
}

std::string quoted(const std::optional<std::string_view>& value) {
  return value ? fmt::format("'{}'", *value) : "not given";
}

}  // namespace

std::string broadcast_text(Communicator& communicator, std::string text, int root) {
  uint64_t size = text.size();
  communicator.broadcast_value(size, root);
  text.resize(size);
  communicator.broadcast(std::as_writable_bytes(std::span(text)), root);
  return text;
}

std::string decide(Communicator& communicator, std::string_view what,
                   const std::function<std::string()>& work) {
  const std::string name(what);
  if (communicator.rank() == 0) {
    Outcome outcome;
    {
      const Patience patience(communicator, "this rank is " + name);
      outcome = work_and_give_signs(communicator, name, work);
    }
    if (outcome.error) outcome.text = passed_on(communicator, outcome.type, outcome.text);
    const std::string text = broadcast_text(communicator, std::move(outcome.text), 0);
    if (outcome.error) std::rethrow_exception(outcome.error);
    return text;
  }
  const Sign last = wait_for_signs(communicator, name);
  const std::string text = broadcast_text(communicator, {}, 0);
  if (last.state != State::done) throw_error(last.error, text);
  return text;
}

void on_each(Communicator& communicator, std::string_view what, const std::function<void()>& work) {
  // The combined state of all ranks: whether any still works, and the first one that failed.
  struct Round {
    int working, failed;
  };
  Communicator& c = communicator;
  const std::string name(what);
  const auto interval = Seconds(std::min(1.0, c.timeout() / 4));
  std::future<std::string> result = std::async(std::launch::async, [&work] {
    work();
    return std::string();
  });
  std::optional<Outcome> mine;
  Round all{1, c.size()};
  {
    const Patience patience(c, "every rank is " + name);
    while (all.working != 0) {
      const auto next_sign = Clock::now() + interval;
      c.wait_for(
          [&] { return mine || is_ready(result) || Clock::now() >= next_sign; },
          [&] { return Pending{.operation = name, .sequence = 1, .arrived = {}, .missing = {}}; });
      if (!mine && is_ready(result)) mine = outcome_of(result);
      const bool failed = mine && mine->state == State::failed;
      all = c.combine_value(Round{mine ? 0 : 1, failed ? c.rank() : c.size()},
                            [](Round& low, const Round& high) {
                              low.working = std::max(low.working, high.working);
                              low.failed = std::min(low.failed, high.failed);
                            });
    }
  }
  if (all.failed == c.size()) return;
  const bool first = all.failed == c.rank();
  ErrorType type = mine->type;
  c.broadcast_value(type, all.failed);
  const std::string text =
      broadcast_text(c, first ? passed_on(c, type, mine->text) : std::string(), all.failed);
  if (first) std::rethrow_exception(mine->error);
  throw_error(type, text);
}

bool names_rank(const std::string& text) {
  int rank = 0, ranks = 0, end = 0;
  return std::sscanf(text.c_str(), "rank %d/%d on %n", &rank, &ranks, &end) == 2 && end > 0;
}

void agree(Communicator& communicator, std::string_view what, std::string_view lines) {
  const auto hashes = communicator.allgather_value(fnv1a(lines));
  std::vector<int> others;
  for (size_t p = 0; p < hashes.size(); ++p)
    if (hashes[p] != hashes[0]) others.push_back(communicator.job_rank(static_cast<int>(p)));
  if (others.empty()) return;
  const std::string first = broadcast_text(communicator, std::string(lines), 0);
  const auto witness = static_cast<int>(
      std::ranges::find_if(hashes, [&](uint64_t hash) { return hash != hashes[0]; }) -
      hashes.begin());
  std::string message;
  if (communicator.rank() == witness) {
    const Difference found = difference(first, lines);
    message = fmt::format(
        "{}: the ranks were given different ones: {} is {} for {} and {} for {}{}; start all ranks "
        "with the same configuration file, flags and environment",
        what, found.key, quoted(found.first), communicator.rank_name(0), quoted(found.second),
        communicator.rank_name(witness),
        others.size() > 1 ? fmt::format(" (ranks {} differ from rank {})", rank_list(others),
                                        communicator.job_rank(0))
                          : "");
  }
  throw ConfigError(broadcast_text(communicator, std::move(message), witness));
}

}  // namespace tutti::comm
