package rival

// KillIdle ends the processes that have nothing to do, as a system without memory would.
func KillIdle(r *Rival) {
	for _, p := range r.idle {
		killAll(p.cmd)
		<-p.ended
	}
}
