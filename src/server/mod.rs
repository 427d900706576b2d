//! Managed servers: started by a guard, sampled, stopped; nothing of them outlives dbbench.
