# bash completion for winml, from `winml completion bash`
_winml_complete() {
    local kind entry
    local -a entries=()
    COMPREPLY=()
    {
        IFS= read -r -d '' kind || return 0
        while IFS= read -r -d '' entry; do
            entries+=("$entry")
        done
    } < <("${1/#\~/$HOME}" --complete bash "$((COMP_CWORD - 1))" "${COMP_WORDS[@]:1}" 2>/dev/null)
    if [ "$kind" = files ]; then
        # `filenames` has bash quote what it inserts; before version 4 names are not offered, for they would not be quoted.
        type compopt >/dev/null 2>&1 || return 0
        compopt -o filenames
        COMPREPLY=("${entries[@]%/}")
        return 0
    fi
    for entry in "${entries[@]}"; do
        COMPREPLY+=("${entry%%$'\t'*}")
    done
}
complete -F _winml_complete winml wmk
