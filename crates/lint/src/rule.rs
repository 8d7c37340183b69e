//! What a rule is, and the list of all of them.

use std::fmt::Write as _;

use crate::{context::Context, diagnostic::Diagnostic, diagnostic::Severity, fix::Applicability};

/// A pattern that keeps memory, how it is recognised, and its page.
#[derive(Debug)]
pub struct Rule {
    /// `LK` and three digits; never changes and is never used again.
    pub code: &'static str,
    /// Kebab-case, named by the pattern.
    pub name: &'static str,
    /// The libraries whose users it concerns.
    pub frameworks: &'static [Framework],
    /// The worst that it reports.
    pub severity: Severity,
    /// Whether it runs without being selected: rules that are often wrong do not.
    pub default: bool,
    /// The best fix that it offers.
    pub fix: Option<Applicability>,
    /// Looks at one file.
    pub(crate) check: fn(&Context<'_>, &mut Vec<Diagnostic>),
}

/// The libraries that rules know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Framework {
    /// Python itself: any framework.
    Any,
    /// PyTorch.
    Torch,
    /// Hugging Face's transformers, accelerate, diffusers, peft, …
    HuggingFace,
    /// Lightning and torchmetrics.
    Lightning,
    /// TensorFlow and Keras.
    TensorFlow,
    /// ONNX Runtime.
    OnnxRuntime,
    /// JAX.
    Jax,
    /// Jupyter notebooks.
    Notebook,
    /// What serves models: `FastAPI`, Streamlit, vLLM, Ray, …
    Serving,
}

impl Framework {
    /// Its name as its makers write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Any => "Python",
            Self::Torch => "PyTorch",
            Self::HuggingFace => "Hugging Face",
            Self::Lightning => "Lightning",
            Self::TensorFlow => "TensorFlow",
            Self::OnnxRuntime => "ONNX Runtime",
            Self::Jax => "JAX",
            Self::Notebook => "notebooks",
            Self::Serving => "serving",
        }
    }
}

/// A rule and the text of its file, which begins with its page.
pub(crate) struct Registered {
    pub(crate) rule: &'static Rule,
    pub(crate) source: &'static str,
}

/// Every rule, in the order of codes.
pub fn rules() -> impl Iterator<Item = &'static Rule> {
    crate::rules::all().map(|registered| registered.rule)
}

/// The rule with this code (in any case) or this name.
pub fn find_rule(code_or_name: &str) -> Option<&'static Rule> {
    rules().find(|rule| rule.code.eq_ignore_ascii_case(code_or_name) || rule.name == code_or_name)
}

impl Rule {
    /// One line about what it finds.
    pub fn summary(&self) -> &'static str {
        self.source()
            .lines()
            .find_map(|line| line.strip_prefix("//! "))
            .map_or("", |line| line.trim_end_matches('.'))
    }

    /// Its documentation as Markdown: what it finds, why that matters and what it costs, an example, the fix, sources.
    pub fn page(&self) -> String {
        let mut page = format!("# {} ({})\n\n", self.name, self.code);
        let frameworks: Vec<_> = self.frameworks.iter().map(|it| it.name()).collect();
        let fix = self.fix.map_or("none, advice only".to_owned(), |it| it.name().to_owned());
        let default = if self.default { "on" } else { "off; turn it on with `--select`" };
        let _ = writeln!(
            page,
            "{} · at worst {} · by default {default} · fix: {fix}\n",
            frameworks.join(", "),
            self.severity.name()
        );
        for line in self.source().lines() {
            let Some(text) = line.strip_prefix("//!") else { break };
            page.push_str(text.strip_prefix(' ').unwrap_or(text));
            page.push('\n');
        }
        page
    }

    fn source(&self) -> &'static str {
        crate::rules::all().find(|it| std::ptr::eq(it.rule, self)).map_or("", |it| it.source)
    }
}
