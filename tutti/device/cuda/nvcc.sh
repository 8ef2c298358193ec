#!/bin/sh
# nvcc.sh FILE COMMAND...: runs a command of nvcc's and keeps what it says, which are ptxas's lines on registers and spills, in FILE.
file=$1
shift
"$@" >"$file" 2>&1 || {
  cat "$file"
  exit 1
}
