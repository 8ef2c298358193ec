#include "tutti/config/config_table.h"
#include "tutti/models/block/layers.h"

namespace tutti {

void write_run_rows(ConfigTableWriter& t) {
  using S = RunSection;
  constexpr auto s = &RunConfig::run;
  t.section("run", s, "How long, where to, with what.");
  t.key(s, &S::seed, "seed", "Seed of weights, data order and augmentation").at_least(0);
  t.key(s, &S::output_dir, "output_dir",
        "Folder of this run's record, resolved configuration, logs and checkpoints; it holds one "
        "run. Empty: the next of runs/0001, runs/0002, ..., and runs/latest leads to it")
      .path(PathKind::written)
      .no_matter();
  t.key(s, &S::epochs, "epochs",
        "Passes over the training set; also the length of the schedule. 0: run.max_steps alone")
      .at_least(0)
      .may_change();
  t.key(s, &S::max_steps, "max_steps",
        "Stop after this many steps in all; it shortens the run, not the schedule, unless "
        "run.epochs is 0. 0: no limit")
      .at_least(0)
      .may_change();
  t.key(s, &S::metric, "metric",
        "What is to be reached, and decides which weights are the best: accuracy, top5 (classify); "
        "iou, accuracy (segment); mae (regress), or of zeros and ones f1, accuracy, precision, "
        "recall, auc; perplexity, bits, accuracy (language); loss. Empty: the task's first")
      .may_change();
  t.key(
       s, &S::target, "target",
       "Value of the metric on the validation set, or on the test set where there is no validation "
       "set, as 0.9, mae in the data's unit; the run ends there, or with exit code 3. 0: none")
      .at_least(0)
      .may_change();
  t.key(s, &S::patience, "patience",
        "The run ends after this many evaluations without a better metric. 0: it does not")
      .at_least(0)
      .may_change();
  t.key(s, &S::min_improvement, "min_improvement",
        "By how much more than this a metric must be better to count as better")
      .at_least(0)
      .may_change()
      .only_with("run.patience")
      .only_with("schedule.name", {"plateau"});
  t.key(s, &S::eval_every, "eval_every",
        "Epochs between evaluations on the validation set, or the test set where there is no "
        "validation set. 0: at the end only")
      .at_least(0)
      .may_change();
  t.key(s, &S::log_every, "log_every", "Steps between lines of the log and of the record")
      .at_least(1)
      .may_change();
  t.key(s, &S::noise_every, "noise_every",
        "Steps between measurements of the gradient's noise scale, from which the record and "
        "reports have the critical batch; see docs/noise.md. 0: it is not measured")
      .at_least(0)
      .may_change();
  t.key(s, &S::noise_layers, "noise_layers", "Also of each parameter by itself")
      .may_change()
      .only_with("run.noise_every");
  t.key(s, &S::slow, "slow",
        "Makes ranks slow, to see what that costs: RANK:FACTOR, or a list of them. Each step "
        "of the rank takes so many times as long as its computation, of the step before")
      .or_one()
      .may_change();
  t.key(s, &S::slow_sigma, "slow_sigma",
        "Makes all ranks slow by chance: a step takes exp(x) times as long where x, normal with "
        "this standard deviation, is above 0. A function of the seed. 0: off")
      .between(0, 2)
      .may_change();
  t.key(s, &S::precision, "precision",
        "Compute and storage type; bf16 keeps fp32 master weights, sums and statistics");
  t.key(s, &S::threads, "threads",
        "Compute threads of a rank. 0: OMP_NUM_THREADS, else the node's cores / its ranks")
      .between(0, 4096)
      .may_change();
  t.key(s, &S::replicas, "replicas",
        "Logical data-parallel workers; the result depends on them, not on the ranks. 0: one per "
        "rank, and in a resumed run as many as before")
      .between(0, 1 << 24);
  t.key(s, &S::log_level, "log_level", "What the log shows").no_matter().may_differ();
  t.key(s, &S::profile, "profile",
        "Also write a trace of every step for chrome://tracing or Perfetto")
      .no_matter();
}

void write_data_rows(ConfigTableWriter& t) {
  using S = DataSection;
  constexpr auto s = &RunConfig::data;
  t.section("data", s, "The data set, its augmentation and its readers.");
  t.key(s, &S::dataset, "dataset", "Data set, see `tutti data list`")
      .one_of({"cifar10", "mnist", "fashion-mnist", "lattices", "cosmoflow", "deepcam", "imagenet",
               "neurons", "cbed", "stem", "clicks", "text", "tokens", "token-pairs", "arrays"});
  t.key(s, &S::dir, "dir",
        "Folder with the data set's files. Empty: lattices are generated in memory")
      .path(PathKind::read)
      .may_change()
      .may_differ();
  t.key(s, &S::input, "input",
        "Field that the network reads, or a list of them. Empty: the data set's first")
      .or_one();
  t.key(s, &S::target, "target",
        "Field that it is to predict, or a list of them; the input's own name: the network is to "
        "give back what it reads. Empty: the data set's second")
      .or_one();
  t.key(s, &S::transforms, "transforms",
        "What happens to fields on their way, a line each, as in \"image: crop pad 4, flip x, "
        "divide "
        "255, normalise\"; see docs/samples.md. A field without a line: as the data set has it")
      .path(PathKind::read);
  t.key(s, &S::classes, "classes",
        "How many classes the labels name, from 0 up; a label beyond them is an error before the "
        "first step. MNIST's format may hold up to 256. 0: the data set's own number")
      .between(0, 65536);
  t.key(s, &S::validation, "validation",
        "Training samples that are not trained on and judge the run instead of the test set, which "
        "is then used once, at the end: below 1 a fraction, from 2 on a number. 0: none. Of a text "
        "it is the end, and tokens are counted. Not for data sets with a validation set of their "
        "own")
      .at_least(0);
  t.key(s, &S::split_seed, "split_seed",
        "Seed that says which samples data.validation takes, or where the seeds of neurons lie")
      .at_least(0)
      .only_with("data.validation")
      .only_with("data.dataset", {"neurons"});
  t.key(s, &S::shuffle, "shuffle",
        "global: the order of the samples depends on the seed alone; shard: each node trains on "
        "every N-th sample, N nodes, in an order of its own, so that results depend on the number "
        "of nodes");
  t.key(s, &S::strict, "strict",
        "Refuse a training set that is no multiple of the global batch, or with data.shuffle = "
        "\"shard\" of nodes x a node's batch, as MLPerf's CosmoFlow does. false: what is left over "
        "waits for another epoch")
      .may_change();
  t.key(s, &S::fields, "fields",
        "What a sample has, a line a field, as in \"image: from images\" and \"mask: from "
        "climate/labels_0 classes 3\"; see docs/samples.md and `tutti data inspect PATH`")
      .only_with("data.dataset", {"arrays", "neurons"});
  t.key(
       s, &S::train_files, "train_files",
       "Training files: NumPy, HDF5, NetCDF, TIFF, TFRecord, trajectories (DCD, XTC, TRR), or "
       ".toml descriptions of raw arrays; click logs; texts and token files; also folders of them, "
       "and patterns such as \"train/*.h5\". Relative to data.dir")
      .names_data();
  t.key(s, &S::validation_files, "validation_files", "Files on which training is judged, likewise")
      .names_data();
  t.key(s, &S::test_files, "test_files",
        "Files that wait for the end of training, likewise; without validation files they judge "
        "it")
      .names_data();
  t.key(s, &S::statistics, "statistics",
        "File of means, deviations and extremes of the fields, for 'normalise' and "
        "'min-max' without numbers; `tutti data stats` writes one. Empty: none")
      .path(PathKind::read)
      .may_change()
      .only_with("data.dataset", {"arrays"});
  t.key(s, &S::table_rows, "table_rows",
        "Rows of the table that a category of clicks is looked up in: one number for all, or one "
        "for each. Row 0 is for what is missing; others may be shared by categories, since they "
        "are hashed")
      .between(2, int64_t{1} << 31)
      .only_with("data.dataset", {"clicks"}, {"data.vocabulary"});
  t.key(s, &S::vocabulary, "vocabulary",
        "File that gives each category of clicks a row of its own, which `tutti data vocabulary` "
        "writes; tables are as long as it says. Row 0 is for what is missing, rare or unknown. "
        "Empty: categories are hashed. Of text: folder of a tokenizer whose characters are the "
        "tokens; empty: those of the training text")
      .path(PathKind::read)
      .only_with("data.dataset", {"clicks", "text"});
  t.key(s, &S::bag_length, "bag_length",
        "The most categories that a column of clicks has in a line, with | between them: one "
        "number for all columns, or one for each. The rows that they name are put together as "
        "model.pooling says. 1: the text is one category, whatever is in it")
      .between(1, 4096)
      .only_with("data.dataset", {"clicks"});
  t.key(s, &S::bag_weights, "bag_weights",
        "Whether each category of a bag has a weight of its row behind a colon, as in a:0.5|b:2")
      .only_with("data.dataset", {"clicks"});
  t.key(s, &S::window, "window",
        "Tokens of a sample of a text; of token-pairs as many as the longest source has, and "
        "one more than the longest target, behind which the end token stands. Longer ones are "
        "left out")
      .between(1, 1 << 24)
      .only_with("data.dataset", {"text", "tokens", "token-pairs"});
  t.key(s, &S::windows, "windows",
        "Which windows of a text an epoch has: ordered, windows side by side that cover it once, "
        "cut at another place in each epoch, in an order of the seed; random, as many, each "
        "drawn for itself. Evaluations read windows side by side")
      .only_with("data.dataset", {"text", "tokens"});
  t.key(s, &S::tokenizer, "tokenizer",
        "What the tokens of a text are; texts as byte pairs are \"tokens\", which `tutti data "
        "tokenize` writes")
      .only_with("data.dataset", {"text"});
  t.key(s, &S::segments, "segments",
        "Whether samples have a field `segments`, the number of each token's document in the "
        "window, so that attention does not look into other documents")
      .only_with("data.dataset", {"tokens"});
  t.key(s, &S::quarantine, "quarantine",
        "Bad samples that a rank goes on without: missing, damaged, of another shape, with values "
        "that are no numbers. In the place of each stands the next sound one. The log names each, "
        "the record the first 20 of each of the first 64 ranks. Not for imagenet and neurons. 0: "
        "the first one ends the run")
      .at_least(0)
      .may_change();
  t.key(s, &S::readers, "readers",
        "Threads that read and augment: as many reads are under way at a time. Where files answer "
        "slowly, more than there are cores")
      .between(1, 256)
      .may_change();
  t.key(s, &S::prefetch, "prefetch", "Batches kept ready: how far readers are ahead of the step")
      .between(1, 64)
      .may_change();
  t.key(
       s, &S::direct_reads, "direct_reads",
       "Read data files past the system's cache, where the file system can (O_DIRECT), in reads of "
       "64 KiB and more, so that the node's memory is left to others. On a local disk it did not "
       "pay: measure before use")
      .no_matter();
  t.key(s, &S::generate_train, "generate_train", "Training images to generate")
      .between(1, 4294967295)
      .only_with("data.dataset", {"lattices"}, {"data.dir"});
  t.key(s, &S::generate_test, "generate_test", "Test images to generate")
      .between(1, 4294967295)
      .only_with("data.dataset", {"lattices"}, {"data.dir"});
  t.key(s, &S::generate_seed, "generate_seed", "Seed of the generator")
      .at_least(0)
      .only_with("data.dataset", {"lattices"}, {"data.dir"});
}

void write_staging_rows(ConfigTableWriter& t) {
  using S = StagingSection;
  constexpr auto s = &RunConfig::staging;
  t.section("data.staging", s,
            "Copies of the data set's files on each node, made before the run reads them; see "
            "[samples.md](samples.md) and `tutti data stage`.");
  t.key(s, &S::dir, "dir",
        "Folder of the node that gets them, yours alone: one that is missing is made so; what an "
        "earlier job left there is not copied again. Empty: no staging")
      .path(PathKind::written)
      .no_matter()
      .may_differ();
  t.key(s, &S::threads, "threads", "Files that a rank copies at a time")
      .between(1, 256)
      .no_matter()
      .only_with("data.staging.dir");
}

void write_cache_rows(ConfigTableWriter& t) {
  using S = CacheSection;
  constexpr auto s = &RunConfig::cache;
  t.section("data.cache", s,
            "Samples that the ranks of a node keep together once they have been read, first in "
            "memory, then on disk; the rest is read from files in every epoch.");
  t.key(s, &S::memory, "memory", "Of each node, in shared memory (/dev/shm). 0: none")
      .unit("bytes")
      .at_least(0)
      .no_matter();
  t.key(s, &S::disk, "disk", "Of each node, in a file that goes away with the run. 0: none")
      .unit("bytes")
      .at_least(0)
      .no_matter();
  t.key(s, &S::dir, "dir", "Folder of the node for that file")
      .path(PathKind::written)
      .no_matter()
      .may_differ()
      .only_with("data.cache.disk");
  t.key(s, &S::exchange, "exchange",
        "Each training sample is kept by one of the nodes, which gives it to the others over TCP "
        "instead of their reading it from files; with data.shuffle = \"global\" alone. A node that "
        "cannot be reached is said, and files are read")
      .no_matter();
}

void write_model_rows(ConfigTableWriter& t) {
  using S = ModelSection;
  constexpr auto s = &RunConfig::model;
  t.section("model", s, "The network.");
  t.key(s, &S::name, "name", "Network, see `tutti model list`");
  t.key(s, &S::library, "library",
        "Shared object with models and metrics of your own, which model.name and run.metric may "
        "then name; see docs/own_workload.md. It is code, which every verb that reads this "
        "configuration runs, `plan` and --dry-run, too. A resume compares its content. Empty: none")
      .path(PathKind::read)
      .may_change()
      .may_differ();
  t.key(s, &S::layer, "layer",
        "A network of one's own, a table for each layer: [[model.layer]], see below. "
        "`model.name` is then \"layers\"")
      .checked_by([](const ConfigValue& value) {
        if (const auto* layers = std::get_if<std::vector<LayerTable>>(&value))
          check_layers(*layers);
      });
  t.key(s, &S::task, "task",
        "What is learned: a class of the whole sample, a class at each position, numbers, or the "
        "token that comes next. auto: the model's own; of [[model.layer]] what the field holds");
  t.key(s, &S::shortcut, "shortcut",
        "Residual shortcut where the shape changes: A pads with zeros, B is a 1x1 convolution; "
        "auto: the model's own (A for CIFAR's, B for ImageNet's)");
  t.key(s, &S::width, "width", "Channels of the first stage. 0: the model's own")
      .between(0, 1 << 16);
  t.key(s, &S::classes, "classes",
        "Outputs of the network, at least one for each class. 0: as many as the data set has "
        "classes")
      .between(0, 1 << 24);
  t.key(s, &S::depth, "depth",
        "Modules of a stack (ffn: 12, gpt2: 12, llama: 32, transformer-base: 6 and 6, vit: 12, "
        "sequence-encoder and token-encoder: 4). 0: the model's own")
      .between(0, 1024);
  t.key(s, &S::heads, "heads",
        "Heads of attention (gpt2: 12, llama: 32, transformer-base: 8, sequence-encoder and "
        "token-encoder: 4). 0: the model's own")
      .between(0, 1024);
  t.key(s, &S::key_heads, "key_heads",
        "Heads of keys and values, which groups of heads share (llama). 0: the model's own, or as "
        "many as model.heads where that is given")
      .between(0, 1024);
  t.key(s, &S::rotary_base, "rotary_base",
        "Base of the angles by which positions turn queries and keys (llama: 10000, Llama 3: "
        "500000). 0: the model's own")
      .at_least(0);
  t.key(s, &S::tied, "tied",
        "Whether the output layer has the weights of the tokens (llama); gpt2 always does so");
  t.key(s, &S::context, "context",
        "Positions that are learned (gpt2), at least those of a sample. 0: those of a sample")
      .between(0, 1 << 20);
  t.key(s, &S::kernel, "kernel",
        "Side of the convolutions' windows (cosmoflow: 3, or 2 as in v0.7), and of the patches "
        "(vit: 16); samples of a piece (sequence-encoder: 1). 0: the model's own")
      .between(0, 64);
  t.key(s, &S::dropout, "dropout",
        "Probability with which dropout leaves an element out (cosmoflow, vgg, fc-densenet, gpt2, "
        "transformer-base, vit, sequence-encoder, token-encoder). -1: the model's own")
      .own_or_probability();
  t.key(s, &S::attention_dropout, "attention_dropout",
        "Probability with which training leaves a key out of what a query attends to (gpt2, "
        "transformer-base, vit; sequence-encoder and token-encoder in their layers, not in the one "
        "query of a whole sequence), besides model.dropout. Published GPT-2 has 0.1 of both. "
        "-1: the model's own, which is none")
      .own_or_probability();
  t.key(s, &S::hidden, "hidden",
        "Sizes of the hidden layers (mlp, cosmoflow, vgg, dlrm, gpt2, llama, transformer-base, "
        "vit, sequence-encoder, token-encoder). Empty: the model's own")
      .between(1, 1 << 24);
  t.key(s, &S::pooling, "pooling",
        "What becomes of the rows that a bag of categories names (dlrm): their sum or their mean");
  t.key(s, &S::interaction, "interaction",
        "How the features of a sample meet (dlrm): in the dot products of all pairs, or one after "
        "the other");
  t.key(s, &S::embeddings, "embeddings",
        "Whether the tokens of a source have the same weights as those of the target, which the "
        "output layer has, too (transformer-base, transformer-big)");
  t.key(s, &S::weights, "weights",
        "First weights: a .safetensors file, a checkpoint, or the folder of a run or of its "
        "checkpoints, of which the best counts, else the newest. A resume does not read it: the "
        "file may be gone, but the key stays. Empty: "
        "new ones")
      .path(PathKind::read);
  t.key(
      s, &S::weights_except, "weights_except",
      "Shell patterns over names: parameters and statistics that keep their own first values, and "
      "tensors of model.weights that are passed over, as in [\"fc.*\"] for a last layer of other "
      "classes");
  t.key(
      s, &S::freeze, "freeze",
      "Shell patterns over names of parameters that are not trained: they have no gradient and no "
      "optimizer state, and nothing is computed for them alone");
  t.key(s, &S::lora_rank, "lora_rank",
        "LoRA beside the linear layers of model.lora_layers: products of two matrices of this "
        "rank, which alone are trained. 0: none")
      .between(0, 1024);
  t.key(s, &S::lora_alpha, "lora_alpha",
        "Their factor, divided by model.lora_rank. 0: as the rank, a factor of 1")
      .at_least(0)
      .only_with("model.lora_rank");
  t.key(s, &S::lora_layers, "lora_layers",
        "Shell patterns over the names of these layers, as in [\"*.q_proj\", \"*.v_proj\"]")
      .only_with("model.lora_rank");
}

void write_batch_rows(ConfigTableWriter& t) {
  using S = BatchSection;
  constexpr auto s = &RunConfig::batch;
  t.section("batch", s, "Samples per optimiser step. Give one; with neither, global is 128.");
  t.key(s, &S::local, "local",
        "Samples per batch of a replica. 0: batch.global / (replicas x batch.accumulate)")
      .at_least(0);
  t.key(s, &S::global, "global",
        "Samples of an update, over all replicas. 0: batch.local x replicas x batch.accumulate")
      .at_least(0);
  t.key(s, &S::accumulate, "accumulate",
        "Batches of each replica whose gradients one update adds up, for larger batches than fit "
        "in memory. Steps are updates")
      .between(1, 65536);
}

}  // namespace tutti
