"""What CMakeLists.txt has to know of this Python and its PyTorch, one fact a line."""
import os
import sys
import sysconfig

import torch
import torch.distributed

if not torch.distributed.is_available():
    sys.exit("this PyTorch was built without torch.distributed")
print(torch.__version__)
print(os.path.dirname(torch.__file__))
print(int(torch.compiled_with_cxx11_abi()))
print(sysconfig.get_paths()["include"])
print(sysconfig.get_paths()["platlib"])
print(sysconfig.get_config_var("EXT_SUFFIX"))
