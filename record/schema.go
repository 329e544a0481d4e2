package record

import _ "embed"

//go:embed record.schema.json
var recordSchema string

// JSONSchema is the published JSON Schema of Record, with the meaning and the
// unit of every field.
func JSONSchema() string { return recordSchema }
