#!/usr/bin/env bash
# bare_commands.sh SOURCE FOLDER: links in FOLDER to the commands that a bare Debian has together with the packages of
# packaging/packages.txt. Tests that are scripts find these alone, so that one that calls another command fails where it is written, and
# not only where nobody has it. Ends with 1 where there is no dpkg-query.
set -euo pipefail
source_root=$1 folder=$2
command -v dpkg-query >/dev/null || exit 1
rm -rf "$folder"
mkdir -p "$folder"

listed=$(awk '$1 == "P" || $1 == "T" { print $2 }' "$source_root/packaging/packages.txt" | tr '\n' ' ')
# Packages that the smallest Debian has, those listed, and what these depend on.
links=()
mapfile -t packages < <(dpkg-query -W -f '${db:Status-Abbrev}|${Package}|${Essential}|${Priority}|${Pre-Depends}, ${Depends}\n' |
  awk -F'|' -v listed="$listed" '
    /^ii/ {
      name = $2
      depends = ""
      for (i = 5; i <= NF; ++i) depends = depends "," $i  # alternatives are parted by the same sign
      gsub(/\([^)]*\)|:any/, "", depends)
      gsub(/[ \t]+/, "", depends)
      needs[name] = depends
      if ($3 == "yes" || $4 == "required") todo[++last] = name
    }
    END {
      count = split(listed, names, " ")
      for (i = 1; i <= count; ++i) todo[++last] = names[i]
      for (at = 1; at <= last; ++at) {
        name = todo[at]
        if (name in done || !(name in needs)) continue
        done[name] = 1
        print name
        count = split(needs[name], names, ",")
        for (i = 1; i <= count; ++i) if (names[i] != "") todo[++last] = names[i]
      }
    }')
declare -A files
while read -r file; do
  files[${file#/usr}]=1
  [ ! -x "$file" ] || links+=("$file")
done < <(dpkg-query -L "${packages[@]}" | grep -E '^(/usr)?/s?bin/[^/]+$')
# Names that stand for one of several commands, as awk for mawk.
while read -r link; do
  file=$(readlink -f "$link")
  [ -z "${files[${file#/usr}]:-}" ] || links+=("$link")
done < <(find /usr/bin /usr/sbin -lname '/etc/alternatives/*')
ln -sf "${links[@]}" "$folder/"
