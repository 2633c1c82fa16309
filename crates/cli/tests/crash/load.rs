//! Callers: many at once, on several connections, each call to be told from all others.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use chio_core::capability::CapabilityToken;
use chio_core::message::ToolCallResponse;
use chio_edge::Endpoint;
use chio_native_edge::NativeClient;
use chio_testkit::process::{request, until};
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

use crate::support::{Chance, World};

/// How long the callers may take to notice that they are done. Only a failing test waits for so
/// long.
const PATIENCE: Duration = Duration::from_secs(60);
/// How many names notes have; the notebook does not hold any number.
const NOTE_NAMES: u64 = 50;

/// What callers call.
#[derive(Clone)]
pub(crate) struct Plan {
    /// The tools, and the token for each. Each is called as often as any other.
    pub(crate) calls: Vec<(&'static str, CapabilityToken)>,
    pub(crate) connections: u64,
    /// Callers on each connection.
    pub(crate) callers: u64,
    /// How many calls there are at most, in all.
    pub(crate) most: u64,
    /// How many bytes long texts are at least.
    pub(crate) bulk: usize,
    /// Whether a caller whose connection has ended connects again.
    pub(crate) reconnect: bool,
}

/// Callers at work.
pub(crate) struct Load {
    tasks: JoinSet<()>,
    shared: Arc<Shared>,
}

struct Shared {
    endpoint: Endpoint,
    plan: Plan,
    /// Tells the calls of this load from those of others.
    name: String,
    begun: AtomicU64,
    stop: AtomicBool,
    answers: Mutex<Vec<ToolCallResponse>>,
}

impl Load {
    /// Lets callers loose on a server.
    pub(crate) fn start(
        runtime: &Runtime,
        endpoint: Endpoint,
        plan: &Plan,
        name: String,
        chance: &mut Chance,
    ) -> Self {
        let shared = Arc::new(Shared {
            endpoint,
            plan: plan.clone(),
            name,
            begun: AtomicU64::new(0),
            stop: AtomicBool::new(false),
            answers: Mutex::default(),
        });
        let mut tasks = JoinSet::new();
        let _inside = runtime.enter();
        for _ in 0..plan.connections {
            tasks.spawn(Arc::clone(&shared).connection(chance.fork()));
        }
        Self { tasks, shared }
    }

    /// How many answers have come.
    pub(crate) fn answered(&self) -> usize {
        self.shared.answers.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Waits for this many more answers, and then for up to some milliseconds, in the middle of the
    /// next calls.
    pub(crate) fn wait_for(&self, answers: u64, chance: &mut Chance) {
        let wanted = self.answered() + usize::try_from(answers).unwrap();
        until("answers", || (self.answered() >= wanted).then_some(()));
        chance.pause(0, 10);
    }

    /// Waits until all callers are done: nothing more to call, or no server there any more.
    pub(crate) fn finish(mut self, runtime: &Runtime, world: &mut World) -> usize {
        runtime.block_on(async {
            let all = async { while self.tasks.join_next().await.is_some() {} };
            tokio::time::timeout(PATIENCE, all).await.unwrap();
        });
        let mut answers = self.shared.answers.lock().unwrap_or_else(PoisonError::into_inner);
        let count = answers.len();
        world.record.answers.append(&mut answers);
        count
    }

    /// Lets each caller end the call that it is in, and waits for that.
    pub(crate) fn stop(self, runtime: &Runtime, world: &mut World) -> usize {
        self.shared.stop.store(true, Ordering::Relaxed);
        self.finish(runtime, world)
    }
}

impl Shared {
    fn is_done(&self) -> bool {
        self.stop.load(Ordering::Relaxed) || self.begun.load(Ordering::Relaxed) >= self.plan.most
    }

    async fn connection(self: Arc<Self>, mut chance: Chance) {
        while !self.is_done() {
            if let Ok(client) = NativeClient::connect(&self.endpoint).await {
                let mut callers = JoinSet::new();
                for _ in 0..self.plan.callers {
                    callers.spawn(Arc::clone(&self).caller(client.clone(), chance.fork()));
                }
                callers.join_all().await;
            }
            if !self.plan.reconnect {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    async fn caller(self: Arc<Self>, client: NativeClient, mut chance: Chance) {
        let tools = u64::try_from(self.plan.calls.len()).unwrap();
        loop {
            let number = self.begun.fetch_add(1, Ordering::Relaxed);
            if self.stop.load(Ordering::Relaxed) || number >= self.plan.most {
                return;
            }
            let chosen = usize::try_from(chance.within(0, tools)).unwrap();
            let (tool, token) = &self.plan.calls[chosen];
            let id = format!("{}-{number}", self.name);
            let params = params(tool, &id, self.plan.bulk, &mut chance);
            let Ok(answer) = client.call(request(&id, token, tool, params), |_, _| ()).await else {
                return;
            };
            assert_eq!(answer.id, id);
            self.answers.lock().unwrap_or_else(PoisonError::into_inner).push(answer);
        }
    }
}

/// Parameters that no other call has, where the tool takes any.
pub(crate) fn params(tool: &str, id: &str, bulk: usize, chance: &mut Chance) -> Value {
    let text = format!("{id:.<bulk$}");
    match tool {
        "note_put" => {
            json!({"name": format!("n{}", chance.within(0, NOTE_NAMES)), "text": text})
        }
        "count_to" => json!({"n": chance.within(1, 30)}),
        "sleep" => json!({"ms": 20}),
        _ => json!({"text": text}),
    }
}

/// A runtime for the callers of a test.
pub(crate) fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}
