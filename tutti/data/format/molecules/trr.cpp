#include "tutti/data/format/molecules/gromacs.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace tutti::data {
namespace {

constexpr uint32_t kTrrMagic = 1993;
constexpr std::array<uint32_t, 5> kTrrName = {13, 12, 0x474d585f, 0x74726e5f, 0x66696c65};

class TrrFrames final : public Frames {
 public:
  explicit TrrFrames(const FileBytes& file) : Frames(file) {
    HeaderReader reader(file_);
    for (int64_t number = 0; !reader.at_end(); ++number) {
      reader.begin_frame(number);
      read_header(reader, number);
    }
    frames_ = std::ssize(places_);
    if (frames_ == 0)
      throw BadFile(
          "{}: holds no frame with positions: expected a TRR of a run that writes them (nstxout)",
          file_.name());
  }

  void read(int64_t frame, std::span<float> xyz) const override {
    const Place& place = places_[static_cast<size_t>(frame)];
    read_angstrom(place.first, place.wide, xyz);
  }

  bool has_cells() const override {
    return std::ranges::all_of(places_, [](const Place& place) { return place.box >= 0; });
  }
  UnitCell cell(int64_t frame, std::span<float>) const override {
    const Place& place = places_[static_cast<size_t>(frame)];
    UnitCell cell{};
    read_angstrom(place.box, place.wide, cell);
    return cell;
  }

 private:
  struct Place {
    int64_t first = 0;  ///< place of the positions
    bool wide = false;  ///< f64
    int64_t box = -1;   ///< place of the unit cell's vectors; -1: none
  };

  enum Part : size_t { ir, energy, box, virial, pressure, topology, symbols, x, v, f, kParts };

  [[noreturn]] void wrong(int64_t frame, std::string_view why) const {
    throw BadFile("{}: frame {} (of all, counted from 0) {}: the file is corrupted; fetch it again",
                  file_.name(), frame, why);
  }

  void read_header(HeaderReader& reader, int64_t number) {
    const int64_t first = reader.at();
    bool begins = reader.u32() == kTrrMagic;
    for (const uint32_t word : kTrrName) begins &= reader.u32() == word;
    if (!begins)
      wrong(number, fmt::format("does not begin at byte {} as one of a TRR does", first));
    std::array<int64_t, kParts> bytes{};
    for (int64_t& part : bytes) part = reader.i32();
    const int64_t atoms = reader.i32();
    reader.skip(8);
    for (const int64_t part : bytes)
      if (part < 0) wrong(number, "announces a part of less than no bytes");
    if (bytes[ir] + bytes[energy] + bytes[topology] + bytes[symbols] != 0)
      wrong(number, "has parts that no known version of GROMACS writes");
    if (atoms < 1) wrong(number, fmt::format("has {} atoms", atoms));
    const int64_t element = element_bytes(bytes, atoms);
    if (element != 4 && element != 8) wrong(number, "has parts of neither f32 nor f64");
    for (const Part part : {box, virial, pressure})
      if (bytes[part] != 0 && bytes[part] != 9 * element) wrong(number, "has a tensor of odd size");
    for (const Part part : {x, v, f})
      if (bytes[part] != 0 && bytes[part] != 3 * atoms * element)
        wrong(number, fmt::format("has a part of {} bytes for {} atoms", bytes[part], atoms));
    reader.skip(2 * element);
    const int64_t box_at = bytes[box] > 0 ? reader.at() : -1;
    reader.skip(bytes[box] + bytes[virial] + bytes[pressure]);
    if (bytes[x] > 0)
      add({.first = reader.at(), .wide = element == 8, .box = box_at}, atoms, number);
    reader.skip(bytes[x] + bytes[v] + bytes[f]);
  }

  static int64_t element_bytes(const std::array<int64_t, kParts>& bytes, int64_t atoms) {
    if (bytes[box] > 0) return bytes[box] / 9;
    for (const Part part : {x, v, f})
      if (bytes[part] > 0) return bytes[part] / (3 * atoms);
    return 4;
  }

  void add(const Place& place, int64_t atoms, int64_t number) {
    if (!places_.empty() && atoms != atoms_)
      wrong(number, fmt::format("has {} atoms where those before it have {}", atoms, atoms_));
    atoms_ = atoms;
    places_.push_back(place);
  }

  std::vector<Place> places_;
};

}  // namespace

bool is_trr(std::span<const uint8_t> head) {
  return head.size() >= 4 && head[0] == 0 && head[1] == 0 && head[2] == 0x07 && head[3] == 0xc9;
}

std::shared_ptr<const Frames> read_trr(const FileBytes& file) {
  return std::make_shared<TrrFrames>(file);
}

}  // namespace tutti::data
