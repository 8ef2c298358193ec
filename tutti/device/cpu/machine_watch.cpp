#include "tutti/device/cpu/machine_watch.h"

#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <sstream>
#include <utility>

#include "tutti/device/cpu/control_group.h"

namespace tutti::device {
namespace {

double seconds_of(const timeval& time) {
  return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
}

double own_processor_seconds() {
  double seconds = 0;
  for (const int who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
    rusage usage{};
    getrusage(who, &usage);
    seconds += seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime);
  }
  return seconds;
}

std::vector<int> processors_of_thread() {
  cpu_set_t mask;
  std::vector<int> processors;
  if (sched_getaffinity(0, sizeof mask, &mask) != 0) return processors;
  for (int i = 0; i < CPU_SETSIZE; ++i)
    if (CPU_ISSET(static_cast<size_t>(i), &mask)) processors.push_back(i);
  return processors;
}

constexpr std::array kParts = {&ProcessorTime::there,   &ProcessorTime::busy,
                               &ProcessorTime::steal,   &ProcessorTime::own,
                               &ProcessorTime::periods, &ProcessorTime::throttled_periods,
                               &ProcessorTime::seconds};

}  // namespace

ProcessorTime parse_processor_time(const std::string& stat, const std::vector<int>& processors) {
  // The columns are cpuN user nice system idle iowait irq softirq steal guest guest_nice, in ticks;
  // user and nice contain a guest's time, too.
  enum { kUser, kNice, kSystem, kIdle, kWaiting, kIrq, kSoftIrq, kSteal, kColumns };
  const auto tick = 1.0 / static_cast<double>(sysconf(_SC_CLK_TCK));
  ProcessorTime sum;
  std::istringstream lines(stat);
  for (std::string line; std::getline(lines, line) && line.starts_with("cpu");) {
    std::istringstream words(line.substr(3));
    int processor = -1;
    std::array<double, kColumns> ticks{};
    if (line.size() < 4 || line[3] == ' ' || !(words >> processor)) continue;
    if (!std::ranges::binary_search(processors, processor)) continue;
    for (double& one : ticks) words >> one;
    sum.busy +=
        tick * (ticks[kUser] + ticks[kNice] + ticks[kSystem] + ticks[kIrq] + ticks[kSoftIrq]);
    sum.steal += tick * ticks[kSteal];
    for (const double one : ticks) sum.there += tick * one;
  }
  return sum;
}

trace::MachineUse ProcessorTime::shares() const {
  // A tick is a hundredth of a second: shares of less than some tens of ticks would be chance.
  constexpr double kLeast = 0.2;
  trace::MachineUse use{.seconds = seconds};
  if (there < kLeast) return use;
  use.other_work = std::clamp((busy - own) / there, 0.0, 1.0);
  use.steal = std::clamp(steal / there, 0.0, 1.0);
  if (periods > 0) use.throttled = std::clamp(throttled_periods / periods, 0.0, 1.0);
  return use;
}

ProcessorTime& ProcessorTime::operator+=(const ProcessorTime& other) {
  for (const auto part : kParts) this->*part += other.*part;
  return *this;
}

ProcessorTime& ProcessorTime::operator-=(const ProcessorTime& other) {
  for (const auto part : kParts) this->*part -= other.*part;
  return *this;
}

ProcessorTime ProcessorTime::shared_by(double processes) const {
  ProcessorTime one = *this;
  one.there /= processes;
  one.busy /= processes;
  one.steal /= processes;
  return one;
}

MachineWatch::MachineWatch(std::filesystem::path root)
    : root_(std::move(root)), processors_(processors_of_thread()), begin_(reading()) {}

ProcessorTime MachineWatch::reading() const {
  std::ifstream file(root_ / "proc/stat");
  std::stringstream text;
  // The lines of processors come first; the rest is long on a large machine.
  for (std::string line; std::getline(file, line) && line.starts_with("cpu");) text << line << '\n';
  ProcessorTime now = parse_processor_time(text.str(), processors_);
  now.own = own_processor_seconds();
  const GroupLimits limits = read_group_limits(root_);
  now.periods = static_cast<double>(limits.periods);
  now.throttled_periods = static_cast<double>(limits.throttled_periods);
  now.seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  return now;
}

ProcessorTime MachineWatch::so_far() const {
  ProcessorTime now = reading();
  now -= begin_;
  return now;
}

}  // namespace tutti::device
