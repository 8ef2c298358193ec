#pragma once
// Wraps HDF5's identifiers, errors and types for the rest of this folder. Only .cpp files that call
// the library include this.

#define H5_USE_110_API  // later libraries keep these calls
#include <hdf5.h>

#include <string>

#include "tutti/data/element_type.h"

namespace tutti::data {

/// Releases an HDF5 identifier at the end of its scope. Negative: the call failed.
class H5Id {
 public:
  explicit H5Id(hid_t id) : id_(id) {}
  ~H5Id() {
    if (id_ >= 0) H5Idec_ref(id_);
  }
  H5Id(const H5Id&) = delete;
  H5Id& operator=(const H5Id&) = delete;
  operator hid_t() const { return id_; }
  bool ok() const { return id_ >= 0; }

 private:
  hid_t id_;
};

/// Returns how files are opened, also those that external links lead to: a link may lead back to an
/// open file, which cannot be opened in two ways. No locks, which many file systems of clusters
/// lack; closed with the last object in it, as for links.
hid_t h5_file_access();

/// Returns HDF5's innermost reason for the last failure.
std::string h5_reason();

/// Adds the remedy to h5_reason() if the file is newer than this library, was left open by its
/// writer, or the system gives the reason (too many open files).
std::string h5_cause();

/// Returns an object's path without the first '/'.
std::string h5_name(hid_t object);

/// Finds the matching element type; false if there is none. `swapped`: big endian.
bool h5_element(hid_t type, ElementType& element, bool& swapped);

/// Names the elements of an unsupported type, for messages: "texts".
std::string h5_class_name(hid_t type);

}  // namespace tutti::data
