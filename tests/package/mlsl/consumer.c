/* A program of an installed libmlsl in C. Exit status 0 if all is as documented. */
#include <mlsl.h>

int main(int argc, char** argv) {
  mlsl_environment environment;
  mlsl_distribution all;
  mlsl_comm_req request;
  size_t processes = 0;
  int version = 0;
  double sum = 1;
  if (mlsl_environment_get_version(&version) != CMLSL_SUCCESS ||
      CMLSL_MAJOR(version) != CMLSL_MAJOR_VERSION)
    return 1;
  if (mlsl_environment_get_env(&environment) != CMLSL_SUCCESS ||
      mlsl_environment_init(environment, &argc, &argv) != CMLSL_SUCCESS)
    return 1;
  if (mlsl_environment_get_process_count(environment, &processes) != CMLSL_SUCCESS) return 1;
  if (mlsl_environment_create_distribution(environment, processes, 1, &all) != CMLSL_SUCCESS)
    return 1;
  if (mlsl_distribution_all_reduce(all, &sum, &sum, 1, DT_DOUBLE, RT_SUM, GT_GLOBAL, &request) !=
      CMLSL_SUCCESS)
    return 1;
  if (mlsl_environment_wait(environment, request) != CMLSL_SUCCESS || sum != (double)processes)
    return 1;
  /* Ended once, it is ended. */
  if (mlsl_environment_finalize(environment) != CMLSL_SUCCESS) return 1;
  return mlsl_environment_init(environment, &argc, &argv) == CMLSL_FAILURE ? 0 : 1;
}
