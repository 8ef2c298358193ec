// A C++ program that uses an installed libmlsl. Exit status 0 if all is as documented.
#include <mlsl.hpp>

int main(int argc, char** argv) {
  static_assert(
      MLSL_VERSION_GE(MLSL_VERSION(MLSL_MAJOR_VERSION, MLSL_MINOR_VERSION), MLSL_VERSION(1, 0)),
      "the interface is 1.0");
  MLSL::Environment& environment = MLSL::Environment::GetEnv();
  if (MLSL_MAJOR(MLSL::Environment::GetVersion()) != 1) return 1;
  environment.Init(&argc, &argv);
  MLSL::Distribution* all = environment.CreateDistribution(environment.GetProcessCount(), 1);
  float sum = 1;
  environment.Wait(all->AllReduce(&sum, &sum, 1, MLSL::DT_FLOAT, MLSL::RT_SUM, MLSL::GT_GLOBAL));
  const bool right = sum == static_cast<float>(environment.GetProcessCount());
  environment.Finalize();
  return right ? 0 : 1;
}
