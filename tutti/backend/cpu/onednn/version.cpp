#include "tutti/backend/cpu/onednn/version.h"

#include <fmt/format.h>
#include <oneapi/dnnl/dnnl.hpp>

namespace tutti::backend {

std::string onednn_version() {
  const dnnl_version_t* v = dnnl_version();
  return fmt::format("{}.{}.{}", v->major, v->minor, v->patch);
}

std::string onednn_effective_isa() {
  // Uses values, because the set of enumerators differs between the accepted releases.
  switch (static_cast<unsigned>(dnnl::get_effective_cpu_isa())) {
    case 0x1: return "sse41";
    case 0x3: return "avx";
    case 0x7: return "avx2";
    case 0xf: return "avx2_vnni";
    case 0x1f: return "avx2_vnni_2";
    case 0x27: return "avx512_core";
    case 0x67: return "avx512_core_vnni";
    case 0xe7: return "avx512_core_bf16";
    case 0x3e7: return "avx512_core_amx";
    case 0x407: return "avx2_vnni";
    case 0x1ef: return "avx512_core_fp16 or newer";
    case 0xfef: return "avx512_core_amx";
    case 0x1fef: return "avx512_core_amx_fp16";
    default: return fmt::format("isa {:#x}", static_cast<unsigned>(dnnl::get_effective_cpu_isa()));
  }
}

}  // namespace tutti::backend
