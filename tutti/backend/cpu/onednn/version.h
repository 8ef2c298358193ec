#pragma once
#include <string>

namespace tutti::backend {

std::string onednn_version();  ///< version of the library in use, "2.6.3"
std::string
onednn_effective_isa();  ///< the best instruction set oneDNN will use here, "avx512_core_bf16"

}  // namespace tutti::backend
