#!/usr/bin/env bash
# registers.sh check FOLDER: compares what ptxas said when FOLDER, the build's folders/device/cuda, was made with registers.txt. A kernel that
#   needs more registers than the table says or spills any is an error; so is one that the table or the build alone has.
# registers.sh compile FOLDER: does the same for all architectures of the table, which it compiles for; warnings are errors.
# registers.sh write FOLDER: compiles likewise and writes the table anew.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
verb=$1 folder=$2
table=$here/registers.txt
architectures="sm_80 sm_90 sm_100"
read -r -a command <"$folder/nvcc_command.txt"
version=$("${command[0]}" --version | sed -n 's/.*release \([0-9.]*\),.*/\1/p')

# Compiles the kernel file $2 for the architecture $1; $3 is to be the report.
compile_one() {
  local words=() skip="" word
  for word in "${command[@]}"; do
    if [ "$skip" ]; then
      skip=""
    elif [ "$word" = -gencode ]; then
      skip=yes
    else
      words+=("$word")
    fi
  done
  "${words[@]}" -Werror all-warnings "-arch=$1" -Xptxas -v -cubin -o "$3.cubin" "$2" >"$3" 2>&1 || {
    cat "$3"
    return 1
  }
}

# Says "KERNEL ARCHITECTURE REGISTERS" for each kernel in the reports, with "spills" behind it if it has any.
facts() {
  local report
  for report in "$@"; do
    c++filt <"$report" | awk -F "'" -v family="$(basename "$report" .ptxas)" '
      /Compiling entry function/ {
        kernel = $2
        gsub(/tutti::backend::|_GLOBAL__N__[A-Za-z0-9_]*::|.anonymous namespace.::|^void /, "", kernel)
        sub(/\([^()]*\)$/, "", kernel)
        gsub(/[() ]/, "", kernel)
        line = family ":" kernel " " $4
        spills = ""
      }
      /bytes spill/ && !/ 0 bytes spill stores, 0 bytes spill loads/ { spills = " spills" }
      match($0, /Used [0-9]+ registers/) { print line, substr($0, RSTART + 5, RLENGTH - 15) spills }'
  done
}

# Says the facts of all kernels for all architectures that nvcc has.
compiled_facts() {
  local architecture kernel offered
  offered=$("${command[0]}" --list-gpu-code)
  architectures=$(for architecture in $architectures; do grep -x "$architecture" <<<"$offered" || true; done)
  for architecture in $architectures; do
    mkdir "$work/$architecture"
    for kernel in "$here"/../../tutti/backend/gpu/kernels/*.cu; do
      printf '%s\0' "$architecture" "$kernel" "$work/$architecture/$(basename "$kernel" .cu).ptxas"
    done
  done | xargs -0 -n 3 -P "$(nproc)" "$0" one "$folder" >&2
  for architecture in $architectures; do
    facts "$work/$architecture"/*.ptxas
  done
}

# Compares the facts that it reads with the table.
compare() {
  awk -v table="$table" '
    BEGIN {
      while ((getline line < table) > 0) {
        count = split(line, word, " ")
        if (line ~ /^#/ || count == 0) continue
        if (word[1] == "kernel") for (i = 2; i <= count; ++i) name[i] = word[i]
        else for (i = 2; i <= count; ++i) most[word[1], name[i]] = word[i]
      }
    }
    {
      seen[$1, $2] = built[$2] = 1
      if ($4) { print $1 " for " $2 " keeps registers in memory"; bad = 1 }
      for (key in most) if (!($2 in known)) { split(key, part, SUBSEP); if (part[2] == $2) known[$2] = 1 }
      if (!($2 in known)) next
      if (!(($1, $2) in most)) { print $1 " for " $2 " is not in the table"; bad = 1 }
      else if ($3 + 0 > most[$1, $2] + 0) { print $1 " for " $2 " needs " $3 " registers, not " most[$1, $2]; bad = 1 }
    }
    END {
      for (key in most) {
        split(key, part, SUBSEP)
        if (part[2] in built && !(key in seen)) { print part[1] " for " part[2] " is in the table alone"; bad = 1 }
      }
      print NR " kernels"
      exit bad || NR == 0
    }' || {
    echo "If that is meant to be: tests/gpu/registers.sh write $folder"
    exit 1
  }
}

# Another compiler counts otherwise.
require_version() {
  grep -qx "# nvcc $version" "$table" || {
    echo "SKIPPED: the table is not of nvcc $version"
    exit 0
  }
}

reports() {
  local kernel
  for kernel in "$here"/../../tutti/backend/gpu/kernels/*.cu; do
    echo "$folder/$(basename "$kernel" .cu).ptxas"
  done
}

if [ "$verb" = one ]; then
  compile_one "${@:3}"
  exit
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
case $verb in
  check)
    require_version
    mapfile -t files < <(reports)
    facts "${files[@]}" >"$work/facts"
    compare <"$work/facts"
    ;;
  compile)
    require_version
    compiled_facts >"$work/facts"
    compare <"$work/facts"
    ;;
  write)
    compiled_facts >"$work/facts"
    {
      echo "# Registers of a thread of each own kernel, by architecture; none keeps registers in memory. tests/gpu/registers.sh compares and writes it."
      echo "# nvcc $version"
      awk '
        !($2 in column) { column[$2] = ++columns; names = names " " $2 }
        { kernels[$1]; count[$1, column[$2]] = $3 }
        END {
          print "kernel" names
          for (kernel in kernels) {
            line = kernel
            for (i = 1; i <= columns; ++i) line = line " " count[kernel, i]
            print line | "LC_ALL=C sort"
          }
        }' "$work/facts"
    } >"$work/table"
    mv "$work/table" "$table"
    compare <"$work/facts"
    ;;
  *)
    sed -n '2,5p' "$0"
    exit 2
    ;;
esac
