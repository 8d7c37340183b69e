//! One finding: what, where, how much, why, what to do.

use vramscope_view::analysis::{Analysis, Finding, Location, Severity};

use super::{INDENT, Layout, explained, left_out, pattern, recorded};
use crate::bytes::{counted, human};
use crate::excerpt::Excerpt;
use crate::page::Page;
use crate::place::Places;
use crate::style::{Role, Span, shortened};
use crate::words;

/// How many companions are named.
const COMPANIONS: usize = 3;

/// Writes a finding whole.
pub(super) fn write(page: &mut Page, n: usize, finding: &Finding, context: &Context<'_>) {
    head(page, n, finding, context);
    page.paragraph(Span::new(Role::Plain, "   "), 3, &finding.title);
    figures(page, finding, context);
    let excerpt = finding.site.as_ref().and_then(|site| context.layout.excerpts.get(site));
    if let (Some(site), Some(excerpt)) = (&finding.site, excerpt) {
        source(page, site, excerpt);
    }
    stack(page, finding, context);
    if let Some(found) = &finding.holder {
        recorded::holder(page, found, n == 1 || context.layout.verbose, context.layout);
    }
    if let Some(found) = &finding.pattern {
        pattern::write(page, found);
    }
    list(page, "why", &finding.evidence);
    if let Some(found) = &finding.fragmentation {
        explained::fragmentation(page, found);
    }
    if let Some(found) = &finding.shortfall {
        explained::shortfall(page, found, context.layout, context.places);
    }
    companions(page, finding, context);
    if !finding.related.is_empty() {
        let numbers: Vec<String> = finding.related.iter().map(|i| (i + 1).to_string()).collect();
        page.paragraph(
            Span::new(Role::Dim, "   see"),
            INDENT + 2,
            &format!("finding {}, which belongs with it", numbers.join(", ")),
        );
    }
    list(page, "next", &finding.advice);
}

/// Writes the head of a finding and its figures only.
pub(super) fn write_short(page: &mut Page, n: usize, finding: &Finding, context: &Context<'_>) {
    head(page, n, finding, context);
    page.paragraph(Span::new(Role::Plain, "   "), 3, &finding.title);
    if finding.severity != Severity::Info {
        figures(page, finding, context);
    }
    if let Some(found) = &finding.holder {
        recorded::holder_in_short(page, found);
    }
    if let Some(found) = &finding.pattern {
        pattern::write_short(page, found);
    }
}

/// What all findings of a page share.
pub(super) struct Context<'a> {
    pub(super) analysis: &'a Analysis,
    pub(super) layout: &'a Layout<'a>,
    pub(super) places: &'a Places,
    /// Whether the device must be named.
    pub(super) many_devices: bool,
}

fn head(page: &mut Page, n: usize, finding: &Finding, context: &Context<'_>) {
    let place = context.places.or_label(finding.site.as_ref(), &finding.label);
    let mut left = vec![
        Span::new(Role::Heading, format!("{n}  ")),
        Span::new(words::severity(finding.severity), words::kind(&finding.kind)),
        "  ".into(),
    ];
    if finding.site.is_some() || !finding.label.is_empty() {
        left.push(Span::new(Role::Path, place));
    }
    if context.many_devices {
        left.push(format!("  on {}", words::device(finding.rank, finding.device)).into());
    }
    page.ends(left, Span::new(Role::Dim, words::confidence(finding.confidence)));
}

fn figures(page: &mut Page, finding: &Finding, context: &Context<'_>) {
    let figures = words::figures(context.analysis, finding);
    if !figures.is_empty() {
        let last = figures.len() - 1;
        let pieces: Vec<String> = figures
            .iter()
            .enumerate()
            .map(|(i, f)| if i < last { format!("{f} ·") } else { f.clone() })
            .collect();
        page.pieces(Span::new(Role::Plain, "   "), 3, Role::Heading, &pieces);
    }
}

/// The lines around the place.
fn source(page: &mut Page, site: &Location, excerpt: &Excerpt) {
    let digits = excerpt.lines.iter().map(|(n, _)| n.to_string().len()).max().unwrap_or(1);
    // What all lines are indented by says nothing.
    let common = excerpt
        .lines
        .iter()
        .filter(|(_, text)| !text.trim().is_empty())
        .map(|(_, text)| text.len() - text.trim_start().len())
        .min()
        .unwrap_or(0);
    for (number, text) in &excerpt.lines {
        let text = text.get(common..).unwrap_or("").trim_end().replace('\t', "    ");
        // An arrow would vouch for a line that cannot be the one.
        let here = *number == site.line && excerpt.doubt.is_none();
        let role = if here { Role::Plain } else { Role::Dim };
        let mut line = vec![
            Span::new(Role::Dim, format!("     {number:>digits$} │ ")),
            Span::new(role, shortened(&text, page.width().saturating_sub(digits + 8))),
        ];
        if here {
            let room = line.iter().map(Span::width).sum::<usize>() + 21 <= page.width();
            line.push(Span::new(Role::Warn, if room { "   ← allocated here" } else { "  ←" }));
        }
        page.line(line);
    }
    if let Some(doubt) = &excerpt.doubt {
        page.paragraph(Span::new(Role::Warn, "   note"), INDENT, doubt);
    }
}

/// The user's frames that led there; with `-v` every frame.
fn stack(page: &mut Page, finding: &Finding, context: &Context<'_>) {
    let label = Span::new(Role::Dim, "   from");
    if context.layout.verbose && !finding.stack.is_empty() {
        let mut label = label;
        for frame in &finding.stack {
            let role = if frame.is_user { Role::Path } else { Role::Dim };
            let text = context.places.full(&frame.location);
            page.pieces(std::mem::take(&mut label), INDENT + 2, role, &[text]);
        }
        return;
    }
    // The first of the user's frames is the place itself.
    let mut pieces = words::callers(&finding.stack, context.places, usize::from(finding.site.is_some()));
    let is_called =
        finding.stack.iter().filter(|frame| frame.is_user).count() > usize::from(finding.site.is_some());
    let label = if is_called { label } else { Span::new(Role::Dim, "   in") };
    if !is_called && finding.block_size.is_none() && finding.blocks > 1 && !pieces.is_empty() {
        // Blocks of several sizes come from several calls, of which the stack is one.
        pieces.insert(0, "for example".to_owned());
    }
    if !pieces.is_empty() {
        page.pieces(label, INDENT + 2, Role::Plain, &pieces);
    }
}

fn list(page: &mut Page, label: &str, sentences: &[String]) {
    let mut label = Span::new(Role::Dim, format!("   {label}"));
    for sentence in sentences {
        page.paragraph(std::mem::take(&mut label), INDENT + 2, sentence);
    }
}

fn companions(page: &mut Page, finding: &Finding, context: &Context<'_>) {
    if finding.companions.is_empty() {
        return;
    }
    let most = if context.layout.verbose { usize::MAX } else { COMPANIONS };
    let mut pieces: Vec<String> = finding
        .companions
        .iter()
        .take(most)
        .map(|c| {
            let place = context.places.or_label(c.site.as_ref(), &c.label);
            format!("{place} ({} in {}),", human(c.bytes), counted(c.blocks, "block"))
        })
        .collect();
    match left_out(finding.companions.len(), pieces.len(), "place") {
        Some(more) => pieces.push(format!("and {more}")),
        None => {
            if let Some(last) = pieces.last_mut() {
                last.pop();
            }
        }
    }
    pieces.insert(0, "at the same steps grow".to_owned());
    page.pieces(Span::new(Role::Dim, "   with"), INDENT + 2, Role::Plain, &pieces);
}
