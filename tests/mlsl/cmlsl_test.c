/* The acceptance test of the C interface; see mlsl_test.cpp for what is tested, and for the
 * arguments: cmlsl_test GROUP_COUNT [DIST_UPDATE] [USER_BUF] [USE_TEST] [QUANT_LIB] */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mlsl.h"

#define MINIBATCH 16
#define SPACE (12 * 12)
#define KERNEL (3 * 3)
#define LAYERS 2

static const size_t kMaps[LAYERS + 1] = {128, 256, 256};

#define CALL(expression)                                                      \
  do {                                                                        \
    if ((expression) != CMLSL_SUCCESS) {                                      \
      fprintf(stderr, "%s:%d: %s failed\n", __FILE__, __LINE__, #expression); \
      exit(1);                                                                \
    }                                                                         \
  } while (0)

static mlsl_environment environment;
static size_t model_parts, data_parts;
static int distributed, user_buffers, use_test;
static char* quantizer;
static size_t wrong;

typedef struct {
  size_t index;
  mlsl_operation operation;
  mlsl_activation activation[2]; /* input, output */
  mlsl_parameter_set parameters;
  size_t samples;
  size_t maps[2]; /* local */
  float* data[2];
  float* gradients[2];
  void* own_buffer[2];
  size_t weight_count;
  float* weights;
  float* weight_gradient;
  double error_sum, error_most;
  size_t errors;
} layer;

enum { IN = 0, OUT = 1 };

static float* floats(size_t count) {
  float* memory = malloc(count * sizeof(float));
  size_t i;
  for (i = 0; i < count; ++i) memory[i] = -1;
  return memory;
}

static void expect(const layer* l, const char* what, size_t i, double got, double right) {
  if (fabs(got - right) <= 1e-4) return;
  if (wrong++ < 3)
    fprintf(stderr, "layer %zu: %s %zu is %g, and should be %g\n", l->index, what, i, got, right);
}

static size_t elements(const layer* l, int side) { return l->samples * l->maps[side] * SPACE; }

static void make_layer(layer* l, mlsl_session session, mlsl_distribution distribution,
                       size_t index) {
  size_t rank, count, size, i;
  mlsl_comm_req request;
  int side;
  memset(l, 0, sizeof *l);
  l->index = index;
  CALL(mlsl_session_get_operation(session, index, &l->operation));
  CALL(mlsl_operation_get_local_minibatch_size(l->operation, &l->samples));
  CALL(mlsl_operation_get_input(l->operation, 0, &l->activation[IN]));
  CALL(mlsl_operation_get_output(l->operation, 0, &l->activation[OUT]));
  for (side = IN; side <= OUT; ++side) {
    CALL(mlsl_activation_get_local_fm_count(l->activation[side], &l->maps[side]));
    l->data[side] = floats(elements(l, side));
    l->gradients[side] = floats(elements(l, side));
    CALL(mlsl_activation_get_comm_buf_size(l->activation[side], &size));
    if (user_buffers && size > 0)
      CALL(mlsl_environment_alloc(environment, size, 64, &l->own_buffer[side]));
  }
  CALL(mlsl_operation_get_parameter_set(l->operation, 0, &l->parameters));
  CALL(mlsl_parameter_set_get_local_kernel_count(l->parameters, &count));
  l->weight_count = count * KERNEL;
  l->weights = floats(l->weight_count);
  l->weight_gradient = floats(l->weight_count);
  CALL(mlsl_environment_get_process_idx(environment, &rank));
  for (i = 0; rank == 0 && i < l->weight_count; ++i) l->weights[i] = (float)i;
  CALL(mlsl_distribution_bcast(distribution, l->weights, l->weight_count, DT_FLOAT, 0, GT_GLOBAL,
                               &request));
  CALL(mlsl_environment_wait(environment, request));
}

static void free_layer(layer* l) {
  int side;
  for (side = IN; side <= OUT; ++side) {
    CALL(mlsl_environment_free(environment, l->own_buffer[side]));
    free(l->data[side]);
    free(l->gradients[side]);
  }
  free(l->weights);
  free(l->weight_gradient);
}

/* Between an activation and a buffer: packs where `pack`, and unpacks otherwise. */
static void move_block(const layer* l, int side, mlsl_comm_block_info block, float* local,
                       float* buffer, int pack) {
  size_t sample, samples, map, maps, size, offset, s;
  CALL(mlsl_comm_block_info_get_mb_offset(block, &sample));
  CALL(mlsl_comm_block_info_get_mb_count(block, &samples));
  CALL(mlsl_comm_block_info_get_fm_offset(block, &map));
  CALL(mlsl_comm_block_info_get_fm_count(block, &maps));
  CALL(mlsl_comm_block_info_get_fm_size(block, &size));
  CALL(mlsl_comm_block_info_get_buf_offset(block, &offset));
  for (s = 0; s < samples; ++s) {
    float* in_local = local + ((sample + s) * l->maps[side] + map) * size;
    float* in_buffer = buffer + offset + s * maps * size;
    memcpy(pack ? in_buffer : in_local, pack ? in_local : in_buffer, maps * size * sizeof(float));
  }
}

static void start_comm(layer* l, int side, float* local) {
  void* buffer = l->own_buffer[side];
  mlsl_comm_block_info block;
  size_t count, b;
  if (buffer == NULL) CALL(mlsl_activation_get_comm_buf(l->activation[side], &buffer));
  CALL(mlsl_activation_get_pack_block_count(l->activation[side], &count));
  for (b = 0; b < count; ++b) {
    CALL(mlsl_activation_get_pack_block(l->activation[side], b, &block));
    move_block(l, side, block, local, buffer, 1);
  }
  CALL(mlsl_activation_start_comm(l->activation[side], buffer));
}

/* 1 when something was received. */
static int wait_comm(layer* l, int side, float* local) {
  void* buffer;
  mlsl_comm_block_info block;
  size_t count, b;
  CALL(mlsl_activation_wait_comm(l->activation[side], &buffer));
  if (buffer == NULL) return 0;
  CALL(mlsl_activation_get_unpack_block_count(l->activation[side], &count));
  for (b = 0; b < count; ++b) {
    CALL(mlsl_activation_get_unpack_block(l->activation[side], b, &block));
    move_block(l, side, block, local, buffer, 0);
  }
  return 1;
}

/* The number that belongs to an input element, in the sample order of all maps. */
static double number_of(const layer* l, size_t first_map, size_t i) {
  const size_t sample = i / (l->maps[IN] * SPACE);
  return (double)(sample * l->maps[IN] * SPACE * model_parts + first_map * SPACE +
                  i % (l->maps[IN] * SPACE));
}

static void forward(layer* l, const layer* previous) {
  size_t i, first_map;
  void* unused;
  if (!wait_comm(l, IN, l->data[IN]) && previous != NULL)
    memcpy(l->data[IN], previous->data[OUT], elements(l, IN) * sizeof(float));
  CALL(mlsl_parameter_set_wait_increment_comm(l->parameters, &unused));
  for (i = 0; i < l->weight_count; ++i) expect(l, "weight", i, l->weights[i], (double)i);
  CALL(mlsl_activation_get_global_fm_offset(l->activation[IN], &first_map));
  if (l->index == 0)
    for (i = 0; i < elements(l, OUT); ++i) l->data[OUT][i] = (float)i;
  else
    for (i = 0; i < elements(l, IN); ++i)
      expect(l, "input", i, l->data[IN][i], (double)model_parts * number_of(l, first_map, i));
  start_comm(l, OUT, l->data[OUT]);
}

static void backward_input(layer* l, const layer* next) {
  size_t i, first_map;
  if (!wait_comm(l, OUT, l->gradients[OUT]) && next != NULL)
    memcpy(l->gradients[OUT], next->gradients[IN], elements(l, OUT) * sizeof(float));
  CALL(mlsl_activation_get_global_fm_offset(l->activation[IN], &first_map));
  if (l->index == 0)
    for (i = 0; i < elements(l, OUT); ++i)
      expect(l, "gradient of the output", i, l->gradients[OUT][i], (double)i);
  else
    for (i = 0; i < elements(l, IN); ++i) l->gradients[IN][i] = (float)number_of(l, first_map, i);
  start_comm(l, IN, l->gradients[IN]);
}

static void backward_weights(layer* l) {
  size_t i;
  for (i = 0; i < l->weight_count; ++i) l->weight_gradient[i] = (float)i;
  CALL(mlsl_parameter_set_start_gradient_comm(l->parameters, l->weight_gradient));
}

static void update(layer* l) {
  size_t first, count, i;
  void* received = NULL;
  const float* sum;
  int complete = 0;
  if (use_test)
    while (!complete)
      CALL(mlsl_parameter_set_test_gradient_comm(l->parameters, &complete, &received));
  else
    CALL(mlsl_parameter_set_wait_gradient_comm(l->parameters, &received));
  sum = received != NULL ? received : l->weight_gradient;
  CALL(mlsl_parameter_set_get_owned_kernel_offset(l->parameters, &first));
  CALL(mlsl_parameter_set_get_owned_kernel_count(l->parameters, &count));
  for (i = 0; i < count * KERNEL; ++i) {
    const double right = (double)data_parts * (double)(first * KERNEL + i);
    if (quantizer != NULL) {
      const double error = right == 0 ? fabs(sum[i]) : fabs(sum[i] - right) / right;
      l->error_sum += error;
      l->error_most = fmax(l->error_most, error);
      ++l->errors;
    } else {
      expect(l, "sum of gradients", i, sum[i], right);
    }
    l->weights[first * KERNEL + i] = (float)(first * KERNEL + i);
  }
  CALL(mlsl_parameter_set_start_increment_comm(l->parameters, l->weights));
}

static void add_operation(mlsl_session session, mlsl_distribution distribution, size_t index) {
  mlsl_operation_reg_info info;
  mlsl_operation operation, previous;
  CALL(mlsl_session_create_operation_reg_info(session, OT_CC, &info));
  CALL(mlsl_operation_reg_info_set_name(info,
                                        index == 0 ? "first convolution" : "second convolution"));
  CALL(mlsl_operation_reg_info_add_input(info, kMaps[index], SPACE, DT_FLOAT));
  CALL(mlsl_operation_reg_info_add_output(info, kMaps[index + 1], SPACE, DT_FLOAT));
  CALL(mlsl_operation_reg_info_add_parameter_set_with_compress(
      info, kMaps[index] * kMaps[index + 1], KERNEL, DT_FLOAT, distributed,
      quantizer != NULL ? CT_QUANTIZATION : CT_NONE));
  CALL(mlsl_session_add_operation_with_distribution(session, info, distribution, &index));
  CALL(mlsl_session_delete_operation_reg_info(session, info));
  if (index == 0) return;
  CALL(mlsl_session_get_operation(session, index, &operation));
  CALL(mlsl_session_get_operation(session, index - 1, &previous));
  CALL(mlsl_operation_set_prev(operation, previous, 0, 0));
}

static void set_quantizer(void) {
  static char compress[] = "dl_comp_compress_buffer", decompress[] = "dl_comp_decompress_buffer",
              add[] = "dl_comp_compressed_buffer_reduce_sum";
  mlsl_quant_params params = {quantizer, compress, decompress, add, 268, 256};
  CALL(mlsl_environment_set_quantization_params(environment, &params));
}

static void train(layer* layers) {
  int minibatch, l;
  void* unused;
  for (minibatch = 0; minibatch < 6; ++minibatch) {
    for (l = 0; l < LAYERS; ++l) forward(&layers[l], l > 0 ? &layers[l - 1] : NULL);
    for (l = LAYERS - 1; l >= 0; --l) {
      backward_input(&layers[l], l + 1 < LAYERS ? &layers[l + 1] : NULL);
      backward_weights(&layers[l]);
    }
    for (l = 0; l < LAYERS; ++l) update(&layers[l]);
    /* The end of an epoch. */
    for (l = 0; minibatch % 3 == 2 && l < LAYERS; ++l)
      CALL(mlsl_parameter_set_wait_increment_comm(layers[l].parameters, &unused));
  }
}

int main(int argc, char** argv) {
  mlsl_distribution distribution;
  mlsl_session session;
  mlsl_comm_req request;
  mlsl_statistics statistics;
  layer layers[LAYERS];
  size_t rank, size, i;
  double failures;
  if (argc < 2) {
    fprintf(stderr, "usage: %s GROUP_COUNT [DIST_UPDATE] [USER_BUF] [USE_TEST] [QUANT_LIB]\n",
            argv[0]);
    return 2;
  }
  model_parts = (size_t)atoi(argv[1]);
  distributed = argc > 2 && atoi(argv[2]);
  user_buffers = argc > 3 && atoi(argv[3]);
  use_test = argc > 4 && atoi(argv[4]);
  quantizer = argc > 5 ? argv[5] : NULL;

  CALL(mlsl_environment_get_env(&environment));
  CALL(mlsl_environment_init(environment, &argc, &argv));
  CALL(mlsl_environment_get_process_idx(environment, &rank));
  CALL(mlsl_environment_get_process_count(environment, &size));
  if (quantizer != NULL) set_quantizer();
  data_parts = size / model_parts;
  CALL(mlsl_environment_create_distribution(environment, data_parts, model_parts, &distribution));
  CALL(mlsl_environment_create_session(environment, PT_TRAIN, &session));
  CALL(mlsl_session_set_global_minibatch_size(session, MINIBATCH));
  /* A mistake is a failure that can be survived. */
  if (mlsl_session_set_global_minibatch_size(session, MINIBATCH) != CMLSL_FAILURE) ++wrong;
  for (i = 0; i < LAYERS; ++i) add_operation(session, distribution, i);
  CALL(mlsl_session_commit(session));
  for (i = 0; i < LAYERS; ++i) make_layer(&layers[i], session, distribution, i);
  train(layers);
  if (quantizer != NULL && rank == 0)
    printf("relative error of the gradients: average %.3e, most %.3e\n",
           layers[0].error_sum / (double)layers[0].errors, layers[0].error_most);
  for (i = 0; i < LAYERS; ++i) free_layer(&layers[i]);
  CALL(mlsl_session_get_stats(session, &statistics));
  CALL(mlsl_statistics_print(statistics));

  failures = (double)wrong;
  CALL(mlsl_distribution_all_reduce(distribution, &failures, &failures, 1, DT_DOUBLE, RT_SUM,
                                    GT_GLOBAL, &request));
  CALL(mlsl_environment_wait(environment, request));
  if (rank == 0) printf("cmlsl_test: %s\n", failures == 0 ? "PASSED" : "FAILED");
  CALL(mlsl_environment_delete_session(environment, session));
  CALL(mlsl_environment_delete_distribution(environment, distribution));
  CALL(mlsl_environment_finalize(environment));
  printf("[%zu] exited normally\n", rank);
  return failures == 0 ? 0 : 1;
}
