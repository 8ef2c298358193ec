#include "tutti/data/arrays/array_set.h"

#include <algorithm>
#include <atomic>
#include <list>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tutti/base/log.h"
#include "tutti/data/arrays/field_line.h"
#include "tutti/data/arrays/sample_file.h"
#include "tutti/data/format/array/array_file.h"
#include "tutti/data/format/open_array.h"

namespace tutti::data {
namespace {

namespace fs = std::filesystem;

const ArrayInfo& info_of(const ArrayFile& file, const FieldLine& line) {
  return file.arrays()[file.find(line.arrays.front())];
}

bool named_time(const ArrayInfo& info) {
  if (info.dimensions.empty()) return false;
  std::string name = info.dimensions[0].substr(info.dimensions[0].find_last_of('/') + 1);
  std::ranges::transform(name, name.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  });
  return name == "time" || name == "times" || name == "sample" || name == "record" ||
         name == "frame" || name.starts_with("time_");
}

/// Tells from a line's 'as' whether the first axis counts samples (true) or not; returns nothing if
/// it fits both or neither, or has an open extent.
std::optional<bool> whole_by_extents(const FieldLine& line, const ArrayInfo& info) {
  if (!line.shape || info.shape.empty() || info.shape[0] < 2 ||
      std::ranges::find(*line.shape, FieldLine::kAnyExtent) != line.shape->end())
    return {};
  int64_t wanted = 1;
  for (const int64_t extent : *line.shape) wanted *= extent;
  const int64_t whole = info.elements() * std::ssize(line.arrays);
  if (wanted == whole) return false;
  return wanted == whole / info.shape[0] ? std::optional(true) : std::nullopt;
}

/// Says whether fields agree in their first axis and in no other: 60x24x24 and 60x3 do, a map and
/// its mask do not.
bool agree_in_first_axis_alone(const std::vector<FieldLine>& lines, const ArrayFile& file) {
  std::set<int64_t> second;
  for (const FieldLine& line : lines) {
    const ArrayInfo& info = info_of(file, line);
    if (info.shape[0] < 2) return false;
    second.insert(info.shape.size() > 1 ? info.shape[1] : 0);
  }
  return second.size() > 1;
}

/// Decides by the headers if no line says where its samples lie.
bool first_axis_counts(const std::vector<FieldLine>& lines, const std::vector<ArrayFile>& some,
                       int64_t files) {
  for (const FieldLine& line : lines)
    if (const auto message = whole_by_extents(line, info_of(some.front(), line))) return *message;
  std::set<int64_t> of_fields, of_files;
  bool named = false, a_number_each = false;
  for (const FieldLine& line : lines) {
    const ArrayInfo& info = info_of(some.front(), line);
    if (info.shape.empty()) return false;
    of_fields.insert(info.shape[0]);
    named |= named_time(info);
    a_number_each |= info.shape.size() == 1 && lines.size() > 1;
  }
  if (of_fields.size() > 1) return false;
  for (const ArrayFile& file : some)
    if (const ArrayInfo& info = info_of(file, lines.front()); !info.shape.empty())
      of_files.insert(info.shape[0]);
  return files == 1 || named || a_number_each || of_files.size() > 1 ||
         agree_in_first_axis_alone(lines, some.front());
}

/// Returns ", since first axes differ: x has 64, y 60"; empty where they are equal.
std::string unlike_axes(const std::vector<FieldLine>& lines, const ArrayFile& file) {
  std::set<int64_t> extents;
  std::string text;
  for (const FieldLine& line : lines) {
    const ArrayInfo& info = info_of(file, line);
    const int64_t first = info.shape.empty() ? 1 : info.shape[0];
    extents.insert(first);
    text += fmt::format("{}{} has {}", text.empty() ? "" : ", ", line.field, first);
  }
  return extents.size() > 1 ? ", since first axes differ: " + text : "";
}

/// Settles lines without a place by the lines that have one.
void follow_others(std::vector<FieldLine>& lines, const ArrayFile& first) {
  const auto counted = std::ranges::find(lines, FieldLine::Place::axis, &FieldLine::place);
  int64_t count = -1;
  if (counted != lines.end()) {
    const ArrayInfo& info = info_of(first, *counted);
    if (counted->axis < std::ssize(info.shape))
      count = info.shape[static_cast<size_t>(counted->axis)];
  }
  for (FieldLine& line : lines) {
    if (line.place != FieldLine::Place::unset) continue;
    const ArrayInfo& info = info_of(first, line);
    line.place = count >= 0 && !info.shape.empty() && info.shape[0] == count
                     ? FieldLine::Place::axis
                     : FieldLine::Place::whole;
  }
}

// Says whether every file is one sample, so that nothing is counted.
bool one_sample_a_file(const std::vector<FieldLine>& lines) {
  return std::ranges::all_of(
      lines, [](const FieldLine& line) { return line.place == FieldLine::Place::whole; });
}

// Settles the places that lines leave unsaid, from the headers of some of the `files` files (the
// first one first):
//   - if a line says 'axis', a line without a place is counted along its first axis if that has as
//     many elements, and otherwise belongs to every sample of the file;
//   - if a line says 'cut', a line without a place belongs to every block of the file;
//   - if a line says 'whole' and none says anything else, all are whole;
//   - if no line says anything, an 'as' decides that fits either one sample along the first axis
//     or the whole array, but not both. Else the first axis counts the samples if it has the same
//     extent in all fields and either there is one file, or it is named time, or a field has no
//     other axis (a number a sample), or files differ in it, or the fields' second axes differ
//     (60x24x24 and 60x3). Otherwise each file is a sample.
// Returns the decision, for the log. BadFile if an array is missing.
std::string settle_places(std::vector<FieldLine>& lines, const std::vector<ArrayFile>& some,
                          int64_t files) {
  const auto unset = [](const FieldLine& line) { return line.place == FieldLine::Place::unset; };
  if (std::ranges::any_of(lines, unset)) {
    if (std::ranges::all_of(lines, unset)) {
      const bool counts = first_axis_counts(lines, some, files);
      for (FieldLine& line : lines)
        line.place = counts ? FieldLine::Place::axis : FieldLine::Place::whole;
      return counts ? "the first axis counts the samples ('whole' in the lines of data.fields: "
                      "each file is one)"
                    : fmt::format(
                          "each file is one sample{} ('axis 0' in the lines of data.fields: the "
                          "first axis counts them)",
                          some.empty() ? "" : unlike_axes(lines, some.front()));
    }
    follow_others(lines, some.front());
  }
  if (one_sample_a_file(lines)) return "each file is one sample";
  std::string text;
  for (const FieldLine& line : lines)
    if (line.place != FieldLine::Place::whole)
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", line.field,
                          line.place == FieldLine::Place::axis
                              ? fmt::format("counted along axis {}", line.axis)
                              : "cut into blocks");
  for (const FieldLine& line : lines)
    if (line.place == FieldLine::Place::whole)
      text += fmt::format(", {} the same for a whole file", line.field);
  return text;
}

constexpr size_t kMostOpen = 64;
constexpr int64_t kMostHeld = int64_t{256} << 20, kMostChunks = int64_t{64} << 20;

/// Keeps the files used last open.
class OpenFiles {
 public:
  using File = std::shared_ptr<const SampleFile>;

  File find(size_t number) {
    const std::lock_guard lock(mutex_);
    const auto found = std::ranges::find(files_, number, &Entry::number);
    if (found == files_.end()) return nullptr;
    files_.splice(files_.begin(), files_, found);
    return found->file;
  }
  /// Keeps the file, or the one that a faster reader has kept, and returns the kept one.
  File keep(size_t number, File file) {
    const std::lock_guard lock(mutex_);
    const auto found = std::ranges::find(files_, number, &Entry::number);
    if (found != files_.end()) return found->file;
    files_.push_front({number, file});
    drop_oldest();
    return file;
  }
  /// Call this after a read, which may inflate more of a file. Only the file used last may exceed
  /// the limit.
  void trim() {
    const std::lock_guard lock(mutex_);
    drop_oldest();
  }

 private:
  struct Entry {
    size_t number;
    File file;
  };

  /// The caller holds mutex_.
  void drop_oldest() {
    int64_t held = 0;
    for (auto entry = files_.begin(); entry != files_.end();) {
      held += entry->file->held_bytes();
      const auto position = static_cast<size_t>(std::distance(files_.begin(), entry));
      entry = position > 0 && (position >= kMostOpen || held > kMostHeld) ? files_.erase(entry)
                                                                          : std::next(entry);
    }
  }

  std::mutex mutex_;
  std::list<Entry> files_;  // guarded by mutex_; the file used last comes first
};

/// The state that readers share; it lives while one of them reads, even after the set is gone.
class SetState {
 public:
  explicit SetState(const ArraySetSpec& spec)
      : files_(spec.files), settled_by_(spec.settled_by), settled_with_(spec.settled_with),
        lines_(spec.fields), opened_(files_.size()),
        cache_(std::make_shared<ChunkCache>(kMostChunks)) {
    records_ = is_record_file(files_.front());
    try {
      how_ = records_ ? "each record is a sample" : settle();
      fields_ = acquire(0)->fields();
    } catch (const Misfit& error) {  // the first file shows the data, so the lines are wrong
      throw ConfigError(error.what());
    }
    count();
    for (size_t f = 0; f < spec.statistics.size(); ++f) fields_[f].statistics = spec.statistics[f];
    log::info("{}: {} samples in {} file{}; {}", spec.key, size(), files_.size(),
              files_.size() == 1 ? "" : "s", how_);
  }
  const std::string& how() const { return how_; }

  int64_t size() const { return firsts_.empty() ? std::ssize(files_) : firsts_.back(); }
  const std::vector<Field>& fields() const { return fields_; }

  FileSamples::Place place(int64_t index) const {
    if (firsts_.empty()) return {static_cast<size_t>(index), 0, true};
    const auto behind = std::ranges::upper_bound(firsts_, index);
    const auto file = static_cast<size_t>(behind - firsts_.begin());
    return {file, file == 0 ? index : index - firsts_[file - 1], false};
  }

  std::vector<SamplesOfFile> files() const {
    std::vector<SamplesOfFile> all;
    for (size_t i = 0; i < files_.size(); ++i)
      all.push_back({files_[i].string(), firsts_.empty() ? 1
                                         : i == 0        ? firsts_[0]
                                                         : firsts_[i] - firsts_[i - 1]});
    return all;
  }

  void read(int64_t index, Sample& sample, std::span<const FieldRows> rows) {
    if (firsts_.empty()) {
      const auto file = acquire(static_cast<size_t>(index));
      if (file->samples() != 1)
        throw BadFile(
            "{}: holds more than one record ({}), and {} holds one: each file must be one sample, "
            "as the first is",
            file->name(), file->samples(), files_.front().string());
      file->read(0, sample, rows);
      return open_.trim();
    }
    const FileSamples::Place at = place(index);
    const auto file = acquire(at.file);
    const int64_t held = file->held_bytes();
    file->read(at.sample, sample, rows);
    if (file->held_bytes() != held) open_.trim();
  }

 private:
  std::string settle() {
    if (!settled_by_.empty() && settle_same()) return settle_places(lines_, {}, 0);
    const size_t last = files_.size() - 1;
    std::vector<ArrayFile> some;
    for (const size_t i : std::set<size_t>{0, std::min<size_t>(1, last), last})
      some.push_back(open_array_file(files_[i], {.probe = !opened_[i].exchange(true)}));
    return as_described([&] { return settle_places(lines_, some, std::ssize(files_)); });
  }

  /// Settles places as in the set that this one belongs to; false where its files cannot be read.
  bool settle_same() {
    try {
      std::vector<ArrayFile> some;
      for (const size_t i : std::set<size_t>{0, std::min<size_t>(1, settled_by_.size() - 1),
                                             settled_by_.size() - 1}) {
        if (is_record_file(settled_by_[i])) return false;
        some.push_back(open_array_file(settled_by_[i], {.probe = true}));
      }
      std::vector<FieldLine> all = settled_with_.empty() ? lines_ : settled_with_;
      settle_places(all, some, std::ssize(settled_by_));
      for (FieldLine& line : lines_) {
        const auto own = std::ranges::find(all, line.field, &FieldLine::field);
        if (own == all.end()) return false;
        line.place = own->place;
      }
      return true;
    } catch (const IoError&) {
      return false;
    }
  }

  /// Counts the samples of each file, unless each has one.
  void count() {
    const bool one =
        records_ ? acquire(0)->samples() == 1 && files_.size() > 1 : one_sample_a_file(lines_);
    if (one) return;
    std::vector<int64_t> firsts;
    for (size_t i = 0; i < files_.size(); ++i)
      firsts.push_back(acquire(i)->samples() + (i > 0 ? firsts.back() : 0));
    firsts_ = std::move(firsts);
  }

  std::shared_ptr<const SampleFile> acquire(size_t number) {
    if (auto file = open_.find(number)) return file;
    const fs::path& path = files_[number];
    // A damaged file may end the process that opens it, so another process tries it the first time.
    auto file = records_ ? record_samples(path, lines_)
                         : array_samples(open_array_file(path, {.probe = !opened_[number].load()}),
                                         lines_, cache_);
    opened_[number] = true;
    check_same(*file);
    return open_.keep(number, std::move(file));
  }

  void check_same(const SampleFile& file) const {
    for (size_t f = 0; f < fields_.size(); ++f) {
      const Field &found = file.fields()[f], &expected = fields_[f];
      if (found.shape != expected.shape || found.element != expected.element)
        throw BadFile(
            "{}: its field is {}, but {} has {}: all files of a set must be "
            "alike; leave this one out, or convert it (an image and its label in two .npy files: "
            "'from x' and 'from y' read x.npy and y.npy of a folder)",
            file.name(), found.to_string(), files_.front().string(), expected.to_string());
    }
  }

  std::vector<fs::path> files_, settled_by_;
  std::vector<FieldLine> settled_with_, lines_;
  std::vector<std::atomic<bool>> opened_;
  std::shared_ptr<ChunkCache> cache_;  // shared with files that readers hold
  bool records_ = false;
  std::string how_;  // how samples lie in the files
  std::vector<Field> fields_;
  std::vector<int64_t> firsts_;  // for each file: samples up to its end; empty: one a file
  OpenFiles open_;
};

class ArraySet final : public FileSamples {
 public:
  explicit ArraySet(const ArraySetSpec& spec) : state_(std::make_shared<SetState>(spec)) {}

  int64_t size() const override { return state_->size(); }
  const std::vector<Field>& fields() const override { return state_->fields(); }
  Place place(int64_t index) const override { return state_->place(index); }
  std::string how() const override { return state_->how(); }
  std::vector<SamplesOfFile> files() const override { return state_->files(); }
  void read(int64_t index, Sample& sample) const override {
    // A copy, as a reader that hangs may be left behind and wake up after the set is gone.
    const std::shared_ptr<SetState> state = state_;
    state->read(index, sample, {});
  }
  void read_rows(int64_t index, Sample& sample, std::span<const FieldRows> rows) const override {
    const std::shared_ptr<SetState> state = state_;  // as above
    state->read(index, sample, rows);
  }

 private:
  std::shared_ptr<SetState> state_;  // shared with readers that may be left behind
};

}  // namespace

std::unique_ptr<FileSamples> open_array_set(const ArraySetSpec& spec) {
  CHECK(!spec.files.empty() && !spec.fields.empty(), "{} files, {} fields", spec.files.size(),
        spec.fields.size());
  return std::make_unique<ArraySet>(spec);
}

}  // namespace tutti::data
