package schedule

// A Precision is the arithmetic of products. Sums and everything point-wise are
// single precision in all of them.
type Precision int

const (
	FP32 Precision = iota // IEEE single throughout
	TF32                  // operands of products rounded to 10 bits of mantissa
	BF16                  // operands of products stored in 16 bits, 7 of them mantissa
	FP16                  // the same with 10 bits of mantissa
	INT8                  // weights and what they multiply rounded to 8-bit integers, with a scale a row of each
)

// Precisions lists the precisions by name.
func Precisions() []string { return []string{"fp32", "tf32", "bf16", "fp16", "int8"} }

func (p Precision) String() string { return Precisions()[p] }

// Epsilon is the unit roundoff of the operands of products. That of integers is relative to the
// largest value of a row.
func (p Precision) Epsilon() float64 {
	return [...]float64{0x1p-24, 0x1p-11, 0x1p-8, 0x1p-11, 1.0 / 254}[p]
}
