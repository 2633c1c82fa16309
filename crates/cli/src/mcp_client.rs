//! A small MCP client over HTTP: one session, one request after another.

mod exchange;
mod place;

use anyhow::{Context, Result, bail};
use chio_mcp_edge::server_prefix;
use chio_yaml::{hint, nearest};
use serde_json::{Map, Value, json};

use exchange::Exchange;
pub(crate) use place::{Place, PlaceArgs};

use crate::outcome::Refused;

/// The version that is asked for.
const VERSION: &str = "2025-11-25";
/// How the MCP edge begins to say that a tool is not listed.
const UNKNOWN_TOOL: &str = "unknown tool";
/// How many names are told that are near to an unknown one.
const MOST_NEAR: usize = 3;
/// How many pages a list may have.
const MOST_PAGES: usize = 1000;

/// A session with a server.
pub(crate) struct McpClient {
    exchange: Exchange,
    /// What the server says about itself.
    servers: Vec<String>,
}

/// What a server let us know while we waited.
#[derive(Debug)]
pub(crate) struct Notice {
    pub(crate) method: String,
    pub(crate) params: Value,
}

impl McpClient {
    /// Begins a session.
    pub(crate) async fn connect(place: &Place) -> Result<Self> {
        let mut exchange = Exchange::new(place)?;
        let client = json!({"name": "chio", "version": env!("CARGO_PKG_VERSION")});
        let params = json!({"protocolVersion": VERSION, "capabilities": {}, "clientInfo": client});
        let begun = exchange.request("initialize", params, &mut |_| ()).await?;
        let version = begun.get("protocolVersion").and_then(Value::as_str);
        exchange.version =
            Some(version.context("expected a version of MCP, found none")?.to_owned());
        exchange.notify("notifications/initialized").await?;
        Ok(Self { exchange, servers: place.servers.clone() })
    }

    /// All tools, as the server lists them.
    pub(crate) async fn tools(&mut self) -> Result<Vec<Value>> {
        Ok(self.tools_and_problems().await?.0)
    }

    /// All tools, and what is wrong with those that are not listed.
    pub(crate) async fn tools_and_problems(&mut self) -> Result<(Vec<Value>, Vec<Value>)> {
        let (mut tools, mut problems, mut params) = (Vec::new(), Vec::new(), json!({}));
        for _ in 0..MOST_PAGES {
            let mut page = self.exchange.request("tools/list", params, &mut |_| ()).await?;
            if let Some(Value::Array(found)) = page.get_mut("tools").map(Value::take) {
                tools.extend(found);
            }
            if let Some(Value::Array(found)) =
                page.pointer_mut("/_meta/chio/problems").map(Value::take)
            {
                // Each page tells all of them.
                problems = found;
            }
            match page.get("nextCursor").and_then(Value::as_str) {
                Some(cursor) => params = json!({"cursor": cursor}),
                None => return Ok((tools, problems)),
            }
        }
        bail!("expected at most {MOST_PAGES} pages of tools, found more")
    }

    /// Calls a tool of a server.
    pub(crate) async fn call(
        &mut self,
        server: &str,
        tool: &str,
        arguments: Map<String, Value>,
        told: &mut dyn FnMut(Notice),
    ) -> Result<Value> {
        let name = self.name_of(server, tool).await?;
        // Without a token of progress, the client is not told that a call waits.
        let params = json!({"name": name, "arguments": arguments, "_meta": {"progressToken": 1}});
        let answer = self.exchange.request_or_cancel("tools/call", params, told).await;
        match answer {
            Err(error) if error.to_string().contains(UNKNOWN_TOOL) => {
                Err(self.unknown(server, tool, &name).await.unwrap_or(error))
            }
            answer => answer,
        }
    }

    /// What to say of a tool that is not listed, with those that are near; none where it is listed.
    async fn unknown(&mut self, server: &str, tool: &str, name: &str) -> Option<anyhow::Error> {
        let listed = self.tools().await.ok()?;
        let names = listed.iter().filter_map(|it| it.get("name").and_then(Value::as_str));
        let names: Vec<&str> = names.collect();
        if names.contains(&name) {
            return None;
        }
        let parts = names.iter().map(|name| self.parts_of(name));
        let of_server = parts.filter(|(of, _)| of.is_none_or(|of| of == server));
        let tools: Vec<&str> = of_server.map(|(_, tool)| tool).collect();
        let near: Vec<&str> = nearest(tool, &tools).into_iter().take(MOST_NEAR).collect();
        let hint = match near.as_slice() {
            [] => "`chio tools list` lists those that there are".to_owned(),
            near => format!("did you mean {}?", chio_yaml::listed(near, "or")),
        };
        let problem = format!("unknown tool: `{server}` has no `{tool}` that you may call; {hint}");
        Some(Refused::new(problem).into())
    }

    /// Refuses a server that is not among those of the endpoint, where those are known.
    pub(crate) fn check_server(&self, server: &str) -> Result<()> {
        if self.servers.is_empty() || self.servers.iter().any(|known| known == server) {
            return Ok(());
        }
        let known: Vec<&str> = self.servers.iter().map(String::as_str).collect();
        let hint = hint(server, &known);
        Err(Refused::new(format!("there is no server `{server}` here{hint}")).into())
    }

    /// What the endpoint calls a tool of a server: with several servers, `server__tool`.
    async fn name_of(&mut self, server: &str, tool: &str) -> Result<String> {
        let several = format!("{}__{tool}", server_prefix(server));
        if !self.servers.is_empty() {
            self.check_server(server)?;
            return Ok(if self.servers.len() > 1 { several } else { tool.to_owned() });
        }
        let of_server = format!("{}__", server_prefix(server));
        let listed = self.tools().await?;
        let mut names = listed.iter().filter_map(|it| it.get("name").and_then(Value::as_str));
        let qualified = names.any(|name| name.starts_with(&of_server));
        Ok(if qualified { several } else { tool.to_owned() })
    }

    /// The server and the tool of a name that the endpoint has.
    pub(crate) fn parts_of<'a>(&'a self, name: &'a str) -> (Option<&'a str>, &'a str) {
        match self.servers.as_slice() {
            [] => name.split_once("__").map_or((None, name), |(server, tool)| (Some(server), tool)),
            [server] => (Some(server), name),
            several => {
                let of = |server: &'a String| {
                    let tool = name.strip_prefix(&*server_prefix(server))?.strip_prefix("__")?;
                    Some((Some(server.as_str()), tool))
                };
                several.iter().find_map(of).unwrap_or((None, name))
            }
        }
    }

    /// Ends the session. A server that is gone needs no farewell.
    pub(crate) async fn close(self) {
        let _ = self.exchange.end().await;
    }
}
