//! A kernel with a key of its own, whose place in the store is no other's.

use chio_native_edge::NativeClient;
use chio_testkit::key;
use chio_testkit::process::{Server, request, until};
use serde_json::json;

use crate::load::runtime;
use crate::support::{World, at_most, endpoint};

/// Calls that are open when the process dies, so that to close them takes a while.
const OPEN: usize = 60;
const KILLS: usize = 5;

/// Another kernel holds a killed one's place while it closes what was left open there. It is not
/// a reason to refuse to start.
#[test]
fn a_kernel_with_its_own_key_starts_again_while_another_closes_what_it_left_open() {
    let (mut world, runtime) = (World::new(), runtime());
    let mut survivor = world.serve();
    let token = world.token("sleeper", vec![at_most("sleep", 100_000)]);
    world.folder.write_key("own.key", &key(77));
    let start = |world: &World| {
        let mut command = world.serve_command("b.sock");
        Server::start(command.args(["--kernel-key", "own.key"]))
    };
    let mut server = start(&world);
    let own = server.kernel_key();
    for kill in 0..KILLS {
        let client = runtime.block_on(NativeClient::connect(&endpoint(&server))).unwrap();
        for call in 0..OPEN {
            let id = format!("{kill}-{call}");
            let (client, token) = (client.clone(), token.clone());
            runtime.spawn(async move {
                let sleep = request(&id, &token, "sleep", json!({"ms": 60_000}));
                // No server lives to answer it.
                let _ = client.call(sleep, |_, _| ()).await;
            });
        }
        let open = |world: &mut World| world.snapshot().open_in(&own).count();
        until("calls that are held open", || (open(&mut world) == OPEN).then_some(()));
        server.kill();
        until("another to close them", || (open(&mut world) < OPEN).then_some(()));
        server = start(&world);
        world.wait_until_closed();
        world.check(&format!("kill {kill}"));
    }
    server.end();
    survivor.end();
    world.audit("in the end");
}
