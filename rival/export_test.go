package rival

// KillIdle kills the idle processes, as a system without memory would.
func KillIdle(r *Rival) {
	for _, p := range r.idle {
		killAll(p.cmd)
		<-p.ended
	}
}
