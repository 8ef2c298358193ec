#include "tutti/train/loop/progress.h"

#include <sys/ioctl.h>

#include <algorithm>
#include <cmath>

#include "tutti/base/log.h"
#include "tutti/base/visible.h"

namespace tutti::train {
namespace {

constexpr const char* kEraseLine = "\x1b[2K";

/// "7/24", or "7" where the total is unknown.
std::string of_total(int64_t done, int64_t total) {
  return total > 0 ? fmt::format("{}/{}", done, total) : std::to_string(done);
}

std::string remaining_text(const ProgressState& state) {
  const auto seconds = remaining_s(state);
  return seconds ? fmt::format("{} left", duration_text(*seconds)) : "";
}

/// Returns the noticeable shares of a step spent waiting for other ranks' gradients and for data.
std::string waits_text(const ProgressState& s) {
  constexpr double kWorthAWord = 0.02;
  const double comm = s.exposed_communication_ms / s.step_ms, data = s.input_stall_ms / s.step_ms;
  std::string text;
  if (comm >= kWorthAWord) text += fmt::format(" comm {:.0f} %", 100 * comm);
  if (data >= kWorthAWord) text += fmt::format(" data {:.0f} %", 100 * data);
  return text;
}

/// Returns the terminal's current width: windows change their size.
int terminal_columns(std::FILE* out, int otherwise) {
  winsize size{};
  return ioctl(fileno(out), TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : otherwise;
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

std::string waiting_line(const EpochReading& epoch) {
  constexpr double kMuch = 0.02, kNoticed = 1;  // fraction of the epoch; seconds
  const double busy = epoch.seconds - epoch.waited;
  if (busy <= 0 || epoch.waited < std::max(kNoticed, kMuch * epoch.seconds)) return "";
  return fmt::format(
      "waited {:.0f} % of the epoch for data: reading took {:.1f} s of a core, steps {:.1f} s; "
      "free cores a rank needs: {}",
      100 * epoch.waited / epoch.seconds, epoch.reading, busy,
      static_cast<int64_t>(std::ceil(epoch.reading / busy)));
}

std::optional<double> remaining_s(const ProgressState& state) {
  const int64_t done = state.step - state.first_step;
  if (done <= 0 || state.steps <= 0) return std::nullopt;
  return state.elapsed_s / static_cast<double>(done) *
         static_cast<double>(std::max<int64_t>(state.steps - state.step, 0));
}

std::string progress_line(const ProgressState& s) {
  std::string text = fmt::format("epoch {} step {} loss {:.4f} lr {:.4g} {:.0f} samples/s",
                                 of_total(s.epoch, s.epochs), of_total(s.step, s.steps), s.loss,
                                 s.learning_rate, s.samples_per_s);
  if (const std::string left = remaining_text(s); !left.empty()) text += " " + left;
  return text + waits_text(s);
}

std::string progress_bar(const ProgressState& s, int columns) {
  const auto room = static_cast<size_t>(std::max(columns, 0));
  const double fraction = fraction_done(s);
  const std::string percent = fmt::format("{:3.0f}%", std::floor(100 * fraction));
  // The most important pieces first, as many as fit.
  const std::string pieces[] = {
      remaining_text(s),
      fmt::format("epoch {}", of_total(s.epoch, s.epochs)),
      std::isnan(s.loss) ? "" : fmt::format("loss {:.4f}", s.loss),
      visible(s.quality),
      fmt::format("{:.0f} samples/s", s.samples_per_s),
      fmt::format("step {}", of_total(s.step, s.steps)),
      fmt::format("lr {:.4g}", s.learning_rate),
  };
  constexpr size_t kLeastBar = 10, kMostBar = 40, kFrame = 3;  // " [" and "]"
  std::string text;
  for (const std::string& piece : pieces) {
    if (percent.size() + kFrame + kLeastBar + text.size() + 2 + piece.size() > room) break;
    if (!piece.empty()) text += "  " + piece;
  }
  if (percent.size() + kFrame + kLeastBar + text.size() > room) return percent.substr(0, room);
  const size_t width = std::min(room - percent.size() - kFrame - text.size(), kMostBar);
  const auto filled = static_cast<size_t>(fraction * static_cast<double>(width));
  return fmt::format("{} [{}{}]{}", percent, std::string(filled, '#'),
                     std::string(width - filled, '.'), text);
}

void ProgressDisplay::step(const ProgressState& state) {
  const bool last = state.step == state.steps;
  if (!s_.terminal || !log::enabled(log::Level::info) ||
      (!last && state.elapsed_s - last_drawn_s_ < s_.redraw_every_s))
    return;
  last_drawn_s_ = state.elapsed_s;
  drawn_ = true;
  // The cursor stays at the line's start, so that a message from elsewhere overwrites the bar
  // instead of following it. fmt::print would throw if the terminal has gone: the run must go on to
  // its checkpoint.
  std::fputs(fmt::format("{}{}\r", kEraseLine,
                         progress_bar(state, terminal_columns(s_.out, s_.columns) - 1))
                 .c_str(),
             s_.out);
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

}  // namespace tutti::train
