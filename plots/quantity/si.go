package quantity

import (
	"math"
	"strconv"
	"strings"
)

// SI formats v with three significant digits and a decimal prefix: 2.31 TFLOP/s, 777 µs.
func SI(v float64, unit string) string {
	number, prefix := scale(v, 3)
	if number == "" {
		return "n/a"
	}
	if prefix+unit == "" {
		return number
	}
	return number + " " + prefix + unit
}

// Seconds parses a time that SI formatted, such as 1.26 µs. It returns 0 for anything else.
func Seconds(text string) float64 { return parse(text, "s") }

// BytesPerSecond parses a rate that SI formatted, such as 53.1 GB/s. It returns 0 for anything else.
func BytesPerSecond(text string) float64 { return parse(text, "B/s") }

// parse parses a positive number that SI formatted with that unit; 0: it is something else.
func parse(text, unit string) float64 {
	number, prefixed, _ := strings.Cut(text, " ")
	prefix, ok := strings.CutSuffix(prefixed, unit)
	scale, known := map[string]float64{"": 1, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "m": 1e-3, "µ": 1e-6, "n": 1e-9}[prefix]
	v, err := strconv.ParseFloat(number, 64)
	if err != nil || !ok || !known || !(v > 0) || math.IsInf(v, 0) {
		return 0
	}
	return v * scale
}

// Short formats v as SI does, without unit and space: 2.31T, 500G.
func Short(v float64) string {
	number, prefix := scale(v, 3)
	return or(number, "n/a") + prefix
}

// Tick formats a round number as briefly as possible: 500G, 1T, 1.5T.
func Tick(v float64) string {
	number, prefix := scale(v, 3)
	return trim(or(number, "n/a")) + prefix
}

func or(s, usual string) string {
	if s == "" {
		return usual
	}
	return s
}

// Bytes formats a size of memory with a binary prefix: 41.2 MiB.
func Bytes(n float64) string {
	if math.IsNaN(n) || math.IsInf(n, 0) {
		return "n/a"
	}
	prefixes := []string{"", "Ki", "Mi", "Gi", "Ti", "Pi"}
	i := 0
	for math.Abs(n) >= 1023.5 && i < len(prefixes)-1 {
		n /= 1024
		i++
	}
	return Digits(n, 3) + " " + prefixes[i] + "B"
}

// Size formats a size of a problem: multiples of 1024 in k or M, so that 4096 is 4k, and other
// numbers in full.
func Size(v float64) string {
	switch {
	case v != math.Trunc(v) || math.Abs(v) > 1<<52:
		return strconv.FormatFloat(v, 'g', 4, 64)
	case v >= 1<<20 && math.Mod(v, 1<<20) == 0:
		return strconv.FormatFloat(v/(1<<20), 'f', -1, 64) + "M"
	case v >= 1<<10 && v < 1<<20 && math.Mod(v, 1<<10) == 0:
		return strconv.FormatFloat(v/(1<<10), 'f', -1, 64) + "k"
	}
	return strconv.FormatFloat(v, 'f', -1, 64)
}

// Factor formats a ratio: 0.93×, 11.1×, 175×.
func Factor(v float64) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return "n/a"
	}
	return Ratio(v) + "×"
}

// Ratio is a factor without its sign, as in a column of them.
func Ratio(v float64) string {
	if v >= 9.995 {
		return Digits(v, 3)
	}
	return strconv.FormatFloat(v, 'f', 2, 64)
}

// scale formats v with the prefix that leaves one to three digits before the point. It returns ""
// for NaN and infinities.
func scale(v float64, significant int) (number, prefix string) {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return "", ""
	}
	if v == 0 {
		return "0", ""
	}
	prefixes := []string{"p", "n", "µ", "m", "", "k", "M", "G", "T", "P", "E"}
	const unit = 4
	v = round(v, significant) // before choosing the prefix: 999.7 µs is 1 ms
	i := int(math.Floor(math.Log10(math.Abs(v))/3+1e-9)) + unit
	i = min(max(i, 0), len(prefixes)-1)
	// A table of powers of ten is exact; a power function may not be.
	v *= [...]float64{1e12, 1e9, 1e6, 1e3, 1, 1e-3, 1e-6, 1e-9, 1e-12, 1e-15, 1e-18}[i]
	return Digits(v, significant), prefixes[i]
}

// Digits formats v with so many significant digits, never with an exponent.
func Digits(v float64, significant int) string {
	if v == 0 {
		return "0"
	}
	v = round(v, significant)
	before := int(math.Floor(math.Log10(math.Abs(v))+1e-9)) + 1
	return strconv.FormatFloat(v, 'f', max(0, significant-before), 64)
}

// round rounds v to so many significant digits.
func round(v float64, significant int) float64 {
	r, err := strconv.ParseFloat(strconv.FormatFloat(v, 'e', significant-1, 64), 64)
	if err != nil {
		return v // rounded up beyond the largest number
	}
	return r
}

// trim drops trailing zeros after a decimal point.
func trim(s string) string {
	for i := range len(s) {
		if s[i] != '.' {
			continue
		}
		for s[len(s)-1] == '0' {
			s = s[:len(s)-1]
		}
		if s[len(s)-1] == '.' {
			s = s[:len(s)-1]
		}
		return s
	}
	return s
}
