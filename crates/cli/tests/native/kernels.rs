//! Kernels and who vouches for them.

use chio_testkit::key;
use chio_testkit::token::grant;
use serde_json::json;

use crate::support::World;

#[test]
fn the_kernels_of_a_store_are_listed_with_their_logs() {
    let (world, server) = World::served();
    let token = world.token("listed-1", vec![grant("echo")]);
    server.connect().call("1", &token, "echo", json!({"text": "hi"}));
    let listed = world.line("kernel list --data s --json").ends(0).json();
    assert_eq!(listed["authority"], world.authority().public_key().to_hex());
    assert_eq!(listed["stopped"], json!(null));
    let kernel = &listed["kernels"][0];
    assert_eq!(kernel["kernel_key"], server.kernel_key());
    assert_eq!(kernel["receipts"], 1);
    assert_eq!(kernel["certificates"][0]["authority"], listed["authority"]);
    let run = world.line("kernel list --data s").ends(0);
    run.says(&server.kernel_key()).says("certified by ").says("1 receipts");
}

#[test]
fn an_authority_elsewhere_vouches_for_a_kernel_and_audits_hold_from_its_key() {
    let (world, mut server) = World::served();
    let token = world.token("certified-1", vec![grant("echo")]);
    server.connect().call("1", &token, "echo", json!({"text": "hi"}));
    let kernel = server.kernel_key();
    server.end();
    let listed = world.line("kernel list --data s --json").ends(0).json();
    let store = listed["store_id"].as_str().unwrap();

    let elsewhere = World::new();
    let authority = key(5);
    elsewhere.folder.write_key("authority.key", &authority);
    let certify = format!("kernel certify --kernel {kernel} --store-id {store}");
    let line = format!("{certify} --key authority.key --out certificate.json");
    elsewhere.line(&line).ends(0).says("certified");
    world.folder.write("certificate.json", elsewhere.folder.read("certificate.json"));

    let public = authority.public_key().to_hex();
    let audit = format!("log audit --data s --authority {public}");
    world.line(&audit).ends(1).complains("expected an authority that is trusted, found");
    let stranger = key(66).public_key().to_hex();
    let line = format!("kernel admit certificate.json --data s --authority {stranger}");
    world.line(&line).ends(1).complains("expected a certificate by");
    let line = format!("kernel admit certificate.json --data s --authority {public}");
    world.line(&line).ends(0).says("admitted");
    world.line(&audit).ends(0).says("clean");
    // Both authorities vouch for it, also after the kernel has started again.
    world.line("log audit --data s").ends(0);
    world.serve("").end();
    world.line(&audit).ends(0);

    // The other store's own authority can certify too, and a certificate is for one store.
    let line = format!("{certify} --data s");
    assert_eq!(world.line(&line).ends(0).json()["store_id"], store);
    let line = format!("kernel certify --kernel {kernel} --store-id elsewhere --data s");
    world.folder.write("wrong.json", world.line(&line).ends(0).stdout);
    world.line("kernel admit wrong.json --data s").ends(1).complains("expected a certificate for");
    let forged = world.folder.read("certificate.json").replace(store, "another");
    world.folder.write("forged.json", forged);
    world.line("kernel admit forged.json --data s").ends(1).complains("signature");
    let stranger = key(4).public_key().to_hex();
    let line = format!("kernel certify --kernel {stranger} --store-id {store} --data s");
    world.folder.write("nobody.json", world.line(&line).ends(0).stdout);
    // A kernel that is still to come is known from then on.
    world.line("kernel admit nobody.json --data s").ends(0);
    let listed = world.line("kernel list --data s --json").ends(0).json();
    let kernels = listed["kernels"].as_array().unwrap();
    let found = kernels.iter().find(|kernel| kernel["kernel_key"] == stranger);
    assert_eq!(found.unwrap()["receipts"], 0);
}
