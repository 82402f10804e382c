#compdef winml wmk
# zsh completion for winml, from `winml completion zsh`
_winml() {
    local kind entry program=${${(Q)words[1]}/#\~/$HOME}
    local -a answer values shown folders files
    answer=("${(@0)$($program --complete zsh $((CURRENT - 2)) "${(@Q)words[2,CURRENT-1]}" "$words[CURRENT]" 2>/dev/null)}")
    kind=$answer[1]
    answer=("${(@)answer[2,-1]}")
    if [[ $PREFIX == --*=* ]]; then
        compset -P '*='
    fi
    if [[ $kind == files ]]; then
        for entry in "${(@)answer}"; do
            [[ -n $entry ]] || continue
            if [[ $entry == */ ]]; then
                folders+=("$entry")
            else
                files+=("$entry")
            fi
        done
        (( $#folders )) && compadd -f -S '' -a folders
        (( $#files )) && compadd -f -a files
        return
    fi
    for entry in "${(@)answer}"; do
        [[ -n $entry ]] || continue
        values+=("${entry%%$'\t'*}")
        shown+=("${entry%%$'\t'*}${${entry#*$'\t'}:+  -- ${entry#*$'\t'}}")
    done
    (( $#values )) && compadd -l -d shown -a values
}
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
    _winml "$@"
else
    compdef _winml winml wmk
fi
