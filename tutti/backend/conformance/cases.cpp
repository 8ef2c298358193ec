#include <fmt/format.h>

#include "tutti/backend/conformance/op_case.h"

namespace tutti {
namespace {

/// Follows "OP DTYPE "; each line is checked in f32 and bf16.
constexpr const char* kConvolutions[] = {
    "n5c16h16w16 k16r3s3 pad1",
    "n4c3h32w32 k16r3s3 pad1",
    "n3c16h16w16 k32r3s3 stride2 pad1",
    "n3c16h16w16 k32r1s1 stride2",
    "n2c5h9w7 k6r3s2 stride2x1 pad1x0",
    "n2c8h12w12 k8r3s3 pad2 dilation2",
    "n2c32h8w8 k32r3s3 pad1 groups4",
    "n2c64h7w6 k64r3s3 pad1 groups2",
    "n3c32h9w8 k32r3s3 pad1 groups32",
    "n2c32h9w9 k32r3s3 stride2 pad1 groups32",
    "n2c48h8w9 k48r3s3 pad2 dilation2 groups48",
    "n2c24h6w7 k24r3s3 pad1 groups24",
    "n2c32d4h5w6 k32t3r3s3 pad1 groups32",
    "n2c4d6h7w8 k16t3r3s3 pad1",
    "n3c3h23w23 k16r7s7 stride2 pad3",
    "n2c16d4h4w4 k16t2r2s2 stride2",
    "n2c16h10w10 k16r3s3 stride2 pad0 high1",
    "n2c4d8h8w8 k16t2r2s2 pad0 high1",
    "n2c16d4h4w4 k32t3r3s3 pad1",
    "n2c24h9w9 k24r3s3 pad2 dilation2 groups24",
    "n3c80h9w7 k80r3s3 stride2 pad1 groups80",
    "n2c24h6w7 k32r3s3 pad5 dilation5",
    "n3c18h9w11 k20r3s3 pad2x0",
    "n1c148h5w9 k260r3s3 pad1",
    "n2c17h7w9 k32r3s3 pad1",
    "n2c18h7w9 k19r3s3 pad1",
    "n2c24d3h4w5 k36t3r3s3 pad1",
    "n1c272h9w13 k40r1s1",
    "n3c48t21 k40r1",
    "n2c4t9 k40r1",
    "n2c8t9 k40r1",
    "n2c196t9 k40r1",
    "n2c16t19 k32r3 pad1",
    "n1c19t33 k50r1",
    "n2c21t9 k51r1",
    "n1c401t30 k610r1",
    "n2c40h9w7 k1r3s3 pad1",
    "n1c24d3h4w5 k3t3r3s3 pad1",
    "n5c16d4h5w6 k16t2r3s2 stride1x2x1 pad1x0x1 high0 groups16",
    "n2c24d8h5w6 k36t3r3s3 pad0x1x1",
    "n1c16d6h17w16 k16t3r3s3 pad0x1x1",
    "n1c40d7h4w5 k18t3r3s3 pad0x1x1 dilation1x1x2",
    "n3c18h9w11 k20r3s3 pad0x1",
    "n2c34h10w9 k16r3s3 pad0x2 dilation1x2",
};
constexpr const char* kActivations[] = {"n5c16h8w8", "n4c32h5w7",   "n3c5h6w7",
                                        "n7c19",     "n2c16d3h4w5", "n2c152h3w2"};
constexpr const char* kVectors[] = {"n5c64 k10 bias",           "n7c33 k5",
                                    "n4c16h4w4 k20 bias",       "n3c3h5w5 k17 bias narrow",
                                    "n64c256 k128 bias narrow", "n9c48 k11"};
constexpr const char* kPools[] = {
    "n4c16h8w8 max r2s2 stride2",         "n3c5h9w7 max r3s3 stride2 pad1",
    "n2c16d6h6w6 max t2r2s2 stride2",     "n4c16h8w8 average r2s2 stride2",
    "n3c5h9w7 average r3s3 stride2 pad1", "n3c5h9w7 average r3s2 pad1x0 exclude_pad",
    "n2c3d5h5w6 average t3r3s3 pad1",     "n2c32h7w7 max r3s3 pad1",
    "n2c3d1h5w6 average t2r2s2 pad1",     "n2c16d1h5w6 max t2r2s2 pad1",
};
constexpr const char* kResizes[] = {
    "n3c16h4w5 factor2",
    "n2c5h3w4 factor3x1",
    "n2c16d2h3w3 factor2x1x3",
    "n3c32h4w5 factor2 first1x0 count5x0",
};
constexpr const char* kLosses[] = {
    "softmax_cross_entropy{} {} n9c10",
    "softmax_cross_entropy{} {} n6c19 smoothing0.1 weights scale0.5",
    "softmax_cross_entropy{} {} n3c5h6w7 weights",
    "softmax_cross_entropy{} {} n3c16h8w8 smoothing0.2",
    "softmax_cross_entropy{} {} n3c5h6w7 weights over_labels scale0.5",
    "softmax_cross_entropy{} {} n3c3d3h4w5 weights",
    "softmax_cross_entropy{} {} n2c16d2h3w4 smoothing0.1 weights over_labels",
    "softmax_cross_entropy{} {} n3c5h6w7 weights given scale0.5",
    "pointwise_loss{} {} n9c10 mse",
    "pointwise_loss{} {} n3c16h6w7 mse scale2",
    "pointwise_loss{} {} n3c5h6w7 mae",
    "pointwise_loss{} {} n9c33 huber delta0.7",
    "pointwise_loss{} {} n3c16h6w7 bce_with_logits pos_weight3",
    "gaussian_kl{} {} n9c33 scale0.1",
};
constexpr const char* kSpectra[] = {
    "n2c3h24w40",    "n3c16h6w7", "n2c5d8h5w9",  "n1c2d6h70w9",
    "n2c1d12h12w12", "n2c3w97",   "n1c2d1h9w12", "n1c1h150w3",
};
constexpr const char* kInteractions[] = {"n3c5w7", "n5c27w16", "n2c2w33", "n4c9w64 itself",
                                         "n3c1w5 itself"};
/// Follows "OP DTYPE ", for sequences: attention, and its gradient.
constexpr const char* kAttentions[] = {
    "n2c24t19 heads3",
    "n3c32t33 heads2 causal",
    "n1c128t70 heads2 causal",
    "n2c20t9 heads4 causal separate",
    "n2c48t21 heads6 key_heads2 causal",
    "n2c16t5 heads2 keys40 q_and_kv",
    "n2c16t5 heads2 keys7 causal separate scale0.3",
    "n2c32t37 heads2 causal segments",
    "n3c16t18 heads1 segments",
    "n2c16t9 heads2 keys35 q_and_kv hidden",
    "n2c8t1 heads8 causal",
    "n1c40t33 heads5 causal whole",
    "n3c48t21 heads6 key_heads3 segments whole",
    "n2c32t150 heads2 causal dropout0.3",
    "n3c16t9 heads2 keys35 q_and_kv hidden dropout0.5",
    "n2c48t21 heads6 key_heads2 causal dropout0.1 first_head6",
    "n3c40t133 heads5 segments dropout0.2 whole",
    "n1c74t33 heads2 causal",
    "n2c38t31 heads2",
    "n1c16t31 heads2 keys44 causal separate",
    "n2c40t29 heads4 key_heads2 keys35 q_and_kv hidden",
    "n1c20t9 heads4 key_heads2 separate",
};
constexpr const char* kSequences[] = {
    "layer_norm{} {} n3c48t7",
    "layer_norm{} {} n2c19t5 rms",
    "layer_norm{} {} n7c33",
    "layer_norm{} {} n2c16h3w4 rms",
    "token_loss{} {} n2c50t9",
    "token_loss{} {} n3c16t5 smoothing0.1 scale0.5",
    "token_loss{} {} n1c131t40",
    "lookup{} {} n3c16t9",
    "lookup{} {} n2c21t70 rows37",
    "lookup{} {} n2c21t70 rows37 first5",
    "token_loss_of_ranks{} {} n2c50t9 all80 first20",
    "token_loss_of_ranks{} {} n3c16t5 all48 first32 smoothing0.1 scale0.5 ranks3",
    "add_positions{} {} n3c16t9",
    "add_positions{} {} n2c21t20 rows20",
    "add_positions{} {} n2c21t7 rows20 first9",
    "add_positions{} {} n2c48t13 rows13 table",
    "swiglu{} {} n3c48t7",
    "swiglu{} {} n2c19t5",
    "swiglu{} {} n7c33",
    "swiglu{} {} n2c16h3w4",
};
/// Ops without a gradient op of their own; follows "OP DTYPE ".
constexpr const char* kWaves[] = {
    "prepend_token {} n3c16t9",
    "prepend_token {} n2c21t1",
    "add_sinusoids {} n3c16t9",
    "add_sinusoids {} n2c21t20 base100",
    "add_sinusoids {} n2c33t5 given",
    "rotate {} n3c64t9 heads2 width32",
    "rotate {} n2c48t7 heads2 width16 back",
    "rotate {} n2c45t6 heads3 width10 base100",
    "rotate {} n2c96t5 heads2 width40 given",
};
constexpr const char* kUpdates[] = {
    "sgd_update f32 n1000",
    "sgd_update f32 n333 momentum0.9 decay0.0001 count5",
    "sgd_update f32 n64 momentum0.9 decay0.01 nesterov count3",
    "sgd_update f32 n333 momentum0.9 decay0.01 clip0.3 count3",
    "sgd_update f32 n333 clip0.3",
    "adam_update f32 n333 clip0.3 count2",
    "rmsprop_update f32 n333 clip0.3 count2",
    "lars_update f32 n333 momentum0.9 decay0.0001 count5",
    "adam_update f32 n333 count5",
    "adam_update f32 n333 decay0.1 decoupled count2",
    "adam_update f32 n333 decay0.1 count2",
    "rmsprop_update f32 n333 count5",
    "rmsprop_update f32 n333 decay0.1 rate0.1 count2",
    "parameter_norms f32 n333 count5",
    "parameter_norms f32 n5000 count3",
    "gradient_squares f32 n333 count5",
    "gradient_squares f32 n5000 count3",
    "clip_scale f32 n5000 limit0.2 count3",
    "clip_scale f32 n333 limit1000 count5",
    "lars_update f32 n5000 momentum0.9 decay0.0001 count3",
    "lamb_moments f32 n333 count5",
    "lamb_moments f32 n5000 decay0.1 count3",
    "lamb_update f32 n5000 decay0.1 count3",
    "sgd_update f32 n333 momentum0.9 decay0.01 rate0.1 count3",
    "adam_update f32 n333 decay0.1 decoupled rate0.1 count2",
    "lars_update f32 n333 momentum0.9 decay0.01 rate0.1 count3",
    "lamb_update f32 n333 decay0.1 rate0.1 count3",
    "weight_average f32 n333 decay0.9 count5",
    "weight_average f32 n333 decay0.9 from8 count2",
};
/// Follows "OP DTYPE ". EXTENTS describe a slab; there are so many windows of `height` rows, `step`
/// apart, and the first begins `before` rows above the first slab.
constexpr const char* kRowCuts[] = {
    "n4c16h8w5 slabs2 windows4 height6 step4 before1",
    "n3c5h6w7 slabs1 windows1 height6 step1 before0",
    "n6c16d4h4w3 slabs3 windows3 height6 step4 before1",
    "n2c19h8w4 slabs1 windows2 height9 step3 before2",
    "n4c16h4w6 slabs2 windows2 height7 step4 before2 across",
};
constexpr const char* kOthers[] = {
    "embedding_bag f32 n5c3w7 first1",
    "embedding_bag f32 n9c4w16 count4 rows1000",
    "embedding_bag f32 n33c5w33 first2 count3",
    "table_update f32 n5c3w7 first1",
    "table_update f32 n300c4w16 count4 rows50",
    "table_update f32 n300c26w33 first25 rows3",
    "table_update f32 n33c5w8 first2 count3 rows1000",
    "embedding_bag f32 n33c5w33 first2 count3 mean",
    "embedding_bag f32 n9c4w16 count4 weighted rows50",
    "embedding_bag f32 n9c4w16 count4 weighted mean rows50",
    "embedding_bag f32 n33c4w16 first1 from10 rows7 shared30",
    "embedding_bag f32 n33c4w16 count4 mean from10 rows7 shared30",
    "table_update f32 n33c5w8 first2 count3 mean rows40",
    "table_update f32 n33c4w9 count4 weighted rows40",
    "table_update f32 n300c4w16 first3 from10 rows7 shared30",
    "table_update f32 n300c4w17 first3 adagrad rows50",
    "table_update f32 n300c4w17 first3 rowwise_adagrad rows50",
    "table_update f32 n90c4w8 count4 weighted mean adagrad from10 rows7 shared30",
    "table_update f32 n90c4w8 count4 mean rowwise_adagrad from10 rows7 shared30",
    "gather_rows f32 n4c16h8w5 slabs2 windows4 height6 step4 before1 above1 below1",
    "gather_rows bf16 n4c16h8w5 slabs2 windows4 height6 step4 before1 above1 below1",
    "gather_rows f32 n3c5h6w7 slabs1 windows2 height7 step4 before3 above2 fill1.5",
    "gather_rows i32 n4c3h8w6 slabs2 windows4 height6 step4 before1 below1",
    "add_rows f32 n4c16h8w5 slabs2 windows4 height6 step4 before1 also",
    "add_rows bf16 n4c5h6w7 slabs2 windows2 height7 step6 before0 also",
    "sum_parts f32 n333 ranks3 scale0.5",
    "sum_parts f32 n1 ranks4",
    "merge_moments f32 n64 ranks2",
    "merge_moments f32 n37 ranks5",
    "merge_moments f32 n37 ranks3 running",
    "label_weights i32 n3c6h7",
    "label_weights i32 n9",
    "count_tokens i32 n3t17",
    "token_head f32 n2c40t150 rows90 hits",
    "token_hits f32 n2c3t40",
    "token_hits_of_ranks f32 n2c3t40",
    "token_hits_of_ranks f32 n3c3t7 ranks3",
    "token_hits bf16 n3c37t5",
    "count_tokens i32 n2t3 rows1",
    "label_weights i32 n2c4h5w6",
    "conv f32 n5c16h16w16 k16r3s3 pad1 sigmoid",
    "conv f32 n2c4d6h7w8 k16t3r3s3 pad1 bias tanh",
    // few products each: the error of bf16 in a large sum dominates a tanh near 0
    "conv bf16 n3c8h4w4 k16r1s1 bias sigmoid",
    "conv bf16 n3c8h4w4 k16r1s1 tanh",
    "conv_backward_data f32 n1c148d5h4w4 k196t3r3s3 pad0x1x1",
    "conv_backward_data bf16 n1c148d5h4w4 k196t3r3s3 pad0x1x1",
    "reorder f32 n4c16h5w5 to_bf16",
    "reorder bf16 n4c16h5w5 to_f32",
    "reorder u8 n4c3h8w8 to_f32",
    "reorder f32 n40c7 to_bf16 whole",
    "reorder f32 n3c19h4w5 to_i32",
    "add f32 n10c7 whole",
    "mul f32 n333 whole",
    "scale f32 n333 factor0.3 whole",
    "activation f32 n333 gelu whole",
    "slice u8 n3c4h6w5 from1 step2",
    "reshape i32 n3c4h6w5",
};

}  // namespace

std::vector<std::string> conformance_lines() {
  std::vector<std::string> lines;
  const auto add = [&](std::string line) { lines.push_back(std::move(line)); };
  for (const char* type : {"f32", "bf16"}) {
    for (const char* shape : kConvolutions) {
      add(fmt::format("conv {} {}", type, shape));
      add(fmt::format("conv {} {} bias relu", type, shape));
      add(fmt::format("conv {} {} bias leaky_relu", type, shape));
      add(fmt::format("conv_backward_data {} {}", type, shape));
      add(fmt::format("conv_backward_weights {} {}", type, shape));
      add(fmt::format("conv_transpose {} {}", type, shape));
      add(fmt::format("conv_transpose {} {} bias", type, shape));
    }
    for (const char* shape : kActivations) {
      add(fmt::format("batch_norm_stats {} {}", type, shape));
      add(fmt::format("batch_norm_stats {} {} running", type, shape));
      add(fmt::format("batch_norm_grad_apply {} {}", type, shape));
      for (const char* second : {"", " variance"})
        add(fmt::format("batch_norm_grad_scale {} {}{}", type, shape, second));
      for (const char* relu : {"", " relu"}) {
        for (const char* op : {"batch_norm_apply", "batch_norm_inference"})
          for (const char* residual : {"", " residual"})
            add(fmt::format("{} {} {}{}{}", op, type, shape, relu, residual));
        for (const char* two : {"", " two"})
          for (const char* second : {"", " variance"})
            add(fmt::format("batch_norm_grad_reduce {} {}{}{}{}", type, shape, relu, two, second));
      }
      for (const char* op : {"add", "mul", "scale", "bias_backward", "dropout"})
        add(fmt::format("{} {} {}", op, type, shape));
      for (const char* kind :
           {"relu", "leaky_relu", "sigmoid", "tanh", "gelu", "gelu_tanh", "silu"})
        for (const char* op : {"activation", "activation_grad"})
          add(fmt::format("{} {} {} {}", op, type, shape, kind));
      add(fmt::format("gaussian_sample {} {}", type, shape));
      add(fmt::format("pad {} {} low1 high2", type, shape));
      add(fmt::format("concat {} {} axis1 other6", type, shape));
      add(fmt::format("concat {} {} axis1 other16", type, shape));
      for (const char* op : {"slice", "slice_grad"})
        for (const char* range : {"from1 step2", "from0", "from1 step3 channels"})
          add(fmt::format("{} {} {} {}", op, type, shape, range));
      if (std::string_view(shape).find('w') == std::string_view::npos) continue;
      add(fmt::format("reshape {} {}", type, shape));
      add(fmt::format("concat {} {} axis2 other2", type, shape));
      for (const char* op :
           {"global_average_pool", "global_average_pool_grad", "broadcast", "spatial_sum"})
        add(fmt::format("{} {} {}", op, type, shape));
    }
    for (const char* shape : kActivations)
      add(fmt::format("batch_norm_moments {} {}", type, shape));
    for (const char* cut : kRowCuts)
      for (const char* op : {"gather_rows", "add_rows"})
        add(fmt::format("{} {} {}", op, type, cut));
    for (const char* shape : kVectors) {
      add(fmt::format("dense {} {}", type, shape));
      std::string plain(shape);
      if (const size_t at = plain.find(" bias"); at != std::string::npos) plain.erase(at, 5);
      add(fmt::format("dense_backward_data {} {}", type, plain));
      add(fmt::format("dense_backward_weights {} {}", type, plain));
    }
    for (const char* shape : kPools)
      for (const char* op : {"pool", "pool_grad"}) add(fmt::format("{} {} {}", op, type, shape));
    for (const char* shape : kSpectra)
      for (const char* op : {"power_spectrum", "power_spectrum_grad"})
        add(fmt::format("{} {} {}", op, type, shape));
    add(fmt::format("power_spectrum {} n3c16h6w7 floor0.5", type));
    for (const char* shape : kResizes)
      for (const char* op : {"resize", "resize_grad"})
        add(fmt::format("{} {} {}", op, type, shape));
    for (const char* shape : kInteractions)
      for (const char* op : {"interaction", "interaction_grad"})
        add(fmt::format("{} {} {}", op, type, shape));
    for (const char* line : kAttentions)
      for (const char* op : {"attention", "attention_grad"})
        add(fmt::format("{} {} {}", op, type, line));
    add(fmt::format("lookup_grad {} n2c21t70 rows37 adds", type));
    for (const char* shape : {"n2c8t9 rows50 dx dw", "n5c5t130 rows83 dx dw smoothing0.1 scale0.5",
                              "n1c7t5 rows16 dx", "n2c9t30 rows40 dw", "n3c8t20 rows300"})
      add(fmt::format("token_head {} {}", type, shape));
    add(fmt::format("token_statistics {} n2c50t9 all80 first20", type));
    add(fmt::format("token_statistics {} n1c131t40 all131", type));
    add(fmt::format("token_rivals {} n2c50t9 all80 first20", type));
    add(fmt::format("token_rivals {} n3c5t40 all5", type));
    for (const char* shape : {"n2c19t5 ranks2 bias", "n3c48t7 ranks4", "n7c33 ranks3 bias"})
      add(fmt::format("sum_of_ranks {} {}", type, shape));
    for (const char* shape :
         {"n2c48t21 k70r1", "n3c16t19 k40r3 pad1", "n1c19t33 k17r1", "n2c24d3h4w5 k52t3r3s3 pad1",
          "n3c32h7w9 k48r3s3 pad1", "n3c16h20w20 k48r3s3 pad1", "n5c16h6w7 k16r3s3 stride2 pad1"})
      add(fmt::format("conv_backward_weights {} {} whole", type, shape));
    for (const char* shape : {"n3c48t68", "n2c19t8"})
      for (const char* rows : {"", " first6 all90", " first64 all160"})
        add(fmt::format("dropout {} {}{}", type, shape, rows));
    for (const char* line : kSequences)
      for (const char* grad : {"", "_grad"}) add(fmt::format(fmt::runtime(line), grad, type));
    for (const char* line : kWaves) add(fmt::format(fmt::runtime(line), type));
    for (const char* line : kLosses)
      for (const char* grad : {"", "_grad"}) add(fmt::format(fmt::runtime(line), grad, type));
  }
  for (const char* line : kUpdates) add(line);
  for (const char* line : kOthers) add(line);
  return lines;
}

}  // namespace tutti
