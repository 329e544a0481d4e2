package lower

import "testing"

// TestLaunchCosts: costs follow the measured launches, within bounds.
func TestLaunchCosts(t *testing.T) {
	usual := Dispatch{}.costs()
	if usual != fitted.costs() {
		t.Errorf("unmeasured launches cost %+v, those of the fit %+v", usual, fitted.costs())
	}
	slow := Dispatch{Host: 2 * fitted.Host, Graph: fitted.Graph}.costs()
	if slow.launch != 2*usual.launch || slow.start != 2*usual.start || slow.pointwise != usual.pointwise {
		t.Errorf("with a host half as fast launches cost %+v, else %+v", slow, usual)
	}
	if broken := (Dispatch{Host: 1, Graph: 1e-12}).costs(); broken.launch != 8*usual.launch || broken.crossing != usual.crossing/4 {
		t.Errorf("an absurd measurement gives %+v", broken)
	}
}
