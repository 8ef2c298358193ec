# bash completion for tutti(1): verbs, then their sub-verbs, options and files.
_tutti() {
  local current=${COMP_WORDS[COMP_CWORD]} verb=${COMP_WORDS[1]:-}
  local options="--help --set --ranks --data-dir --output-dir --resume --precision --seed --epochs --max-steps --dry-run --verbose --quiet"
  if ((COMP_CWORD == 1)); then
    mapfile -t COMPREPLY < <(compgen -W "train study eval plan model data bench doctor --help --version" -- "$current")
    return
  fi
  local words=""
  case $verb in
    model) words="list show --json" ;;
    data) words="list generate verify" ;;
    bench)
      words="comm ops step"
      [[ ${COMP_WORDS[2]:-} == comm ]] && words="--ranks --collective --algorithm --type --op --min-bytes --max-bytes --factor --iterations --warmup --check --check-collectives --chunk --transport --nodes --shape --peers --columns --progress --overlap --latency --tune --selection --print --json"
      ;;
    doctor) words="--json" ;;
    study) words="$options --repeats --mode" ;;
    eval) words="$options --weights --logits" ;;
    *) words="$options" ;;
  esac
  mapfile -t COMPREPLY < <(
    compgen -W "$words" -- "$current"
    [[ $current == -* ]] || compgen -f -- "$current"
  )
}
complete -o filenames -F _tutti tutti
