#include "tutti/train/progress.h"

#include <algorithm>
#include <cmath>

#include "tutti/base/log.h"

namespace tutti {
namespace {

constexpr const char* kEraseLine = "\x1b[2K";

/// "7/24", or "7" where the total is unknown.
std::string of_total(int64_t done, int64_t total) {
  return total > 0 ? fmt::format("{}/{}", done, total) : std::to_string(done);
}

std::string eta_text(const ProgressState& state) {
  const auto seconds = remaining_s(state);
  return seconds ? fmt::format("ETA {}", duration_text(*seconds)) : "ETA unknown";
}

double fraction_done(const ProgressState& state) {
  return state.steps > 0
             ? std::clamp(static_cast<double>(state.step) / static_cast<double>(state.steps), 0.0,
                          1.0)
             : 0;
}

}  // namespace

std::string duration_text(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0) return "?";
  const auto s = static_cast<int64_t>(std::llround(std::min(seconds, 3.6e9)));
  if (s < 60) return fmt::format("{} s", s);
  if (s < 3600) return fmt::format("{}:{:02}", s / 60, s % 60);
  return fmt::format("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60);
}

std::optional<double> remaining_s(const ProgressState& state) {
  const int64_t done = state.step - state.first_step;
  if (done <= 0 || state.steps <= 0) return std::nullopt;
  return state.elapsed_s / static_cast<double>(done) *
         static_cast<double>(std::max<int64_t>(state.steps - state.step, 0));
}

std::string progress_line(const ProgressState& s) {
  std::string text = fmt::format("epoch {} step {} loss {:.4f}", of_total(s.epoch, s.epochs),
                                 of_total(s.step, s.steps), s.loss);
  if (s.accuracy) text += fmt::format(" accuracy {:.4f}", *s.accuracy);
  text += fmt::format(
      " lr {:.4g} {:.0f} samples/s step {:.2f} ms exposed comm {:.2f} ms input stall {:.2f} ms "
      "memory {:.0f} MiB {}",
      s.learning_rate, s.samples_per_s, s.step_ms, s.exposed_communication_ms, s.input_stall_ms,
      static_cast<double>(s.memory_bytes) / (1 << 20), eta_text(s));
  return text;
}

std::string progress_bar(const ProgressState& s, int columns) {
  std::string text = fmt::format(" {} epoch {} step {} loss {:.4f}", eta_text(s),
                                 of_total(s.epoch, s.epochs), of_total(s.step, s.steps), s.loss);
  if (s.accuracy) text += fmt::format(" accuracy {:.4f}", *s.accuracy);
  text += fmt::format(" lr {:.4g} {:.0f} samples/s", s.learning_rate, s.samples_per_s);

  const double fraction = fraction_done(s);
  const std::string percent = fmt::format("{:3.0f}% ", std::floor(100 * fraction));
  const int width =
      std::clamp(columns - static_cast<int>(percent.size() + text.size()) - 2, 10, 40);
  const int filled = static_cast<int>(fraction * width);
  const std::string bar =
      fmt::format("{}[{}{}]{}", percent, std::string(static_cast<size_t>(filled), '#'),
                  std::string(static_cast<size_t>(width - filled), '.'), text);
  return bar.substr(0, static_cast<size_t>(std::max(columns, 0)));
}

void ProgressDisplay::step(const ProgressState& state) {
  const bool last = state.step == state.steps;
  if (!s_.terminal || !log::enabled(log::Level::info) ||
      (!last && state.elapsed_s - last_drawn_s_ < s_.redraw_every_s))
    return;
  last_drawn_s_ = state.elapsed_s;
  drawn_ = true;
  // The cursor waits at the line's start, so that a message from elsewhere overwrites the bar
  // instead of following it.
  fmt::print(s_.out, "{}{}\r", kEraseLine, progress_bar(state, s_.columns - 1));
  std::fflush(s_.out);
}

void ProgressDisplay::report(const ProgressState& state) {
  if (!s_.terminal) log::info("{}", progress_line(state));
}

void ProgressDisplay::note(const std::string& text) {
  clear();
  log::info("{}", text);
}

void ProgressDisplay::clear() {
  if (!drawn_) return;
  drawn_ = false;
  last_drawn_s_ = -1e9;
  std::fputs(kEraseLine, s_.out);
  std::fflush(s_.out);
}

}  // namespace tutti
