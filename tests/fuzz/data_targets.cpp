#include <array>
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
#include "tutti/data/format/molecules/selection.h"
#include "tutti/data/format/molecules/trr.h"
#include "tutti/data/format/molecules/xtc.h"
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
  answer([&] { data::read_idx(as_file(bytes[0] & 4 ? "idx.gz" : "idx", bytes.subspan(1)), rank); });
}

void cifar(Bytes bytes) {
  answer([&] { data::open_cifar_file(as_file("cifar", bytes)); });
}

void lattices(Bytes bytes) {
  answer([&] { data::open_lattices_file(as_file("lattices", bytes)); });
}

void read_arrays(std::vector<data::StoredArray> (*reader)(const data::FileBytes&), Bytes bytes) {
  answer([&] {
    const auto file = data::FileBytes::own({bytes.begin(), bytes.end()}, "input");
    data::ArrayFile(file.name(), reader(file)).verify();
  });
}

void npy(Bytes bytes) { read_arrays(data::read_npy, bytes); }
void npz(Bytes bytes) { read_arrays(data::read_npz, bytes); }

/// Coordinates of AMBER may come with unit cells.
void netcdf(Bytes bytes) {
  answer([&] {
    const auto file = data::FileBytes::own({bytes.begin(), bytes.end()}, "input");
    std::vector<data::StoredArray> arrays = data::read_netcdf_classic(file);
    data::add_periodic_array(file, arrays);
    data::ArrayFile(file.name(), std::move(arrays)).verify();
  });
}

void tiff(Bytes bytes) { read_arrays(data::read_tiff, bytes); }

void read_trajectory(std::shared_ptr<const data::Frames> (*reader)(const data::FileBytes&),
                     Bytes bytes) {
  answer([&] {
    const auto file = data::FileBytes::own({bytes.begin(), bytes.end()}, "input");
    data::ArrayFile(file.name(), data::frame_arrays(reader(file))).verify();
  });
}

void dcd(Bytes bytes) {
  answer([&] {
    const auto file = data::FileBytes::own({bytes.begin(), bytes.end()}, "input");
    data::ArrayFile(file.name(), data::dcd_arrays(file, false)).verify();
  });
}
void trr(Bytes bytes) { read_trajectory(data::read_trr, bytes); }
void xtc(Bytes bytes) { read_trajectory(data::read_xtc, bytes); }

void read_atoms(std::vector<data::Atom> (*reader)(std::string_view, const std::string&),
                Bytes bytes) {
  const std::string text(bytes.begin(), bytes.end());
  answer([&] {
    const data::Topology topology{"input", reader(text, "input")};
    CHECK(!topology.atoms.empty(), "no atoms");
    data::selected_atoms(topology, data::parse_selection("CA residues 1-9"));
  });
}

void pdb(Bytes bytes) { read_atoms(data::read_pdb_atoms, bytes); }
void gro(Bytes bytes) { read_atoms(data::read_gro_atoms, bytes); }
void psf(Bytes bytes) { read_atoms(data::read_psf_atoms, bytes); }
void parm7(Bytes bytes) { read_atoms(data::read_parm7_atoms, bytes); }

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
  answer([&] {
    const data::VolumeArrays arrays;
    const data::Volume read = data::read_volume(path, arrays, data::has_labels(path, arrays));
    CHECK(read.labels.empty() || std::ssize(read.labels) == data::product(read.extents),
          "{} labels", read.labels.size());
    if (!read.labels.empty())
      data::seed_parts(read, {.surroundings = {3, 3, 3}, .bounds = {0.1, 0.5}});
  });
}

void raw_arrays(Bytes bytes) {
  answer([&] {
    as_file("x.raw", std::vector<uint8_t>(64, 1));
    data::open_array_file(as_file("arrays.toml", bytes)).verify();
  });
}

/// The library reads the file in a child only, as everywhere: its crashes are not findings.
void hdf5(Bytes bytes) {
  answer([&] { data::open_array_file(as_file("x.h5", bytes), {.probe_seconds = 10}).verify(); });
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
  answer([&] {
    const auto path = as_file("x.tfrecord", file);
    data::TfRecordReader reader(path);
    for (std::vector<uint8_t> record; reader.next(record);) data::parse_example(record, "record");
    data::tfrecord_places(data::FileBytes::open(path));
  });
}

void tf_example(Bytes bytes) {
  answer([&] {
    const auto features = data::parse_example(bytes, "record");
    const auto again = data::parse_example(data::example_record(features), "record");
    CHECK(again.size() == features.size(), "{} features of {}", again.size(), features.size());
  });
}

void field_line(Bytes bytes) {
  const std::string text(bytes.begin(), bytes.end());
  answer([&] { data::parse_field_line(text); });
}

void url_list(Bytes bytes) {
  answer([&] { data::read_url_list(as_file("list", bytes)); });
}

void statistics(Bytes bytes) {
  const auto path = as_file("stats.json", bytes);
  answer([&] {
    data::read_statistics(path, {data::parse_field_line("x: from a/x"),
                                 data::parse_field_line("y: from y classes 2")});
  });
}

/// Parses a line of data.transforms, for a field of an image's shape.
void steps(Bytes bytes) {
  const std::string text(bytes.begin(), bytes.end());
  answer([&] {
    const data::FieldSteps parsed = data::parse_steps(text);
    data::placed_shape({.name = parsed.field, .shape = Shape{3, 32, 32}}, parsed.placement);
  });
}

void tar(Bytes bytes) {
  const auto path = as_file("input.tar", bytes);
  answer([&] {
    const data::ImagePlaces places(data::ImageSource{.folder = {}, .tars = {path}});
    for (int64_t i = 0; i < places.size(); ++i) places.origin(i);
  });
}

/// Reads size, the whole image, and a part of it at half the size, as a reader thread would.
void read_image(Bytes bytes) {
  constexpr int64_t kMostPixelsHere = 1 << 20;
  answer([&] {
    const data::ImageSize size = data::image_size(bytes, kMostPixelsHere);
    data::DecodedImage image;
    data::decode_image(
        bytes, {size.height / 3, size.width / 3, (size.height + 2) / 3, (size.width + 2) / 3}, 4,
        image);
    const auto whole = [](int64_t extent) { return static_cast<double>(extent); };
    std::vector<uint8_t> pixels(3 * 8 * 8);
    data::resample(
        image,
        {whole(image.top), whole(image.left), whole(image.size.height), whole(image.size.width)},
        {image.top, image.left, image.size.height, image.size.width}, {8, 8}, pixels.data());
    data::decode_whole(bytes, "input", image);
  });
}

void jpeg(Bytes bytes) {
  if (data::is_jpeg(bytes)) read_image(bytes);
}
void png(Bytes bytes) {
  if (data::is_png(bytes)) read_image(bytes);
}

/// Reads each line as a reader thread would.
void click_log(Bytes bytes) {
  const std::filesystem::path file = as_file("click_log", bytes);
  answer([&] {
    const data::ClickSet set({.files = {file}, .rows = {10}});
    data::Sample sample(set.fields());
    for (int64_t i = 0; i < set.size(); ++i) answer([&] { set.read(i, sample); });
  });
}

/// Reads a vocabulary, and then looks a text up in each column.
void click_vocabulary(Bytes bytes) {
  const std::filesystem::path file = as_file("click_vocabulary", bytes);
  answer([&] {
    const auto vocabulary = data::ClickVocabulary::read(file);
    for (size_t c = 0; c < vocabulary.columns(); ++c) vocabulary.row(c, "68fd1e64");
  });
}

constexpr std::array<Target, 29> kTargets = {{{"idx", idx},
                                              {"cifar", cifar},
                                              {"lattices", lattices},
                                              {"npy", npy},
                                              {"npz", npz},
                                              {"raw_arrays", raw_arrays},
                                              {"hdf5", hdf5},
                                              {"netcdf", netcdf},
                                              {"tiff", tiff},
                                              {"dcd", dcd},
                                              {"trr", trr},
                                              {"xtc", xtc},
                                              {"pdb", pdb},
                                              {"gro", gro},
                                              {"psf", psf},
                                              {"parm7", parm7},
                                              {"selection", selection},
                                              {"volume", volume},
                                              {"tfrecord", tfrecord},
                                              {"tf_example", tf_example},
                                              {"field_line", field_line},
                                              {"statistics", statistics},
                                              {"url_list", url_list},
                                              {"steps", steps},
                                              {"tar", tar},
                                              {"jpeg", jpeg},
                                              {"png", png},
                                              {"click_log", click_log},
                                              {"click_vocabulary", click_vocabulary}}};

}  // namespace

std::span<const Target> data_targets() { return kTargets; }

}  // namespace tutti::fuzz
