#pragma once
// Helps tests: zip files made by hand, arrays of known values.

#include <zlib.h>

#include <numeric>

#include "tutti/data/file/inflate.h"
#include "tutti/data/file_checks.h"
#include "tutti/data/format/array/array_file.h"
#include "tutti/data/format/array/npy_arrays.h"

namespace tutti::data {

/// Returns 0, 1, 2 ... modulo 100, in any number type.
template <class T>
std::vector<T> counted(int64_t count) {
  std::vector<T> values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<T>(i % 100);
  return values;
}

/// Reads a slab of an open file.
template <class T>
std::vector<T> slab_of(const ArrayFile& file, const std::string& name, const Slab& slab) {
  std::vector<T> values(static_cast<size_t>(slab.elements()));
  file.read(file.find(name), slab, values.data());
  return values;
}

template <class T>
std::vector<T> whole(const ArrayFile& file, const std::string& name) {
  return slab_of<T>(file, name, Slab::all(file.arrays()[file.find(name)]));
}

/// Returns a file like numpy.save's, with any type and order of dimensions.
inline Bytes npy_bytes(const std::string& descr, bool fortran, const std::string& shape,
                       const Bytes& values) {
  std::string header = "{'descr': '" + descr +
                       "', 'fortran_order': " + (fortran ? "True" : "False") +
                       ", 'shape': " + shape + ", }\n";
  Bytes bytes = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, static_cast<uint8_t>(header.size()), 0};
  bytes.insert(bytes.end(), header.begin(), header.end());
  bytes.insert(bytes.end(), values.begin(), values.end());
  return bytes;
}

/// Builds a zip file from members.
class ZipBytes {
 public:
  void add(const std::string& name, const Bytes& content, bool deflated) {
    Bytes stored = content;
    if (deflated) {
      stored.resize(content.size() + 1000);
      z_stream stream{};
      deflateInit2(&stream, 6, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY);
      stream.next_in = const_cast<Bytef*>(content.data());
      stream.avail_in = static_cast<uInt>(content.size());
      stream.next_out = stored.data();
      stream.avail_out = static_cast<uInt>(stored.size());
      EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
      stored.resize(stream.total_out);
      deflateEnd(&stream);
    }
    Bytes numbers;
    put(numbers, 20, 2), put(numbers, 0, 2), put(numbers, deflated ? 8 : 0, 2), put(numbers, 0, 4);
    put(numbers, crc32_of(content), 4);
    put(numbers, stored.size(), 4), put(numbers, content.size(), 4), put(numbers, name.size(), 2);
    put(numbers, 0, 2);
    put(directory_, 0x02014b50, 4), put(directory_, 20, 2), append(directory_, numbers);
    put(directory_, 0, 10), put(directory_, file_.size(), 4);
    append(directory_, Bytes(name.begin(), name.end()));
    put(file_, 0x04034b50, 4), append(file_, numbers),
        append(file_, Bytes(name.begin(), name.end()));
    append(file_, stored);
    ++members_;
  }

  Bytes bytes() const {
    Bytes all = file_;
    append(all, directory_);
    put(all, 0x06054b50, 4), put(all, 0, 4), put(all, members_, 2), put(all, members_, 2);
    put(all, directory_.size(), 4), put(all, file_.size(), 4), put(all, 0, 2);
    return all;
  }

 private:
  static void put(Bytes& to, uint64_t value, size_t count) {
    for (size_t i = 0; i < count; ++i, value >>= 8) to.push_back(static_cast<uint8_t>(value));
  }
  static void append(Bytes& to, const Bytes& more) {
    to.insert(to.end(), more.begin(), more.end());
  }

  Bytes file_, directory_;
  uint64_t members_ = 0;
};

}  // namespace tutti::data
