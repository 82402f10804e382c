# PowerShell completion for winml, from `winml completion powershell`
Register-ArgumentCompleter -Native -CommandName winml, wmk -ScriptBlock {
    param($wordToComplete, $commandAst, $cursorPosition)
    $words = @(
        $commandAst.CommandElements |
            Select-Object -Skip 1 |
            Where-Object { $_.Extent.EndOffset -lt $cursorPosition } |
            ForEach-Object {
                if ($_ -is [System.Management.Automation.Language.StringConstantExpressionAst]) { $_.Value }
                else { $_.Extent.Text }
            }
    )
    $index = $words.Count
    # A word in quotes comes with the first of them.
    $current = $wordToComplete.Trim([char]39, [char]34)
    if ($current) { $words += $current }
    $program = $commandAst.CommandElements[0].Value
    $encoding = [Console]::OutputEncoding
    try {
        [Console]::OutputEncoding = [System.Text.Encoding]::UTF8
        $answer = (& $program --complete powershell $index @words 2>$null) -join "`n"
    } finally {
        [Console]::OutputEncoding = $encoding
    }
    $entries = @($answer -split "`0" | Where-Object { $_ })
    if ($entries.Count -lt 2) { return }
    foreach ($entry in $entries[1..($entries.Count - 1)]) {
        $value, $description = if ($entries[0] -eq 'words') { $entry -split "`t", 2 } else { $entry, $entry }
        $shown = $value -replace '\p{C}', '?'
        if (-not $description) { $description = $shown }
        $text = $value
        if ($value -notmatch '^[\w./\\:=,+-]+$') {
            $text = "'" + [System.Management.Automation.Language.CodeGeneration]::EscapeSingleQuotedStringContent($value) + "'"
        }
        [System.Management.Automation.CompletionResult]::new($text, $shown, 'ParameterValue', ($description -replace '\p{C}', '?'))
    }
}
