#!/usr/bin/env bash
# Runs `ripple verify` with the inputs of the action, each in a variable such as INPUT_LEDGER_TABLE.
set -euo pipefail

arguments=()
for variable in $(compgen -v INPUT_); do
  value=${!variable}
  option=--$(tr 'A-Z_' 'a-z-' <<< "${variable#INPUT_}")
  case $option=$value in
    --*= | --aws=false | --allow-unreadable=false) ;;
    --aws=* | --allow-unreadable=*) arguments+=("$option") ;;
    *) arguments+=("$option=$value") ;;
  esac
done
exec ripple verify "${arguments[@]}"
