//! Hooks, cycles and caches.

rules!();
