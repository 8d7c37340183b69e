//! `analyze` as Markdown.

use vramscope_view::analysis::{Analysis, DeviceAnalysis, Finding, Severity};
use vramscope_view::explained::Shortfall;
use vramscope_view::pattern::Pattern;

use super::holders::{others, picture};
use super::{block, code, escaped, place, sentence, table};
use crate::bytes::{counted, grouped, human, share, signed};
use crate::chain;
use crate::clock;
use crate::excerpt::Excerpts;
use crate::place::Places;
use crate::settings;
use crate::style::Palette;
use crate::text::analysis::main_device;
use crate::text::check::spelled;
use crate::text::explained::pool_name;
use crate::unified;
use crate::words;

/// How many findings are told with their reasons; the others only with their figures.
const TOLD_WHOLE: usize = 2;

/// The answer as Markdown with at most `top` findings and places. As an issue or a chat has little room, the makeup of
/// the peak of a run in trouble, all but one of several devices, and phases are shown only if it is `verbose`.
pub fn render(analysis: &Analysis, top: usize, verbose: bool, excerpts: &Excerpts) -> String {
    let places = words::places(analysis);
    let (word, _) = words::verdict(analysis.verdict);
    let sure = analysis.confidence.map(|c| format!(" ({})", words::confidence(c))).unwrap_or_default();
    let mut out = format!("## {word}: {}{sure}\n\n", sentence(&analysis.headline));
    if analysis.inputs.is_empty() && !analysis.recorded.is_empty() {
        let names: Vec<String> = analysis.recorded.iter().map(|recorded| code(&recorded.path)).collect();
        out.push_str(&format!("{}, without any snapshot\n\n", names.join(", ")));
    } else {
        out.push_str(&format!(
            "{}: {}\n\n",
            escaped(&words::inputs(&analysis.inputs)),
            code(&words::input_names(&analysis.inputs))
        ));
    }
    recorded(&mut out, analysis);
    for (i, finding) in analysis.findings.iter().take(top).enumerate() {
        let whole = verbose || i == 0 || (i < TOLD_WHOLE && finding.severity != Severity::Info);
        one_finding(&mut out, i + 1, analysis, finding, &places, whole.then_some(excerpts), verbose);
    }
    if analysis.findings.len() > top {
        let more = counted((analysis.findings.len() - top) as u64, "more finding");
        out.push_str(&format!("{more} left out (`--top {}`).\n\n", analysis.findings.len()));
    }
    if !analysis.harmless.is_empty() {
        out.push_str("### Checked and harmless to the GPU here\n\n");
        for one in &analysis.harmless {
            let place = code(&spelled(&one.found.file, Some(one.found.start)));
            let rule = code(&format!("{} {}", one.found.code, one.found.name));
            out.push_str(&format!("- {rule} at {place}: {}\n", sentence(&words::harmless(one))));
        }
        out.push('\n');
    }
    if analysis.devices.len() > 1 {
        overview(&mut out, &analysis.devices);
    }
    let whole = verbose || !analysis.verdict.is_trouble();
    let places_shown = if whole { top } else { top.div_ceil(2) };
    for device in &analysis.devices {
        if verbose || main_device(analysis).is_some_and(|main| std::ptr::eq(main, device)) {
            one_device(&mut out, device, &places, places_shown, whole);
            if verbose {
                phases(&mut out, device);
            }
        }
    }
    if verbose {
        let files: Vec<String> = places
            .shortened_user_files()
            .map(|(tail, file)| format!("{} = {}", code(tail), code(file)))
            .collect();
        if !files.is_empty() {
            out.push_str(&format!("Files: {}\n\n", files.join(", ")));
        }
    }
    if !analysis.caveats.is_empty() {
        out.push_str("### Keep in mind\n\n");
        bullets(&mut out, &analysis.caveats);
    }
    let warnings: Vec<String> = analysis
        .inputs
        .iter()
        .flat_map(|input| input.warnings.iter().map(|warning| format!("{}: {warning}", input.path)))
        .collect();
    if !warnings.is_empty() {
        out.push_str("### Warnings about the files\n\n");
        bullets(&mut out, &warnings);
    }
    out
}

/// What the recorder wrote down beside snapshots.
fn recorded(out: &mut String, analysis: &Analysis) {
    for recorded in &analysis.recorded {
        let facts = words::environment(recorded);
        if !facts.is_empty() {
            out.push_str(&format!("Run: {}\n\n", sentence(&facts.join(", "))));
        }
        for curve in &recorded.curves {
            let mut text = words::recorded_steps(curve);
            if let Some((what, [first, .., last])) = words::recorded_values(curve) {
                text.push_str(&format!("; {what} first {}, last {}", human(*first), human(*last)));
            }
            out.push_str(&format!("Counted: {}\n\n", sentence(&text)));
        }
        let Some(last) = recorded.holders.last() else { continue };
        let sum = chain::sum(last.holders.total.0, &last.holders.classes);
        out.push_str(&format!("Held: {} ({})\n\n", escaped(&sum), code(words::file_name(&last.path))));
        let first = last.holders.holders.iter().find(|holder| !holder.chain.is_empty());
        if let Some(holder) = first.filter(|_| analysis.devices.is_empty() && analysis.findings.is_empty()) {
            out.push_str(&format!(
                "Most by {}{}\n\n{}\n",
                code(&holder.path),
                chain::through(holder),
                picture(holder, false)
            ));
        }
    }
}

fn bullets(out: &mut String, sentences: &[String]) {
    for text in sentences {
        out.push_str(&format!("- {}\n", sentence(text)));
    }
    out.push('\n');
}

fn one_finding(
    out: &mut String,
    n: usize,
    analysis: &Analysis,
    finding: &Finding,
    places: &Places,
    excerpts: Option<&Excerpts>,
    verbose: bool,
) {
    let at = if finding.site.is_some() || !finding.label.is_empty() {
        format!(" at {}", place(places, finding.site.as_ref(), &finding.label))
    } else {
        String::new()
    };
    // Without a device that was recorded there is none to name.
    let on = if analysis.devices.is_empty() {
        String::new()
    } else {
        format!(" on {}", words::device(finding.rank, finding.device))
    };
    out.push_str(&format!(
        "### {n}. {}{at}{on} ({})\n\n{}\n\n",
        words::kind(&finding.kind),
        words::confidence(finding.confidence),
        sentence(&finding.title)
    ));
    let figures = words::figures(analysis, finding);
    if !figures.is_empty() {
        out.push_str(&format!("**{}**\n\n", figures.join(" · ")));
    }
    // Those that weigh less are told with their figures only.
    let Some(excerpts) = excerpts else { return };
    let excerpt = finding.site.as_ref().and_then(|site| Some((site, excerpts.get(site)?)));
    if let Some((site, excerpt)) = excerpt {
        let lines: Vec<String> = excerpt
            .lines
            .iter()
            .map(|(number, text)| {
                let here = if *number == site.line && excerpt.doubt.is_none() {
                    "  # <- allocated here"
                } else {
                    ""
                };
                format!("{text}{here}")
            })
            .collect();
        out.push_str(&block("python", &lines.join("\n")));
        if let Some(doubt) = &excerpt.doubt {
            out.push_str(&format!("\n{}\n", sentence(doubt)));
        }
        out.push('\n');
    }
    if let Some(found) = &finding.holder {
        let holder = &found.holder;
        let figures = format!("{} ({})", chain::figures(holder), words::joined(found));
        out.push_str(&format!(
            "Holder: {}{}: {}\n\n",
            code(&holder.path),
            chain::through(holder),
            escaped(&figures)
        ));
        out.push_str(&others(holder));
        if (n == 1 || verbose) && !holder.chain.is_empty() {
            out.push_str(&format!("{}\n", picture(holder, verbose)));
        }
    }
    if let Some(found) = &finding.pattern {
        pattern(out, found);
    }
    if !finding.evidence.is_empty() {
        out.push_str("Why:\n\n");
        bullets(out, &finding.evidence);
    }
    if let Some(found) = finding.fragmentation.as_ref().filter(|found| found.failed_fits > 0) {
        out.push_str(&format!("Failed fits over the run: {}.\n\n", words::fits(found)));
    }
    if let Some(found) = finding.shortfall.as_ref().filter(|_| verbose) {
        shortfall(out, found, places);
    }
    if !finding.companions.is_empty() {
        out.push_str("Grows at the same steps:\n\n");
        for c in &finding.companions {
            let at = place(places, c.site.as_ref(), &c.label);
            out.push_str(&format!("- {at}: {} in {}\n", human(c.bytes), counted(c.blocks, "block")));
        }
        out.push('\n');
    }
    if !finding.advice.is_empty() {
        out.push_str("Next:\n\n");
        bullets(out, &finding.advice);
    }
    if !finding.stack.is_empty() {
        let frames: Vec<String> = finding.stack.iter().map(|frame| places.full(&frame.location)).collect();
        let text = block("", &frames.join("\n"));
        out.push_str(&format!(
            "<details><summary>Stack, innermost frame first</summary>\n\n{text}\n</details>\n\n"
        ));
    }
}

/// The pattern in the source code, with its fix as a diff.
fn pattern(out: &mut String, pattern: &Pattern) {
    let found = &pattern.found;
    out.push_str(&format!(
        "Pattern: {} at {}, {}: {}\n\n",
        code(&format!("{} {}", found.code, found.name)),
        code(&spelled(&found.file, Some(found.start))),
        sentence(&words::matched(pattern)),
        sentence(&found.message)
    ));
    match (&found.fix, &pattern.change) {
        _ if pattern.leaves_data => out.push_str(&format!("Do: {}\n\n", sentence(words::LEAVES_DATA))),
        (Some(fix), Some(change)) => {
            out.push_str(&format!("Fix ({}): {}\n\n", fix.applicability.name(), sentence(&fix.message)));
            let diff = unified::render(&found.file, &change.before, &change.after, Palette::Plain);
            out.push_str(&format!("{}\n", block("diff", diff.trim_end())));
        }
        _ => out.extend(found.advice.iter().map(|advice| format!("Do: {}\n\n", sentence(advice)))),
    }
}

/// Who held what when a request failed, and what was free where.
fn shortfall(out: &mut String, found: &Shortfall, places: &Places) {
    let mut rows: Vec<Vec<String>> = found
        .sites
        .iter()
        .map(|s| vec![place(places, s.site.as_ref(), &s.label), human(s.bytes), counted(s.blocks, "block")])
        .collect();
    if found.other_places > 0 {
        let others = counted(found.other_places, "other place");
        rows.push(vec![others, human(found.other_bytes), String::new()]);
    }
    out.push_str(&table(&["held when the request failed", "", ""], &rows));
    out.push('\n');
    let rows: Vec<Vec<String>> = found
        .pools
        .iter()
        .map(|pool| {
            let bytes = [pool.reserved, pool.allocated, pool.releasable, pool.stranded, pool.largest_free];
            std::iter::once(pool_name(pool)).chain(bytes.into_iter().map(human)).collect()
        })
        .collect();
    out.push_str(&table(&["for", "reserved", "held", "releasable", "stranded", "largest free"], &rows));
    out.push('\n');
}

/// All devices, a row each.
fn overview(out: &mut String, devices: &[DeviceAnalysis]) {
    let rows: Vec<Vec<String>> = devices
        .iter()
        .map(|device| {
            vec![
                words::device(device.rank, device.device),
                human(device.balance.reserved),
                human(device.balance.allocated),
                device.peak.as_ref().map_or_else(|| "unknown".to_owned(), |peak| human(peak.allocated)),
                grouped(device.events),
                grouped(device.steps.count),
            ]
        })
        .collect();
    out.push_str(&table(&["device", "reserved", "allocated", "peak", "events", "steps"], &rows));
    out.push('\n');
}

fn one_device(out: &mut String, device: &DeviceAnalysis, places: &Places, top: usize, whole: bool) {
    let balance = &device.balance;
    out.push_str(&format!("### {}\n\n", words::device(device.rank, device.device)));
    let mut rows = Vec::new();
    let mut row = |name: String, bytes: u64| {
        rows.push(vec![name, human(bytes), grouped(bytes), share(bytes, balance.reserved)]);
    };
    row(format!("reserved, in {}", counted(balance.segments, "segment")), balance.reserved);
    row("– allocated".into(), balance.allocated);
    let (shown, rest) = balance.sites.split_at(top.min(balance.sites.len()));
    for site in shown {
        row(format!("– – {}", place(places, site.site.as_ref(), &site.label)), site.bytes);
    }
    if !rest.is_empty() {
        row(
            format!("– – {}", counted(rest.len() as u64, "other place")),
            rest.iter().map(|site| site.bytes).sum(),
        );
    }
    let parts = [
        (format!("– – {}", words::before(device)), balance.before_recording),
        ("– – rounding up to block sizes".into(), balance.rounding.unwrap_or(0)),
        ("– pending free".into(), balance.pending),
        ("– free".into(), balance.free),
        ("– – releasable (whole segments and pages)".into(), balance.releasable),
        ("– – stranded (in segments partly in use)".into(), balance.stranded),
    ];
    for (name, bytes) in parts.into_iter().filter(|&(_, bytes)| bytes > 0) {
        row(name, bytes);
    }
    out.push_str(&table(&["at the end", "", "bytes", "share"], &rows));
    out.push('\n');
    if let Some(peak) = &device.peak {
        let mut text = format!(
            "Peak: {} allocated {}, when {} was reserved",
            human(peak.allocated),
            words::peak_moment(device, peak),
            human(peak.reserved)
        );
        if peak.max_reserved > peak.reserved {
            text.push_str(&format!("; at most {} was reserved", human(peak.max_reserved)));
        }
        if let (false, Some(most)) = (whole, peak.sites.first()) {
            let at = place(places, most.site.as_ref(), &most.label);
            text.push_str(&format!("; most of it, {}, by {at}", human(most.bytes)));
        }
        out.push_str(&format!("{text}.\n\n"));
        let rows: Vec<Vec<String>> = peak
            .sites
            .iter()
            .take(if whole { top } else { 0 })
            .map(|site| {
                let at = place(places, site.site.as_ref(), &site.label);
                vec![at, human(site.bytes), share(site.bytes, peak.allocated), grouped(site.blocks)]
            })
            .collect();
        if !rows.is_empty() {
            out.push_str(&table(&["at the peak", "as blocks", "share", "blocks"], &rows));
            if peak.sites.len() > rows.len() {
                let more = counted((peak.sites.len() - rows.len()) as u64, "more place");
                out.push_str(&format!("\n{more} left out.\n"));
            }
            out.push('\n');
        }
    }
    if let Some(text) = device.capacity.as_ref().and_then(words::capacity) {
        out.push_str(&format!("Room: {}\n\n", sentence(&text)));
    }
    steps(out, device);
    let changed: Vec<String> =
        settings::changed(&device.settings).iter().map(|setting| code(setting)).collect();
    if !changed.is_empty() {
        out.push_str(&format!("Allocator settings: {}\n\n", changed.join(", ")));
    }
}

/// What was held in the regions that the program marked.
fn phases(out: &mut String, device: &DeviceAnalysis) {
    if !device.phases.is_empty() {
        let rows: Vec<Vec<String>> = device
            .phases
            .iter()
            .map(|phase| {
                vec![
                    code(&phase.name),
                    grouped(phase.count),
                    human(phase.peak_allocated),
                    signed(i128::from(phase.mean_change)),
                    human(phase.survived),
                ]
            })
            .collect();
        out.push_str(&table(&["phase", "runs", "peak", "mean change", "still held"], &rows));
        out.push('\n');
    }
}

fn steps(out: &mut String, device: &DeviceAnalysis) {
    let mut facts = vec![match device.steps.count {
        0 => "Steps: none found".to_owned(),
        n => format!("Steps: {}, by {}", grouped(n), sentence(&device.steps.source)),
    }];
    facts.extend(
        device.duration_us.map(|us| format!("{} over {}", counted(device.events, "event"), clock::span(us))),
    );
    let values = &device.allocated_at_steps;
    if let (Some(first), Some(last)) = (values.first(), values.last()) {
        facts.push(format!("allocated {} at first, {} at last", human(*first), human(*last)));
    }
    if let Some(percent) = device.fluctuation_pct {
        facts.push(format!("once steady {}", words::fluctuation(percent)));
    }
    out.push_str(&format!("{}.\n\n", facts.join("; ")));
}
