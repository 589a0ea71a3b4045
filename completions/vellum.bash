# Bash completion for vellum(1).

# Offers names of versions that start so: _vellum_names log|snapshot|branch STORE START. Not compgen -W, which expands
# its words: they come from a store that someone else may have written.
_vellum_names() {
  local store=$2 name
  # The word as typed: a leading tilde, quotes and backslashes are still in it.
  store=${store/#\~\//$HOME/}
  store=${store//[\\\"\']/}
  while IFS= read -r name; do
    [[ $name == "$3"* ]] && COMPREPLY+=("$name")
  done < <("${COMP_WORDS[0]}" "$1" "$store" --names 2>/dev/null)
}

_vellum_encoding='--compression --level --block --hash --grow-blocks --fixed-blocks --filters --no-filters
--dedup --no-dedup --deltas --no-deltas'

_vellum_options() {
  case $1 in
    '') echo '--version' ;;
    init) echo "$_vellum_encoding --pack-size --encrypt --recipient" ;;
    log | ls) echo '--graph --commits --signatures --number --grep --since --until --names --at' ;;
    show) echo '--stat' ;;
    diff) echo '--pages --summary --stat --exit-code' ;;
    heat) echo '--columns --svg --png' ;;
    blame) echo '--offset --length --pages' ;;
    cat) echo '--offset --length' ;;
    prove) echo '--output' ;;
    import) echo '--message --metall --snapshot' ;;
    attach) echo '--message --snapshot' ;;
    backup) echo '--name --message --branch --stopped' ;;
    restore) echo '--force' ;;
    branch) echo "$_vellum_encoding --rename --only-signed --any-signer --names" ;;
    snapshot | tag) echo '--message --all --names' ;;
    rm) echo '--branch' ;;
    forget)
      echo '--keep-last --keep-daily --keep-weekly --keep-monthly --keep-yearly --branch --prefix --dry-run --hold'
      ;;
    gc) echo '--dry-run --recompress' ;;
    tier) echo '--bytes --bring-home --home-bytes --keep-last --dry-run' ;;
    key) echo '--new-passphrase-file --new-passphrase-fd --new-key-file --new-key-command --recipient --label --remote' ;;
    group) echo '--stores --read-data --dry-run' ;;
    remote) echo '--one-writer --encrypt --recipient --lock' ;;
    push) echo '--all --remote --take-over --dry-run --limit-rate --connections' ;;
    replicate)
      echo '--interval --take-over --keep-last --keep-daily --keep-weekly --keep-monthly --keep-yearly --metrics --limit-rate --connections'
      ;;
    pull) echo '--remote --packs --release --take-over --dry-run --only-newer --expect --limit-rate --connections' ;;
    clone) echo '--at --lazy --expect --limit-rate --connections' ;;
    verify) echo '--read-data --from --signed-by --at' ;;
    repair) echo '--from --to --removed --dry-run' ;;
    recover) echo '--copied --corrupted' ;;
    mount) echo '--writable --background' ;;
    web) echo '--port' ;;
    top) echo '--pid --interval --once --metrics' ;;
    run)
      echo '--store --file --branch --snapshot-every-commits --snapshot-every-seconds --snapshot --no-gc --version --strict'
      ;;
  esac
  echo '--help --json --quiet --no-progress --time-format --passphrase-file --passphrase-fd --key-file --key-command --identity --sign-key'
}

# What stands at a place after the command: _vellum_argument COMMAND PLACE REMOVES_BRANCHES
_vellum_argument() {
  case $1:$2 in
    tier:1) echo tier ;;
    key:1) echo key ;;
    key:2) echo directory ;;
    key:*) echo nothing ;;
    tier:2) echo directory ;;
    group:1) echo group ;;
    group:[24]) echo directory ;;
    tier:[34]) echo tier_argument ;;
    remote:1) echo remote ;;
    remote:2 | clone:2) echo directory ;;
    remote:* | clone:* | pull:[2-9]*) echo nothing ;;
    help:1) echo command ;;
    recover:1 | backup:[2-9]* | restore:3) echo file ;;
    *:1) echo directory ;;
    log:2 | ls:2 | show:2 | du:[2-9]* | heat:2 | blame:2 | cat:2 | prove:2 | verify:[2-9]* | export:2 | restore:2 | push:[2-9]* | diff:[23] | branch:3 | snapshot:3 | tag:3) echo version ;;
    import:2 | attach:2) echo branch ;;
    import:3 | attach:3 | export:3) echo file ;;
    mount:2) echo directory ;;
    rm:*) if [[ $3 == yes ]]; then echo branch; else echo snapshot; fi ;;
  esac
}

_vellum() {
  local commands='help init log ls show stat du diff heat blame cat prove export import attach backup restore branch snapshot tag rm forget gc tier key remote push replicate pull clone group verify repair recover run mount top web'
  local current=${COMP_WORDS[COMP_CWORD]}
  local previous=${COMP_WORDS[COMP_CWORD - 1]}
  local command='' store='' place=0 branches=no takes_value=no word i
  COMPREPLY=()

  for ((i = 1; i < COMP_CWORD; i++)); do
    word=${COMP_WORDS[i]}
    if [[ $takes_value == yes ]]; then
      takes_value=no
      continue
    fi
    case $word in
      --compression | --level | --block | --pack-size | --offset | --length | --columns | -m | --message | \
        --snapshot | --metall | --from | --to | --keep-* | --prefix | --bytes | --home-bytes | --store | --stores | \
        --file | --snapshot-every-* | --version | --name | --remote | --time-format | --png | --pid | --interval | --port | --writable | --since | --until | \
        --*passphrase-file | --*passphrase-fd | --*key-file | --*key-command | --identity | --sign-key | --expect | --signed-by | --only-signed | -o | --output | --recipient | --label)
        takes_value=yes
        ;;
      --)
        if [[ $command == run ]] && declare -F _command_offset >/dev/null; then
          _command_offset $((i + 1))
          return
        fi
        ;;
      --branch) if [[ $command == forget || $command == run || $command == backup ]]; then takes_value=yes; else branches=yes; fi ;;
      -*) ;;
      *)
        if [[ -z $command ]]; then
          command=$word
        else
          place=$((place + 1))
          [[ $place == 1 ]] && store=$word
        fi
        ;;
    esac
  done

  if [[ $takes_value == yes ]]; then
    [[ $previous == --branch || $previous == --writable ]] && _vellum_names branch "$store" "$current"
    if [[ $previous == --store || $previous == --file || $previous == --png || $previous == --identity || $previous == --sign-key || $previous == --signed-by ||
          $previous == --only-signed || $previous == -o || $previous == --output ||
      $previous == --*passphrase-file || $previous == --*key-file ]]; then
      compopt -o filenames 2>/dev/null
      mapfile -t COMPREPLY < <(compgen -f -- "$current")
    fi
    [[ $previous == --time-format ]] && mapfile -t COMPREPLY < <(compgen -W 'iso human' -- "$current")
    [[ $previous == --compression ]] && mapfile -t COMPREPLY < <(compgen -W 'none lz4 zstd' -- "$current")
    return
  fi
  if [[ $current == -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$(_vellum_options "$command")" -- "$current")
    return
  fi
  if [[ -z $command ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$commands" -- "$current")
    return
  fi
  case $(_vellum_argument "$command" $((place + 1)) "$branches") in
    directory)
      compopt -o filenames 2>/dev/null
      mapfile -t COMPREPLY < <(compgen -d -- "$current")
      ;;
    file)
      compopt -o filenames 2>/dev/null
      mapfile -t COMPREPLY < <(compgen -f -- "$current")
      ;;
    command) mapfile -t COMPREPLY < <(compgen -W "$commands" -- "$current") ;;
    key) mapfile -t COMPREPLY < <(compgen -W 'list add remove rotate' -- "$current") ;;
    tier) mapfile -t COMPREPLY < <(compgen -W 'list add remove limit move apply' -- "$current") ;;
    group) mapfile -t COMPREPLY < <(compgen -W 'log show verify export restore rm gc' -- "$current") ;;
    remote) mapfile -t COMPREPLY < <(compgen -W 'add list set-url remove' -- "$current") ;;
    tier_argument)
      compopt -o filenames 2>/dev/null
      mapfile -t COMPREPLY < <(compgen -W 'archive cache home' -- "$current"; compgen -d -- "$current")
      ;;
    version) _vellum_names log "$store" "$current" ;;
    snapshot) _vellum_names snapshot "$store" "$current" ;;
    branch) _vellum_names branch "$store" "$current" ;;
  esac
}

complete -F _vellum vellum
