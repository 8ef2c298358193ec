#include "tutti/trace/span.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <fstream>

#include "tutti/base/error.h"
#include "tutti/base/json.h"
#include "tutti/base/own_file.h"
#include "tutti/base/small_text.h"

namespace tutti::trace {
namespace {

template <class Clock>
int64_t nanoseconds() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch())
      .count();
}

uint32_t index_of(std::vector<std::string>& texts, const std::string& text) {
  const auto found = std::find(texts.begin(), texts.end(), text);
  if (found != texts.end()) return static_cast<uint32_t>(found - texts.begin());
  texts.push_back(text);
  return static_cast<uint32_t>(texts.size() - 1);
}

Json metadata(const char* what, int rank, int lane, const std::string& title) {
  return {{"ph", "M"}, {"name", what}, {"pid", rank}, {"tid", lane}, {"args", {{"name", title}}}};
}

void write_json(const std::string& path, const Json& json) {
  auto file = output_stream(path);
  errno = 0;
  file << print_json(json) << '\n' << std::flush;
  if (!file) throw IoError(fmt::format("{}: cannot write the trace: {}", path, file_error(errno)));
}

}  // namespace

Spans::Spans(size_t capacity)
    : capacity_(capacity),
      wall_minus_steady_ns_(nanoseconds<std::chrono::system_clock>() - now_ns()) {
  items_.reserve(std::min<size_t>(capacity, 4096));
}

int64_t Spans::now_ns() { return nanoseconds<std::chrono::steady_clock>(); }

Spans::Name Spans::name(const std::string& text) {
  const std::lock_guard lock(mutex_);
  return index_of(names_, text);
}

int Spans::lane(const std::string& title) {
  const std::lock_guard lock(mutex_);
  return static_cast<int>(index_of(lanes_, title));
}

void Spans::record(Name name, int lane, int64_t begin_ns, int64_t end_ns) {
  const std::lock_guard lock(mutex_);
  if (items_.size() < capacity_)
    items_.push_back({name, lane, begin_ns, end_ns});
  else
    ++dropped_;
}

size_t Spans::size() const {
  const std::lock_guard lock(mutex_);
  return items_.size();
}

size_t Spans::dropped() const {
  const std::lock_guard lock(mutex_);
  return dropped_;
}

void Spans::write(const std::string& path, int rank) const {
  const std::lock_guard lock(mutex_);
  Json events = Json::array();
  events.push_back(metadata("process_name", rank, 0, fmt::format("rank {}", rank)));
  for (size_t lane = 0; lane < lanes_.size(); ++lane)
    events.push_back(metadata("thread_name", rank, static_cast<int>(lane), lanes_[lane]));
  for (const Item& item : items_)
    events.push_back({{"ph", "X"},
                      {"name", names_.at(item.name)},
                      {"pid", rank},
                      {"tid", item.lane},
                      {"ts", static_cast<double>(item.begin_ns + wall_minus_steady_ns_) * 1e-3},
                      {"dur", static_cast<double>(item.end_ns - item.begin_ns) * 1e-3}});
  write_json(path, {{"traceEvents", std::move(events)},
                    {"displayTimeUnit", "ms"},
                    {"otherData", {{"dropped_spans", dropped_}}}});
}

void merge_traces(const std::vector<std::string>& inputs, const std::string& output) {
  Json events = Json::array();
  size_t dropped = 0;
  for (const std::string& path : inputs) {
    expect_regular_file(path);
    std::ifstream file(path);
    if (!file) throw IoError(fmt::format("{}: cannot open the trace", path));
    try {
      const Json trace = parse_json(file);
      for (const Json& event : trace.at("traceEvents")) events.push_back(event);
      dropped += json_value<size_t>(trace.at("otherData").at("dropped_spans"));
    } catch (const std::exception& error) {
      throw IoError(fmt::format("{}: not a trace of this program: {}", path, error.what()));
    }
  }
  write_json(output, {{"traceEvents", std::move(events)},
                      {"displayTimeUnit", "ms"},
                      {"otherData", {{"dropped_spans", dropped}}}});
}

}  // namespace tutti::trace
