// libFuzzer's entry; TUTTI_FUZZ_TARGETS and TUTTI_FUZZ_NAME select the target of this program.

#include <cstdlib>

#include "tests/fuzz/targets.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  for (const tutti::fuzz::Target& target : tutti::fuzz::TUTTI_FUZZ_TARGETS())
    if (target.name == TUTTI_FUZZ_NAME) {
      target.run({data, size});
      return 0;
    }
  std::abort();
}
