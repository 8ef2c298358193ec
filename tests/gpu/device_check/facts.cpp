#include <fmt/format.h>

#include "tests/gpu/device_check/checks.h"
#include "tutti/backend/conformance/conformance.h"
#include "tutti/device/libraries.h"

namespace tutti::device_check {

Outcome facts(Target& target) {
  device::Device& device = *target.device;
  const device::DeviceFacts& f = device.facts();
  fmt::print("device         {} ({} {})\n", f.name, f.kind, f.number);
  fmt::print("driver         {}\nruntime        {}\n", f.driver, f.runtime);
  fmt::print("architecture   {}\nmultiprocessors {}\n", f.architecture, f.multiprocessors);
  fmt::print("memory         {} bytes, {} free\n", f.memory_bytes, device.free_bytes());
  fmt::print("cache          {} bytes\n", f.cache_bytes);
  fmt::print("own kernels    {}\n", device.functions().size());
  device::Libraries* const libraries = device.libraries();
  fmt::print("libraries      {}\n", libraries ? libraries->versions() : "none for this device");
  fmt::print("joules so far  {}\n", device.joules());
  fmt::print("properties     {}\n", f.properties.empty() ? "not known" : f.properties);

  const SomeKernels own(target.backend, is_own);
  const std::vector<const backend::Backend*> twice{&own, &own};
  const backend::ConformanceReport report =
      backend::check_on_devices(backend::parse_op_case("add f32 n3c5h6w7"), twice);
  for (const std::string& failure : report.failures) fmt::print("FAILED {}\n", failure);
  fmt::print("first kernel   {}\n", report.failures.empty() && report.runs > 0 ? "right" : "wrong");
  return report.failures.empty() && report.runs > 0 ? Outcome::passed : Outcome::failed;
}

}  // namespace tutti::device_check
