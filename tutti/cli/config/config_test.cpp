#include "tutti/cli/config/config.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "tutti/base/error.h"
#include "tutti/base/expect_text.h"
#include "tutti/base/scratch_directory.h"
#include "tutti/cli/config/config_flags.h"
#include "tutti/cli/config/config_text.h"
#include "tutti/cli/flags/arguments.h"

namespace tutti::cli {
namespace {

/// Files in a folder of their own that is removed after the test.
class ConfigFiles : public testing::Test {
 protected:
  std::string file(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name) << text;
    return (folder_ / name).string();
  }
  /// Returns the message of the error, with the folder's path taken out.
  std::string failure(const ConfigSources& sources) const {
    std::string text = message_of<ConfigError>("", [&] { read_config(sources); });
    const std::string prefix = folder_.string() + "/";
    for (size_t at = text.find(prefix); at != std::string::npos; at = text.find(prefix))
      text.erase(at, prefix.size());
    return text;
  }
  std::string failure_of(const std::string& text) const {
    return failure({.file = file("run.toml", text)});
  }

  const ScratchDirectory scratch_;
  const std::filesystem::path folder_ = scratch_.path();
};

TEST_F(ConfigFiles, MistakesNameTheirPlaceAndTheNearestKey) {
  EXPECT_EQ(failure_of("[run]\nseed = 3\n\n[optimiser]\nlr = 0.1\n"),
            "run.toml:5:1: unknown key 'optimiser.lr', did you mean 'optimizer.lr'?");
  EXPECT_EQ(failure_of("[optimizer]\n  momentun = 0.1\n"),
            "run.toml:2:3: unknown key 'optimizer.momentun', did you mean 'optimizer.momentum'?");
  EXPECT_EQ(failure_of("lr = 0.1\n"),
            "run.toml:1:1: unknown key 'lr', did you mean 'optimizer.lr'?");
  EXPECT_EQ(failure_of("zzzzzz = 1\n"), "run.toml:1:1: unknown key 'zzzzzz'");
  EXPECT_EQ(failure_of("[optimizer]\nlr = \"fast\"\n"),
            "run.toml:2:6: optimizer.lr must be a number, is \"fast\"");
  EXPECT_EQ(failure_of("[run]\nepochs = 1.5\n"),
            "run.toml:2:10: run.epochs must be an integer, is 1.5");
  EXPECT_EQ(failure_of("[run]\ntarget = 91\n"),
            "run.toml: run.target must be between 0 and 1, is 91: accuracy is a fraction");
  EXPECT_EQ(failure_of("[run]\nprecision = \"fp64\"\n"),
            "run.toml:2:13: run.precision must be one of fp32, bf16, tf32, is \"fp64\"");
  EXPECT_EQ(failure_of("run = 3\n"),
            "run.toml:1:1: 'run' is a section: write [run] and its keys below");
  EXPECT_TRUE(has_text(failure_of("[run\nseed = 3\n"), "run.toml:1:5: "));
  EXPECT_EQ(failure_of("[data]\ntransforms = [\"image: flip\"]\n"),
            "run.toml: data.transforms: in \"image: flip\", the step 'flip' names no axis: x is "
            "the last one, y the one before, then z");
  EXPECT_TRUE(
      has_text(failure({.file = "absent.toml"}), "cannot read the configuration file absent.toml"));
}

TEST_F(ConfigFiles, AllMistakesAreNamedAtOnce) {
  EXPECT_EQ(
      failure({.file = file("run.toml", "[run]\nepoch = 3\nseed = -1\n[optimizer]\nlr = \"x\"\n"),
               .environment = {{"TUTTI_TARGET", "-7"}},
               .flags = {{"optimizer.learning_rate", "1", "--set optimizer.learning_rate"}}}),
      "the configuration has 5 mistakes:\n"
      "  run.toml:2:1: unknown key 'run.epoch', did you mean 'run.epochs'?\n"
      "  run.toml:3:8: run.seed must be at least 0, is -1\n"
      "  run.toml:5:6: optimizer.lr must be a number, is \"x\"\n"
      "  TUTTI_TARGET: run.target must be at least 0, is -7\n"
      "  --set optimizer.learning_rate: unknown key 'optimizer.learning_rate', did you mean "
      "'optimizer.lr'?");
}

TEST_F(ConfigFiles, NumbersOutOfRange) {
  EXPECT_EQ(failure_of("[optimizer]\nlr = inf\n"),
            "run.toml:2:6: optimizer.lr must be a finite number, is inf");
  EXPECT_EQ(failure_of("[comm]\nbucket_bytes = \"1e30 GiB\"\n"),
            "run.toml:2:16: comm.bucket_bytes is out of range: 1e30 GiB");
  EXPECT_EQ(failure_of("[comm]\nbucket_bytes = \"inf MiB\"\n"),
            "run.toml:2:16: comm.bucket_bytes is out of range: inf MiB");
  EXPECT_EQ(failure({.flags = {{"run.epochs", "99999999999999999999", "--epochs"}}}),
            "--epochs: run.epochs is out of range: 99999999999999999999 has more than 64 bits");
  EXPECT_EQ(failure_of("[model]\nclasses = 4611686018427387904\n"),
            "run.toml:2:11: model.classes must be between 0 and 16777216, is 4611686018427387904");
}

TEST_F(ConfigFiles, OtherFormatsAreRecognised) {
  const auto says = [&](const std::string& text, const std::string& part) {
    const std::string message = failure_of(text);
    EXPECT_TRUE(has_text(message, part));
    EXPECT_TRUE(message.starts_with("run.toml:")) << message;
  };
  says("run:\n  epochs: 3\n", "this looks like YAML; configurations are TOML");
  says("{\n  \"run\": {\"epochs\": 3}\n}\n", "this looks like JSON; configurations are TOML");
  says("[model]\nname = resnet20 # small\n", "text needs quotes: name = \"resnet20\"");
  says("[data]\nflip = True\n", "truth values are written small: flip = true");
  EXPECT_EQ(failure({.file = folder_.string()}),
            "the configuration file " + folder_.string() + " is a folder: name a file in it");
}

TEST_F(ConfigFiles, PrecedenceAndOrigins) {
  const std::string path =
      file("run.toml", "[optimizer]\nlr = 0.2\nmomentum = 0.5\nweight_decay = 1e-3\n");
  const ResolvedConfig resolved =
      read_config({.file = path,
                   .environment = {{"TUTTI_OPTIMIZER_MOMENTUM", "0.6"},
                                   {"TUTTI_WEIGHT_DECAY", "1"},
                                   {"TUTTI_OPTIMIZER_WEIGHT_DECAY", "1e-4"}},
                   .flags = {{"optimizer.weight_decay", "1e-5", "--set optimizer.weight_decay"}}});
  EXPECT_EQ(resolved.config.optimizer.lr, 0.2);
  EXPECT_EQ(resolved.config.optimizer.momentum, 0.6);
  EXPECT_EQ(resolved.config.optimizer.weight_decay, 1e-5);
  EXPECT_EQ(resolved.config.optimizer.beta1, 0.9);
  EXPECT_EQ(resolved.origins.at("optimizer.lr"), path + ":2:6");
  EXPECT_EQ(resolved.origins.at("optimizer.momentum"), "TUTTI_OPTIMIZER_MOMENTUM");
  EXPECT_EQ(resolved.origins.at("optimizer.weight_decay"), "--set optimizer.weight_decay");
  EXPECT_EQ(resolved.origins.count("optimizer.beta1"), 0u);
  ASSERT_EQ(resolved.warnings.size(), 1u);
  EXPECT_EQ(resolved.warnings[0], "the environment variable TUTTI_WEIGHT_DECAY means nothing");
}

TEST_F(ConfigFiles, IncludesAreWeakerThanTheIncluder) {
  file("base.toml", "[run]\nseed = 7\nepochs = 5\n");
  const std::string path = file("run.toml", "include = \"base.toml\"\n[run]\nepochs = 6\n");
  const ResolvedConfig resolved = read_config({.file = path});
  EXPECT_EQ(resolved.config.run.seed, 7);
  EXPECT_EQ(resolved.config.run.epochs, 6);
  EXPECT_TRUE(has_text(resolved.origins.at("run.seed"), "base.toml:2:8"));
  EXPECT_EQ(failure_of("include = \"run.toml\"\n"), "run.toml:1:11: run.toml includes itself");
  EXPECT_TRUE(has_text(failure_of("include = [\"gone.toml\"]\n"),
                       "run.toml:1:11: cannot read the configuration file gone.toml"));
}

TEST_F(ConfigFiles, UnitSuffixes) {
  const std::string path =
      file("run.toml", "[comm]\nbucket_bytes = \"4 MiB\"\ntimeout_s = \"1.5min\"\n");
  const config::RunConfig config = read_config({.file = path}).config;
  EXPECT_EQ(config.comm.bucket_bytes, 4 << 20);
  EXPECT_EQ(config.comm.timeout_s, 90);
  EXPECT_EQ(
      failure_of("[comm]\ntimeout_s = \"5 miles\"\n"),
      "run.toml:2:13: comm.timeout_s has the unknown unit 'miles', known are h, min, ms, s, us");
}

TEST_F(ConfigFiles, AWordOrANumber) {
  const auto threads = [&](const std::string& text) {
    return read_config({.file = file("run.toml", text)}).config.comm.progress_threads;
  };
  EXPECT_EQ(threads(""), "auto");
  EXPECT_EQ(threads("[comm]\nprogress_threads = 2\n"), "2");
  EXPECT_EQ(threads("[comm]\nprogress_threads = \"2\"\n"), "2");
  EXPECT_EQ(
      failure_of("[comm]\nprogress_threads = \"many\"\n"),
      "run.toml:2:20: comm.progress_threads must be \"auto\" or between 0 and 64, is \"many\"");
  EXPECT_EQ(failure_of("[comm]\nprogress_threads = 65\n"),
            "run.toml:2:20: comm.progress_threads must be between 0 and 64, is 65");
  EXPECT_EQ(failure_of("[comm]\nprogress_threads = \"-1\"\n"),
            "run.toml:2:20: comm.progress_threads must be \"auto\" or between 0 and 64, is \"-1\"");
}

TEST_F(ConfigFiles, AlternativesWithdrawEachOther) {
  const std::string path = file("run.toml", "[batch]\nglobal = 256\n");
  const ResolvedConfig resolved =
      read_config({.file = path, .flags = {{"batch.local", "64", "--batch-size"}}});
  EXPECT_EQ(resolved.config.batch.local, 64);
  EXPECT_EQ(resolved.config.batch.global, 0);
  EXPECT_EQ(resolved.origins.at("batch.global"), "withdrawn by batch.local of --batch-size");
}

TEST(ConfigSettings, LenientSyntax) {
  const auto with = [](std::string key, std::string text) {
    return read_config({.flags = {{key, text, "--set"}}}).config;
  };
  EXPECT_EQ(with("run.output_dir", "runs/a b").run.output_dir, "runs/a b");
  EXPECT_EQ(with("run.output_dir", "\"q\"").run.output_dir, "q");
  EXPECT_EQ(with("optimizer.exclude", "bias,norm").optimizer.exclude,
            (std::vector<std::string>{"bias", "norm"}));
  EXPECT_EQ(with("optimizer.exclude", "[bias, norm]").optimizer.exclude,
            (std::vector<std::string>{"bias", "norm"}));
  EXPECT_EQ(with("optimizer.exclude", "[\"norm\"]").optimizer.exclude,
            std::vector<std::string>{"norm"});
  EXPECT_EQ(with("optimizer.exclude", "").optimizer.exclude, std::vector<std::string>{});
  EXPECT_EQ(with("schedule.milestones", "3,5").schedule.milestones, (std::vector<int64_t>{3, 5}));
  EXPECT_EQ(with("model.hidden", "[3, 5]").model.hidden, (std::vector<int64_t>{3, 5}));
  EXPECT_EQ(with("comm.bucket_bytes", "1MiB").comm.bucket_bytes, 1 << 20);
  EXPECT_EQ(with("run.precision", "bf16").run.precision, config::Precision::bf16);
  EXPECT_TRUE(with("optimizer.nesterov", "true").optimizer.nesterov);
}

TEST(ConfigSettings, MistakesNameTheFlagOrVariable) {
  const auto failure = [](const ConfigSources& sources) {
    return message_of<ConfigError>("", [&] { read_config(sources); });
  };
  EXPECT_EQ(failure({.flags = {{"optimizer.rl", "1", "--set optimizer.rl"}}}),
            "--set optimizer.rl: unknown key 'optimizer.rl', did you mean 'optimizer.lr'?");
  EXPECT_EQ(failure({.flags = {{"optimizer.lr", "fast", "--lr"}}}),
            "--lr: optimizer.lr must be a number, is \"fast\"");
  EXPECT_TRUE(failure({.file = TUTTI_SOURCE_DIR "/examples/lattices_resnet.toml",
                       .flags = {{"run.epochs", "1", "--epochs"},
                                 {"model.name", "resnt", "--set model.name"}}})
                  .starts_with("--set model.name: there is no model 'resnt'"));
  EXPECT_EQ(failure({.environment = {{"TUTTI_LR", "-1"}}}),
            "TUTTI_LR: optimizer.lr must be at least 0, is -1");
  EXPECT_EQ(
      read_config({.environment = {{"TUTTI_OPTIMISER_LR", "1"}, {"TUTTI_RANKS", "2"}}}).warnings,
      std::vector<std::string>{"the environment variable TUTTI_OPTIMISER_LR means nothing, "
                               "did you mean 'TUTTI_OPTIMIZER_LR'?"});
}

TEST_F(ConfigFiles, APipeIsReadOnceAndItsMistakeIsItsOwn) {
  const std::string pipe = folder_ / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  std::thread writer([&] { std::ofstream(pipe) << "[model]\nname = \"nosuch\"\n"; });
  EXPECT_TRUE(failure({.file = pipe, .flags = {{"optimizer.lr", "0.2", "--lr"}}})
                  .starts_with("pipe: there is no model 'nosuch'"));
  writer.join();
}

void expect_equal(const config::RunConfig& one, const config::RunConfig& other) {
  for (const config::ConfigKey& row : config::config_keys())
    EXPECT_EQ(row.get(one), row.get(other)) << row.name;
}

TEST_F(ConfigFiles, ResolvedTextReadsBackEqual) {
  const ResolvedConfig first = read_config(
      {.file = TUTTI_SOURCE_DIR "/examples/cifar10_resnet44.toml",
       .flags = {{"run.output_dir", "a \"b\"", "--set"}, {"optimizer.exclude", "norm", "--set"}}});
  const std::string path = file("resolved.toml", resolved_toml(first));
  const ResolvedConfig second = read_config({.file = path});
  expect_equal(first.config, second.config);
  EXPECT_TRUE(
      has_text(resolved_toml(first), "exclude = [\"norm\"]                            # --set\n"));
}

TEST_F(ConfigFiles, LayersReadBackEqual) {
  const ResolvedConfig first =
      read_config({.file = TUTTI_SOURCE_DIR "/examples/layers_lattices.toml"});
  EXPECT_EQ(first.config.model.name, "layers");
  ASSERT_EQ(first.config.model.layer.size(), 12u);
  const std::string path = file("resolved.toml", resolved_toml(first));
  const ResolvedConfig second = read_config({.file = path});
  expect_equal(first.config, second.config);
  EXPECT_TRUE(has_text(resolved_json(first), "\"kaiming_normal_fan_out\""));
  EXPECT_EQ(read_config(
                {.flags = {{"model.layer", "[{type = \"flatten\"}, {type = \"dense\"}]", "--set"}}})
                .config.model.layer[1]
                .entries[0]
                .second,
            models::LayerValue(std::string("dense")));
}

TEST_F(ConfigFiles, MistakesInLayersNameTheirPlaces) {
  const std::string all = failure_of(
      "[[model.layer]]\ntype = \"convv\"\n[[model.layer]]\ntype = \"conv\"\nchanels = 3\n"
      "activation = \"rely\"\nkernel = 0\n[[model.layer]]\nname = \"x\"\n");
  EXPECT_TRUE(has_text(
      all, "run.toml:2:8: there is no layer of type \"convv\", did you mean 'conv'?: there are "));
  EXPECT_TRUE(has_text(all,
                       "run.toml:5:1: a layer of type \"conv\" has no key 'chanels', did you mean "
                       "'channels'?"));
  EXPECT_TRUE(has_text(all, "run.toml:6:14: activation must be one of"));
  EXPECT_TRUE(has_text(all, "did you mean 'relu'?"));
  EXPECT_TRUE(has_text(all, "run.toml:7:10: kernel must be between 1"));
  EXPECT_TRUE(has_text(all, "a layer needs type"));
  EXPECT_TRUE(has_text(failure_of("[model.layer]\ntype = \"dense\"\n"),
                       "write [[model.layer]] above each"));
  EXPECT_TRUE(has_text(failure_of("[model]\nname = \"lenet\"\n[[model.layer]]\ntype = \"dense\"\n"),
                       "give one of the two"));
}

TEST_F(ConfigFiles, FieldsAreOneOrAList) {
  const std::string path =
      file("a.toml", "[data]\ninput = \"image\"\ntarget = [\"label\", \"image\"]\n");
  const config::RunConfig config = read_config({.file = path}).config;
  EXPECT_EQ(config.data.input, std::vector<std::string>{"image"});
  EXPECT_EQ(config.data.target, (std::vector<std::string>{"label", "image"}));
  EXPECT_EQ(config::to_toml(config::find_config_key("data.input")->get(config)), "\"image\"");
}

TEST_F(ConfigFiles, TheLogLevelOfAFlagIsNotThatOfTheFiles) {
  const std::string path = file("a.toml", "[run]\nlog_level = \"debug\"\n");
  const ResolvedConfig resolved = read_config({.file = path,
                                               .environment = {{"TUTTI_LOG_LEVEL", "error"}},
                                               .flags = {{"run.log_level", "warn", "-q"}}});
  EXPECT_EQ(resolved.config.run.log_level, log::Level::warn);
  EXPECT_EQ(resolved.log_level_of_files, log::Level::debug);
}

TEST_F(ConfigFiles, ResolvedTextReadsBackWhateverBytesAnOriginHas) {
  ResolvedConfig resolved;
  resolved.origins["run.seed"] = "a\xff\n[b]/config.toml:3:6";
  const std::string path = file("resolved.toml", resolved_toml(resolved));
  EXPECT_EQ(read_config({.file = path}).config.run.seed, 1);
}

TEST(ConfigText, DocumentationHasEveryKey) {
  const std::string text = configuration_markdown();
  for (const config::ConfigKey& row : config::config_keys())
    EXPECT_TRUE(has_text(text, "| `" + row.name + "` |")) << row.name;
}

TEST(ConfigFlagsTwice, AFlagAndSetOfTheSameKeyContradictEachOther) {
  const auto settings = [](const std::vector<std::string>& words) {
    ConfigFlags flags;
    const std::vector<Verb> verbs = {
        {.name = "train", .summary = "Train", .flags = flags.flags({"lr"})}};
    parse_arguments(find_verb(verbs, words));
    return flags.settings();
  };
  for (const auto& words :
       {std::vector<std::string>{"train", "--lr", "0.2", "--set", "optimizer.lr=0.1"},
        std::vector<std::string>{"train", "--optimizer.lr=0.1", "--lr", "0.2"}}) {
    const std::string written = words[1] == "--lr" ? "--set optimizer.lr" : "--optimizer.lr";
    EXPECT_EQ(message_of<ConfigError>([&] { settings(words); }),
              "--lr and " + written + " set the same key: give one");
  }
  const auto last = settings({"train", "--set", "optimizer.lr=1", "--set", "optimizer.lr=2"});
  EXPECT_EQ(last.back().text, "2") << "scripts add to their own";
  const auto mixed = settings({"train", "--optimizer.lr=1", "--set", "optimizer.lr=2"});
  EXPECT_EQ(mixed.front().where, "--optimizer.lr") << "as the user wrote it";
  EXPECT_EQ(mixed.front().key, "optimizer.lr");
  EXPECT_EQ(mixed.back().where, "--set optimizer.lr");
}

/// Returns what the words set, for a verb with these flags.
template <class Flags>
std::vector<Setting> given_by(const Flags& given, std::vector<Flag> flags,
                              const std::vector<std::string>& words) {
  const std::vector<Verb> verbs = {
      {.name = "train", .summary = "Train", .flags = std::move(flags)}};
  parse_arguments(find_verb(verbs, words));
  return given.settings();
}

TEST(ConfigFlagsDevice, GpuStandsForDeviceCuda) {
  const auto of_key = [](const std::vector<std::string>& words) {
    ConfigFlags flags;
    return given_by(flags, flags.flags({"device"}), words);
  };
  const auto alone = [](const std::vector<std::string>& words) {
    DeviceFlags flags;
    return given_by(flags, flags.flags(), words);
  };
  for (const auto& settings :
       {of_key({"train", "--gpu"}), alone({"train", "--gpu"}),
        of_key({"train", "--device", "cuda"}), alone({"train", "--device", "cuda"})}) {
    ASSERT_EQ(settings.size(), 1u);
    EXPECT_EQ(settings[0].key, "run.device");
    EXPECT_EQ(settings[0].text, "cuda");
    EXPECT_EQ(read_config({.flags = settings}).config.run.device, config::DeviceKind::cuda);
  }
  EXPECT_TRUE(of_key({"train"}).empty());
  EXPECT_TRUE(alone({"train"}).empty());
  for (const auto& both : {std::vector<std::string>{"train", "--gpu", "--device", "cpu"},
                           std::vector<std::string>{"train", "--device", "cpu", "--gpu"}}) {
    const char* const contradict = "--gpu and --device contradict each other";
    EXPECT_TRUE(throws<ConfigError>({contradict}, [&] { of_key(both); }));
    EXPECT_TRUE(throws<ConfigError>({contradict}, [&] { alone(both); }));
  }
  EXPECT_EQ(message_of<ConfigError>([&] {
              of_key({"train", "--gpu", "--set", "run.device=cpu"});
            }),
            "--gpu and --set run.device set the same key: give one");
}

TEST_F(ConfigFiles, VariablesOfOneKeyAreNamedAndNothingIsAComment) {
  const ConfigSources two{.environment = {{"TUTTI_SEED", "4"}, {"TUTTI_RUN_SEED", "3"}}};
  EXPECT_EQ(read_config(two).config.run.seed, 3);
  EXPECT_EQ(read_config(two).warnings.at(0),
            "TUTTI_SEED and TUTTI_RUN_SEED set the same key: run.seed = 3 holds");
  for (const char* text : {"1#2", "1 # old", "1#"})
    EXPECT_NE(failure({.flags = {{"run.seed", text, "--seed"}}}), "") << text;
}

}  // namespace
}  // namespace tutti::cli
