#pragma once
// Kernels of the libraries of a device's maker, as candidates.

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tutti/backend/gpu/library/library_product.h"
#include "tutti/device/mirrors.h"

namespace tutti::backend {

/// Not thread-safe, as its device.
class LibraryKernels {
 public:
  /// The device must have libraries. It and `mirrors` must outlive this object and all kernels.
  /// f32 factors may be rounded to 10 bits where `tf32`.
  LibraryKernels(device::Device& device, device::Mirrors& mirrors, bool tf32);

  /// Returns the libraries' ways for convolutions, transposed ones, dense layers and their
  /// gradients, in the order in which the libraries expect them to be fast, refused ones included;
  /// nothing for other ops. They take activations channels last (of dense layers, any) and weights
  /// as they like where these are free, and need a trial. Their names mean something with
  /// `versions` alone.
  std::vector<KernelCandidate> candidates(const KernelRequest& request);

 private:
  const std::vector<device::LibraryWay>& ways_of(const LibraryAsked& asked);
  KernelCandidate candidate_of(const KernelRequest& request, const LibraryProduct& product,
                               const device::LibraryWay& way);
  KernelTrial try_once(const KernelRequest& request, const LibraryProduct& product,
                       const KernelCandidate& candidate);

  device::Device& device_;
  device::Mirrors& mirrors_;
  device::Libraries& libraries_;
  bool tf32_;
  std::string versions_;
  // Plans ask for the same again and again.
  std::vector<std::pair<LibraryAsked, std::vector<device::LibraryWay>>> ways_;
  std::map<std::string, KernelTrial> trials_;  // by name, op and operands
};

}  // namespace tutti::backend
