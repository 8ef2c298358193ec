// A user's program: describes a tensor, catches a typed error, prints what it saw.
#include <cstdio>

#include "tutti/base/error.h"
#include "tutti/tensor/tensor_desc.h"

int main() {
  const tutti::TensorDesc image{tutti::DType::f32, {64, 3, 32, 32}, tutti::Layout::plain()};
  std::printf("%s\n", image.to_string().c_str());
  try {
    throw tutti::IoError("no such file");
  } catch (const tutti::Error& error) {
    return error.exit_code() == tutti::ExitCode::failure && image.bytes() == 64u * 3 * 32 * 32 * 4 ? 0 : 1;
  }
}
