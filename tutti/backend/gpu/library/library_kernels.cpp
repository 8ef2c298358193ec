#include "tutti/backend/gpu/library/library_kernels.h"

#include <fmt/format.h>

#include <algorithm>

#include "tutti/backend/gpu/library/library_kernel.h"
#include "tutti/backend/gpu/library/library_trial.h"
#include "tutti/base/error.h"

namespace tutti::backend {
namespace {

constexpr size_t kMostWorkspace = size_t{256} << 20;
constexpr int kMostWays = 8;  ///< that are offered for a form

std::unique_ptr<device::LibraryCall> call_of(device::Libraries& libraries,
                                             const LibraryAsked& asked, const std::string& way) {
  return std::visit([&](const auto& one) { return libraries.call(one, way); }, asked);
}

/// Returns why a way is not taken that the library may offer; empty: it is.
std::string refusal_of(const device::LibraryWay& way, const LibraryProduct& product) {
  if (!way.refusal.empty()) return way.refusal;
  if (way.name.empty()) return "it has no name under which the choice could be recorded";
  constexpr double kMebibyte = 1 << 20;
  if (way.workspace_bytes > kMostWorkspace)
    return fmt::format("it needs {:.1f} MiB of workspace, {:.1f} MiB are allowed",
                       static_cast<double>(way.workspace_bytes) / kMebibyte,
                       static_cast<double>(kMostWorkspace) / kMebibyte);
  return product.refusal;
}

}  // namespace

LibraryKernels::LibraryKernels(device::Device& device, device::Mirrors& mirrors, bool tf32)
    : device_(device), mirrors_(mirrors), libraries_(*device.libraries()), tf32_(tf32),
      versions_(fmt::format("{}, {}{}", device.facts().name, libraries_.versions(),
                            tf32 ? ", tf32" : "")) {}

std::vector<KernelCandidate> LibraryKernels::candidates(const KernelRequest& request) {
  std::vector<KernelCandidate> found;
  for (const LibraryProduct& product : library_products(request, tf32_)) {
    int offered = 0;
    for (const device::LibraryWay& way : ways_of(product.asked)) {
      KernelCandidate c = candidate_of(request, product, way);
      if (std::ranges::find(found, c.name, &KernelCandidate::name) != found.end() &&
          c.refusal.empty())
        c.refusal = "another way has this name";
      if (c.refusal.empty() && ++offered > kMostWays) break;
      found.push_back(std::move(c));
    }
  }
  return found;
}

const std::vector<device::LibraryWay>& LibraryKernels::ways_of(const LibraryAsked& asked) {
  for (const auto& [known, ways] : ways_)
    if (known == asked) return ways;
  std::vector<device::LibraryWay> ways;
  try {
    ways = std::visit([&](const auto& one) { return libraries_.ways(one); }, asked);
  } catch (const DeviceError& failed) {
    ways = {{.name = {}, .refusal = failed.what()}};  // kernels of ours are left
  }
  return ways_.emplace_back(asked, std::move(ways)).second;
}

KernelCandidate LibraryKernels::candidate_of(const KernelRequest& request,
                                             const LibraryProduct& product,
                                             const device::LibraryWay& way) {
  KernelCandidate c{.name = way.name.empty() ? "library" : way.name,
                    .refusal = refusal_of(way, product),
                    .in = product.in,
                    .out = product.out,
                    .make = {}};
  c.error = product.error;
  c.versions = versions_;
  if (!c.refusal.empty()) return c;
  c.make = [this, product, way] {
    return std::make_unique<LibraryKernel>(product, call_of(libraries_, product.asked, way.name),
                                           way.workspace_bytes, device_);
  };
  c.trial = [this, request, product, c] { return try_once(request, product, c); };
  return c;
}

KernelTrial LibraryKernels::try_once(const KernelRequest& request, const LibraryProduct& product,
                                     const KernelCandidate& candidate) {
  std::string key =
      fmt::format("{}: {} {}", candidate.name, request.op->name(), request.op->attributes());
  for (const std::vector<TensorDesc>* const side : {&candidate.in, &candidate.out})
    for (const TensorDesc& desc : *side) key += " " + desc.to_string();
  const auto known = trials_.find(key);
  if (known != trials_.end()) return known->second;
  return trials_[key] = try_beside_own(device_, mirrors_, request, product, candidate);
}

}  // namespace tutti::backend
