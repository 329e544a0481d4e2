package equations

// A definition is what a file says.
type definition struct {
	gates     []gate
	states    []state  // the output first
	weights   []symbol // a number for each unit, as the peepholes of an LSTM
	window    int
	through   int   // the state that R multiplies
	inner     *node // the computed value that R multiplies in inner gates; nil: there are none
	equations []equation
}

// A symbol is a name with the place of its declaration.
type symbol struct {
	token
	used bool
}

// A gate is an equation with a product.
type gate struct {
	symbol
	input, recurrent bool // it has W x; it has R h, or R of the inner value
	inner            bool // it has R of the inner value
}

type state struct {
	symbol
	positive bool // declared > 0
	fixed    bool
	equation int // that gives its next value; -1: none so far
}

// An equation gives a value its name. Equations run in the order of the file.
type equation struct {
	symbol
	next int // the state whose next value it is; -1: none
	expr *node
	span span
}

// A form is a kind of node.
type form uint8

const (
	constant  form = iota
	value          // of an earlier equation
	before         // a state before the step
	after          // a state after it
	weight         // of the unit
	fromInput      // W x with its bias
	fromState      // R h, or R of the inner value, with its bias
	bias           // b, which stands beside a product and adds nothing to what the product has
	apply          // a function
)

// A node is an expression.
type node struct {
	form
	index  int     // of the equation, state, weight or gate
	number float64 // of a constant
	of     *function
	args   []*node
	span   span
	sum    bool // a product is one of its terms, so that b may stand beside it
	at     token
}
