#pragma once
// Finds the names that lead to the data sets of an HDF5 file: hard, soft and external links.

#include <functional>
#include <optional>
#include <string>

#include "tutti/data/format/array/hdf5_types.h"

namespace tutti::data {

struct H5Name {
  std::string path{};  ///< without the first '/'
  /// "soft link to raw/x" and the like; empty: the name by which the object was found first.
  std::string link{};
  std::string file{};     ///< the linked file, if it is another one
  std::string refused{};  ///< why an external link was not followed
  /// For a group that contains itself: the path under which it is being walked.
  std::optional<std::string> circle{};
  hid_t object = -1;  ///< open during look(); negative: a broken link
};

/// Calls look() with each name that leads to a data set, to nothing or back in a circle, in the
/// order of names. Groups are entered by each of their names, but never from within themselves.
/// Returns why it stopped early, or an empty string.
std::string walk_h5_names(hid_t file, const std::function<void(const H5Name&)>& look);

}  // namespace tutti::data
