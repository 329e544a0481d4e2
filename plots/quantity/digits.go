package quantity

import (
	"math"
	"strconv"
)

// Digits spells v with n significant digits, those of large numbers all, and without an exponent.
func Digits(v float64, n int) string {
	decimals := n - 1
	if v != 0 {
		rounded, _ := strconv.ParseFloat(strconv.FormatFloat(v, 'e', n-1, 64), 64) // 9.999 has a digit more once it is rounded
		decimals -= int(math.Floor(math.Log10(math.Abs(rounded))))
	}
	return strconv.FormatFloat(v, 'f', max(0, decimals), 64)
}

// Ratio spells a ratio: with two decimals below 10, and with three digits above.
func Ratio(v float64) string {
	if math.Abs(v) < 1 {
		return strconv.FormatFloat(v, 'f', 2, 64)
	}
	return Digits(v, 3)
}
