//! Sockets as all networked drivers want them: connect to the first address that answers, TCP without delay.
