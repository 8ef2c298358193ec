#include "tutti/data/format/array/hdf5_links.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <utility>
#include <vector>

namespace tutti::data {
namespace {

/// A file with more names, including groups, is refused.
constexpr int64_t kMostNames = 100'000;

/// Returns the places where the library looks for an external link's file, in order.
std::vector<std::filesystem::path> places_of_linked(const std::filesystem::path& parent,
                                                    std::filesystem::path file) {
  namespace fs = std::filesystem;
  std::vector<fs::path> places;
  if (file.is_absolute()) {
    places.push_back(file);
    file = file.filename();
  }
  const char* const prefixes = std::getenv("HDF5_EXT_PREFIX");
  for (std::string_view rest = prefixes == nullptr ? "" : prefixes; !rest.empty();) {
    const size_t end = std::min(rest.find(':'), rest.size());
    places.push_back(rest.substr(0, end) / file);
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  std::error_code unknown;
  for (const fs::path& folder :
       {parent.parent_path(), fs::path(), fs::weakly_canonical(parent, unknown).parent_path()})
    places.push_back(folder / file);
  return places;
}

class H5NameWalk {
 public:
  H5NameWalk(hid_t file, const std::function<void(const H5Name&)>& look)
      : look_(look), access_(H5Pcreate(H5P_LINK_ACCESS)) {
    H5Pset_elink_cb(access_, before_external, this);
    const H5Id files(h5_file_access());
    H5Pset_elink_fapl(access_, files);
    H5O_info_t root;
    if (H5Oget_info(file, &root) < 0) {
      stopped_ = h5_reason();
      return;
    }
    file_number_ = root.fileno;
    above_ = {{{root.fileno, root.addr}, ""}};
    enter(file, "");
  }
  std::string stopped() && { return std::move(stopped_); }

 private:
  using Place = std::pair<unsigned long, haddr_t>;
  struct Above {
    Place place;
    std::string path;
  };

  void enter(hid_t group, const std::string& path) {
    const std::string before = std::exchange(path_, path);
    if (H5Literate(group, H5_INDEX_NAME, H5_ITER_INC, nullptr, visit, this) < 0 && stopped_.empty())
      stopped_ = h5_reason();
    path_ = before;
  }

  static herr_t visit(hid_t group, const char* name, const H5L_info_t* link, void* walk) {
    return static_cast<H5NameWalk*>(walk)->look_at(group, name, *link);
  }

  herr_t look_at(hid_t group, const char* name, const H5L_info_t& link) {
    if (++names_ > kMostNames) {
      stopped_ = fmt::format("it has more than {} names", kMostNames);
      return -1;
    }
    H5Name found{.path = path_ + name, .link = target_of(group, name, link)};
    refused_.clear();
    const H5Id object(H5Oopen(group, name, access_));
    if (!object.ok()) {
      found.refused = refused_;
      look_(found);
      return 0;
    }
    H5O_info_t info;
    if (H5Oget_info(object, &info) < 0) return 0;
    const Place place{info.fileno, info.addr};
    if (info.type == H5O_TYPE_GROUP) {
      if (const auto own = std::ranges::find(above_, place, &Above::place); own != above_.end()) {
        found.circle = own->path;
        look_(found);
        return 0;
      }
      above_.push_back({place, found.path});
      enter(object, found.path + "/");
      above_.pop_back();
      return stopped_.empty() ? 0 : -1;
    }
    if (info.type != H5O_TYPE_DATASET) return 0;
    if (info.fileno != file_number_) {
      found.file.resize(4096);
      const ssize_t length = H5Fget_name(object, found.file.data(), found.file.size());
      found.file.resize(
          static_cast<size_t>(std::clamp<ssize_t>(length, 0, std::ssize(found.file) - 1)));
    }
    // All hard links are equal: the first one found counts as the data set's own name.
    if (link.type == H5L_TYPE_HARD && info.rc > 1)
      if (const auto [first, is_first] = first_names_.emplace(place, found.path); !is_first)
        found.link = "hard link, as " + first->second;
    found.object = object;
    look_(found);
    return 0;
  }

  /// The library would open anything, and a pipe would wait until somebody writes into it.
  static herr_t before_external(const char* parent, const char*, const char* file, const char*,
                                unsigned*, hid_t, void* walk) {
    for (const std::filesystem::path& place : places_of_linked(parent, file)) {
      struct stat status {};
      if (::stat(place.c_str(), &status) != 0 || S_ISREG(status.st_mode) || S_ISDIR(status.st_mode))
        continue;
      static_cast<H5NameWalk*>(walk)->refused_ =
          fmt::format("{} is a pipe, a device or a socket and no file", place.string());
      return -1;
    }
    return 0;
  }

  static std::string target_of(hid_t group, const char* name, const H5L_info_t& link) {
    if (link.type == H5L_TYPE_HARD) return "";
    std::string value(std::clamp<size_t>(link.u.val_size, 1, 1 << 16), '\0');
    if (H5Lget_val(group, name, value.data(), value.size(), H5P_DEFAULT) < 0)
      return "link of an unknown kind";
    if (link.type == H5L_TYPE_SOFT) return fmt::format("soft link to {}", value.c_str());
    const char *file = nullptr, *path = nullptr;
    if (link.type != H5L_TYPE_EXTERNAL ||
        H5Lunpack_elink_val(value.data(), value.size(), nullptr, &file, &path) < 0)
      return "link of an unknown kind";
    return fmt::format("external link to {} in {}", path, file);
  }

  const std::function<void(const H5Name&)>& look_;
  const H5Id access_;
  std::string path_, stopped_, refused_;
  unsigned long file_number_ = 0;
  int64_t names_ = 0;
  std::vector<Above> above_;  // the groups being walked
  std::map<Place, std::string> first_names_;
};

}  // namespace

std::string walk_h5_names(hid_t file, const std::function<void(const H5Name&)>& look) {
  return H5NameWalk(file, look).stopped();
}

}  // namespace tutti::data
