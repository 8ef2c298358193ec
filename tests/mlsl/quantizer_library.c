/* A library for the quantisation hook, for tests: blocks of 268 bytes hold 256 floats as 8-bit
 * integers and their scale. */

#include <math.h>
#include <stddef.h>
#include <string.h>

enum { kFloats = 256, kBlock = 268 };

typedef struct {
  float scale;
  char unused[8];
  signed char values[kFloats];
} block;

typedef char block_has_its_size[sizeof(block) == kBlock ? 1 : -1];

static void encode(const float* values, size_t count, block* to) {
  float largest = 0;
  size_t i;
  for (i = 0; i < count; ++i) largest = fmaxf(largest, fabsf(values[i]));
  memset(to, 0, sizeof *to);
  to->scale = largest / 127;
  for (i = 0; to->scale > 0 && i < count; ++i)
    to->values[i] = (signed char)lrintf(values[i] / to->scale);
}

int dl_comp_compress_buffer(const void* source, void* target, size_t count, void* residual,
                            int type, size_t ratio, int method) {
  const float* values = source;
  float* rest = residual;
  block* to = target;
  float with_rest[kFloats];
  size_t begin, i;
  if (type != 2 || ratio != 4 || method != 1) return 1;
  for (begin = 0; begin < count; begin += kFloats, ++to) {
    const size_t n = count - begin < kFloats ? count - begin : kFloats;
    for (i = 0; i < n; ++i) with_rest[i] = values[begin + i] + (rest != NULL ? rest[begin + i] : 0);
    encode(with_rest, n, to);
    for (i = 0; rest != NULL && i < n; ++i)
      rest[begin + i] = with_rest[i] - to->scale * to->values[i];
  }
  return 0;
}

int dl_comp_decompress_buffer(const void* source, void* target, size_t count) {
  const block* from = source;
  float* values = target;
  size_t i;
  for (i = 0; i < count; ++i)
    values[i] = from[i / kFloats].scale * from[i / kFloats].values[i % kFloats];
  return 0;
}

int dl_comp_compressed_buffer_reduce_sum(const void* source, void* sums, size_t blocks) {
  const block* from = source;
  block* to = sums;
  float sum[kFloats];
  size_t b, i;
  for (b = 0; b < blocks; ++b) {
    for (i = 0; i < kFloats; ++i)
      sum[i] = from[b].scale * from[b].values[i] + to[b].scale * to[b].values[i];
    encode(sum, kFloats, &to[b]);
  }
  return 0;
}
