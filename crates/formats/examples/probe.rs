#![allow(
    clippy::all,
    clippy::pedantic,
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::unwrap_used
)]
fn main() {
    for path in std::env::args().skip(1) {
        let mut symbols = vramscope_model::Symbols::default();
        let t = std::time::Instant::now();
        match vramscope_formats::read(std::fs::File::open(&path).unwrap(), &mut symbols) {
            Ok(d) => {
                println!(
                    "{path}: {} {:?} era {} stacks {} frames {}",
                    d.format,
                    t.elapsed(),
                    d.snapshot.features.era(),
                    symbols.n_stacks(),
                    symbols.n_frames()
                );
                for dev in &d.snapshot.devices {
                    println!(
                        "  dev {} events {} segs {} counts {:?}",
                        dev.ordinal,
                        dev.events.len(),
                        dev.segments.len(),
                        dev.events.counts()
                    );
                }
                for w in &d.warnings {
                    println!("  warning {w}");
                }
            }
            Err(e) => println!("{path}: ERROR {e}"),
        }
    }
}
