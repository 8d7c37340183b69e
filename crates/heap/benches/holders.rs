//! How fast holders are found.

fn main() {}
