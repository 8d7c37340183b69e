//! What serves requests: code that runs once for each of them, for as long as the server does.

use super::Context;
use crate::{
    names::{Definition, Function, FunctionId},
    syntax::ast::Expr,
};

const APPS: &[&str] = &[
    "fastapi.FastAPI",
    "fastapi.APIRouter",
    "fastapi.routing.APIRouter",
    "flask.Flask",
    "flask.Blueprint",
    "sanic.Sanic",
    "quart.Quart",
];
const ROUTES: &[&str] = &["get", "post", "put", "route", "api_route", "websocket"];

impl Context<'_> {
    /// Whether a decorator makes a function the handler of a route of a web application of this file.
    pub(crate) fn is_route(&self, id: FunctionId) -> bool {
        let function: &Function<'_> = self.names.function(id);
        let around = function.parent.unwrap_or(FunctionId::MODULE);
        function.node.decorators().iter().any(|it| {
            let Expr::Call(call) = &it.expression else { return false };
            let Expr::Attribute(route) = &*call.func else { return false };
            let Expr::Name(app) = &*route.value else { return false };
            let definitions = self.names.name(self.scope(around), app.id.as_str());
            let is_app = definitions.is_some_and(|it| {
                it.definitions.iter().any(|it| match it {
                    Definition::Value(Expr::Call(made), _) => self
                        .path(FunctionId::MODULE, &made.func)
                        .is_some_and(|path| APPS.iter().any(|it| path.is(it))),
                    _ => false,
                })
            });
            is_app && ROUTES.contains(&route.attr.as_str())
        })
    }

    /// Whether a method is one that `TorchServe` or Cog calls for each request.
    pub(crate) fn is_handler(&self, id: FunctionId) -> bool {
        let function = self.names.function(id);
        let Some(class) = function.class else { return false };
        let bases = self.names.external_bases(class);
        bases.iter().any(|it| match it.first() {
            "ts" => it.last() == "BaseHandler" && matches!(function.name, "inference" | "handle"),
            "cog" => it.last() == "BasePredictor" && function.name == "predict",
            _ => false,
        })
    }
}
