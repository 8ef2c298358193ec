#pragma once
// The keys of [model]: values, and the rows that describe them (config_table.h).

#include <cstdint>
#include <string>
#include <vector>

#include "tutti/config/config_words.h"
#include "tutti/models/block/layer_table.h"
#include "tutti/models/block/model.h"

namespace tutti::config {

struct ModelSection {
  std::string name = "resnet20";
  std::string library{};                    ///< path of a shared object; empty: none
  std::string library_content{};            ///< its SHA-256, known once it is loaded; no key
  std::vector<models::LayerTable> layer{};  ///< for the model "layers"
  ModelTask task = ModelTask::automatic;
  Shortcut shortcut = Shortcut::automatic;
  int64_t width = 0;              ///< 0: the model's own
  int64_t classes = 0;            ///< 0: the data set's
  std::vector<int64_t> hidden{};  ///< empty: the model's own
  models::Pooling pooling = models::Pooling::sum;
  models::FeatureInteraction interaction = models::FeatureInteraction::dot;
  models::Embeddings embeddings = models::Embeddings::shared;
  int64_t depth = 0;       ///< 0: the model's own
  int64_t kernel = 0;      ///< 0: the model's own
  int64_t heads = 0;       ///< 0: the model's own
  int64_t key_heads = 0;   ///< 0: the model's own
  double rotary_base = 0;  ///< 0: the model's own
  bool tied = false;
  int64_t context = 0;                                  ///< 0: a sample's positions
  int64_t lora_rank = 0;                                ///< 0: no LoRA
  double lora_alpha = 0;                                ///< 0: the rank
  std::vector<std::string> lora_layers{};               ///< patterns over linear layers
  double dropout = -1;                                  ///< -1: the model's own
  double attention_dropout = -1;                        ///< -1: the model's own
  std::string weights{};                                ///< path; empty: new ones
  std::vector<std::string> weights_except{}, freeze{};  ///< patterns over parameters

  template <class Keys>
  static void keys(Keys& t) {
    using S = ModelSection;

    t.key(&S::name, "name", "Network, see `tutti model list`");
    t.key(&S::library, "library",
          "Shared object with models and metrics of your own, which model.name and run.metric may "
          "then name; see docs/own_workload.md. It is code, which every verb that reads this "
          "configuration runs, `plan` and --dry-run, too. A resume compares its content. Empty: "
          "none")
        .path(PathKind::read)
        .may_change()
        .may_differ();
    t.key(&S::layer, "layer",
          "A network of one's own, a table for each layer: [[model.layer]], see below. "
          "`model.name` is then \"layers\"")
        .layers();
    t.key(&S::task, "task",
          "What is learned: a class of the whole sample, a class at each position, numbers, or the "
          "token that comes next. auto: the model's own; of [[model.layer]] what the field holds");
    t.key(&S::shortcut, "shortcut",
          "Residual shortcut where the shape changes: A pads with zeros, B is a 1x1 convolution; "
          "auto: the model's own (A for CIFAR's, B for ImageNet's)");
    t.key(&S::width, "width", "Channels of the first stage. 0: the model's own")
        .between(0, 1 << 16);
    t.key(&S::classes, "classes",
          "Outputs of the network, at least one for each class. 0: as many as the data set has "
          "classes")
        .between(0, 1 << 24);
    t.key(&S::depth, "depth",
          "Modules of a stack (ffn: 12, gpt2: 12, llama: 32, transformer-base: 6 and 6, vit: 12, "
          "sequence-encoder and token-encoder: 4). 0: the model's own")
        .between(0, 1024);
    t.key(&S::heads, "heads",
          "Heads of attention (gpt2: 12, llama: 32, transformer-base: 8, sequence-encoder and "
          "token-encoder: 4). 0: the model's own")
        .between(0, 1024);
    t.key(
         &S::key_heads, "key_heads",
         "Heads of keys and values, which groups of heads share (llama). 0: the model's own, or as "
         "many as model.heads where that is given")
        .between(0, 1024);
    t.key(&S::rotary_base, "rotary_base",
          "Base of the angles by which positions turn queries and keys (llama: 10000, Llama 3: "
          "500000). 0: the model's own")
        .at_least(0);
    t.key(&S::tied, "tied",
          "Whether the output layer has the weights of the tokens (llama); gpt2 always does so");
    t.key(&S::context, "context",
          "Positions that are learned (gpt2), at least those of a sample. 0: those of a sample")
        .between(0, 1 << 20);
    t.key(&S::kernel, "kernel",
          "Side of the convolutions' windows (cosmoflow: 3, or 2 as in v0.7), and of the patches "
          "(vit: 16); samples of a piece (sequence-encoder: 1). 0: the model's own")
        .between(0, 64);
    t.key(
         &S::dropout, "dropout",
         "Probability with which dropout leaves an element out (cosmoflow, vgg, fc-densenet, gpt2, "
         "transformer-base, vit, sequence-encoder, token-encoder). -1: the model's own")
        .own_or_probability();
    t.key(&S::attention_dropout, "attention_dropout",
          "Probability with which training leaves a key out of what a query attends to (gpt2, "
          "transformer-base, vit; sequence-encoder and token-encoder in their layers, not in the "
          "one query of a whole sequence), besides model.dropout. Published GPT-2 has 0.1 of both. "
          "-1: the model's own, which is none")
        .own_or_probability();
    t.key(&S::hidden, "hidden",
          "Sizes of the hidden layers (mlp, cosmoflow, vgg, dlrm, gpt2, llama, transformer-base, "
          "vit, sequence-encoder, token-encoder). Empty: the model's own")
        .between(1, 1 << 24);
    t.key(
        &S::pooling, "pooling",
        "What becomes of the rows that a bag of categories names (dlrm): their sum or their mean");
    t.key(
        &S::interaction, "interaction",
        "How the features of a sample meet (dlrm): in the dot products of all pairs, or one after "
        "the other");
    t.key(&S::embeddings, "embeddings",
          "Whether the tokens of a source have the same weights as those of the target, which the "
          "output layer has, too (transformer-base, transformer-big)");
    t.key(&S::weights, "weights",
          "First weights: a .safetensors file, a checkpoint, or the folder of a run or of its "
          "checkpoints, of which the best counts, else the newest. A resume does not read it: the "
          "file may be gone, but the key stays. Empty: new ones")
        .path(PathKind::read);
    t.key(&S::weights_except, "weights_except",
          "Shell patterns over names: parameters and statistics that keep their own first values, "
          "and tensors of model.weights that are passed over, as in [\"fc.*\"] for a last layer of "
          "other classes");
    t.key(&S::freeze, "freeze",
          "Shell patterns over names of parameters that are not trained: they have no gradient and "
          "no optimizer state, and nothing is computed for them alone");
    t.key(&S::lora_rank, "lora_rank",
          "LoRA beside the linear layers of model.lora_layers: products of two matrices of this "
          "rank, which alone are trained. 0: none")
        .between(0, 1024);
    t.key(&S::lora_alpha, "lora_alpha",
          "Their factor, divided by model.lora_rank. 0: as the rank, a factor of 1")
        .at_least(0)
        .only_with("model.lora_rank");
    t.key(&S::lora_layers, "lora_layers",
          "Shell patterns over the names of these layers, as in [\"*.q_proj\", \"*.v_proj\"]")
        .only_with("model.lora_rank");
  }
};

}  // namespace tutti::config
