//! The caching allocator: its settings, and what comes of a workload under them.

pub mod conf;
pub mod config;
pub mod outcome;
