//! Idle time.
