//! What the files of a project know of one another: their classes, what functions return, who calls what.

use std::sync::{Arc, OnceLock};

use rustc_hash::{FxHashMap, FxHashSet};

use crate::{
    facts::{Callee, Facts},
    flow::{
        catalogue_is_module,
        value::{Class, FileId, Value},
    },
    keeping::{KeptParameter, kept_parameters},
    names::{ClassId, Definition, FunctionId, Names, Path, ScopeId, Usage, Use, method_name},
};

/// How far imports of imports and bases of bases are followed.
const HOPS: usize = 12;

/// All files, as seen from outside.
#[derive(Default)]
pub(crate) struct Project {
    modules: FxHashMap<String, FileId>,
    /// The first parts of their names: most imports are of something else.
    roots: FxHashSet<String>,
    files: Vec<FileSummary>,
    /// Whether all files are known.
    is_complete: bool,
    /// Names of attributes that are emptied or given up somewhere: `….clear()`, `del ….x[i]`, `….x = []` outside `__init__`.
    pub(crate) emptied: FxHashSet<String>,
}

/// A file as seen from others.
#[derive(Default)]
pub(crate) struct FileSummary {
    exports: FxHashMap<String, Export>,
    functions: Vec<Value>,
    classes: Vec<ClassSummary>,
    /// What its methods keep of what they are called with.
    kept: FxHashMap<FunctionId, Vec<KeptParameter>>,
    /// Attributes that it empties.
    emptied: Vec<String>,
}

struct ClassSummary {
    bases: Vec<Base>,
    /// Its ancestors, once somebody has asked; only what is final is put in here.
    lineage: OnceLock<Arc<Lineage>>,
    methods: FxHashMap<String, FunctionId>,
    attributes: FxHashMap<String, Value>,
}

/// A class and what it derives from.
#[derive(Default)]
struct Lineage {
    /// Those of the project, the class itself first.
    own: Vec<(FileId, ClassId)>,
    /// The dotted names of the others.
    foreign: Vec<String>,
}

enum Base {
    Own(ClassId),
    Imported(String),
}

enum Export {
    Class(ClassId),
    Function(FunctionId),
    Value(Value),
    Imported(String),
}

impl FileSummary {
    pub(crate) fn of(names: &Names<'_>, facts: &Facts<'_>) -> Self {
        let mut exports = FxHashMap::default();
        #[expect(clippy::iter_over_hash_type, reason = "what comes of it is a map again")]
        for (name, entry) in &names.scope(ScopeId::MODULE).names {
            let export = entry.definitions.iter().find_map(|it| match it {
                Definition::Import(path) => Some(Export::Imported(path.to_string())),
                Definition::Class(id) => Some(Export::Class(*id)),
                Definition::Function(id) => Some(Export::Function(*id)),
                _ => None,
            });
            let export = export.or_else(|| match facts.names.get(&(FunctionId::MODULE, *name)) {
                Some(value) if !value.is_unknown() => Some(Export::Value(value.clone())),
                _ => None,
            });
            if let Some(export) = export {
                exports.insert((*name).to_owned(), export);
            }
        }
        let classes = (0..names.classes.len() as u32)
            .map(|index| {
                let id = ClassId(index);
                let class = names.class(id);
                let own = names.local_bases(id).into_iter().map(Base::Own);
                let imported = names.external_bases(id).into_iter().map(|it| Base::Imported(it.to_string()));
                ClassSummary {
                    lineage: OnceLock::new(),
                    bases: own.chain(imported).collect(),
                    methods: class.methods.iter().map(|(name, id)| ((*name).to_owned(), *id)).collect(),
                    attributes: facts
                        .attributes
                        .iter()
                        .filter(|((class, _), value)| *class == id && !value.is_unknown())
                        .map(|((_, name), value)| ((*name).to_owned(), value.clone()))
                        .collect(),
                }
            })
            .collect();
        Self {
            exports,
            functions: facts.functions.iter().map(|it| it.returns.clone()).collect(),
            classes,
            kept: kept_parameters(names, facts),
            emptied: names
                .attributes
                .iter()
                .filter(|(_, uses)| empties(names, uses))
                .map(|(it, _)| (*it).to_owned())
                .collect(),
        }
    }
}

/// Whether one of these uses takes out again what was put into an attribute, or gives it a new value.
fn empties(names: &Names<'_>, uses: &[Use<'_>]) -> bool {
    uses.iter().any(|it| match it.usage {
        Usage::Method(call) => {
            matches!(method_name(call), "clear" | "pop" | "popleft" | "popitem" | "remove" | "discard")
        }
        Usage::ItemDeleted | Usage::Deleted => true,
        Usage::Stored => names.function(it.function).name != "__init__",
        _ => false,
    })
}

impl Project {
    /// A project of modules with these dotted names, of which nothing else is known yet.
    pub(crate) fn of(modules: impl Iterator<Item = String>) -> Self {
        let modules: FxHashMap<String, FileId> =
            modules.enumerate().map(|(index, it)| (it, FileId(index as u32))).collect();
        let roots = modules.keys().map(|it| it.split('.').next().unwrap_or(it).to_owned()).collect();
        let files = (0..modules.len()).map(|_| FileSummary::default()).collect();
        Self { modules, roots, files, is_complete: false, emptied: FxHashSet::default() }
    }

    /// Adds what is known of a file.
    pub(crate) fn add(&mut self, file: FileId, summary: FileSummary) {
        self.emptied.extend(summary.emptied.iter().cloned());
        let index = file.0 as usize;
        if self.files.len() <= index {
            // Two files of the same dotted name.
            self.files.resize_with(index + 1, FileSummary::default);
        }
        self.files[index] = summary;
    }

    /// Says that all files were added.
    pub(crate) fn complete(&mut self) {
        self.is_complete = true;
    }

    /// The file of the project that an import reads: the longest beginning of its dotted name that is a module.
    pub(crate) fn imported(&self, path: &Path<'_>) -> Option<FileId> {
        if !self.may_know(path) {
            return None;
        }
        let mut path = *path;
        while !path.parts().is_empty() {
            if let Some(file) = self.modules.get(&path.dotted()) {
                return Some(*file);
            }
            path.pop();
        }
        None
    }

    /// Whether a dotted name begins as one of the project does.
    pub(crate) fn may_know(&self, path: &Path<'_>) -> bool {
        self.roots.contains(path.first())
    }

    /// What a dotted name means in the project; unknown if it is not of the project.
    pub(crate) fn lookup(&self, path: &Path<'_>) -> Value {
        if !self.may_know(path) {
            return Value::Unknown;
        }
        self.lookup_text(&path.dotted(), HOPS)
    }

    fn lookup_text(&self, path: &str, hops: usize) -> Value {
        let Some(hops) = hops.checked_sub(1) else { return Value::Unknown };
        let mut end = path.len();
        while let Some(dot) = path.get(..end).and_then(|it| it.rfind('.')) {
            let (module, rest) = (&path[..dot], &path[dot + 1..]);
            if let Some(file) = self.modules.get(module) {
                return self.exported(*file, rest, hops);
            }
            end = dot;
        }
        Value::Unknown
    }

    fn exported(&self, file: FileId, rest: &str, hops: usize) -> Value {
        let (name, inner) = rest.split_once('.').map_or((rest, None), |(name, inner)| (name, Some(inner)));
        let Some(summary) = self.file(file) else { return Value::Unknown };
        match (summary.exports.get(name), inner) {
            (Some(Export::Class(id)), None) => Value::Type(Class::Project(file, *id)),
            (Some(Export::Class(id)), Some(method)) => self
                .class(file, *id)
                .and_then(|it| it.methods.get(method))
                .map_or(Value::Unknown, |it| Value::Function(file, *it)),
            (Some(Export::Function(id)), None) => Value::Function(file, *id),
            (Some(Export::Value(value)), None) => value.clone(),
            (Some(Export::Imported(path)), None) => self.lookup_text(path, hops),
            (Some(Export::Imported(path)), Some(inner)) => self.lookup_text(&format!("{path}.{inner}"), hops),
            _ => Value::Unknown,
        }
    }

    fn file(&self, id: FileId) -> Option<&FileSummary> {
        self.files.get(id.0 as usize)
    }

    fn class(&self, file: FileId, id: ClassId) -> Option<&ClassSummary> {
        self.file(file)?.classes.get(id.0 as usize)
    }

    /// What a function returns.
    pub(crate) fn returns(&self, file: FileId, id: FunctionId) -> Value {
        self.file(file).and_then(|it| it.functions.get(id.0 as usize)).cloned().unwrap_or_default()
    }

    /// The parameters that a method puts into its object, with their graphs.
    pub(crate) fn kept_parameters(&self, file: FileId, id: FunctionId) -> &[KeptParameter] {
        self.file(file).and_then(|it| it.kept.get(&id)).map_or(&[], Vec::as_slice)
    }

    /// What a class is and derives from. It is worked out once for each class as soon as all files are known.
    fn lineage(&self, class: &Class) -> Arc<Lineage> {
        match class {
            Class::Project(file, id) if self.is_complete => match self.class(*file, *id) {
                Some(summary) => {
                    Arc::clone(summary.lineage.get_or_init(|| Arc::new(self.find_lineage(class))))
                }
                None => Arc::default(),
            },
            _ => Arc::new(self.find_lineage(class)),
        }
    }

    fn find_lineage(&self, class: &Class) -> Lineage {
        let mut found = Lineage::default();
        let mut waiting = vec![class.clone()];
        while let Some(class) = waiting.pop() {
            match class {
                Class::External(path) => match self.lookup_text(&path, HOPS) {
                    Value::Type(found) => waiting.push(found),
                    _ => found.foreign.push(path.to_string()),
                },
                Class::Project(file, id) => {
                    if found.own.contains(&(file, id)) || found.own.len() > 64 {
                        continue;
                    }
                    found.own.push((file, id));
                    for base in self.class(file, id).into_iter().flat_map(|it| &it.bases) {
                        waiting.push(match base {
                            Base::Own(id) => Class::Project(file, *id),
                            Base::Imported(path) => Class::External(path.as_str().into()),
                        });
                    }
                }
            }
        }
        found
    }

    /// The dotted names of the bases of a class that are not of the project, directly or by way of others.
    pub(crate) fn foreign_bases(&self, class: &Class) -> Vec<String> {
        self.lineage(class).foreign.clone()
    }

    /// Whether a class is one of modules (`torch.nn.Module` and what derives from it).
    pub(crate) fn is_module(&self, class: &Class) -> bool {
        self.lineage(class).foreign.iter().any(|it| catalogue_is_module(it))
    }

    /// A method of a class, its own or inherited.
    pub(crate) fn method(&self, class: &Class, name: &str) -> Option<(FileId, FunctionId)> {
        let lineage = self.lineage(class);
        lineage.own.iter().find_map(|(file, id)| Some((*file, *self.class(*file, *id)?.methods.get(name)?)))
    }

    /// The function of the project that runs when something is called: of an object its `forward`, of a class its `__init__`.
    pub(crate) fn called(&self, callee: &Callee<'_>) -> Option<(FileId, FunctionId)> {
        match callee {
            Callee::Function(file, id) => Some((*file, *id)),
            Callee::Method { name, value: Value::Object(class), .. } => self.method(class, name),
            Callee::Object(Value::Object(class)) => {
                self.method(class, "forward").or_else(|| self.method(class, "__call__"))
            }
            Callee::Class(class) => self.method(class, "__init__"),
            _ => None,
        }
    }

    /// What an attribute of instances of a class is.
    pub(crate) fn attribute(&self, class: &Class, name: &str) -> Value {
        let lineage = self.lineage(class);
        lineage
            .own
            .iter()
            .find_map(|&(file, id)| {
                let class = self.class(file, id)?;
                class
                    .attributes
                    .get(name)
                    .cloned()
                    .or_else(|| class.methods.get(name).map(|it| Value::Function(file, *it)))
            })
            .unwrap_or_default()
    }
}
