#pragma once
// HDF5's identifiers, errors and types, as the rest of this folder speaks of them. Only .cpp files
// that call the library include this.

#define H5_USE_110_API  // later libraries keep these calls
#include <hdf5.h>

#include <string>

#include "tutti/data/element_type.h"

namespace tutti::data {

/// An identifier of HDF5's, given back at the end of its scope. Negative: the call failed.
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

/// How files are opened, those that external links lead to likewise: a link may lead back to a file
/// that is open, which cannot be open in two ways. Without locks, which many file systems of
/// clusters lack; closed when the last object in it is, since links are opened so.
hid_t h5_file_access();

/// What HDF5 says about the call that failed last: the innermost reason.
std::string h5_reason();

/// The same with what to do, where the file is newer than this library, was left open by its
/// writer, or the system says why (too many open files); otherwise h5_reason().
std::string h5_cause();

/// An object's path without the first '/'.
std::string h5_name(hid_t object);

/// False where no element type means the same. `swapped`: big endian.
bool h5_element(hid_t type, ElementType& element, bool& swapped);

/// What elements of another type are, for messages: "texts".
std::string h5_class_name(hid_t type);

}  // namespace tutti::data
