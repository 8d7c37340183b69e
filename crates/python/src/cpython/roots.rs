//! Where paths may begin, in the order in which one would look: the user's modules, running functions and classes before those of libraries.

use vramscope_heap::{Root, RootKind};

use super::own::{Origin, Origins};
use super::{Found, FrameAt, Namespace, Options, Walk};

impl Walk<'_> {
    /// Finds out whose names the keys of dicts are.
    pub(super) fn note_namespaces(&mut self, options: &Options) {
        let mut noted: Vec<(u32, Namespace)> = Vec::new();
        let graph = &self.graph;
        for &(module, namespace) in &graph.modules {
            noted.extend(graph.find(namespace).map(|n| (n, Namespace::Module(module))));
        }
        for &class in &graph.classes {
            // SAFETY: all nodes are alive while the walk is.
            let dict = unsafe { super::memory::dict_of_type(graph.addresses[class as usize]) };
            noted.extend(dict.and_then(|d| graph.find(d)).map(|n| (n, Namespace::Class(class))));
        }
        for &local in &graph.thread_locals {
            for &all in self.edges.of(local) {
                if self.is_dict(all) && !noted.iter().any(|n| n.0 == all) {
                    noted.push((all, Namespace::AllThreads));
                    let of_one = self.edges.of(all).iter().filter(|&&n| self.is_dict(n));
                    noted.extend(of_one.map(|&n| (n, Namespace::ThreadLocal)));
                }
            }
        }
        if options.nn_module_tag != 0 {
            for &(module, tag) in &self.instances {
                if tag == options.nn_module_tag {
                    noted.extend(
                        self.registries_of(module).into_iter().map(|n| (n, Namespace::Registry(module))),
                    );
                }
            }
        }
        for (node, namespace) in noted {
            self.namespaces.entry(node).or_insert(namespace);
        }
    }

    /// The dicts in which an `nn.Module` has its children, parameters and buffers.
    fn registries_of(&self, module: u32) -> Vec<u32> {
        [c"_modules", c"_parameters", c"_buffers"]
            .into_iter()
            .filter_map(|name| self.own_attribute(module, name))
            .filter(|&registry| self.is_dict(registry))
            .collect()
    }

    /// Finds where paths begin, and what is not shown.
    pub(super) fn find_roots(&mut self, found: Found, origins: &mut Origins) {
        let mut roots: Vec<(RootKind, bool, u32)> = Vec::new();
        // Packages before what is in them, since those without a file are of their package.
        let mut modules = self.graph.modules.clone();
        modules.sort_by_key(|&(node, _)| node);
        for &(node, namespace) in &modules {
            if namespace == 0 {
                continue;
            }
            // SAFETY: a module's namespace is a dict, and lives as long as the module.
            let (name, origin) = unsafe { origins.note(namespace) };
            match origin {
                Origin::Own => roots.push((RootKind::OwnModule, name != "__main__", node)),
                Origin::Library => roots.push((RootKind::LibraryModule, false, node)),
                Origin::Tool => {
                    self.hidden.extend([Some(node), self.graph.find(namespace)].into_iter().flatten());
                }
            }
        }
        for &class in &self.graph.classes {
            // SAFETY: the node is a type that is alive.
            match unsafe { origins.of_class(self.graph.addresses[class as usize]) } {
                Origin::Own => roots.push((RootKind::OwnClass, false, class)),
                Origin::Library => roots.push((RootKind::LibraryClass, false, class)),
                Origin::Tool => self.hidden.push(class),
            }
        }
        let artificial =
            |nodes: &[u32], kind| nodes.iter().map(move |&n| (kind, false, n)).collect::<Vec<_>>();
        roots.extend(artificial(&found.exceptions, RootKind::Exception));
        roots.extend(artificial(&found.contexts, RootKind::ContextVariable));
        roots.extend(artificial(&found.dicts, RootKind::ThreadLocal));
        if let Some((node, list)) = found.exit {
            roots.extend(artificial(&[node], RootKind::AtExit));
            self.parts.insert(node, super::StatePart::Exit);
            self.parts
                .extend(list.and_then(|list| self.graph.find(list)).map(|n| (n, super::StatePart::ExitList)));
        }
        self.parts.extend(found.exceptions.into_iter().map(|n| (n, super::StatePart::Exception)));
        self.parts.extend(found.contexts.into_iter().map(|n| (n, super::StatePart::Context)));
        self.parts.extend(found.dicts.into_iter().map(|n| (n, super::StatePart::Dict)));
        for (node, globals, frame) in found.frames {
            // SAFETY: a running frame's globals are a dict that is alive.
            match unsafe { origins.of_globals(globals) } {
                Origin::Tool => self.hidden.push(node),
                _ if matches!(frame.at, FrameAt::Stack) => roots.push((RootKind::Interpreter, false, node)),
                Origin::Own => roots.push((RootKind::OwnFrame, false, node)),
                Origin::Library => roots.push((RootKind::LibraryFrame, false, node)),
            }
            self.frames.insert(node, frame);
        }
        let suspended = self.graph.generators.iter().filter(|n| !self.frames.contains_key(n));
        roots.extend(suspended.map(|&n| (RootKind::Generator, false, n)));
        // Frames come innermost first, modules and classes oldest first.
        roots.sort_by_key(|&(kind, not_main, _)| (kind, not_main));
        self.roots = roots.into_iter().map(|(kind, _, node)| Root { kind, node }).collect();
    }
}
