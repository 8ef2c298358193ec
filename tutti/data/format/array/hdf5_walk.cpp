#include <algorithm>

#include "tutti/data/format/array/hdf5_links.h"
#include "tutti/data/format/array/hdf5_listing.h"
#include "tutti/data/format/array/hdf5_types.h"
#include "tutti/data/format/array/stored_array.h"

namespace tutti::data {
namespace {

constexpr hsize_t kMostAttributeBytes = 1 << 16;
// Before 1.14, HDF5 finds each chunk by walking over the earlier ones, so the time is quadratic.
constexpr hsize_t kMostListedChunks = 20'000;

std::string h5_text(hid_t attribute, hid_t type) {
  if (H5Tis_variable_str(type) > 0) {
    const H5Id space(H5Aget_space(attribute)), memory(H5Tcopy(type));
    char* text = nullptr;
    if (H5Sget_simple_extent_npoints(space) != 1 || H5Aread(attribute, memory, &text) < 0 ||
        text == nullptr)
      return "";
    std::string found(text);
    H5Dvlen_reclaim(memory, space, H5P_DEFAULT, &text);
    return found;
  }
  const hsize_t bytes = H5Aget_storage_size(attribute);
  std::string found(static_cast<size_t>(bytes), '\0');
  if (H5Aread(attribute, type, found.data()) < 0) return "";
  found.resize(std::min(found.find('\0'), found.size()));
  return found;
}

/// Reads numbers and texts; other attributes are only listed.
herr_t read_h5_attribute(hid_t object, const char* name, const H5A_info_t*, void* set) {
  auto& info = static_cast<Hdf5DataSet*>(set)->info;
  const H5Id attribute(H5Aopen(object, name, H5P_DEFAULT));
  if (!attribute.ok()) return 0;
  const H5Id type(H5Aget_type(attribute)), space(H5Aget_space(attribute));
  const H5T_class_t kind = H5Tget_class(type);
  if (H5Aget_storage_size(attribute) > kMostAttributeBytes) return 0;
  ArrayAttribute value;
  if (kind == H5T_STRING) {
    value.text = h5_text(attribute, type);
  } else if (kind == H5T_INTEGER || kind == H5T_FLOAT) {
    const hssize_t count = H5Sget_simple_extent_npoints(space);
    if (count < 0 || count > static_cast<hssize_t>(kMostAttributeBytes)) return 0;
    value.numbers.resize(static_cast<size_t>(count));
    if (count > 0 && H5Aread(attribute, H5T_NATIVE_DOUBLE, value.numbers.data()) < 0) return 0;
  }
  info.attributes.emplace(name, std::move(value));
  return 0;
}

/// Reads NetCDF-4's names: for each dimension, the data set that is its scale.
void read_h5_dimensions(hid_t set, ArrayInfo& info) {
  const auto own = info.attributes.find("CLASS");
  if (own != info.attributes.end() && own->second.text == "DIMENSION_SCALE" &&
      info.shape.size() == 1) {
    info.dimensions = {info.name};
    return;
  }
  if (H5Aexists(set, "DIMENSION_LIST") <= 0) return;
  const H5Id list(H5Aopen(set, "DIMENSION_LIST", H5P_DEFAULT));
  const H5Id space(H5Aget_space(list)), stored(H5Aget_type(list));
  if (!list.ok() || H5Tget_class(stored) != H5T_VLEN ||
      H5Sget_simple_extent_npoints(space) != std::ssize(info.shape))
    return;
  const H5Id base(H5Tget_super(stored)), memory(H5Tvlen_create(H5T_STD_REF_OBJ));
  if (H5Tequal(base, H5T_STD_REF_OBJ) <= 0) return;
  std::vector<hvl_t> scales(info.shape.size());
  if (H5Aread(list, memory, scales.data()) < 0) return;
  for (const hvl_t& of_dimension : scales) {
    std::string name;
    if (of_dimension.len > 0) {
      const H5Id scale(H5Rdereference2(set, H5P_DEFAULT, H5R_OBJECT, of_dimension.p));
      if (scale.ok()) name = h5_name(scale);
    }
    info.dimensions.push_back(name);
  }
  H5Dvlen_reclaim(memory, space, H5P_DEFAULT, scales.data());
}

/// Names the remedy for a filter. h5repack unpacks the filters that its library knows; any other
/// needs its plug-in, without which the array is left out of the new file.
std::string h5_filter_remedy(H5Z_filter_t filter) {
  constexpr H5Z_filter_t kLzf = 32000;
  if (filter == kLzf)
    return "only h5py reads LZF, so write it again with h5py: "
           "new.create_dataset(NAME, data=old[NAME][()], compression='gzip')";
  if (filter < H5Z_FILTER_RESERVED && H5Zfilter_avail(filter) > 0)
    return "repack it with 'h5repack -f GZIP=4 OLD NEW'";
  return "repack it with 'h5repack -f GZIP=4 OLD NEW', which needs the filter's plug-in "
         "(HDF5_PLUGIN_PATH), or write it again with h5py and hdf5plugin, compression='gzip'";
}

/// Reads the filters that can be undone; another filter becomes the problem.
void read_h5_filters(hid_t plist, Hdf5DataSet& set) {
  for (int i = 0, count = H5Pget_nfilters(plist); i < count; ++i) {
    unsigned flags = 0, config = 0;
    size_t values = 0;
    char name[64] = "";
    const H5Z_filter_t filter = H5Pget_filter2(plist, static_cast<unsigned>(i), &flags, &values,
                                               nullptr, sizeof name, name, &config);
    using Filter = ChunkTable::Filter;
    if (filter == H5Z_FILTER_DEFLATE)
      set.filters.push_back(static_cast<uint8_t>(Filter::deflate));
    else if (filter == H5Z_FILTER_SHUFFLE)
      set.filters.push_back(static_cast<uint8_t>(Filter::shuffle));
    else if (filter == H5Z_FILTER_FLETCHER32)
      set.filters.push_back(static_cast<uint8_t>(Filter::checksum));
    else
      set.info.problem = fmt::format(
          "its filter {} ({}) is not known here, only deflate, shuffle and Fletcher-32: {}",
          static_cast<int>(filter), name[0] != '\0' ? name : "no name", h5_filter_remedy(filter));
  }
}

/// Collects the chunks within the array; a data set that was shrunk may have others.
class ChunkGrid {
 public:
  explicit ChunkGrid(Hdf5DataSet& set) : set_(set), strides_(set.info.shape.size()) {
    int64_t stride = 1;
    for (size_t i = strides_.size(); i-- > 0;) {
      strides_[i] = stride;
      const int64_t chunk = set.info.chunk[i],
                    across = set.info.shape[i] / chunk + (set.info.shape[i] % chunk != 0);
      sound_ &= !__builtin_mul_overflow(stride, std::max<int64_t>(across, 1), &stride);
    }
  }

  bool sound() const { return sound_; }

  void add(const hsize_t* offset, unsigned skipped, haddr_t first, hsize_t bytes) {
    int64_t number = 0;
    for (size_t i = 0; i < strides_.size(); ++i) {
      if (offset[i] >= static_cast<hsize_t>(set_.info.shape[i])) return;
      number += static_cast<int64_t>(offset[i]) / set_.info.chunk[i] * strides_[i];
    }
    set_.chunks.push_back({.number = number,
                           .first = static_cast<int64_t>(first),
                           .bytes = static_cast<int64_t>(bytes),
                           .skipped = skipped});
  }

 private:
  Hdf5DataSet& set_;
  std::vector<int64_t> strides_;
  bool sound_ = true;
};

void read_h5_chunks(hid_t id, hid_t plist, hid_t space, Hdf5DataSet& set) {
  const size_t rank = set.info.shape.size();
  // Versions of the library differ in whether the places of chunks count from the file's start or
  // from the end of such a block.
  const H5Id file(H5Iget_file_id(id)), creation(H5Fget_create_plist(file));
  hsize_t block = 0;
  if (H5Pget_userblock(creation, &block) < 0 || block > 0) {
    set.info.problem =
        "the file begins with a user block (as MATLAB's do), and the array is chunked: take the "
        "block off with 'h5unjam -i OLD -o NEW --delete'";
    return;
  }
  std::vector<hsize_t> extents(rank);
  if (rank == 0 ||
      H5Pget_chunk(plist, static_cast<int>(rank), extents.data()) != static_cast<int>(rank) ||
      std::ranges::find(extents, hsize_t{0}) != extents.end()) {
    set.info.problem = "its chunks have another number of dimensions than the array";
    return;
  }
  set.info.chunk.assign(extents.begin(), extents.end());
  unsigned options = 0;
  H5Pget_chunk_opts(plist, &options);
  set.bare_edges = (options & H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS) != 0;
  ChunkGrid grid(set);
  if (!grid.sound()) {
    set.info.problem = "it announces more chunks than can be counted: the file is corrupted";
    return;
  }
  hsize_t count = 0;
  if (H5Dget_num_chunks(id, space, &count) < 0) {
    set.info.problem = fmt::format("its chunks cannot be listed: {}", h5_reason());
    return;
  }
#if H5_VERSION_GE(1, 14, 0)
  const auto take = [](const hsize_t* offset, unsigned skipped, haddr_t first, hsize_t bytes,
                       void* to) -> int {
    static_cast<ChunkGrid*>(to)->add(offset, skipped, first, bytes);
    return H5_ITER_CONT;
  };
  if (H5Dchunk_iter(id, H5P_DEFAULT, take, &grid) < 0)
    set.info.problem = fmt::format("its chunks cannot be listed: {}", h5_reason());
#else
  if (count > kMostListedChunks) {
    set.info.problem = fmt::format(
        "it has {} chunks, and with HDF5 before 1.14 at most {} can be listed in reasonable time: "
        "repack it with larger chunks, 'h5repack -l CHUNK=...'",
        count, kMostListedChunks);
    return;
  }
  for (hsize_t i = 0; i < count; ++i) {
    unsigned skipped = 0;
    haddr_t first = 0;
    hsize_t bytes = 0;
    if (H5Dget_chunk_info(id, space, i, extents.data(), &skipped, &first, &bytes) < 0) {
      set.info.problem = fmt::format("chunk {} cannot be found: {}", i, h5_reason());
      return;
    }
    grid.add(extents.data(), skipped, first, bytes);
  }
#endif
}

void read_h5_layout(hid_t id, hid_t type, hid_t space, int64_t file_bytes, Hdf5DataSet& set) {
  const H5Id plist(H5Dget_create_plist(id));
  const size_t element = H5Tget_size(type);
  H5D_fill_value_t defined = H5D_FILL_VALUE_UNDEFINED;
  if (H5Pfill_value_defined(plist, &defined) >= 0 && defined == H5D_FILL_VALUE_USER_DEFINED) {
    set.fill.resize(element);
    if (H5Pget_fill_value(plist, type, set.fill.data()) < 0) set.fill.clear();
  }
  switch (H5Pget_layout(plist)) {
    case H5D_CONTIGUOUS: {
      if (H5Pget_external_count(plist) > 0) {
        set.info.problem = "its data lie in other files: copy it with 'h5repack -l CONTI OLD NEW'";
        return;
      }
      const haddr_t first = H5Dget_offset(id);
      set.first = first == HADDR_UNDEF ? -1 : static_cast<int64_t>(first);
      return;
    }
    case H5D_COMPACT: {
      set.layout = Hdf5DataSet::Layout::compact;
      check_announced(set.info, std::min<int64_t>(file_bytes, 1 << 16));  // HDF5's own limit
      if (!set.info.problem.empty()) return;
      set.inside.resize(static_cast<size_t>(set.info.bytes()));
      if (H5Dread(id, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, set.inside.data()) < 0)
        set.info.problem = fmt::format("its header holds no data: {}", h5_reason());
      return;
    }
    case H5D_CHUNKED:
      set.layout = Hdf5DataSet::Layout::chunked;
      read_h5_filters(plist, set);
      if (set.info.problem.empty()) read_h5_chunks(id, plist, space, set);
      return;
    default:
      set.info.problem =
          "it is a view of other data sets (a virtual layout): copy it with 'h5repack -l CONTI OLD "
          "NEW'";
  }
}

Hdf5DataSet read_h5_data_set(hid_t id, const std::string& name, int64_t file_bytes) {
  Hdf5DataSet set;
  set.info.name = name;
  const H5Id type(H5Dget_type(id)), space(H5Dget_space(id));
  if (!type.ok() || !space.ok()) {
    set.info.problem = fmt::format("its header is damaged: {}", h5_cause());
    return set;
  }
  if (H5Sget_simple_extent_type(space) == H5S_NULL) {
    set.info.problem = "it holds nothing, not even an element";
    return set;
  }
  const int rank = H5Sget_simple_extent_ndims(space);
  std::vector<hsize_t> extents(static_cast<size_t>(std::max(rank, 0))), most = extents;
  if (rank > 0) H5Sget_simple_extent_dims(space, extents.data(), most.data());
  set.info.shape.assign(extents.begin(), extents.end());
  for (const hsize_t extent : most) set.unlimited.push_back(extent == H5S_UNLIMITED);
  H5Aiterate2(id, H5_INDEX_NAME, H5_ITER_NATIVE, nullptr, read_h5_attribute, &set);
  read_h5_dimensions(id, set.info);
  if (!h5_element(type, set.info.type, set.swapped))
    set.info.problem = fmt::format("its elements are {}, expected numbers", h5_class_name(type));
  for (const int64_t extent : set.info.shape)
    if (extent < 0) set.info.problem = "an extent is beyond 2^63: the file is corrupted";
  if (set.info.problem.empty()) read_h5_layout(id, type, space, file_bytes, set);
  return set;
}

/// Describes a name that leads nowhere, or to an object that the library cannot open.
Hdf5DataSet unopened_h5_set(const H5Name& name) {
  Hdf5DataSet set;
  set.info.name = name.path;
  set.info.problem = name.link.empty()
                         ? fmt::format("it cannot be opened: {}", h5_cause())
                         : fmt::format("it is a{} {}, which is not there or cannot be opened: {}",
                                       name.link.starts_with('e') ? "n" : "", name.link,
                                       name.refused.empty() ? h5_cause() : name.refused);
  return set;
}

}  // namespace

Hdf5Listing walk_hdf5(const std::filesystem::path& path, int64_t file_bytes) {
  Hdf5Listing listing;
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);  // else it prints its errors
  const H5Id access(h5_file_access());
  const H5Id file(H5Fopen(path.c_str(), H5F_ACC_RDONLY, access));
  if (!file.ok()) {
    const std::string reason = h5_reason();
    listing.error = h5_cause();
    listing.damaged = listing.error == reason;
    return listing;
  }
  listing.netcdf = H5Aexists(file, "_NCProperties") > 0;
  listing.error = walk_h5_names(file, [&](const H5Name& name) {
    if (name.circle) {
      listing.circles[name.path] = *name.circle;
      return;
    }
    Hdf5DataSet found = name.object < 0 ? unopened_h5_set(name)
                                        : read_h5_data_set(name.object, name.path, file_bytes);
    found.info.link = name.link;
    found.file = name.file;
    const auto kind = found.info.attributes.find("NAME");
    const bool no_variable =
        kind != found.info.attributes.end() &&
        kind->second.text.starts_with("This is a netCDF dimension but not a netCDF variable");
    listing.netcdf |= no_variable || found.info.attributes.contains("_Netcdf4Dimid");
    if (!no_variable) listing.sets.push_back(std::move(found));
  });
  listing.damaged = !listing.error.starts_with("it has more than");
  return listing;
}

}  // namespace tutti::data
