package table

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"

	"rnnbench/record"
)

// JSONL writes each record as one line of JSON.
func JSONL(w io.Writer, recs []record.Record) error {
	b := bufio.NewWriter(w)
	e := json.NewEncoder(b)
	for i := range recs {
		if err := e.Encode(&recs[i]); err != nil {
			return fmt.Errorf("table: record %d: %w", recs[i].Seq, err)
		}
	}
	return b.Flush()
}
