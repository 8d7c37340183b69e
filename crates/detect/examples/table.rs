#![allow(
    missing_docs,
    clippy::all,
    clippy::pedantic,
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::unwrap_used
)]
use vramscope_model::*;
use vramscope_replay::*;
fn main() {
    for path in std::env::args().skip(1) {
        let mut symbols = Symbols::default();
        let Ok(d) = vramscope_formats::read(std::fs::File::open(&path).unwrap(), &mut symbols) else {
            println!("{path} unreadable");
            continue;
        };
        let rec = join(vec![d.snapshot], None);
        for dev in &rec.devices {
            let l = Lifetimes::of(dev, rec.settings.as_ref());
            if l.is_empty() {
                continue;
            }
            let steps = Steps::of(dev, &rec.annotations, &symbols, l.whole());
            let pk = peak(dev, &l, l.whole());
            let st = dev.last_state().unwrap();
            let ff = failed_fits(dev, &l, rec.settings.as_ref());
            let fb: u64 = ff.iter().map(|f| f.obtained.0).sum();
            let n = dev.events.len();
            let late: u64 = ff.iter().filter(|f| f.event.index() > n / 3).map(|f| f.obtained.0).sum();
            let g: u64 = growths(dev, &l, rec.settings.as_ref()).iter().map(|f| f.obtained.0).sum();
            let m = |b: u64| b >> 20;
            let (pa, pr) = pk.map_or((0, 0), |p| (p.level.allocated.0, p.max_reserved.0));
            let short: String = path.chars().rev().take(48).collect::<String>().chars().rev().collect();
            println!(
                "{short:48} d{} ev {:6} steps {:4} {:?} | peak alloc {:5} res {:5} | end alloc {:5} res {:5} | fails {:3} {:5}M late {:5}M of grown {:5}M | last fail {:.2} agree {:?}",
                dev.ordinal,
                n,
                steps.count(),
                match steps.source() {
                    StepSource::Marks(_) => "M",
                    StepSource::None => "-",
                    _ => "R",
                },
                m(pa),
                m(pr),
                m(st.bytes_in(BlockState::Allocated).0),
                m(st.reserved().0),
                ff.len(),
                m(fb),
                m(late),
                m(g),
                ff.last().map_or(0.0, |f| f.event.index() as f64 / n as f64),
                (
                    l.agreement().only_trace,
                    l.agreement().size_differs,
                    l.agreement().missing_frees,
                    l.agreement().unmatched_frees
                )
            );
            let cx = vramscope_detect::Context::new(&rec, dev, &symbols, &l, &steps, l.whole(), None);
            for f in vramscope_detect::detect(&cx) {
                let site = f.site.map(|s| {
                    let fr = symbols.get_frame(s);
                    format!("{}:{}", symbols.str(fr.file).rsplit('/').next().unwrap(), fr.line)
                });
                println!(
                    "      {} {:?} {:?} {} B {} blocks, {:?}/step conf {:.2} comp {} {:?}",
                    f.code,
                    f.kind,
                    site,
                    f.bytes.0,
                    f.blocks,
                    f.bytes_per_step,
                    f.confidence,
                    f.companions.len(),
                    f.evidence
                );
            }
        }
    }
}
