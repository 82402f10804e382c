# fish completion for winml, from `winml completion fish`
function __winml_complete
    set -l words (commandline -opc)
    set -l index (math (count $words) - 1)
    set -l answer ($words[1] --complete fish $index $words[2..-1] (commandline -ct) 2>/dev/null | string split0)
    if test (count $answer) -gt 1
        printf '%s\0' $answer[2..-1]
    end
end
complete -c winml -f -a '(__winml_complete | string split0)'
complete -c wmk -f -a '(__winml_complete | string split0)'
