package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"rnnbench/internal/exit"
	"rnnbench/modelfile"
	"rnnbench/plots/table"
)

// modelEndings are how the names of models' files end.
var modelEndings = []string{"onnx", "safetensors", "pt", "pth", "bin"}

// layerTable lists the recurrent layers of a model's file, also those that cannot be measured.
func layerTable(l lister) (*table.Table, error) {
	if l.model == "" {
		return nil, exit.Misuse(errors.New("list layers needs the file of a model: name it with --model"), "rnnbench list layers --model FILE")
	}
	file, err := modelfile.Read(l.model)
	if err != nil {
		return nil, exit.Misuse(err, "rnnbench list layers --help")
	}
	t := words("number", "layer", "operator", "cell", "input", "hidden", "layers", "direction", "projection", "parameters", "declined", "note")
	t.Title = fmt.Sprintf("%s (%s)", l.model, file.Format)
	brief := map[string]string{"operator": "op", "input": "I", "hidden": "H", "layers": "L", "direction": "way", "projection": "proj", "parameters": "params"}
	for i := range t.Columns {
		c := &t.Columns[i]
		c.Brief, c.Right = brief[c.Key], slices.Contains([]string{"number", "input", "hidden", "layers", "projection", "parameters"}, c.Key)
		if c.Key == "number" {
			c.Name = "#"
		}
		if c.Key == "declined" || c.Key == "note" { // texts have them below the table
			c.Name = ""
		}
	}
	var remarks []string
	for i, l := range file.Layers {
		r := layerRow(i+1, l)
		remark := l.Note
		if l.Declined != "" {
			remark = "Not measured: " + l.Declined
		}
		if remark != "" {
			at := slices.Index(remarks, remark)
			if at < 0 {
				at, remarks = len(remarks), append(remarks, remark)
				t.Notes = append(t.Notes, fmt.Sprintf("[%d] %s%s.", at+1, strings.ToUpper(remark[:1]), remark[1:]))
			}
			r[1].Text += fmt.Sprintf(" [%d]", at+1)
		}
		t.Rows = append(t.Rows, r)
	}
	return t, nil
}

// layerRow describes a layer by its number in the file, from 1.
func layerRow(number int, l modelfile.Layer) []table.Cell {
	r := make([]table.Cell, 12)
	r[0], r[1], r[2], r[10], r[11] = table.Int(number), table.Text(l.Name), table.Text(l.Operator), table.Text(l.Declined), table.Text(l.Note)
	p := l.Point
	if p.Cell == "" { // nothing is known of it
		return r
	}
	r[3], r[7] = table.Text(p.Cell), table.Text(p.Direction.String())
	r[4], r[5], r[6] = table.Int(p.Input), table.Int(p.Hidden), table.Int(p.Layers)
	if r[8] = table.Int(p.Projection); p.Projection == 0 {
		r[8].Text = ""
	}
	if l.Declined == "" {
		r[9] = table.Int(l.Parameters())
	}
	return r
}
