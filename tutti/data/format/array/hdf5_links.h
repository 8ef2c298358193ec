#pragma once
// The names that lead to the data sets of an HDF5 file: hard, soft and external links.

#include <functional>
#include <optional>
#include <string>

#include "tutti/data/format/array/hdf5_types.h"

namespace tutti::data {

struct H5Name {
  std::string path{};  ///< without the first '/'
  /// "soft link to raw/x" and the like; empty: the name under which the object was met first.
  std::string link{};
  std::string file{};     ///< that it lies in, where that is another one
  std::string refused{};  ///< why an external link was not followed
  /// For a group that lies in itself, the path under which it is being looked through.
  std::optional<std::string> circle{};
  hid_t object = -1;  ///< open while it is looked at; below 0: the link leads to nothing
};

/// Calls look() with each name that leads to a data set, to nothing or round in a circle, in the
/// order of names. Groups are entered by every name that they have, but never from within
/// themselves. Returns why it stopped before the end; empty: it did not.
std::string walk_h5_names(hid_t file, const std::function<void(const H5Name&)>& look);

}  // namespace tutti::data
