#pragma once
// cuBLASLt's products of matrices for dense layers. The library is opened when it is used; no
// header of its own is needed here.

#include <memory>
#include <string>
#include <vector>

#include "tutti/device/libraries.h"

namespace tutti::device {

/// Returns "cuBLASLt 13.1.0" of the library that CublasLt opens by default, or "no cuBLASLt: " and
/// the reason. It needs no device.
std::string cublaslt_version();

/// Dense layers on the device that is the thread's current one when this is made; it must be that
/// in all calls, those of a LibraryCall too. It ends after the calls that it has made. Not
/// thread-safe.
///
/// All operands begin at a multiple of 16 bytes, a workspace at one of 256. Refused are ways whose
/// bits could differ from time to time, those with rounded factors for f32 or sums of less than
/// f32, and a bias of a result of 16 bits.
class CublasLt {
 public:
  /// Opens a library by its path, or by a name that is looked for; empty: the name of the version
  /// that this was built with, "libcublasLt.so.13". Without it each call says why there is none.
  explicit CublasLt(const std::string& library = "");
  ~CublasLt();

  /// Returns cublaslt_version(), or the reason why it cannot be used.
  std::string version() const;
  bool is_there() const { return problem_.empty(); }
  /// Returns the ways of Libraries::ways(), at most 8. Throws DeviceError if the library fails.
  std::vector<LibraryWay> ways(const LibraryDense& dense);
  /// Returns the call of a way that is offered. Throws DeviceError if there is no such way.
  std::unique_ptr<LibraryCall> call(const LibraryDense& dense, const std::string& way);

 private:
  struct Opened;
  std::string problem_;
  std::unique_ptr<Opened> opened_;
};

}  // namespace tutti::device
