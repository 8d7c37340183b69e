//! `vramscope rule`.

use vramscope_report::{Excerpts, json, markdown, text};
use vramscope_view::check::rules;

use crate::args::{Format, Global, Rule};
use crate::checking::selection::Selector;
use crate::exit::ExitStatus;
use crate::printer::Printer;

pub(crate) fn run(args: &Rule, global: &Global, printer: &Printer) -> anyhow::Result<ExitStatus> {
    let selectors = Selector::parse_all(&args.rules)?;
    let is_asked = |code: &str| {
        selectors.iter().any(|one| vramscope_lint::find_rule(code).is_some_and(|rule| one.covers(rule)))
    };
    let lists = selectors.is_empty();
    let mut rules = rules();
    rules.retain(|rule| lists || is_asked(rule.code));
    let excerpts = Excerpts::default();
    let layout = printer.layout(0, global.verbose, &excerpts);
    let answer = match global.format {
        Format::Json => json::rules::render(&rules),
        Format::Markdown if lists => markdown::rules::table(&rules),
        Format::Markdown => markdown::rules::pages(&rules),
        _ if lists => text::rules::table(&rules, &layout),
        _ => text::rules::pages(&rules, &layout),
    };
    printer.answer(&answer)?;
    Ok(ExitStatus::Clean)
}
