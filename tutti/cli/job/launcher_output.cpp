#include "tutti/cli/job/launcher_output.h"

#include <algorithm>
#include <array>

namespace tutti::cli {
namespace {

constexpr size_t kFrame = 60;     // least number of characters of the line above and below a banner
constexpr int kBannerLines = 80;  // a longer block is no banner

// Open MPI's banners are framed by lines of '-', MPICH's by lines of '='.
bool is_frame(std::string_view line) {
  return line.size() >= kFrame && (line[0] == '-' || line[0] == '=') &&
         line.find_first_not_of(line[0]) == std::string_view::npos;
}

// Launchers' words outside a frame. Words of the second list come after "[host:process] ".
constexpr std::array<std::string_view, 6> kHeads = {
    "mpirun: ",
    "mpiexec: ",
    "prterun: ",
    "YOUR APPLICATION TERMINATED WITH",
    "This typically refers to a problem with your application",
    "Please see the FAQ page"};
// Open MPI 5 prints the last where TCP joins no two ranks; ranks of one node do not need TCP.
constexpr std::array<std::string_view, 7> kInside = {
    "ORTE_ERROR_LOG:", "PMIX ERROR:",    "PRTE ERROR:",   "help message",
    "help_aggregate",  "mpirun noticed", "btl_tcp_proc.c"};
constexpr std::string_view kMore = " more process";  // Open MPI 5: "3 more processes have sent ..."

std::string_view without_number(std::string_view line) {
  return line.substr(std::min(line.find_first_not_of("0123456789"), line.size()));
}

bool is_launchers(std::string_view line) {
  const auto begins = [&](std::string_view head) { return line.starts_with(head); };
  const auto holds = [&](std::string_view part) { return line.find(part) != line.npos; };
  if (std::ranges::any_of(kHeads, begins)) return true;
  if (without_number(line).starts_with(kMore)) return holds("help message");
  return line.starts_with('[') && std::ranges::any_of(kInside, holds);
}

// Returns whether a line that begins so may be the launcher's.
bool may_be_launchers(std::string_view begun) {
  if (begun[0] == '[') return true;
  if (begun[0] == '-' || begun[0] == '=')
    return begun.find_first_not_of(begun[0]) == std::string_view::npos;
  const auto may_become = [&](std::string_view head) {
    return begun.starts_with(head) || head.starts_with(begun);
  };
  if (std::ranges::any_of(kHeads, may_become)) return true;
  const std::string_view rest = without_number(begun);
  return rest.size() < begun.size() && (rest.starts_with(kMore) || kMore.starts_with(rest));
}

}  // namespace

void LauncherOutput::take(std::string_view bytes) {
  std::string text(bytes);
  std::erase(text, '\0');
  take_text(visible_.take(text));
}

void LauncherOutput::take_text(std::string_view text) {
  while (!text.empty()) {
    const size_t end = text.find('\n');
    const std::string_view part = text.substr(0, end == text.npos ? end : end + 1);
    text.remove_prefix(part.size());
    if (passed_) {
      print_(part);
      passed_ = part.back() != '\n';
      continue;
    }
    line_ += part;
    if (line_.back() == '\n') {
      end_line();
    } else if (frame_ == 0 && !may_be_launchers(line_)) {
      print_(
          line_);  // a rank's line; a line without an end, such as a progress bar, is shown at once
      line_.clear();
      passed_ = true;
    }
  }
}

void LauncherOutput::end_line() {
  const std::string_view text = std::string_view(line_).substr(0, line_.size() - 1);
  if (frame_ != 0) {
    block_ += line_;
    if (is_frame(text) && text[0] == frame_) {
      held_ += block_;
      block_.clear();
      frame_ = 0;
    } else if (++block_lines_ > kBannerLines) {
      end_block();
    }
  } else if (is_frame(text)) {
    frame_ = text[0];
    block_lines_ = 0;
    block_ = line_;
  } else if (is_launchers(text)) {
    held_ += line_;
  } else {
    print_(line_);
  }
  line_.clear();
}

void LauncherOutput::end_block() {
  print_(block_);
  block_.clear();
  frame_ = 0;
}

std::string LauncherOutput::finish() {
  take_text(visible_.rest());
  if (!line_.empty() && frame_ == 0) print_(line_);
  if (frame_ != 0) {
    block_ += line_;
    end_block();
  }
  line_.clear();
  return std::move(held_);
}

}  // namespace tutti::cli
