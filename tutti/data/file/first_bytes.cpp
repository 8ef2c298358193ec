#include "tutti/data/file/first_bytes.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <vector>

#include "tutti/base/numeric/crc32c.h"
#include "tutti/data/file/first_text.h"
#include "tutti/data/file/zip_members.h"

namespace tutti::data {
namespace {

using namespace std::string_view_literals;

/// The name of a kind, and the remedy where another kind was expected.
struct KnownContent {
  Content content;
  std::string_view name, remedy;
};

constexpr std::string_view
    kFetch = "fetch it again",
    kOther = "give another file, or change what names this one",
    kNumbers = "read it with its own program or library and save the numbers with numpy.save",
    kPicture = "convert it to PNG, for example with ImageMagick's 'convert OLD NEW.png'";

constexpr KnownContent kKnown[] = {
    {Content::unknown, "something else", kOther},
    {Content::empty, "an empty file",
     "its download or copy was not begun, or the disk was full (df -h); fetch it again"},
    {Content::zeros, "zeros alone at its beginning",
     "a download or a copy may have reserved its place and not filled it; fetch it again"},
    {Content::text, "text", kOther},
    {Content::utf16, "text as UTF-16", "convert it with 'iconv -f UTF-16 -t UTF-8 FILE > NEW'"},
    {Content::utf32, "text as UTF-32", "convert it with 'iconv -f UTF-32 -t UTF-8 FILE > NEW'"},
    {Content::csv, "a table of text (CSV)", ""},  // its remedy is remedy_of_table()
    {Content::json, "JSON", kOther},
    {Content::html, "a page of the web",
     "it may be a login or an error page, look at it with 'head'; fetch the file itself"},
    {Content::xml, "XML",
     "it may be a store's error, look at it with 'head'; otherwise give another file"},
    {Content::lfs_pointer, "a pointer file of Git LFS", "fetch its content with 'git lfs pull'"},
    {Content::annex_pointer, "a pointer file of git-annex",
     "fetch its content with 'git annex get FILE'"},
    {Content::dvc_pointer, "a pointer file of DVC", "fetch its content with 'dvc pull'"},
    {Content::parts_index, "the index of weights in several files",
     "give the .safetensors files that it names, or save the model as one file"},
    {Content::safetensors, "safetensors", kOther},
    {Content::torch_zip, "a file of torch.save",
     "load it with torch.load(FILE, map_location='cpu') and save weights with "
     "safetensors.torch.save_file, other numbers with numpy.save"},
    {Content::torch_tar, "a file of torch.save before PyTorch 1.6",
     "load it with torch.load(FILE, map_location='cpu') and save weights with "
     "safetensors.torch.save_file, other numbers with numpy.save"},
    {Content::pickle, "a Python pickle",
     "load it in Python and save arrays with numpy.save, weights with safetensors"},
    {Content::gguf, "a GGUF model", kOther},
    {Content::zip, "a zip archive", "unpack it with 'unzip FILE'"},
    {Content::npz, "NumPy's .npz", kOther},
    {Content::gzip, "a gzip file", "unpack it with 'gzip -dc FILE > NEW' (a .tgz with 'tar -xzf')"},
    {Content::bzip2, "a bzip2 file", "unpack it with 'bzip2 -dc FILE > NEW'"},
    {Content::xz, "an xz file", "unpack it with 'xz -dc FILE > NEW'"},
    {Content::zstd, "a zstd file", "unpack it with 'zstd -dc FILE > NEW'"},
    {Content::lz4, "an lz4 file", "unpack it with 'lz4 -dc FILE > NEW'"},
    {Content::seven_zip, "a 7z archive", "unpack it with '7z x FILE'"},
    {Content::rar, "a RAR archive", "unpack it with 'unrar x FILE'"},
    {Content::tar, "a tar archive", "unpack it with 'tar -xf FILE'"},
    {Content::npy, "NumPy's .npy", kOther},
    {Content::newer_npy, "an .npy file of a later version than 3",
     "save it with a NumPy that writes version 1 to 3"},
    {Content::hdf5, "HDF5", kOther},
    {Content::netcdf, "classic NetCDF", kOther},
    {Content::newer_netcdf, "NetCDF of a form that is not known",
     "convert it with 'nccopy -k nc4 OLD NEW'"},
    {Content::tiff, "TIFF", kOther},
    {Content::idx, "an IDX file (as MNIST's)", kOther},
    {Content::tfrecord, "TFRecords", kOther},
    {Content::xtc, "a GROMACS trajectory (XTC)", kOther},
    {Content::trr, "a GROMACS trajectory (TRR)", kOther},
    {Content::dcd, "a DCD trajectory", kOther},
    {Content::amber_text, "a text trajectory of AMBER",
     "convert it with 'cpptraj -p TOPOLOGY -y FILE -x NEW.nc', or in Python with "
     "mdtraj.load(FILE, top=TOPOLOGY).save('NEW.dcd')"},
    {Content::xyz_text, "a text trajectory (XYZ)",
     "convert it in Python with MDAnalysis.Universe(FILE).atoms.write('NEW.dcd', frames='all')"},
    {Content::lammps_text, "a text trajectory of LAMMPS",
     "convert it in Python with MDAnalysis.Universe(FILE, format='LAMMPSDUMP')"
     ".atoms.write('NEW.dcd', frames='all')"},
    {Content::pdb_text, "a PDB",
     "as a topology it belongs into data.transforms ('select CA of FILE'); its models are a "
     "trajectory after 'mdconvert FILE -o NEW.dcd'"},
    {Content::gro_text, "a GRO",
     "as a topology it belongs into data.transforms ('select CA of FILE'); its frames are a "
     "trajectory after mdtraj.load(FILE).save('NEW.dcd') in Python"},
    {Content::jpeg, "a JPEG image", kOther},
    {Content::png, "a PNG image", kOther},
    {Content::bmp, "a BMP image", kPicture},
    {Content::webp, "a WebP image", kPicture},
    {Content::gif, "a GIF image", kPicture},
    {Content::heif, "a HEIF or AVIF image", kPicture},
    {Content::jpeg2000, "a JPEG 2000 image", kPicture},
    {Content::dicom, "a DICOM file", kNumbers},
    {Content::fits, "a FITS file", kNumbers},
    {Content::matlab, "a MATLAB file before version 7.3",
     "save it in MATLAB with '-v7.3', which is HDF5, or read it with scipy.io.loadmat and save it "
     "with numpy.savez"},
    {Content::grib, "a GRIB file", "convert it with 'cdo -f nc4 copy OLD NEW'"},
    {Content::parquet, "a Parquet table",
     "read it with pandas.read_parquet and save it with to_csv or numpy.save"},
    {Content::arrow, "an Arrow file",
     "read it with pandas.read_feather and save it with to_csv or numpy.save"},
    {Content::sqlite, "an SQLite data base", kNumbers},
    {Content::pdf, "a PDF document", kOther},
    {Content::program, "a program", kOther},
    {Content::macos, "a companion file of macOS", "delete it: it holds no data"},
};

struct Magic {
  Content content;
  size_t at;
  std::string_view bytes;
};

// The more specific ones come first.
constexpr Magic kMagics[] = {
    {Content::lfs_pointer, 0, "version https://git-lfs.github.com/spec/"sv},
    {Content::lfs_pointer, 0, "version https://hawser.github.com/spec/"sv},
    {Content::annex_pointer, 0, "/annex/objects/"sv},
    {Content::dvc_pointer, 0, "outs:\n- "sv},
    {Content::gzip, 0, "\x1f\x8b"sv},
    {Content::bzip2, 0, "BZh"sv},
    {Content::xz, 0,
     "\xfd"
     "7zXZ\0"sv},
    {Content::zstd, 0, "\x28\xb5\x2f\xfd"sv},
    {Content::lz4, 0, "\x04\x22\x4d\x18"sv},
    {Content::seven_zip, 0, "7z\xbc\xaf\x27\x1c"sv},
    {Content::rar, 0, "Rar!\x1a\x07"sv},
    {Content::hdf5, 0, "\x89HDF\r\n\x1a\n"sv},
    {Content::hdf5, 512, "\x89HDF\r\n\x1a\n"sv},
    {Content::netcdf, 0, "CDF\x01"sv},
    {Content::netcdf, 0, "CDF\x02"sv},
    {Content::netcdf, 0, "CDF\x05"sv},
    {Content::newer_netcdf, 0, "CDF"sv},
    {Content::tiff, 0, "II\x2a\0"sv},
    {Content::tiff, 0, "MM\0\x2a"sv},
    {Content::tiff, 0, "II\x2b\0"sv},
    {Content::tiff, 0, "MM\0\x2b"sv},
    {Content::jpeg, 0, "\xff\xd8\xff"sv},
    {Content::png, 0, "\x89PNG\r\n\x1a\n"sv},
    {Content::gif, 0, "GIF8"sv},
    {Content::webp, 8, "WEBP"sv},
    {Content::jpeg2000, 0, "\0\0\0\x0cjP  "sv},
    {Content::heif, 4, "ftypheic"sv},
    {Content::heif, 4, "ftypmif1"sv},
    {Content::heif, 4, "ftypavif"sv},
    {Content::dicom, 128, "DICM"sv},
    {Content::fits, 0, "SIMPLE  ="sv},
    {Content::matlab, 0, "MATLAB 5.0 MAT-file"sv},
    {Content::grib, 0, "GRIB"sv},
    {Content::parquet, 0, "PAR1"sv},
    {Content::arrow, 0, "ARROW1"sv},
    {Content::arrow, 0, "FEA1"sv},
    {Content::sqlite, 0, "SQLite format 3\0"sv},
    {Content::pdf, 0, "%PDF-"sv},
    {Content::gguf, 0, "GGUF"sv},
    {Content::program, 0,
     "\x7f"
     "ELF"sv},
    {Content::macos, 0, "\0\x05\x16\x07"sv},
    {Content::xtc, 0, "\0\0\x07\xcb"sv},
    {Content::xtc, 0, "\0\0\x07\xe7"sv},
    {Content::trr, 0, "\0\0\x07\xc9"sv},
    {Content::dcd, 4, "CORD"sv},
    {Content::dcd, 4, "VELD"sv},
    {Content::dcd, 8, "CORD"sv},
    {Content::tar, 257, "ustar"sv},
    {Content::idx, 0, "\0\0\x08\x01"sv},
    {Content::idx, 0, "\0\0\x08\x02"sv},
    {Content::idx, 0, "\0\0\x08\x03"sv},
    {Content::idx, 0, "\0\0\x08\x04"sv},
    {Content::idx, 0, "\0\0\x09"sv},
    {Content::idx, 0, "\0\0\x0b"sv},
    {Content::idx, 0, "\0\0\x0c"sv},
    {Content::idx, 0, "\0\0\x0d"sv},
    {Content::idx, 0, "\0\0\x0e"sv},
};

std::string_view head_text(std::span<const uint8_t> head) {
  return {reinterpret_cast<const char*>(head.data()), head.size()};
}

bool has_at(std::string_view text, size_t at, std::string_view bytes) {
  return text.size() >= at + bytes.size() && text.substr(at, bytes.size()) == bytes;
}

uint64_t little_endian(std::string_view text) {
  uint64_t value = 0;
  for (size_t i = std::min<size_t>(8, text.size()); i-- > 0;)
    value = value << 8 | static_cast<uint8_t>(text[i]);
  return value;
}

/// Tells the kind of a zip file by the name of its first member.
Content kind_of_zip(std::string_view text) {
  if (text.size() < 30) return Content::zip;
  const std::string_view name = text.substr(30, little_endian(text.substr(26, 2)) & 0xffff);
  if (name.ends_with("/data.pkl") || name.ends_with("/.format_version") ||
      name.ends_with("/byteorder"))
    return Content::torch_zip;
  return name.ends_with(".npy") ? Content::npz : Content::zip;
}

Content kind_of(std::span<const uint8_t> head, int64_t size) {
  const std::string_view text = head_text(head);
  if (head.empty()) return Content::empty;
  if (has_at(text, 0, "\x93NUMPY"))
    return text.size() > 6 && text[6] > 3 ? Content::newer_npy : Content::npy;
  if (has_at(text, 0, "PK\x03\x04") || has_at(text, 0, "PK\x05\x06")) return kind_of_zip(text);
  if (text.size() >= 12 &&
      masked_crc(crc32c(head.data(), 8)) == (little_endian(text.substr(8, 4)) & 0xffffffff))
    return Content::tfrecord;
  for (const Magic& magic : kMagics)
    // A text may also begin with these letters; in NetCDF a version number follows them.
    if (has_at(text, magic.at, magic.bytes) &&
        !(magic.content == Content::newer_netcdf && looks_like_text(text)))
      return magic.content;
  // A bitmap states its own length and the size of the header that follows.
  if (has_at(text, 0, "BM") && text.size() >= 18 && has_at(text, 6, "\0\0\0\0"sv) &&
      static_cast<uint8_t>(text[14]) >= 12 && has_at(text, 15, "\0\0\0"sv))
    return Content::bmp;
  // safetensors: the length of a header that lies within the file, then the header, which is JSON.
  if (text.size() > 9 && text[8] == '{' &&
      (text[9] == '"' || text[9] == '}' || text[9] == ' ' || text[9] == '\n') &&
      little_endian(text) >> 40 == 0)
    return Content::safetensors;
  // A pickle: protocol 2 to 5, then a frame or the first object.
  if (text.size() > 2 && text[0] == '\x80' && text[1] >= 2 && text[1] <= 5) {
    // The number with which torch.save began before it wrote zip files.
    const bool torch = has_at(text, 2, "\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19"sv);
    return torch ? Content::torch_tar : Content::pickle;
  }
  if (size >= 16 && std::ranges::all_of(text, [](char c) { return c == 0; })) return Content::zeros;
  if (const Content wide = kind_of_wide_text(text); wide != Content::unknown) return wide;
  return looks_like_text(text) ? kind_of_text(text) : Content::unknown;
}

}  // namespace

std::string_view without_mark(std::string_view text) {
  constexpr std::string_view kMark = "\xef\xbb\xbf";
  if (text.starts_with(kMark)) text.remove_prefix(kMark.size());
  return text;
}

int64_t mark_bytes(const FileBytes& file) {
  std::array<uint8_t, 3> head{};
  if (file.size() < std::ssize(head)) return 0;
  file.read(0, head);
  return std::ssize(head) - std::ssize(without_mark(head_text(head)));
}

bool is_plain_text(Content content) {
  switch (content) {
    case Content::unknown:
    case Content::text:
    case Content::csv:
    case Content::json:
    case Content::parts_index:
    case Content::amber_text:
    case Content::xyz_text:
    case Content::lammps_text:
    case Content::pdb_text:
    case Content::gro_text: return true;
    default: return false;
  }
}

bool is_pointer(Content content) {
  return content == Content::lfs_pointer || content == Content::annex_pointer ||
         content == Content::dvc_pointer;
}

namespace {

const KnownContent& row_of_content(Content content) {
  return *std::ranges::find(kKnown, content, &KnownContent::content);
}

/// Says whether a file recognised as `found` may be one of the format `expected`.
bool may_be(Content found, Content expected) {
  if (found == expected) return true;
  switch (expected) {
    case Content::text:
    case Content::csv: return is_plain_text(found) && found != Content::unknown;
    case Content::json: return found == Content::parts_index;
    case Content::zip: return found == Content::npz || found == Content::torch_zip;
    case Content::npz: return found == Content::zip;  // the first array may have any name
    case Content::unknown: return found == Content::zeros || found == Content::text;
    default: return false;
  }
}

std::vector<uint8_t> head_of(const FileBytes& file) {
  std::vector<uint8_t> head(
      static_cast<size_t>(std::min<int64_t>(file.size(), int64_t{kFirstBytes})));
  file.read(0, head);
  return head;
}

std::string described(const FileBytes& file, const FirstBytes& found) {
  if (found.content == Content::empty) return fmt::format("found {}: {}", found.name, found.remedy);
  if (found.content != Content::unknown)
    return fmt::format("found {} ({} bytes): {}", found.name, file.size(), found.remedy);
  std::vector<uint8_t> head = head_of(file);
  head.resize(std::min<size_t>(head.size(), 12));
  return fmt::format("found {} bytes that begin with {:02x}: give another file, or fetch it again",
                     file.size(), fmt::join(head, " "));
}

/// Tells a zip file in the place of weights by its members: PyTorch's has data.pkl somewhere; a
/// truncated one is most often PyTorch's.
FirstBytes zip_of_weights(const FileBytes& file) {
  bool torch = false, weights = false;
  try {
    const std::vector<ZipMember> members = zip_members(file);
    if (members.empty())
      return {Content::zip, "a zip archive without members", std::string(kFetch)};
    for (const ZipMember& member : members) {
      torch |= member.name.ends_with("data.pkl");
      weights |= member.name.ends_with(".safetensors");
    }
  } catch (const IoError&) {
    torch = true;
  }
  const KnownContent& row = row_of_content(torch ? Content::torch_zip : Content::zip);
  return {
      row.content, row.name,
      fmt::format("{}{}", row.remedy, weights && !torch ? " and give the .safetensors in it" : "")};
}

}  // namespace

FirstBytes first_bytes_of(std::span<const uint8_t> head, int64_t size) {
  head = head.first(std::min(head.size(), kFirstBytes));
  const KnownContent& found = row_of_content(kind_of(head, size));
  const bool table = found.content == Content::csv;
  return {.content = found.content,
          .name = found.name,
          .remedy = table ? remedy_of_table(head_text(head)) : std::string(found.remedy)};
}

FirstBytes first_bytes_of(const FileBytes& file) {
  return first_bytes_of(head_of(file), file.size());
}

std::string found_instead(const FileBytes& file) { return described(file, first_bytes_of(file)); }

std::string unreadable(const FileBytes& file, Content expected, std::string_view why) {
  FirstBytes found = first_bytes_of(file);
  if (expected == Content::safetensors && found.content == Content::zip)
    found = zip_of_weights(file);
  if (may_be(found.content, expected) && found.content != Content::zeros)
    return fmt::format("{}: {}: it is truncated or corrupted; {}", file.name(), why, kFetch);
  if (expected == Content::unknown)
    return fmt::format("{}: {}; {}", file.name(), why, described(file, found));
  return fmt::format("{}: expected {}, {}", file.name(), row_of_content(expected).name,
                     described(file, found));
}

std::string unreadable(const std::filesystem::path& path, Content expected, std::string_view why) {
  try {
    return unreadable(FileBytes::open(path), expected, why);
  } catch (const IoError& error) {
    return error.what();
  }
}

}  // namespace tutti::data
