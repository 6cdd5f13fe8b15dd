//! Members of the zoo's histories as Keyhive has them: the groups of its crate keyhive_core, version 0.5.0 (efe6ccf3).
//!
//! Takes a line of JSON for each history (`python -m tests.proof.zoo --json`), and prints one: title, members with their
//! permissions, refused steps, what else came out with other keys, and in how many orders of arrival other members came
//! out. Its other crates are keyhive_crypto, future_form, futures, nonempty, rand and serde_json. A demotion is a
//! revocation and a lower delegation; an exclusion keeps those whom the excluded user let in, as far as the remover knows
//! of them. Permissions: read, write (of which Ravel's `manage` is one: it admits nobody), manage for admin and owner.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{stdin, BufRead};
use std::sync::Arc;

use future_form::Sendable;
use futures::executor::block_on;
use futures::lock::Mutex;
use keyhive_core::access::Access;
use keyhive_core::listener::no_listener::NoListener;
use keyhive_core::principal::active::Active;
use keyhive_core::principal::agent::Agent;
use keyhive_core::principal::group::{delegation::Delegation, revocation::Revocation, Group};
use keyhive_core::principal::identifier::Identifier;
use keyhive_core::store::{delegation::DelegationStore, revocation::RevocationStore};
use keyhive_crypto::signed::Signed;
use keyhive_crypto::signer::memory::MemorySigner;
use nonempty::nonempty;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde_json::{json, Value};

type Given = Arc<Signed<Delegation<Sendable, MemorySigner>>>;
type Taken = Arc<Signed<Revocation<Sendable, MemorySigner>>>;
type Room = Group<Sendable, MemorySigner>;
type Members = BTreeMap<String, String>;

const KEYS: u64 = 8;
const ORDERS: u64 = 8;

#[derive(Clone)]
enum Act {
    Given(Given),
    Taken(Taken),
}

struct User {
    name: String,
    signer: MemorySigner,
    agent: Agent<Sendable, MemorySigner>,
}

struct History {
    users: Vec<User>,
    head: Given,
    steps: Vec<(Vec<usize>, Vec<Act>)>, // what a step follows, and its operations in the order in which they were made
    refused: Vec<usize>,
}

fn access(level: &str) -> Access {
    match level {
        "read" => Access::Read,
        "write" | "manage" => Access::Edit,
        _ => Access::Admin,
    }
}

fn level(access: Access) -> String {
    match access {
        Access::Admin => "manage".into(),
        Access::Edit => "write".into(),
        other => other.to_string().to_lowercase(),
    }
}

/// Return a group that has received operations in the order given.
async fn receive(head: &Given, acts: impl Iterator<Item = Act>) -> Room {
    let (delegations, revocations) = (
        Arc::new(Mutex::new(DelegationStore::new())),
        Arc::new(Mutex::new(RevocationStore::new())),
    );
    let id = keyhive_core::principal::group::id::GroupId::new(head.issuer.into());
    let mut room = Group::new(id, head.clone(), delegations, revocations, NoListener).await;
    for act in acts {
        match act {
            Act::Given(one) => drop(room.receive_delegation(one).await.expect("accepted")),
            Act::Taken(one) => drop(room.receive_revocation(one).await.expect("accepted")),
        }
    }
    room
}

fn members(users: &[User], room: &Room) -> Members {
    users
        .iter()
        .filter_map(|user| {
            Some((
                user.name.clone(),
                level(room.get_capability(&user.agent.id())?.payload().can()),
            ))
        })
        .collect()
}

/// Make a step's operations in a group of what it follows; None if a rule refuses one.
async fn take(room: &mut Room, by: &User, named: &User, step: &Value) -> Option<Vec<Act>> {
    let mut acts = Vec::new();
    let wanted = step["level"].as_str().unwrap();
    if step["kind"] == "remove" {
        let id: Identifier = named.agent.id();
        let made = room.revoke_member(id, true, &by.signer, &BTreeMap::new()).await.ok()?;
        if made.revocations().is_empty() {
            return None; // nothing to revoke
        }
        acts.extend(made.revocations().iter().cloned().map(Act::Taken));
        acts.extend(made.redelegations().iter().cloned().map(Act::Given));
    }
    if !wanted.is_empty() {
        let made = room
            .add_member(named.agent.clone(), access(wanted), &by.signer, &[])
            .await
            .ok()?;
        acts.push(Act::Given(made.delegation));
    }
    Some(acts)
}

async fn play(told: &Value, seed: u64) -> History {
    let mut random = StdRng::seed_from_u64(seed);
    let mut users = Vec::new();
    for name in told["names"].as_array().unwrap() {
        let signer = MemorySigner::generate(&mut random);
        let active = Active::generate(signer.clone(), NoListener, &mut random).await.unwrap();
        let agent = Agent::Active(active.id(), Arc::new(Mutex::new(active)));
        users.push(User {
            name: name.as_str().unwrap().into(),
            signer,
            agent,
        });
    }
    let find = |name: &Value| {
        users
            .iter()
            .find(|user| Some(user.name.as_str()) == name.as_str())
            .unwrap()
    };
    let founded: Room = Group::generate(
        nonempty![find(&json!("ann")).agent.clone()],
        Arc::new(Mutex::new(DelegationStore::new())),
        Arc::new(Mutex::new(RevocationStore::new())),
        NoListener,
        Arc::new(Mutex::new(random)),
    )
    .await
    .unwrap();
    let head = founded.delegation_heads().values().next().unwrap().clone();
    let mut steps: Vec<(Vec<usize>, Vec<Act>)> = vec![(vec![], vec![])];
    let mut refused = Vec::new();
    for (number, step) in (1..).zip(told["steps"].as_array().unwrap()) {
        let acks: Vec<usize> = step["acks"]
            .as_array()
            .unwrap()
            .iter()
            .map(|ack| ack.as_u64().unwrap() as usize)
            .collect();
        let mut past = BTreeSet::new();
        let mut waiting = acks.clone();
        while let Some(one) = waiting.pop() {
            past.insert(one);
            waiting.extend(&steps[one].0);
        }
        let known: Vec<Act> = past.iter().flat_map(|one| steps[*one].1.clone()).collect();
        let mut room = receive(&head, known.into_iter()).await;
        let made = take(&mut room, find(&step["author"]), find(&step["user"]), step).await;
        if made.is_none() {
            refused.push(number);
        }
        steps.push((acks, made.unwrap_or_default()));
    }
    History {
        users,
        head,
        steps,
        refused,
    }
}

/// Return members when steps arrive in an order in which each follows what it knew of; drawn from a seed, but 0 as made.
async fn end(history: &History, seed: u64) -> Members {
    let mut random = StdRng::seed_from_u64(seed);
    let mut left: Vec<usize> = (0..history.steps.len()).collect();
    let mut order: Vec<usize> = Vec::new();
    while !left.is_empty() {
        let ready: Vec<usize> = (0..left.len())
            .filter(|at| history.steps[left[*at]].0.iter().all(|ack| order.contains(ack)))
            .collect();
        let at = if seed == 0 {
            ready[0]
        } else {
            ready[random.gen_range(0..ready.len())]
        };
        order.push(left.remove(at));
    }
    let acts = order.into_iter().flat_map(|number| history.steps[number].1.clone());
    members(&history.users, &receive(&history.head, acts).await)
}

async fn answer(told: &Value) -> Value {
    let mut counts: BTreeMap<(Members, Vec<usize>), u64> = BTreeMap::new();
    let mut orders = 0;
    for seed in 0..KEYS {
        let history = play(told, seed).await;
        let made = end(&history, 0).await;
        for order in 1..ORDERS {
            orders += u64::from(end(&history, order).await != made);
        }
        *counts.entry((made, history.refused)).or_default() += 1;
    }
    let mut made: Vec<_> = counts.into_iter().collect();
    made.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let others: Vec<Value> = made[1..]
        .iter()
        .map(|((members, refused), count)| json!({"members": members, "refused": refused, "keys": count}))
        .collect();
    let ((members, refused), count) = &made[0];
    json!({"title": told["title"], "members": members, "refused": refused, "keys": count, "others": others, "other_orders": orders})
}

fn main() {
    for line in stdin().lock().lines() {
        println!("{}", block_on(answer(&serde_json::from_str(&line.unwrap()).unwrap())));
    }
}
