#include "tutti/data/format/array/hdf5_types.h"

#include <algorithm>
#include <charconv>
#include <cstring>

#include "tutti/base/error.h"

namespace tutti::data {
namespace {

/// HDF5's own booleans are an enumeration with FALSE and TRUE.
bool h5_is_boolean(hid_t type) {
  if (H5Tget_size(type) != 1 || H5Tget_nmembers(type) != 2) return false;
  bool both = true;
  for (unsigned i = 0; i < 2; ++i) {
    char* name = H5Tget_member_name(type, i);
    both &= name != nullptr && (std::strcmp(name, "FALSE") == 0 || std::strcmp(name, "TRUE") == 0);
    H5free_memory(name);
  }
  return both;
}

bool h5_integer(hid_t type, ElementType& element, bool& swapped) {
  const size_t bytes = H5Tget_size(type);
  if (H5Tget_precision(type) != 8 * bytes || H5Tget_offset(type) != 0) return false;
  swapped = bytes > 1 && H5Tget_order(type) == H5T_ORDER_BE;
  return element_type_of(
      fmt::format("{}{}", H5Tget_sign(type) == H5T_SGN_NONE ? 'u' : 'i', 8 * bytes), element);
}

bool h5_float(hid_t type, ElementType& element, bool& swapped) {
  struct Form {
    ElementType type;
    size_t bytes, exponent_bits, bias;
  };
  constexpr Form kForms[] = {{ElementType::f16, 2, 5, 15},
                             {ElementType::bf16, 2, 8, 127},
                             {ElementType::f32, 4, 8, 127},
                             {ElementType::f64, 8, 11, 1023}};
  size_t sign = 0, exponent = 0, exponent_bits = 0, mantissa = 0, mantissa_bits = 0;
  if (H5Tget_fields(type, &sign, &exponent, &exponent_bits, &mantissa, &mantissa_bits) < 0)
    return false;
  const H5T_order_t order = H5Tget_order(type);
  if (order != H5T_ORDER_LE && order != H5T_ORDER_BE) return false;
  swapped = order == H5T_ORDER_BE;
  for (const Form& form : kForms) {
    const size_t bits = 8 * form.bytes;
    if (H5Tget_size(type) == form.bytes && H5Tget_precision(type) == bits && sign == bits - 1 &&
        exponent_bits == form.exponent_bits && exponent == bits - 1 - exponent_bits &&
        mantissa == 0 && mantissa_bits == exponent && H5Tget_ebias(type) == form.bias &&
        H5Tget_norm(type) == H5T_NORM_IMPLIED) {
      element = form.type;
      return true;
    }
  }
  return false;
}

}  // namespace

hid_t h5_file_access() {
  const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
  H5Pset_fclose_degree(access, H5F_CLOSE_WEAK);
  H5Pset_file_locking(access, false, true);
  return access;
}

std::string h5_reason() {
  std::string reason = "unknown reason";
  H5Ewalk2(
      H5E_DEFAULT, H5E_WALK_DOWNWARD,
      [](unsigned, const H5E_error2_t* error, void* text) -> herr_t {
        if (error->desc != nullptr) *static_cast<std::string*>(text) = error->desc;
        return 0;
      },
      &reason);
  return reason;
}

std::string h5_cause() {
  const std::string reason = h5_reason();
  const auto says = [&](std::string_view words) { return reason.find(words) != reason.npos; };
  if (says("already open for write") || says("consistency flags"))
    return "its writer has not closed it: wait until the writer ends, or, where it ended without "
           "closing it, run 'h5clear -s FILE'";
  if (says("version"))
    if (says("bad") || says("wrong") || says("unknown") || says("unsupported")) {
      unsigned major = 0, minor = 0, release = 0;
      H5get_libversion(&major, &minor, &release);
      return fmt::format(
          "it has a newer format than HDF5 {}.{}.{} reads ({}): write it with h5py's "
          "libver=('earliest', 'v110'); if no newer program wrote it, it is corrupted",
          major, minor, release, reason);
    }
  constexpr std::string_view kErrno = "errno = ";
  int error = 0;
  if (const size_t at = reason.find(kErrno); at != reason.npos)
    std::from_chars(reason.data() + at + kErrno.size(), reason.data() + reason.size(), error);
  return error > 0 ? file_error(error) : reason;
}

std::string h5_name(hid_t object) {
  std::string name(4096, '\0');
  const ssize_t length = H5Iget_name(object, name.data(), name.size());
  name.resize(length < 0 ? 0 : std::min<size_t>(static_cast<size_t>(length), name.size() - 1));
  return name.starts_with('/') ? name.substr(1) : name;
}

std::string h5_class_name(hid_t type) {
  switch (H5Tget_class(type)) {
    case H5T_STRING: return "texts";
    case H5T_COMPOUND: return "records with fields (or complex numbers)";
    case H5T_VLEN: return "lists of different lengths";
    case H5T_REFERENCE: return "references";
    case H5T_ARRAY: return "arrays as elements";
    case H5T_OPAQUE: return "opaque bytes";
    default: return "numbers of an unusual form";
  }
}

bool h5_element(hid_t type, ElementType& element, bool& swapped) {
  switch (H5Tget_class(type)) {
    case H5T_INTEGER: return h5_integer(type, element, swapped);
    case H5T_FLOAT: return h5_float(type, element, swapped);
    case H5T_ENUM: {
      if (h5_is_boolean(type)) {
        element = ElementType::boolean;
        return true;
      }
      const H5Id base(H5Tget_super(type));
      return base.ok() && h5_integer(base, element, swapped);
    }
    default: return false;
  }
}

}  // namespace tutti::data
