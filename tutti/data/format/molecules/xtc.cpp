#include "tutti/data/format/molecules/gromacs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tutti/data/format/molecules/xtc_bits.h"

namespace tutti::data {
namespace {

constexpr uint32_t kXtcMagic = 1995, kXtcLongMagic = 2023;
constexpr int64_t kMostPlainAtoms = 9;
/// A large atom takes a flag bit and at least one more bit.
constexpr int64_t kMostAtomsPerByte = 4;

class XtcFrames final : public Frames {
 public:
  explicit XtcFrames(const FileBytes& file) : Frames(file) {
    HeaderReader reader(file_);
    while (!reader.at_end()) {
      places_.push_back(reader.at());
      reader.begin_frame(frames_++);
      const Head head = read_head(reader);
      if (frames_ == 1) atoms_ = head.atoms;
      if (head.atoms != atoms_)
        refuse(frames_ - 1, fmt::format("has {} atoms, and those before it have {}: the file is "
                                        "corrupted, or two simulations in one; fetch it again, or "
                                        "split it",
                                        head.atoms, atoms_));
      reader.skip((head.bytes + 3) / 4 * 4);
    }
    if (frames_ == 0) throw BadFile("{}: expected an XTC file, found no frame", file_.name());
  }

  void read(int64_t frame, std::span<float> xyz) const override {
    HeaderReader reader(file_);
    reader.skip(places_[static_cast<size_t>(frame)]);
    reader.begin_frame(frame);
    const Head head = read_head(reader);  // again: the file may have changed
    if (head.atoms != atoms_) refuse(frame, "has changed since the file was opened");
    const int64_t first = reader.at();
    reader.skip(head.bytes);
    if (head.plain()) return read_angstrom(first, false, xyz);
    std::vector<uint8_t> bytes(static_cast<size_t>(head.bytes));
    file_.read(first, bytes);
    std::vector<int32_t> integers(xyz.size());
    if (const std::string wrong = unpack_xtc(head.packing, bytes, integers); !wrong.empty())
      damaged(frame, wrong);
    const double unit = kAngstromPerNanometre / double{head.precision};
    for (size_t i = 0; i < xyz.size(); ++i) xyz[i] = static_cast<float>(integers[i] * unit);
  }

  bool has_cells() const override { return true; }
  UnitCell cell(int64_t frame, std::span<float>) const override {
    HeaderReader reader(file_);
    reader.skip(places_[static_cast<size_t>(frame)]);
    reader.begin_frame(frame);
    return read_head(reader).cell;
  }

 private:
  struct Head {
    int64_t atoms = 0;
    float precision = 0;
    XtcPacking packing{};
    int64_t bytes = 0;  ///< bytes that follow
    UnitCell cell{};
    bool plain() const { return atoms <= kMostPlainAtoms; }
  };

  [[noreturn]] void damaged(int64_t frame, std::string_view why) const {
    refuse(frame, fmt::format("{}: the file is corrupted; fetch it again", why));
  }

  Head read_head(HeaderReader& reader) const {
    const int64_t frame = place_of(reader.at());
    const uint32_t magic = reader.u32();
    if (magic != kXtcMagic && magic != kXtcLongMagic)
      damaged(frame, fmt::format("begins at byte {} with {}, expected {} or {}", reader.at() - 4,
                                 magic, kXtcMagic, kXtcLongMagic));
    Head head;
    head.atoms = reader.i32();
    if (head.atoms < 1) damaged(frame, fmt::format("has {} atoms", head.atoms));
    reader.skip(4 + 4);
    for (float& x : head.cell) x = static_cast<float>(double{reader.f32()} * kAngstromPerNanometre);
    if (const int64_t again = reader.i32(); again != head.atoms)
      damaged(frame, fmt::format("has {} atoms, and coordinates of {}", head.atoms, again));
    head.bytes = 12 * head.atoms;
    if (head.plain()) return head;
    head.precision = reader.f32();
    for (int32_t& least : head.packing.least) least = reader.i32();
    for (int32_t& greatest : head.packing.greatest) greatest = reader.i32();
    head.packing.small = reader.i32();
    head.bytes = magic == kXtcLongMagic ? reader.i64() : reader.i32();
    if (!std::isfinite(head.precision) || !(head.precision > 0))
      damaged(frame, fmt::format("has the precision {}", head.precision));
    if (const std::string wrong = check_xtc_packing(head.packing); !wrong.empty())
      damaged(frame, wrong);
    if (head.bytes < 0 || head.bytes > INT64_MAX / kMostAtomsPerByte ||
        head.atoms > head.bytes * kMostAtomsPerByte)
      damaged(frame, fmt::format("announces {} bytes for {} atoms", head.bytes, head.atoms));
    return head;
  }

  /// Returns the frame at byte `at`, for messages.
  int64_t place_of(int64_t at) const {
    return std::lower_bound(places_.begin(), places_.end(), at) - places_.begin();
  }

  std::vector<int64_t> places_;
};

}  // namespace

bool is_xtc(std::span<const uint8_t> head) {
  return head.size() >= 4 && head[0] == 0 && head[1] == 0 && head[2] == 0x07 &&
         (head[3] == 0xcb || head[3] == 0xe7);
}

std::shared_ptr<const Frames> read_xtc(const FileBytes& file) {
  return std::make_shared<XtcFrames>(file);
}

}  // namespace tutti::data
