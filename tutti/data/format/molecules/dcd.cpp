#include "tutti/data/format/molecules/dcd.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "tutti/base/log.h"

namespace tutti::data {
namespace {

constexpr int64_t kDcdHeader = 84, kDcdCell = 48, kDcdTitle = 80;

uint32_t dcd_u32(const uint8_t* at, bool big_endian) {
  uint32_t value = 0;
  for (int i = 0; i < 4; ++i) value = value << 8 | at[big_endian ? i : 3 - i];
  return value;
}

class DcdFrames final : public Frames {
 public:
  DcdFrames(const FileBytes& file, DcdCellForm form) : Frames(file), form_(form) {
    std::array<uint8_t, 12> head{};
    if (file.size() < std::ssize(head)) wrong("a header of 84 bytes", "the file's end");
    file.read(0, head);
    const auto says = [&](size_t at, const char* word) {
      return std::memcmp(head.data() + at, word, 4) == 0;
    };
    if (says(8, "CORD") || says(8, "VELD")) marker_ = 8;
    if (says(4, "VELD") || says(8, "VELD"))
      throw BadFile("{}: holds velocities, not coordinates: give the DCD of the coordinates",
                    file.name());
    big_endian_ = dcd_u32(head.data() + marker_ - 4, true) == kDcdHeader;
    HeaderReader header(file_, big_endian_);
    read_numbers(header);
    read_titles(header);
    header.skip(marker_);
    atoms_ = header.i32();
    header.skip(marker_);
    if (atoms_ < 1) wrong("at least one atom", std::to_string(atoms_));
    if (fixed_ > 0) read_free_atoms(header);
    first_ = header.at();
    find_frames();
    if (fixed_ > 0) {
      still_.resize(3 * static_cast<size_t>(atoms_));
      read_coordinates(0, still_);
    }
    if (has_cell_ && form_ == DcdCellForm::unknown) form_ = dcd_cell_form(some_cells(), origin_);
  }

  void read(int64_t frame, std::span<float> xyz) const override {
    if (fixed_ > 0) std::ranges::copy(still_, xyz.begin());
    read_coordinates(frame, xyz);
  }

  bool has_cells() const override { return has_cell_; }

  /// Programs that write as they run may announce too many frames or none, so this is no error.
  void warn_of_missing_frames() const {
    if (announced_ > frames_)
      log::warn_once(
          "{}: its header announces {} frames, and it holds {}: unless its simulation was "
          "interrupted or is still writing, the file is truncated; fetch it again",
          file_.name(), announced_, frames_);
  }

  UnitCell cell(int64_t frame, std::span<float> xyz) const override {
    const DcdCellNumbers stored = stored_cell(frame);
    if (is_absent(stored)) return {};
    const std::vector<DcdCellForm> fitting = fitting_forms(stored);
    if (form_ != DcdCellForm::unknown && std::ranges::find(fitting, form_) != fitting.end())
      return dcd_unit_cell(stored, form_, xyz);
    if (form_ != DcdCellForm::unknown || fitting.empty())
      refuse(frame,
             fmt::format("has a unit cell with the numbers [{}], which are no cell as {}: convert "
                         "the file (mdconvert, cpptraj), or read 'coordinates' without it",
                         fmt::join(stored, " "),
                         form_ != DcdCellForm::unknown
                             ? name_of(form_)
                             : "lengths and degrees, lengths and cosines, or a matrix"));
    if (!is_same_cell(stored, fitting)) refuse_forms(frame, stored, fitting);
    return dcd_unit_cell(stored, fitting.front(), xyz);
  }

  /// Returns the forms that remain possible; empty if the form is decided or makes no difference.
  std::vector<DcdCellForm> open_forms() const {
    std::vector<DcdCellForm> open(kDcdCellForms.begin(), kDcdCellForms.end());
    if (!has_cell_ || form_ != DcdCellForm::unknown) return {};
    bool same = true;
    for (const DcdCellNumbers& stored : some_cells()) {
      const std::vector<DcdCellForm> fitting = fitting_forms(stored);
      same &= is_same_cell(stored, fitting);
      std::erase_if(open, [&](DcdCellForm form) {
        return std::ranges::find(fitting, form) == fitting.end();
      });
    }
    return same ? std::vector<DcdCellForm>{} : open;
  }

 private:
  [[noreturn]] void wrong(std::string_view expected, std::string_view found) const {
    throw BadFile(
        "{}: expected {} in the header of a DCD, found {}: the file is corrupted, or no DCD; fetch "
        "it again",
        file_.name(), expected, found);
  }

  [[noreturn]] void refuse_forms(int64_t frame, const DcdCellNumbers& stored,
                                 std::span<const DcdCellForm> forms) const {
    std::string meanings, arrays;
    for (const DcdCellForm form : forms) {
      meanings += fmt::format("{}{} ({})", meanings.empty() ? "" : " or ", name_of(form),
                              cell_text(stored, form));
      arrays += fmt::format("{}'from {}_{}'", arrays.empty() ? "" : " or ", kPeriodicArray,
                            name_of(form));
    }
    refuse(frame,
           fmt::format("has a unit cell with the numbers [{}], which may be {}, and the file "
                       "(version {}, title '{}') does not say which: CHARMM and cpptraj write the "
                       "matrix, NAMD, VMD and LAMMPS cosines, OpenMM degrees; say so in "
                       "data.fields: {}",
                       fmt::join(stored, " "), meanings, origin_.version,
                       origin_.titles.substr(0, 40), arrays));
  }

  static bool is_absent(const DcdCellNumbers& stored) {
    return stored[0] == 0 && stored[2] == 0 && stored[5] == 0;
  }

  int64_t length(HeaderReader& reader) const {
    return marker_ == 8 ? reader.i64() : int64_t{reader.u32()};
  }

  void read_numbers(HeaderReader& header) {
    if (length(header) != kDcdHeader) wrong("a record of 84 bytes", "another length");
    header.skip(4);
    std::array<int32_t, 20> numbers{};
    for (int32_t& number : numbers) number = header.i32();
    if (length(header) != kDcdHeader) wrong("a record of 84 bytes", "another length at its end");
    announced_ = numbers[0];
    fixed_ = numbers[8];
    if (fixed_ < 0) wrong("a number of fixed atoms", std::to_string(fixed_));
    const bool charmm = numbers[19] != 0;
    has_cell_ = charmm && numbers[10] != 0;
    axes_ = charmm && numbers[11] != 0 ? 4 : 3;
    origin_.version = numbers[19];
  }

  /// Programs disagree on the length of this record: the right one is followed by the number of
  /// atoms.
  void read_titles(HeaderReader& header) {
    constexpr int64_t kMostTitles = 100;
    const int64_t announced = length(header), first = header.at();
    for (int64_t titles = -1; titles <= kMostTitles; ++titles) {
      const int64_t bytes = titles < 0 ? announced : 4 + kDcdTitle * titles;
      if (bytes < 0 || bytes > header.left() - 3 * marker_ - 4) continue;
      HeaderReader behind(file_, big_endian_);
      behind.skip(first + bytes);
      const int64_t again = length(behind);
      const bool ends = again == announced || again == bytes;
      if (!ends || length(behind) != 4 || behind.i32() < 0 || length(behind) != 4) continue;
      std::string text(static_cast<size_t>(std::clamp<int64_t>(bytes - 4, 0, 10 * kDcdTitle)), ' ');
      if (!text.empty())
        file_.read(first + 4, {reinterpret_cast<uint8_t*>(text.data()), text.size()});
      for (char& c : text)
        if (c < ' ' || c > '~') c = ' ';
      text.erase(0, text.find_first_not_of(' '));
      origin_.titles = std::move(text);
      return header.skip(bytes + marker_);
    }
    wrong("titles, and behind them the number of atoms in a record of 4 bytes",
          fmt::format("a record of {} bytes that has none behind it", announced));
  }

  void read_free_atoms(HeaderReader& header) {
    const int64_t free = atoms_ - fixed_;
    if (free < 0 || length(header) != 4 * free)
      wrong(fmt::format("the numbers of {} of {} atoms that are not fixed", free, atoms_),
            "a record of another length");
    if (header.left() < 4 * free) header.skip(4 * free);  // fails with an error
    for (int64_t i = 0; i < free; ++i) {
      const int32_t atom = header.i32();
      if (atom < 1 || atom > atoms_)
        wrong(fmt::format("atoms from 1 to {}", atoms_), std::to_string(atom));
      free_.push_back(atom - 1);
    }
    header.skip(marker_);
  }

  int64_t bytes_of_frame(int64_t atoms) const {
    return (has_cell_ ? 2 * marker_ + kDcdCell : 0) + axes_ * (2 * marker_ + 4 * atoms);
  }
  int64_t atoms_in(int64_t frame) const { return frame == 0 ? atoms_ : atoms_ - fixed_; }
  int64_t place_of(int64_t frame) const {
    return frame == 0
               ? first_
               : first_ + bytes_of_frame(atoms_) + (frame - 1) * bytes_of_frame(atoms_ - fixed_);
  }

  void find_frames() {
    const int64_t held = file_.size() - first_, whole = bytes_of_frame(atoms_);
    if (held < whole)
      throw BadFile(
          "{}: expected a frame of {} atoms, {} bytes, found {} bytes: the file is truncated or "
          "corrupted; fetch it again",
          file_.name(), atoms_, whole, held);
    frames_ = 1 + (held - whole) / bytes_of_frame(atoms_ - fixed_);
    check_lengths();
    const bool cut = place_of(frames_) != file_.size();
    if (announced_ > 0 && announced_ < frames_ + cut) check_joined(announced_);
    constexpr int64_t kMostLooked = 10'000;
    for (int64_t frame = 1; cut && frame <= std::min(frames_, kMostLooked); ++frame)
      check_joined(frame);
    HeaderReader rest(file_, big_endian_);
    rest.skip(place_of(frames_));
    rest.begin_frame(frames_);
    if (cut) rest.skip(bytes_of_frame(atoms_ - fixed_));  // fails with an error
  }

  /// BadFile if another DCD begins in the place of a frame.
  void check_joined(int64_t frame) const {
    std::array<uint8_t, 12> head{};
    const int64_t at = place_of(frame);
    if (at + std::ssize(head) > file_.size()) return;
    file_.read(at, head);
    if (is_dcd(head))
      throw BadFile(
          "{}: another DCD begins at byte {}, behind {} frames: two files were joined; take them "
          "apart ('head -c {}' and 'tail -c +{}') and name both",
          file_.name(), at, frame, at, at + 1);
  }

  /// Checks the first frame, so that another layout is found at opening.
  void check_lengths() const {
    HeaderReader lengths(file_, big_endian_);
    lengths.skip(first_);
    for (int64_t part = has_cell_ ? -1 : 0; part < axes_; ++part) {
      const int64_t expected = part < 0 ? kDcdCell : 4 * atoms_;
      if (length(lengths) != expected) refuse_length(0);
      lengths.skip(expected);
      if (length(lengths) != expected) refuse_length(0);
    }
  }

  [[noreturn]] void refuse_length(int64_t frame) const {
    refuse(frame, fmt::format("is not laid out as {} atoms {} a unit cell: the file is corrupted; "
                              "fetch it again, or convert it (mdconvert, catdcd)",
                              atoms_in(frame), has_cell_ ? "with" : "without"));
  }

  /// Returns the content of the record with its length at `at`.
  const uint8_t* record(const uint8_t* at, int64_t bytes, int64_t frame) const {
    const int64_t low = big_endian_ ? marker_ - 4 : 0;  // the lower half of 64 bits
    const auto announced = [&](const uint8_t* marker) {
      return dcd_u32(marker + low, big_endian_);
    };
    if (announced(at) != bytes || announced(at + marker_ + bytes) != bytes) refuse_length(frame);
    return at + marker_;
  }

  void read_coordinates(int64_t frame, std::span<float> xyz) const {
    const int64_t atoms = atoms_in(frame);
    std::vector<uint8_t> bytes(static_cast<size_t>(bytes_of_frame(atoms)));
    file_.read(place_of(frame), bytes);
    const uint8_t* at = bytes.data();
    if (has_cell_) at = record(at, kDcdCell, frame) + kDcdCell + marker_;
    for (size_t axis = 0; axis < 3; ++axis) {
      at = record(at, 4 * atoms, frame);
      for (int64_t i = 0; i < atoms; ++i, at += 4) {
        const int64_t atom = frame == 0 || fixed_ == 0 ? i : free_[static_cast<size_t>(i)];
        xyz[3 * static_cast<size_t>(atom) + axis] = std::bit_cast<float>(dcd_u32(at, big_endian_));
      }
      at += marker_;
    }
  }

  DcdCellNumbers stored_cell(int64_t frame) const {
    HeaderReader reader(file_, big_endian_);
    reader.skip(place_of(frame));
    if (length(reader) != kDcdCell) refuse_length(frame);
    DcdCellNumbers stored{};
    for (double& x : stored) x = reader.f64();
    return stored;
  }

  /// Returns the cells of a few frames spread over the file.
  std::vector<DcdCellNumbers> some_cells() const {
    constexpr int64_t kFrames = 8;
    std::vector<DcdCellNumbers> cells;
    for (int64_t i = 0; i < std::min(frames_, kFrames); ++i) {
      const int64_t frame = frames_ <= kFrames ? i : i * (frames_ - 1) / (kFrames - 1);
      if (const DcdCellNumbers stored = stored_cell(frame); !is_absent(stored))
        cells.push_back(stored);
    }
    return cells;
  }

  bool big_endian_ = false, has_cell_ = false;
  int64_t marker_ = 4;  ///< bytes of a record's length
  int64_t axes_ = 3, fixed_ = 0, announced_ = 0;
  int64_t first_ = 0;
  std::vector<int32_t> free_{};  ///< atoms that are not fixed
  std::vector<float> still_{};   ///< the first frame, if atoms are fixed
  DcdOrigin origin_{};
  DcdCellForm form_;
};

}  // namespace

bool is_dcd(std::span<const uint8_t> head) {
  if (head.size() < 12) return false;
  const auto begins = [&](size_t marker) {
    const uint8_t* word = head.data() + marker;
    return (std::memcmp(word, "CORD", 4) == 0 || std::memcmp(word, "VELD", 4) == 0) &&
           (dcd_u32(word - 4, true) == kDcdHeader || dcd_u32(head.data(), false) == kDcdHeader);
  };
  return begins(4) || begins(8);
}

std::shared_ptr<const Frames> read_dcd(const FileBytes& file, DcdCellForm form) {
  return std::make_shared<DcdFrames>(file, form);
}

std::vector<StoredArray> dcd_arrays(const FileBytes& file, bool warns) {
  const auto frames = std::make_shared<DcdFrames>(file, DcdCellForm::unknown);
  if (warns) frames->warn_of_missing_frames();
  std::vector<StoredArray> arrays = frame_arrays(frames);
  for (const DcdCellForm form : frames->open_forms()) {
    std::vector<StoredArray> of_form = frame_arrays(read_dcd(file, form));
    if (of_form.size() < 2) continue;  // the first frame has no cell
    of_form.back().info.name = fmt::format("{}_{}", kPeriodicArray, name_of(form));
    arrays.push_back(std::move(of_form.back()));
  }
  return arrays;
}

}  // namespace tutti::data
