package main

import (
	"bytes"
	"io"
	"strings"

	"github.com/spf13/cobra"
)

// quoting is a function of the shell that quotes words as printf %q does, but leaves commas alone.
const quoting = `
# Commas need no backslash. With one, no item of a list after its first would match what was typed.
__rnnbench_quote()
{
    local word
    for word in "$@"; do
        printf -v word '%q' "$word"
        printf '%s\n' "${word//\\,/,}"
    done
}
`

// bashScript writes the script of bash. Cobra's quotes the commas of candidates, from bash 5.2 on.
func bashScript(root *cobra.Command, w io.Writer) error {
	var buf bytes.Buffer
	if err := root.GenBashCompletionV2(&buf, true); err != nil {
		return err
	}
	const into = `printf -v comp "%q" "${compline%%$tab*}" &>/dev/null || comp=$(printf "%q" "${compline%%$tab*}")`
	script := strings.NewReplacer(
		into, into+"\n        comp=${comp//\\\\,/,}",
		`<(printf "%q\n" `, `<(__rnnbench_quote `,
		`$(printf "%q" `, `$(__rnnbench_quote `,
	).Replace(buf.String())
	_, err := io.WriteString(w, script+quoting)
	return err
}
