#![allow(
    missing_docs,
    clippy::all,
    clippy::pedantic,
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::unwrap_used
)]
use vramscope_model::*;
fn main() {
    for path in std::env::args().skip(1) {
        let mut symbols = Symbols::default();
        let t = std::time::Instant::now();
        let d = vramscope_formats::read(std::fs::File::open(&path).unwrap(), &mut symbols).unwrap();
        println!("read {:?}", t.elapsed());
        let t = std::time::Instant::now();
        let rec = join(vec![d.snapshot], None);
        println!("join {:?}", t.elapsed());
        let t = std::time::Instant::now();
        let a = vramscope_view::analyze(&[(rec, vec![])], &symbols, &Default::default());
        println!("analyze {:?} {:?} {}", t.elapsed(), a.verdict, a.headline);
    }
}
