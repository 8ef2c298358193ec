/* patience SECONDS: prints so many seconds of an idle machine on this one (tutti/base/patience.h),
 * for tests that are scripts. */
#include "tutti/base/patience.h"

#include <stdlib.h>

int main(int count, char** arguments) {
  if (count != 2) return 2;
  printf("%g\n", patience(atof(arguments[1])));
  return 0;
}
