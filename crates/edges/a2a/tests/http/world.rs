//! An agent to talk to: a kernel, its tools, the edge, and a listener on a port of its own.

mod tools;
mod wire;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use chio_a2a_edge::{A2aEdgeConfig, A2aService};
use chio_core::capability::{CapabilityToken, PresentedToken};
use chio_core::crypto::PublicKey;
use chio_core::registry::ErrorCode;
use chio_cross_protocol::{
    Admission, CrossProtocolOrchestrator, DiscoveryProtocol, Principal, Refused, Session,
};
use chio_edge::Edge;
use chio_edge::auth::HttpAuth;
use chio_net::auth::{Authenticator, OriginRules};
use chio_net::serve::{ServeLimits, serve};
use chio_store::{OpenStore, StoreUrl};
use chio_testkit::kernel::{
    ChioKernel, Clock, KernelConfig, KernelParts, Pipeline, SystemClock, SystemRandomness,
};
use chio_testkit::{key, token};
use serde_json::{Value, json};
use tokio::net::TcpListener;

pub(crate) use tools::{Told, Tools};
pub(crate) use wire::{Answer, Ask};

/// The token of a client that the door knows.
pub(crate) const BEARER: &str = "0123456789abcdef0123";

/// The seeds of those who take part.
pub(crate) const ISSUER: u8 = 1;
pub(crate) const ALICE: u8 = 2;
pub(crate) const BOB: u8 = 3;
pub(crate) const ELSEWHERE: u8 = 8;

/// Says who is there: a client with a capability is its subject, a client that is known is Bob, and
/// every other client is Alice.
struct TestAdmission {
    orchestrator: Arc<CrossProtocolOrchestrator<'static>>,
    alice: PresentedToken,
    bob: PresentedToken,
}

#[async_trait]
impl Admission for TestAdmission {
    async fn admit(
        &self,
        protocol: DiscoveryProtocol,
        mut principal: Principal,
    ) -> Result<Session, Refused> {
        let token = match &principal.capability {
            Some(token) => {
                // As the real one: calls with a token that has ended, and calls while everything is
                // stopped, are denied by the kernel.
                let known = [
                    ErrorCode::CapabilityRevoked,
                    ErrorCode::CapabilityExpired,
                    ErrorCode::GuardDenied,
                ];
                match self.orchestrator.check_token(token).await {
                    Err(denial) if !known.contains(&denial.code) => {
                        return Err(Refused(denial.reason));
                    }
                    _ => token.clone(),
                }
            }
            None if principal.is_authenticated() => self.bob.clone(),
            None => self.alice.clone(),
        };
        principal.subject = Some(token.subject.clone());
        principal.capability = Some(token);
        Ok(self.orchestrator.open_session(protocol, principal))
    }

    async fn tokens(&self, principal: &Principal) -> Result<Vec<PresentedToken>, Refused> {
        Ok(principal.capability.clone().into_iter().collect())
    }
}

/// How an agent begins.
pub(crate) struct Beginning {
    pub(crate) url: StoreUrl,
    pub(crate) told: Told,
    pub(crate) servers: Vec<(&'static str, Vec<&'static str>)>,
    pub(crate) options: fn(&mut A2aEdgeConfig),
    /// Whether every client has to show something.
    pub(crate) closed: bool,
    /// Whether capabilities are taken.
    pub(crate) capabilities: bool,
    /// What Alice may use.
    pub(crate) granted: &'static [&'static str],
}

impl Default for Beginning {
    fn default() -> Self {
        Self {
            url: StoreUrl::Memory,
            told: Told::default(),
            servers: vec![("srv", vec!["echo"])],
            options: |_| (),
            closed: false,
            capabilities: true,
            granted: &["srv/*", "other/*"],
        }
    }
}

/// An agent.
pub(crate) struct World {
    pub(crate) address: SocketAddr,
    pub(crate) service: A2aService,
    pub(crate) kernel: ChioKernel,
    pub(crate) told: Told,
}

impl World {
    /// An agent with these tools.
    pub(crate) async fn with(tools: &[&'static str]) -> Self {
        let servers = vec![("srv", tools.to_vec())];
        Beginning { servers, ..Beginning::default() }.start().await
    }

    /// A token for everything.
    pub(crate) fn token(&self, seed: u8, id: &str) -> CapabilityToken {
        granted(seed, id, &["srv/*", "other/*"], self.kernel.clock().unix_seconds())
    }

    /// The tools of this agent's server from now on.
    pub(crate) fn offer(&self, tools: &[&'static str]) {
        self.told.offer("srv", tools);
    }
}

fn granted(seed: u8, id: &str, grants: &[&str], now: u64) -> CapabilityToken {
    let grants = grants.iter().map(|grant| token::grant(grant)).collect();
    token::token(&key(ISSUER), key(seed).public_key(), id, grants, now - 1)
}

impl Beginning {
    pub(crate) async fn start(self) -> World {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::default());
        let store = OpenStore::open(&self.url, Arc::clone(&clock)).await.unwrap();
        let slot = store.take_slot(None).await.unwrap();
        let trusted = |seed| -> Vec<PublicKey> { vec![key(seed).public_key().clone()] };
        let config = KernelConfig {
            trusted_issuers: trusted(ISSUER),
            trusted_kernels: trusted(ELSEWHERE),
            ..KernelConfig::default()
        };
        let parts = KernelParts {
            config,
            key: slot.key,
            ledger: slot.ledger,
            store: store.shared(),
            clock,
            randomness: Arc::<SystemRandomness>::default(),
            pipeline: Pipeline::none(),
        };
        let kernel = ChioKernel::start(parts).await.unwrap();
        for (server, tools) in &self.servers {
            self.told.offer(server, tools);
            let tools = Tools::new(server, self.told.clone());
            kernel.register_tool_server(Box::new(tools)).unwrap();
        }
        let orchestrator = Arc::new(CrossProtocolOrchestrator::new(&kernel).detached());
        let now = orchestrator.now();
        let admission = TestAdmission {
            orchestrator: Arc::clone(&orchestrator),
            alice: granted(ALICE, "cap-alice", self.granted, now).into(),
            bob: granted(BOB, "cap-bob", &["srv/*", "other/*"], now).into(),
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let servers = self.servers.iter().map(|(server, _)| (*server).to_owned()).collect();
        let mut options = A2aEdgeConfig::new(servers, format!("http://{address}"));
        (self.options)(&mut options);
        let service = A2aService::new(orchestrator, Arc::new(admission), options).unwrap();
        let mut authenticator = Authenticator::anonymous();
        if self.closed {
            authenticator = authenticator.with_token("bob", BEARER).unwrap();
        }
        let origins = OriginRules::loopback(address.port());
        let auth = HttpAuth { authenticator, origins, capabilities: self.capabilities };
        let router = service.routes(Arc::new(auth)).unwrap();
        let limits = ServeLimits::default();
        tokio::spawn(serve(listener, router, limits, std::future::pending()));
        World { address, service, kernel, told: self.told }
    }
}

impl World {
    /// A request to this agent.
    pub(crate) fn ask(&self, method: &'static str, path: &str) -> Ask {
        Ask::new(self.address, method, path)
    }

    /// A message of JSON-RPC, at this path.
    pub(crate) fn rpc_at(&self, path: &str, method: &str, params: Value) -> Ask {
        let mut body = json!({"jsonrpc": "2.0", "id": 7, "method": method});
        body["params"] = params;
        let ask = self.ask("POST", path).json(&body);
        if method.contains('/') { ask } else { ask.with("A2A-Version", "1.0") }
    }

    /// A message of JSON-RPC.
    pub(crate) fn rpc(&self, method: &str, params: Value) -> Ask {
        self.rpc_at("/", method, params)
    }

    /// Sends a text as 1.0 does. Gives the result.
    pub(crate) async fn send(&self, text: &str) -> Value {
        self.rpc("SendMessage", message(text)).send().await.result()
    }

    /// The task of that result.
    pub(crate) async fn task(&self, text: &str) -> Value {
        self.send(text).await["task"].clone()
    }

    /// A task as 1.0 reads it.
    pub(crate) async fn get(&self, id: &Value) -> Value {
        self.rpc("GetTask", json!({"id": id})).send().await.result()
    }
}

impl World {
    /// A task that runs only when Chio's own dialect asks for it.
    pub(crate) async fn deferred(&self, text: &str) -> Value {
        let parts = json!([{"type": "text", "text": text}]);
        let params = json!({"message": {"role": "user", "parts": parts}});
        self.rpc("message/stream", params).send().await.result()
    }

    /// A task that begins at once.
    pub(crate) async fn begun(&self, text: &str) -> Value {
        let mut params = message(text);
        params["configuration"] = json!({"returnImmediately": true});
        self.rpc("SendMessage", params).send().await.result()["task"].clone()
    }

    /// A task once it does not work any more.
    pub(crate) async fn settled(&self, id: &Value) -> Value {
        for _ in 0..3000 {
            let task = self.get(id).await;
            if task["status"]["state"] != "TASK_STATE_WORKING" {
                return task;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("the task still works");
    }
}

/// The params of a text as 1.0 sends it.
pub(crate) fn message(text: &str) -> Value {
    let parts = json!([{"text": text}]);
    json!({"message": {"messageId": unique("m"), "role": "ROLE_USER", "parts": parts}})
}

/// A name that no other message has, with this beginning.
pub(crate) fn unique(beginning: &str) -> String {
    static NUMBER: AtomicUsize = AtomicUsize::new(1);
    format!("{beginning}-{}", NUMBER.fetch_add(1, Ordering::Relaxed))
}

/// Waits until something is so.
pub(crate) async fn until(mut is_so: impl FnMut() -> bool) {
    for _ in 0..3000 {
        if is_so() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("it is still not so");
}

/// The receipt that a task of A2A carries, which verifies.
pub(crate) fn receipt(task: &Value) -> chio_core::receipt::ChioReceipt {
    let chio = &task["metadata"]["chio"];
    let receipt: chio_core::receipt::ChioReceipt =
        serde_json::from_str(chio["receipt"].as_str().unwrap()).unwrap();
    receipt.verify().unwrap();
    assert_eq!(chio["receiptId"], receipt.id);
    assert_eq!(chio["receiptPending"], false);
    receipt
}

/// The number in the name of a task.
pub(crate) fn number(task: &Value) -> u64 {
    task["id"].as_str().unwrap().strip_prefix("a2a-task-").unwrap().parse().unwrap()
}
