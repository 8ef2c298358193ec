#include <cstring>

#include "tests/fuzz/input.h"
#include "tests/fuzz/targets.h"
#include "tutti/base/numeric/crc32c.h"
#include "tutti/data/arrays/field_line.h"
#include "tutti/data/arrays/statistics_file.h"
#include "tutti/data/clicks/click_set.h"
#include "tutti/data/format/array/netcdf_classic.h"
#include "tutti/data/format/array/npy_arrays.h"
#include "tutti/data/format/array/tiff_arrays.h"
#include "tutti/data/format/molecules/dcd.h"
#include "tutti/data/format/molecules/gromacs.h"
#include "tutti/data/format/molecules/selection.h"
#include "tutti/data/format/open_array.h"
#include "tutti/data/format/sets/cifar.h"
#include "tutti/data/format/sets/idx.h"
#include "tutti/data/format/sets/lattices_file.h"
#include "tutti/data/format/sets/tf_example.h"
#include "tutti/data/format/sets/tfrecord.h"
#include "tutti/data/images/image_places.h"
#include "tutti/data/images/resample.h"
#include "tutti/data/neurons/seed_points.h"
#include "tutti/data/neurons/volume.h"
#include "tutti/data/store/fetch.h"
#include "tutti/data/transform/steps.h"

namespace tutti::fuzz {
namespace {

/// The first byte holds the number of dimensions, and whether the rest is compressed.
void idx(Bytes bytes) {
  if (bytes.empty()) return;
  const int rank = 1 + bytes[0] % 3;
  data::read_idx(as_file(bytes[0] & 4 ? "idx.gz" : "idx", bytes.subspan(1)), rank);
}

void cifar(Bytes bytes) { data::open_cifar_file(as_file("cifar", bytes)); }

void lattices(Bytes bytes) { data::open_lattices_file(as_file("lattices", bytes)); }

template <class Reader>
void verify_arrays(Bytes bytes, Reader reader) {
  const auto file = data::FileBytes::own({bytes.begin(), bytes.end()}, "input");
  data::ArrayFile(file.name(), reader(file)).verify();
}

template <auto kReader>
void read_arrays(Bytes bytes) {
  verify_arrays(bytes, kReader);
}

/// Coordinates of AMBER may come with unit cells.
void netcdf(Bytes bytes) {
  verify_arrays(bytes, [](const data::FileBytes& file) {
    std::vector<data::StoredArray> arrays = data::read_netcdf_classic(file);
    data::add_periodic_array(file, arrays);
    return arrays;
  });
}

void dcd(Bytes bytes) {
  verify_arrays(bytes, [](const auto& file) { return data::dcd_arrays(file, false); });
}

template <auto kReader>
void read_trajectory(Bytes bytes) {
  verify_arrays(bytes, [](const auto& file) { return data::frame_arrays(kReader(file)); });
}

template <auto kReader>
void read_atoms(Bytes bytes) {
  const std::string text(bytes.begin(), bytes.end());
  const data::Topology topology{"input", kReader(text, "input")};
  CHECK(!topology.atoms.empty(), "no atoms");
  data::selected_atoms(topology, data::parse_selection("CA residues 1-9"));
}

/// Selects atoms of a small protein; the text also serves as the step that makes a field of it.
void selection(Bytes bytes) {
  static const data::Topology kTopology{
      "topology",
      {{.name = "N", .residue = "GLY", .residue_number = "1", .chain = "A"},
       {.name = "CA", .residue = "GLY", .residue_number = "1", .chain = "A"},
       {.name = "CA", .residue = "ALA", .residue_number = "52A", .chain = "B"},
       {.name = "CA", .residue = "CA", .residue_number = "-3", .chain = ""},
       {.name = "OW", .residue = "SOL", .residue_number = "A000", .chain = "W"}}};
  const std::string text(bytes.begin(), bytes.end());
  answer([&] {
    const auto atoms = data::selected_atoms(kTopology, data::parse_selection(text));
    CHECK(!atoms.empty() && atoms.front() >= 0 && atoms.back() < 5, "atoms of none");
  });
  answer([&] { data::parse_steps("x: " + text); });
}

/// Reads images and labels of a volume, in an archive of arrays.
void volume(Bytes bytes) {
  const auto path = as_file("volume.npz", bytes);
  const data::VolumeArrays arrays;
  const data::Volume read = data::read_volume(path, arrays, data::has_labels(path, arrays));
  CHECK(read.labels.empty() || std::ssize(read.labels) == data::product(read.extents), "{} labels",
        read.labels.size());
  if (!read.labels.empty())
    data::seed_parts(read, {.surroundings = {3, 3, 3}, .bounds = {0.1, 0.5}});
}

void raw_arrays(Bytes bytes) {
  as_file("x.raw", std::vector<uint8_t>(64, 1));
  data::open_array_file(as_file("arrays.toml", bytes)).verify();
}

/// The library reads the file in a child only, as everywhere: its crashes are not findings. A child
/// takes ten times as long as a reader of ours.
void hdf5(Bytes bytes) {
  data::open_array_file(as_file("x.h5", bytes), {.probe_seconds = 10}).verify();
}

/// A first byte of 1 corrects the checksums of the lengths, which no search would find.
void tfrecord(Bytes bytes) {
  if (bytes.empty()) return;
  std::vector<uint8_t> file(bytes.begin() + 1, bytes.end());
  if (bytes[0] == 1) {
    for (size_t at = 0; at + 16 <= file.size();) {
      const uint32_t crc = masked_crc(crc32c(file.data() + at, 8));
      std::memcpy(file.data() + at + 8, &crc, 4);
      uint64_t length = 0;
      std::memcpy(&length, file.data() + at, 8);
      if (length > file.size() - at - 16) break;
      const uint32_t of_record = masked_crc(crc32c(file.data() + at + 12, length));
      std::memcpy(file.data() + at + 12 + length, &of_record, 4);
      at += 16 + length;
    }
  }
  const auto path = as_file("x.tfrecord", file);
  data::TfRecordReader reader(path);
  for (std::vector<uint8_t> record; reader.next(record);) data::parse_example(record, "record");
  data::tfrecord_places(data::FileBytes::open(path));
}

void tf_example(Bytes bytes) {
  const auto features = data::parse_example(bytes, "record");
  const auto again = data::parse_example(data::example_record(features), "record");
  CHECK(again.size() == features.size(), "{} features of {}", again.size(), features.size());
}

void field_line(Bytes bytes) { data::parse_field_line(std::string(bytes.begin(), bytes.end())); }

void url_list(Bytes bytes) { data::read_url_list(as_file("list", bytes)); }

void statistics(Bytes bytes) {
  data::read_statistics(as_file("stats.json", bytes),
                        data::parse_field_lines({"x: from a/x", "y: from y classes 2"}));
}

/// Parses a line of data.transforms, for a field of an image's shape.
void steps(Bytes bytes) {
  const data::FieldSteps parsed = data::parse_steps(std::string(bytes.begin(), bytes.end()));
  data::placed_shape({.name = parsed.field, .shape = Shape{3, 32, 32}}, parsed.placement);
}

void tar(Bytes bytes) {
  const data::ImagePlaces places({.folder = {}, .tars = {as_file("input.tar", bytes)}});
  for (int64_t i = 0; i < places.size(); ++i) places.origin(i);
}

/// Reads size, the whole image, and a part of it at half the size, as a reader thread would.
template <auto kIsOfKind>
void read_image(Bytes bytes) {
  if (!kIsOfKind(bytes)) return;
  constexpr int64_t kMostPixelsHere = 1 << 20;
  const data::ImageSize size = data::image_size(bytes, kMostPixelsHere);
  data::DecodedImage read;
  data::decode_image(bytes,
                     {size.height / 3, size.width / 3, (size.height + 2) / 3, (size.width + 2) / 3},
                     4, read);
  const auto whole = [](int64_t extent) { return static_cast<double>(extent); };
  std::vector<uint8_t> pixels(3 * 8 * 8);
  data::resample(
      read, {whole(read.top), whole(read.left), whole(read.size.height), whole(read.size.width)},
      {read.top, read.left, read.size.height, read.size.width}, {8, 8}, pixels.data());
  data::decode_whole(bytes, "input", read);
}

/// Reads each line as a reader thread would.
void click_log(Bytes bytes) {
  const data::ClickSet set({.files = {as_file("click_log", bytes)}, .rows = {10}});
  data::Sample sample(set.fields());
  for (int64_t i = 0; i < set.size(); ++i) answer([&] { set.read(i, sample); });
}

/// Reads a vocabulary, and then looks a text up in each column.
void click_vocabulary(Bytes bytes) {
  const auto vocabulary = data::ClickVocabulary::read(as_file("click_vocabulary", bytes));
  for (size_t c = 0; c < vocabulary.columns(); ++c) vocabulary.row(c, "68fd1e64");
}

constexpr Target kTargets[] = {{"idx", idx},
                               {"cifar", cifar},
                               {"lattices", lattices},
                               {"npy", read_arrays<data::read_npy>},
                               {"npz", read_arrays<data::read_npz>},
                               {"raw_arrays", raw_arrays},
                               {"hdf5", hdf5, 200},
                               {"netcdf", netcdf},
                               {"tiff", read_arrays<data::read_tiff>},
                               {"dcd", dcd},
                               {"trr", read_trajectory<data::read_trr>},
                               {"xtc", read_trajectory<data::read_xtc>},
                               {"pdb", read_atoms<data::read_pdb_atoms>},
                               {"gro", read_atoms<data::read_gro_atoms>},
                               {"psf", read_atoms<data::read_psf_atoms>},
                               {"parm7", read_atoms<data::read_parm7_atoms>},
                               {"selection", selection},
                               {"volume", volume},
                               {"tfrecord", tfrecord},
                               {"tf_example", tf_example},
                               {"field_line", field_line},
                               {"statistics", statistics},
                               {"url_list", url_list},
                               {"steps", steps},
                               {"tar", tar},
                               {"jpeg", read_image<data::is_jpeg>},
                               {"png", read_image<data::is_png>},
                               {"click_log", click_log},
                               {"click_vocabulary", click_vocabulary}};

}  // namespace

std::span<const Target> data_targets() { return kTargets; }

}  // namespace tutti::fuzz
