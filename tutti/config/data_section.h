#pragma once
// The keys of [data], [data.staging] and [data.cache]: values, and the rows that describe them
// (config_table.h).

#include <cstdint>
#include <string>
#include <vector>

#include "tutti/config/config_words.h"

namespace tutti::config {

struct DataSection {
  std::string dataset = "lattices";
  std::string dir{};  ///< empty: generated data stay in memory; data sets in files need it
  std::vector<std::string> input{}, target{};  ///< fields; empty: the first and the second
  std::vector<std::string> transforms{};       ///< "FIELD: STEPS"; other fields: the data set's own
  int64_t classes = 0;                         ///< 0: the data set's own
  double validation = 0;  ///< below 1: a fraction of the training set; from 2 on a count; 0: none
  int64_t split_seed = 1;
  Shuffle shuffle = Shuffle::global;
  bool strict = false;
  std::vector<std::string> fields{};  ///< "arrays": "NAME: from ARRAY ..."
  std::vector<std::string> train_files{}, validation_files{},
      test_files{};                          ///< "arrays": below dir
  std::string statistics{};                  ///< "arrays"; empty: none
  std::vector<int64_t> table_rows{100'000};  ///< "clicks": for all categories, or for each
  std::string vocabulary{};            ///< "clicks"; empty: categories are hashed. Also "text"
  std::vector<int64_t> bag_length{1};  ///< "clicks": for all categories, or for each
  bool bag_weights = false;            ///< "clicks"
  int64_t window = 256;                ///< "text" and "tokens": tokens per sample
  TextWindows windows = TextWindows::ordered;     ///< in training
  TextTokens tokenizer = TextTokens::characters;  ///< "text"
  bool segments = false;   ///< "tokens": whether samples have document numbers
  int64_t quarantine = 0;  ///< bad samples that a rank may skip
  int64_t readers = 1;
  int64_t prefetch = 3;
  bool direct_reads = false;
  bool generate_when_read = false;  ///< makes images when read, not all at the start; not a key
  int64_t generate_train = 10000;
  int64_t generate_test = 2000;
  int64_t generate_seed = 1;

  template <class Keys>
  static void keys(Keys& t) {
    using S = DataSection;

    t.key(&S::dataset, "dataset", "Data set, see `tutti data list`").data_sets();
    t.key(&S::dir, "dir",
          "Folder with the data set's files. Empty: lattices are generated in memory")
        .path(PathKind::read)
        .may_change()
        .may_differ();
    t.key(&S::input, "input",
          "Field that the network reads, or a list of them. Empty: the data set's first")
        .or_one();
    t.key(&S::target, "target",
          "Field that it is to predict, or a list of them; the input's own name: the network is to "
          "give back what it reads. Empty: the data set's second")
        .or_one();
    t.key(&S::transforms, "transforms",
          "What happens to fields on their way, a line each, as in \"image: crop pad 4, flip x, "
          "divide "
          "255, normalise\"; see docs/samples.md. A field without a line: as the data set has it")
        .path(PathKind::read);
    t.key(&S::classes, "classes",
          "How many classes the labels name, from 0 up; a label beyond them is an error before the "
          "first step. MNIST's format may hold up to 256. 0: the data set's own number")
        .between(0, 65536);
    t.key(&S::validation, "validation",
          "Training samples that are not trained on and judge the run instead of the test set, "
          "which is then used once, at the end: below 1 a fraction, from 2 on a number. 0: none. "
          "Of a text it is the end, and tokens are counted. Not for data sets with a validation "
          "set of their own")
        .at_least(0);
    t.key(&S::split_seed, "split_seed",
          "Seed that says which samples data.validation takes, or where the seeds of neurons lie")
        .at_least(0)
        .only_with("data.validation")
        .only_with("data.dataset", {"neurons"});
    t.key(
        &S::shuffle, "shuffle",
        "global: the order of the samples depends on the seed alone; shard: each node trains on "
        "every N-th sample, N nodes, in an order of its own, so that results depend on the number "
        "of nodes");
    t.key(&S::strict, "strict",
          "Refuse a training set that is no multiple of the global batch, or with data.shuffle = "
          "\"shard\" of nodes x a node's batch, as MLPerf's CosmoFlow does. false: what is left "
          "over waits for another epoch")
        .may_change();
    t.key(&S::fields, "fields",
          "What a sample has, a line a field, as in \"image: from images\" and \"mask: from "
          "climate/labels_0 classes 3\"; see docs/samples.md and `tutti data inspect PATH`")
        .only_with("data.dataset", {"arrays", "neurons"});
    t.key(&S::train_files, "train_files",
          "Training files: NumPy, HDF5, NetCDF, TIFF, TFRecord, trajectories (DCD, XTC, TRR), or "
          ".toml descriptions of raw arrays; click logs; texts and token files; also folders of "
          "them, and patterns such as \"train/*.h5\". Relative to data.dir")
        .names_data();
    t.key(&S::validation_files, "validation_files", "Files on which training is judged, likewise")
        .names_data();
    t.key(&S::test_files, "test_files",
          "Files that wait for the end of training, likewise; without validation files they judge "
          "it")
        .names_data();
    t.key(&S::statistics, "statistics",
          "File of means, deviations and extremes of the fields, for 'normalise' and "
          "'min-max' without numbers; `tutti data stats` writes one. Empty: none")
        .path(PathKind::read)
        .may_change()
        .only_with("data.dataset", {"arrays"});
    t.key(&S::table_rows, "table_rows",
          "Rows of the table that a category of clicks is looked up in: one number for all, or one "
          "for each. Row 0 is for what is missing; others may be shared by categories, since they "
          "are hashed")
        .between(2, int64_t{1} << 31)
        .only_with("data.dataset", {"clicks"}, {"data.vocabulary"});
    t.key(&S::vocabulary, "vocabulary",
          "File that gives each category of clicks a row of its own, which `tutti data vocabulary` "
          "writes; tables are as long as it says. Row 0 is for what is missing, rare or unknown. "
          "Empty: categories are hashed. Of text: folder of a tokenizer whose characters are the "
          "tokens; empty: those of the training text")
        .path(PathKind::read)
        .only_with("data.dataset", {"clicks", "text"});
    t.key(&S::bag_length, "bag_length",
          "The most categories that a column of clicks has in a line, with | between them: one "
          "number for all columns, or one for each. The rows that they name are put together as "
          "model.pooling says. 1: the text is one category, whatever is in it")
        .between(1, 4096)
        .only_with("data.dataset", {"clicks"});
    t.key(&S::bag_weights, "bag_weights",
          "Whether each category of a bag has a weight of its row behind a colon, as in a:0.5|b:2")
        .only_with("data.dataset", {"clicks"});
    t.key(&S::window, "window",
          "Tokens of a sample of a text; of token-pairs as many as the longest source has, and "
          "one more than the longest target, behind which the end token stands. Longer ones are "
          "left out")
        .between(1, 1 << 24)
        .only_with("data.dataset", {"text", "tokens", "token-pairs"});
    t.key(&S::windows, "windows",
          "Which windows of a text an epoch has: ordered, windows side by side that cover it once, "
          "cut at another place in each epoch, in an order of the seed; random, as many, each "
          "drawn for itself. Evaluations read windows side by side")
        .only_with("data.dataset", {"text", "tokens"});
    t.key(&S::tokenizer, "tokenizer",
          "What the tokens of a text are; texts as byte pairs are \"tokens\", which `tutti data "
          "tokenize` writes")
        .only_with("data.dataset", {"text"});
    t.key(&S::segments, "segments",
          "Whether samples have a field `segments`, the number of each token's document in the "
          "window, so that attention does not look into other documents")
        .only_with("data.dataset", {"tokens"});
    t.key(
         &S::quarantine, "quarantine",
         "Bad samples that a rank goes on without: missing, damaged, of another shape, with values "
         "that are no numbers. In the place of each stands the next sound one. The log names each, "
         "the record the first 20 of each of the first 64 ranks. Not for imagenet and neurons. 0: "
         "the first one ends the run")
        .at_least(0)
        .may_change();
    t.key(
         &S::readers, "readers",
         "Threads that read and augment: as many reads are under way at a time. Where files answer "
         "slowly, more than there are cores")
        .between(1, 256)
        .may_change();
    t.key(&S::prefetch, "prefetch", "Batches kept ready: how far readers are ahead of the step")
        .between(1, 64)
        .may_change();
    t.key(&S::direct_reads, "direct_reads",
          "Read data files past the system's cache, where the file system can (O_DIRECT), in reads "
          "of 64 KiB and more, so that the node's memory is left to others. On a local disk it did "
          "not pay: measure before use")
        .no_matter();
    t.key(&S::generate_train, "generate_train", "Training images to generate")
        .between(1, 4294967295)
        .only_with("data.dataset", {"lattices"}, {"data.dir"});
    t.key(&S::generate_test, "generate_test", "Test images to generate")
        .between(1, 4294967295)
        .only_with("data.dataset", {"lattices"}, {"data.dir"});
    t.key(&S::generate_seed, "generate_seed", "Seed of the generator")
        .at_least(0)
        .only_with("data.dataset", {"lattices"}, {"data.dir"});
  }
};

/// Returns whether images are made when they are read: a choice that follows from other keys.
inline bool made_when_read(const DataSection& data) {
  return data.generate_when_read && data.dataset == "lattices" && data.dir.empty();
}

/// Returns whether samples are windows of one text.
inline bool is_text(const DataSection& data) {
  return data.dataset == "text" || data.dataset == "tokens";
}

/// [data.staging]
struct StagingSection {
  std::string dir{};  ///< a folder on each node; empty: files are read where they are
  int64_t threads = 4;

  template <class Keys>
  static void keys(Keys& t) {
    using S = StagingSection;

    t.key(&S::dir, "dir",
          "Folder of the node that gets them, yours alone: one that is missing is made so; what an "
          "earlier job left there is not copied again. Empty: no staging")
        .path(PathKind::written)
        .no_matter()
        .may_differ();
    t.key(&S::threads, "threads", "Files that a rank copies at a time")
        .between(1, 256)
        .no_matter()
        .only_with("data.staging.dir");
  }
};

/// [data.cache], per node
struct CacheSection {
  int64_t memory = 0;  ///< bytes
  int64_t disk = 0;
  std::string dir{};
  bool exchange = true;  ///< between nodes

  template <class Keys>
  static void keys(Keys& t) {
    using S = CacheSection;

    t.key(&S::memory, "memory", "Of each node, in shared memory (/dev/shm). 0: none")
        .unit("bytes")
        .at_least(0)
        .no_matter();
    t.key(&S::disk, "disk", "Of each node, in a file that goes away with the run. 0: none")
        .unit("bytes")
        .at_least(0)
        .no_matter();
    t.key(&S::dir, "dir", "Folder of the node for that file")
        .path(PathKind::written)
        .no_matter()
        .may_differ()
        .only_with("data.cache.disk");
    t.key(&S::exchange, "exchange",
          "Each training sample is kept by one of the nodes, which gives it to the others over TCP "
          "instead of their reading it from files; with data.shuffle = \"global\" alone. A node "
          "that cannot be reached is said, and files are read")
        .no_matter();
  }
};

}  // namespace tutti::config
