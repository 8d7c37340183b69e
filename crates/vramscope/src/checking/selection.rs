//! Which rules run: selectors as people write them, and how those of the project and of the command line go together.

use vramscope_lint::{Rule, Selection, find_rule, rules};

use crate::failure::Failure;

/// What to do about a selector that names nothing.
pub(crate) const HINT: &str = "`vramscope rule` lists them all; a beginning such as `LK1` stands for all rules whose codes begin with it";

/// Names one or more rules.
#[derive(Clone, Debug)]
pub(crate) enum Selector {
    /// `ALL`
    All,
    /// The beginning of codes, in upper case.
    Beginning(String),
    /// One rule, by its code or name.
    One(&'static Rule),
}

impl Selector {
    /// Reads a selector; nothing if there is no such rule.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        if text.eq_ignore_ascii_case("ALL") {
            return Some(Self::All);
        }
        if let Some(rule) = find_rule(text) {
            return Some(Self::One(rule));
        }
        let beginning = text.to_ascii_uppercase();
        let is_one = beginning.starts_with("LK") && rules().any(|rule| rule.code.starts_with(&beginning));
        is_one.then_some(Self::Beginning(beginning))
    }

    /// Reads several from the command line.
    pub(crate) fn parse_all(texts: &[String]) -> anyhow::Result<Vec<Self>> {
        let parse = |text: &String| {
            Self::parse(text)
                .ok_or_else(|| Failure::error(format!("there is no rule `{}`", text.trim()), HINT))
        };
        texts.iter().map(parse).collect()
    }

    pub(crate) fn covers(&self, rule: &Rule) -> bool {
        self.exactness(rule).is_some()
    }

    /// How exactly it names that rule, if it does.
    fn exactness(&self, rule: &Rule) -> Option<usize> {
        match self {
            Self::All => Some(0),
            Self::Beginning(beginning) => {
                rule.code.starts_with(beginning.as_str()).then_some(beginning.len())
            }
            Self::One(one) => (one.code == rule.code).then_some(usize::MAX),
        }
    }
}

/// Which rules run, as one who sets it says it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Choice {
    /// Instead of those that are on by default.
    pub(crate) select: Option<Vec<Selector>>,
    /// Besides.
    pub(crate) extend: Vec<Selector>,
    /// Not.
    pub(crate) ignore: Vec<Selector>,
}

impl Choice {
    /// Whether a rule runs that would run without this as `before` says.
    fn is_on(&self, rule: &Rule, before: bool) -> bool {
        let exactness = |selectors: &[Selector]| selectors.iter().filter_map(|one| one.exactness(rule)).max();
        let base = match &self.select {
            Some(selected) => exactness(selected),
            None => before.then_some(0),
        };
        let wanted = base.max(exactness(&self.extend));
        // What is named equally exactly in both is not wanted.
        wanted.is_some_and(|wanted| exactness(&self.ignore).is_none_or(|unwanted| wanted > unwanted))
    }
}

/// The rules that run by the project's choice and then the command line's, whose `select` makes the former's void.
pub(crate) fn selection(
    project: &Choice,
    flags: &Choice,
    is_of_interest: impl Fn(&Rule) -> bool,
) -> Selection {
    Selection::of(|rule| is_of_interest(rule) && flags.is_on(rule, project.is_on(rule, rule.default)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selectors(texts: &str) -> Vec<Selector> {
        texts.split_whitespace().map(|text| Selector::parse(text).unwrap()).collect()
    }

    fn choice(select: Option<&str>, extend: &str, ignore: &str) -> Choice {
        Choice { select: select.map(selectors), extend: selectors(extend), ignore: selectors(ignore) }
    }

    /// Whether the first rule, which is on by default, is on.
    fn is_on(project: &Choice, flags: &Choice) -> bool {
        let first = rules().next().unwrap();
        selection(project, flags, |_| true).rules().any(|rule| rule.code == first.code)
    }

    #[test]
    fn selectors_are_codes_beginnings_names_and_all() {
        let first = rules().next().unwrap();
        assert!(first.default);
        for text in [first.code, &first.code.to_lowercase(), first.name, " ALL", "all", "LK1", "lk"] {
            assert!(Selector::parse(text).is_some_and(|selector| selector.covers(first)), "{text}");
        }
        for text in ["", "L", "LK0000", "nothing", "K1"] {
            assert!(Selector::parse(text).is_none(), "{text}");
        }
        let error = Selector::parse_all(&["ALL".into(), "LK9999".into()]).unwrap_err();
        assert_eq!(error.to_string(), "there is no rule `LK9999`");
    }

    #[test]
    fn the_more_exact_selector_wins_and_flags_win_over_the_project() {
        let code = rules().next().unwrap().code;
        let none = Choice::default();
        for (project, flags, want) in [
            (none.clone(), none.clone(), true),
            (choice(None, "", "ALL"), none.clone(), false),
            (choice(None, code, "LK1"), none.clone(), true),
            (choice(Some("LK1"), "", "LK1"), none.clone(), false),
            (choice(Some("ALL"), "", code), none.clone(), false),
            (choice(Some(""), "", ""), none.clone(), false),
            (choice(None, "", code), choice(Some("LK1"), "", ""), true),
            (choice(None, "", code), choice(None, "ALL", ""), true),
            (choice(Some("ALL"), "", ""), choice(None, "", "LK"), false),
            (choice(None, "", "ALL"), choice(None, code, "LK"), true),
        ] {
            assert_eq!(is_on(&project, &flags), want, "{project:?} {flags:?}");
        }
    }
}
